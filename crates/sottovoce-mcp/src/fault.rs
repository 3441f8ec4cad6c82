//! What a tool answers when it cannot do what it was asked.

use std::error::Error as _;

use rmcp::model::{CallToolResult, ContentBlock};
use sottovoce::Error;

/// Why something could not be done, in words for the model that asked. They hold nothing of what anybody said.
#[derive(Debug)]
pub(crate) struct Fault(String);

impl Fault {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    pub(crate) fn reason(&self) -> &str {
        &self.0
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(deeper) = cause {
            reason = format!("{reason}: {deeper}");
            cause = deeper.source();
        }
        Self(format!("{reason}. What helps: {}", error.help()))
    }
}

impl From<Fault> for CallToolResult {
    fn from(Fault(reason): Fault) -> Self {
        Self::error(vec![ContentBlock::text(format!("Error: {reason}"))])
    }
}
