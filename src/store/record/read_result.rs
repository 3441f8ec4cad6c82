//! The result of a read.

use std::sync::Arc;

use crate::error::Result;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::Finding;
use crate::store::record::seq_set::SeqSet;

/// What a read returned, and what it had to leave out.
#[derive(Debug, Clone, Default)]
pub struct ReadResult {
    /// The messages, oldest first.
    pub messages: Vec<Arc<StoredMessage>>,
    /// The highest number assigned so far, to a message or a forget record.
    pub last_seq: u64,
    /// Findings: files that the read skipped, and anything else that looked wrong. Nothing on disk was changed.
    pub skipped: Vec<Finding>,
}

impl ReadResult {
    /// A result with these messages, oldest first, of a conversation with that highest number.
    pub fn new(messages: Vec<Arc<StoredMessage>>, last_seq: u64) -> Self {
        Self { messages, last_seq, skipped: Vec::new() }
    }

    /// Sets what had to be left out.
    #[must_use]
    pub fn with_skipped(self, skipped: Vec<Finding>) -> Self {
        Self { skipped, ..self }
    }

    /// The newest `n` messages of a thread, of a result that holds the newest `asked`; `None` if more must be read.
    pub(crate) fn of_thread(
        mut self,
        thread: Option<&str>,
        n: usize,
        asked: usize,
    ) -> Option<Self> {
        let is_all = self.messages.len() < asked;
        self.messages.retain(|stored| stored.message.thread_id.as_deref() == thread);
        let surplus = self.messages.len().checked_sub(n);
        self.messages.drain(..surplus.unwrap_or(0));
        (is_all || surplus.is_some()).then_some(self)
    }

    /// Fails if the read skipped one of these numbers and another key, a newer program or a later attempt may read
    /// it.
    pub(crate) fn check_readable(&self, seqs: &SeqSet) -> Result<()> {
        let concerns = |finding: &&Finding| {
            finding.seqs.is_some_and(|(first, last)| seqs.intersects(&(first..=last)))
        };
        let refusal = self.skipped.iter().filter(concerns).find_map(Finding::refusal);
        refusal.map_or(Ok(()), Err)
    }
}
