//! The imported messages that a store has or had.

use std::collections::{BTreeSet, HashSet};

use crate::error::Result;
use crate::store::commit::import_tombstones;
use crate::store::record::import_digest::Origin;
use crate::store::{ConversationStore, Document, FileConversationStore, Finding};

/// The sequence numbers that are read at a time.
pub(super) const STRETCH: u64 = 16_384;

/// The origins of a store's messages up to a sequence number, and of forgotten messages.
#[derive(Debug, Default)]
pub(super) struct Known {
    there: HashSet<Origin>,
    forgotten: BTreeSet<Origin>,
    /// The highest sequence number that was read.
    pub(super) seen: u64,
}

impl Known {
    /// Reads the messages that were stored since the last call.
    pub(super) async fn catch_up(&mut self, store: &FileConversationStore) -> Result<()> {
        loop {
            let reading =
                store.read_kept(self.seen + 1..=self.seen.saturating_add(STRETCH)).await?;
            // An unreadable record may be a message of this import, so the import ends. A damaged one is imported anew,
            // which repairs it.
            if let Some(refusal) = reading.skipped.iter().find_map(Finding::refusal) {
                return Err(refusal);
            }
            self.there.extend(reading.messages.iter().filter_map(|m| Origin::of(&m.message)));
            let end = self.seen.saturating_add(STRETCH);
            self.seen = end.min(reading.last_seq);
            if reading.last_seq <= end {
                break;
            }
        }
        // The list of forgotten messages is read after the messages: forgetting writes the list first, so that a
        // message forgotten meanwhile is found in one of the two. The profile says whether there must be a list.
        let profile = store.profile().await?;
        let bytes = store.read_document(Document::Imports).await?;
        let bytes = bytes.as_ref().map(|bytes| bytes.as_slice());
        self.forgotten = import_tombstones::current(&store.reader().folder, &profile, bytes)?;
        Ok(())
    }

    pub(super) fn note(&mut self, origins: impl IntoIterator<Item = Origin>, last_seq: u64) {
        self.there.extend(origins);
        self.seen = last_seq;
    }

    pub(super) fn has(&self, origin: Origin) -> bool {
        self.there.contains(&origin)
    }

    pub(super) fn has_forgotten(&self, origin: Origin) -> bool {
        self.forgotten.contains(&origin)
    }
}
