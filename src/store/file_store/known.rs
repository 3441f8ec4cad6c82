//! The messages that a store has or had.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::error::Result;
use crate::store::FileConversationStore;
use crate::store::read::origin_index::OriginIndex;
use crate::store::record::import_digest::{ImportTombstones, Origin};
use crate::store::record::name::RecordName;
use crate::store::write::import_tombstones;

/// The origins of a store's messages up to a sequence number, and of forgotten messages.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Each with its number here; 0 in a preview.
    there: OriginIndex,
    forgotten: ImportTombstones,
    /// The highest sequence number that was read.
    pub(crate) seen: u64,
    /// The revision of the list of forgotten messages.
    pub(crate) noted: u64,
}

impl Known {
    /// Reads the messages that were stored since the last call.
    pub(crate) async fn catch_up(&mut self, store: &FileConversationStore) -> Result<()> {
        let mut there = std::mem::take(&mut self.there);
        let read = store.read_with(move |reader| {
            let seen = there.catch_up(reader)?;
            // A message that is being forgotten meanwhile may be in neither. Then the list gets another revision than
            // this one, and nothing is stored before both are read again. The profile says whether there must be a list.
            let noted = reader.settings()?.imports;
            Ok((there, seen, noted, import_tombstones::all(reader)?))
        });
        (self.there, self.seen, self.noted, self.forgotten) = read.await?;
        Ok(())
    }

    /// Adds messages that were stored, in the order of their numbers, and the highest number then.
    pub(crate) fn note(
        &mut self,
        stored: impl IntoIterator<Item = (Origin, RecordName)>,
        last_seq: u64,
    ) {
        self.there.add(stored);
        self.seen = last_seq;
    }

    /// Adds messages that an import would store.
    pub(crate) fn pretend(&mut self, origins: impl IntoIterator<Item = Origin>) {
        self.there.pretend(origins);
    }

    /// The numbers here of the messages with these origins.
    pub(crate) fn numbers(&self, origins: &BTreeSet<Origin>) -> Vec<RangeInclusive<u64>> {
        let there = origins.iter().filter_map(|origin| self.there.number(*origin));
        there.map(|seq| seq..=seq).collect()
    }

    /// The number here of the message with this origin.
    pub(crate) fn number(&self, origin: Origin) -> Option<u64> {
        self.there.number(origin)
    }

    pub(crate) fn has(&self, origin: Origin) -> bool {
        self.number(origin).is_some()
    }

    /// Whether somebody wanted the message forgotten.
    pub(crate) fn is_unwanted(&self, origin: Origin) -> bool {
        self.forgotten.is_unwanted(origin)
    }

    /// Whether the message was forgotten, or limits removed it.
    pub(crate) fn has_forgotten(&self, origin: Origin) -> bool {
        self.forgotten.has(origin)
    }
}
