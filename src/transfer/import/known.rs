//! The messages that a store has or had.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::error::Result;
use crate::store::commit::import_tombstones;
use crate::store::record::import_digest::Origin;
use crate::store::{FileConversationStore, Finding, StoredMessage, blocking};

/// The sequence numbers that are read at a time.
pub(super) const STRETCH: u64 = 16_384;

/// The origins of a store's messages up to a sequence number, and of forgotten messages.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Each with its number here; 0 in a preview.
    there: HashMap<Origin, u64>,
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
            let origin = |stored: &StoredMessage| {
                Origin::of_stored(store.scope(), stored.seq, &stored.message)
            };
            let origins = reading.messages.iter();
            self.there.extend(origins.filter_map(|stored| Some((origin(stored)?, stored.seq))));
            let end = self.seen.saturating_add(STRETCH);
            self.seen = end.min(reading.last_seq);
            if reading.last_seq <= end {
                break;
            }
        }
        // The list of forgotten messages is read after the messages: forgetting writes the list first, so that a
        // message forgotten meanwhile is found in one of the two. The profile says whether there must be a list.
        self.forgotten = forgotten(store).await?;
        Ok(())
    }

    pub(super) fn note(&mut self, origins: impl IntoIterator<Item = (Origin, u64)>, last_seq: u64) {
        self.there.extend(origins);
        self.seen = last_seq;
    }

    /// The numbers here of the messages with these origins.
    pub(super) fn numbers(&self, origins: &BTreeSet<Origin>) -> Vec<RangeInclusive<u64>> {
        let there = origins.iter().filter_map(|origin| self.there.get(origin));
        there.map(|seq| *seq..=*seq).collect()
    }

    /// The number here of the message with this origin.
    pub(super) fn number(&self, origin: Origin) -> Option<u64> {
        self.there.get(&origin).copied()
    }

    pub(super) fn has(&self, origin: Origin) -> bool {
        self.there.contains_key(&origin)
    }

    pub(super) fn has_forgotten(&self, origin: Origin) -> bool {
        self.forgotten.contains(&origin)
    }
}

/// The origins of the messages that were forgotten here.
pub(super) async fn forgotten(store: &FileConversationStore) -> Result<BTreeSet<Origin>> {
    let reader = Arc::clone(store.reader());
    blocking(move || import_tombstones::all(&reader)).await
}
