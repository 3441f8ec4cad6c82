//! Summaries, which replace a conversation's older messages in prompts.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::store::record::encoding::StoredMessage;
use crate::store::record::seq_set::SeqSet;

/// A summary of a thread's older messages. Prompts contain it instead of them, and instead of any other message
/// before the last of them, such as one that was imported later. The messages stay stored. `Debug` shows no words,
/// and dropping it wipes them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Summary {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    /// When the summary was made.
    pub at: Timestamp,
    /// The ordering time of the last message that it covers.
    pub until: Timestamp,
    /// The numbers of the messages.
    of: SeqSet,
    /// The summary's text.
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

    /// A summary that says `text` about these messages of a thread, which are in conversation order.
    pub fn of_messages(
        thread: Option<String>,
        at: Timestamp,
        messages: &[Arc<StoredMessage>],
        text: impl Into<String>,
    ) -> Self {
        let until = messages.last().map_or(at, |last| last.ordered_at());
        let of = messages.iter().map(|stored| stored.seq..=stored.seq).collect();
        Self::new(thread, (at, until), of, text.into())
    }

    /// The thread that it is of; `None` for what was said in none.
    pub fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// How many messages it covers.
    pub fn messages(&self) -> u64 {
        self.of.count()
    }

    /// Whether it covers the message with this number.
    pub fn covers(&self, seq: u64) -> bool {
        self.of.contains(seq)
    }

    /// Whether prompts leave out a message of its thread because of the summary.
    pub fn replaces(&self, stored: &StoredMessage) -> bool {
        stored.ordered_at() < self.until || self.covers(stored.seq)
    }

    /// The numbers of the messages that it covers.
    pub(crate) fn of(&self) -> &SeqSet {
        &self.of
    }

    pub(crate) fn covers_any(&self, seqs: &SeqSet) -> bool {
        self.of.ranges().any(|range| seqs.intersects(&range))
    }
}

debug_shows!(Summary as it: at, messages = it.messages());

impl Drop for Summary {
    fn drop(&mut self) {
        self.text.zeroize();
    }
}
