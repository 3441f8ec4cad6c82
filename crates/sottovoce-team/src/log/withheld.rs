//! Notices what a server leaves out, repeats or empties
//!
//! Each writer counts its records within their seals. The numbers of one writer that were never read are those that the server holds
//! back, unless they belong to records that were forgotten, whose numbers nobody knows any more.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sottovoce_team_api::{Id, Rid};

/// What was seen of a conversation's records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    writers: BTreeMap<Id, Writer>,
    /// How many records had no contents.
    emptied: u64,
    /// Those of them of which no member has said yet that they were forgotten.
    unexplained: BTreeSet<Rid>,
}

/// What was seen of one writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Writer {
    /// The number of its newest record.
    n: u64,
    /// How many were read.
    read: u64,
    /// How many numbers no record has, as its store last said.
    void: u64,
}

/// Whose numbers those of a record are: the store's that it names, at the device that the server attests. So no member can use up
/// another one's numbers.
pub(crate) fn writer_at(store: Id, device: Id) -> Id {
    let digest = Sha256::new().chain_update(store.as_bytes()).chain_update(device.as_bytes());
    let digest: [u8; 32] = digest.finalize().into();
    Id::new(*digest.first_chunk().unwrap_or(&[0; 16]))
}

impl Seen {
    /// Notes a record that was opened. Returns whether it is in its place: the server may not repeat or swap records of one
    /// writer.
    pub(crate) fn note(&mut self, writer: Id, n: u64) -> bool {
        let writer = self.writers.entry(writer).or_default();
        if n <= writer.n {
            return false;
        }
        *writer = Writer { n, read: writer.read + 1, ..*writer };
        true
    }

    /// Notes how many numbers of a writer no record has, once one of its records was read.
    pub(crate) fn note_void(&mut self, writer: Id, void: u64) {
        if let Some(writer) = self.writers.get_mut(&writer) {
            writer.void = void.max(writer.void);
        }
    }

    /// The number of a writer's newest record.
    pub(crate) fn newest(&self, writer: Id) -> u64 {
        self.writers.get(&writer).map_or(0, |writer| writer.n)
    }

    /// How many numbers of a writer were not read, up to its newest record's and at least to `n`.
    pub(crate) fn missing(&self, writer: Id, n: u64) -> u64 {
        self.writers.get(&writer).map_or(n, |writer| n.max(writer.n).saturating_sub(writer.read))
    }

    /// How many numbers of a writer no record has, as its store said.
    pub(crate) fn void(&self, writer: Id) -> u64 {
        self.writers.get(&writer).map_or(0, |writer| writer.void)
    }

    /// Notes a record without contents.
    pub(crate) fn note_emptied(&mut self, rid: Rid) {
        self.emptied += 1;
        self.unexplained.insert(rid);
    }

    /// Notes that a member has forgotten these records.
    pub(crate) fn explain(&mut self, rids: impl IntoIterator<Item = Rid>) {
        for rid in rids {
            self.unexplained.remove(&rid);
        }
    }

    /// Whether nothing was held back or emptied, once everything was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.unexplained.is_empty() && self.withheld() == 0
    }

    /// How many records the server emptied though no member asked for that, once everything was read.
    pub(crate) fn unexplained(&self) -> usize {
        self.unexplained.len()
    }

    /// How many records the server holds back at least, once everything was read.
    pub(crate) fn withheld(&self) -> u64 {
        let missing = self
            .writers
            .values()
            .map(|writer| writer.n.saturating_sub(writer.read).saturating_sub(writer.void));
        // A member may claim any numbers.
        missing.fold(0, u64::saturating_add).saturating_sub(self.emptied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> Id {
        Id::new([n; 16])
    }

    #[test]
    fn a_gap_in_a_writers_numbers_shows_and_one_of_a_forgotten_record_does_not() {
        let mut seen = Seen::default();
        assert!(seen.note(id(1), 1) && seen.note(id(2), 1) && seen.note(id(1), 3));
        assert_eq!(seen.withheld(), 1);
        seen.note_emptied(Rid::new([9; 32]));
        assert_eq!((seen.withheld(), seen.unexplained()), (0, 1));
        seen.explain([Rid::new([9; 32])]);
        assert_eq!((seen.withheld(), seen.unexplained()), (0, 0));
    }

    #[test]
    fn numbers_of_records_that_the_server_had_already_are_no_gap() {
        let mut seen = Seen::default();
        assert!(seen.note(id(1), 1) && seen.note(id(1), 5));
        seen.note_void(id(1), 3);
        assert_eq!(seen.withheld(), 0);
    }

    #[test]
    fn numbers_that_are_too_large_to_be_counted_are_many() {
        let mut seen = Seen::default();
        assert!(seen.note(id(1), u64::MAX) && seen.note(id(2), u64::MAX));
        assert_eq!(seen.withheld(), u64::MAX);
    }

    #[test]
    fn a_repeated_or_swapped_record_is_out_of_place() {
        let mut seen = Seen::default();
        assert!(seen.note(id(1), 2));
        assert!(!seen.note(id(1), 2) && !seen.note(id(1), 1));
    }
}
