//! Conversations that were forgotten completely, as the default conversation's settings list them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What remains of a conversation that was forgotten completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgottenConversation {
    /// The highest number that it assigned.
    pub(crate) last: u64,
    pub(crate) at: Timestamp,
}

impl ForgottenConversation {
    pub(crate) fn new(last: u64, at: Timestamp) -> Self {
        Self { last, at }
    }
}
