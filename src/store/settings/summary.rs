//! A summary that stands in the place of a conversation's older messages.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::store::record::encoding::StoredMessage;
use crate::store::record::seq_set::SeqSet;

/// A summary of a thread's older messages, which are no context while it stands for them. They stay stored. What was
/// said before the last of them and is not among them, such as what was imported since, is no context either. `Debug`
/// shows no words, and dropping it wipes them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Summary {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    /// When it was made.
    pub at: Timestamp,
    /// The last of the messages' place in time.
    pub until: Timestamp,
    /// The messages' numbers.
    of: SeqSet,
    /// What they say, in short.
    pub text: String,
}

impl Summary {
    pub(crate) fn new(
        thread: Option<String>,
        (at, until): (Timestamp, Timestamp),
        of: SeqSet,
        text: String,
    ) -> Self {
        Self { thread, at, until, of, text }
    }

    /// The thread that it is of; `None` for what was said in none.
    pub fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// How many messages it stands for.
    pub fn messages(&self) -> u64 {
        self.of.count()
    }

    /// Whether it stands for the message of that number.
    pub fn covers(&self, seq: u64) -> bool {
        self.of.contains(seq)
    }

    /// Whether a message of its thread is no context because of it.
    pub fn replaces(&self, stored: &StoredMessage) -> bool {
        stored.ordered_at() < self.until || self.covers(stored.seq)
    }

    /// The numbers of the messages that it stands for.
    pub(crate) fn of(&self) -> &SeqSet {
        &self.of
    }

    pub(crate) fn covers_any(&self, seqs: &SeqSet) -> bool {
        self.of.ranges().any(|range| seqs.intersects(&range))
    }
}

impl fmt::Debug for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summary")
            .field("at", &self.at)
            .field("messages", &self.messages())
            .finish_non_exhaustive()
    }
}

impl Drop for Summary {
    fn drop(&mut self) {
        self.text.zeroize();
    }
}
