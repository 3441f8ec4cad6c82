//! The utterance that a prompt answers.

use std::fmt;
use std::sync::Arc;

use crate::message::ChatMessage;
use crate::store::StoredMessage;

/// The utterance that a prompt is built for. `Debug` shows no words.
#[derive(Clone)]
pub enum Utterance {
    /// A stored one. It is left out of the history, whatever the providers return.
    Stored(Arc<StoredMessage>),
    /// One that is not stored, with the current time.
    Unstored(String),
    /// One that is not stored, with the host's metadata.
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

/// A message off the record.
impl From<ChatMessage> for Utterance {
    fn from(message: ChatMessage) -> Self {
        Self::OffRecord(Arc::new(message))
    }
}
