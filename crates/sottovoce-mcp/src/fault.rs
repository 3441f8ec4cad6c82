//! What a tool answers when it cannot do what it was asked.

use std::error::Error as _;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use sottovoce::Error;
use sottovoce::persona::PersonaFailure;

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
        Self(format!("{reason}. What helps: {}", help(&error)))
    }
}

/// What a model can do about it with the tools that it has.
fn help(error: &Error) -> &'static str {
    let Error::Context(failure) = error else { return error.help() };
    match failure {
        PersonaFailure::NoSuchContext { .. } => "context-manage lists the contexts",
        PersonaFailure::NoSuchPreset { .. } => "personality-preset-manage lists the presets",
        PersonaFailure::Expired { .. } => "context-manage with the action extend puts that off",
        PersonaFailure::Deleted { .. } => {
            "context-manage with the action update and isActive true takes it back"
        }
        PersonaFailure::Full { .. } => {
            "conversation-manage deletes messages; or make another context"
        }
        PersonaFailure::TooManyContexts { .. } => "delete contexts that are not needed",
        _ => error.help(),
    }
}

/// Why a call ends early.
pub(crate) enum Stop {
    /// The model that made it is told.
    Told(Fault),
    /// It is against the protocol.
    Refused(ErrorData),
}

impl<F: Into<Fault>> From<F> for Stop {
    fn from(fault: F) -> Self {
        Self::Told(fault.into())
    }
}

impl From<Fault> for CallToolResult {
    fn from(Fault(reason): Fault) -> Self {
        Self::error(vec![ContentBlock::text(format!("Error: {reason}"))])
    }
}
