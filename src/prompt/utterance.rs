//! What is being answered.

use std::fmt;
use std::sync::Arc;

use crate::message::ChatMessage;
use crate::store::StoredMessage;

/// The utterance that a prompt is built for. `Debug` shows no words.
#[derive(Clone)]
pub enum Utterance {
    /// One that is stored: it is left out of the history, whatever the providers return.
    Stored(Arc<StoredMessage>),
    /// One that is not stored, said now.
    Unstored(String),
    /// One that is not stored, with what the host knows of it.
    OffRecord(Arc<ChatMessage>),
}

impl fmt::Debug for Utterance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(stored) => f.debug_tuple("Stored").field(stored).finish(),
            Self::OffRecord(message) => f.debug_tuple("OffRecord").field(message).finish(),
            Self::Unstored(text) => write!(f, "Unstored({} bytes)", text.len()),
        }
    }
}

impl From<Arc<StoredMessage>> for Utterance {
    fn from(stored: Arc<StoredMessage>) -> Self {
        Self::Stored(stored)
    }
}

impl From<&str> for Utterance {
    fn from(text: &str) -> Self {
        Self::Unstored(text.to_owned())
    }
}

/// Off the record.
impl From<ChatMessage> for Utterance {
    fn from(message: ChatMessage) -> Self {
        Self::OffRecord(Arc::new(message))
    }
}
