//! Conversations that were forgotten completely, as the default conversation's settings list them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The number of a conversation in which nothing was ever said: that of the record of one forgotten message.
const LOWEST: u64 = 2;

/// What remains of a conversation that was forgotten completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgottenConversation {
    /// The highest number that it assigned; at least 2, and higher than when it was forgotten before.
    pub(crate) last: u64,
    pub(crate) at: Timestamp,
}

impl ForgottenConversation {
    pub(crate) fn new(last: u64, at: Timestamp) -> Self {
        Self { last: last.max(LOWEST), at }
    }

    /// The entry of a conversation that was forgotten once before: its number is higher, also if nothing was said since.
    pub(crate) fn after(self, before: &Self) -> Self {
        Self { last: self.last.max(before.last + 1), ..self }
    }
}
