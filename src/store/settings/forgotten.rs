//! Conversations that were forgotten whole, as the default conversation's settings list them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What is kept of a conversation that was forgotten whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgottenConversation {
    /// The highest number that it gave.
    pub(crate) last: u64,
    pub(crate) at: Timestamp,
}

impl ForgottenConversation {
    pub(crate) fn new(last: u64, at: Timestamp) -> Self {
        Self { last, at }
    }
}
