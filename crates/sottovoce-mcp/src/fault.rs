//! Tool errors: what a tool answers if it cannot do what was asked.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use sottovoce::persona::PersonaFailure;
use sottovoce::{Error, with_causes};

/// The reason for a failure, in words for the model that called the tool. It never holds conversation text.
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
        tracing::warn!(error = %with_causes(&error), "a tool failed");
        Self(error.for_clients(&format!("advice: {}", help(&error))))
    }
}

/// Advice for the model: which tool helps after this error.
fn help(error: &Error) -> &'static str {
    let Error::Persona(failure) = error else { return error.help() };
    match failure {
        PersonaFailure::NoSuchConversation { .. } => "context-manage lists the contexts",
        PersonaFailure::NoSuchPreset { .. } => "personality-preset-manage lists the presets",
        PersonaFailure::Expired { .. } => "postpone the expiry with context-manage, action extend",
        PersonaFailure::Deleted { .. } => {
            "restore it with context-manage, action update, isActive true"
        }
        PersonaFailure::Full { .. } => {
            "delete messages with conversation-manage, or create another context"
        }
        PersonaFailure::TooManyConversations { .. } => "delete contexts that are not needed",
        _ => error.help(),
    }
}

/// Why a call ends early.
pub(crate) enum Stop {
    /// The tool failed. The model gets the reason.
    Told(Fault),
    /// The request violates the protocol. The client gets a protocol error.
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
