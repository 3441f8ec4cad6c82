//! What a read gives.

use std::sync::Arc;

use crate::error::Result;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::Finding;
use crate::store::record::seq_set::SeqSet;

/// What a read found, and what it had to leave out.
#[derive(Debug, Clone, Default)]
pub struct ReadResult {
    /// Messages, oldest first.
    pub messages: Vec<Arc<StoredMessage>>,
    /// The highest number given so far, to whatever record.
    pub last_seq: u64,
    /// Files that were passed over on the way, and anything else that looked wrong; each stays as it is on disk.
    pub skipped: Vec<Finding>,
}

impl ReadResult {
    /// Refuses where one of these numbers was left out that another key, a newer program or another time may give.
    pub(crate) fn check_readable(&self, seqs: &SeqSet) -> Result<()> {
        let concerns = |finding: &&Finding| {
            finding.seqs.is_some_and(|(first, last)| seqs.intersects(&(first..=last)))
        };
        let refusal = self.skipped.iter().filter(concerns).find_map(Finding::refusal);
        refusal.map_or(Ok(()), Err)
    }
}
