//! Notices what a server leaves out, repeats or empties
//!
//! Each writer counts its records within their seals. The numbers of one device that were never read are those that the server holds
//! back, unless they belong to records that were forgotten, whose numbers nobody knows any more, or to none, as the device says.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sottovoce_team_api::{Id, Rid};

/// What was seen of a conversation's records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    devices: BTreeMap<Id, Device>,
    /// Records without contents of which no member has said yet that they were forgotten.
    unexplained: BTreeSet<Rid>,
}

/// What was seen of one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Device {
    /// The number of the newest record of each writer, and how many were read.
    writers: BTreeMap<Id, (u64, u64)>,
    /// How many records had no contents.
    emptied: u64,
    /// How many numbers no record has, as the device last said.
    void: u64,
}

impl Device {
    /// How many numbers were not read, with so many that are newer than all records. A member may claim any numbers.
    fn missing(&self, newer: u64) -> u64 {
        let missing = self.writers.values().map(|(n, read)| n.saturating_sub(*read));
        missing.fold(newer, u64::saturating_add).saturating_sub(self.emptied)
    }
}

impl Seen {
    /// Notes a record that was opened. Returns whether it is in its place: the server may not repeat or swap records of one
    /// writer.
    pub(crate) fn note(&mut self, device: Id, writer: Id, n: u64) -> bool {
        let device = self.devices.entry(device).or_default();
        let (newest, read) = device.writers.entry(writer).or_default();
        let is_next = n > *newest;
        if is_next {
            (*newest, *read) = (n, *read + 1);
        }
        is_next
    }

    /// Notes how many numbers of a device no record has.
    pub(crate) fn note_void(&mut self, device: Id, void: u64) {
        let device = self.devices.entry(device).or_default();
        device.void = void.max(device.void);
    }

    /// The number of a writer's newest record.
    pub(crate) fn newest(&self, device: Id, writer: Id) -> u64 {
        let newest = self.devices.get(&device).and_then(|device| device.writers.get(&writer));
        newest.map_or(0, |(n, _)| *n)
    }

    /// How many numbers of a device were not read, if this writer has used the first `n`.
    pub(crate) fn missing(&self, device: Id, writer: Id, n: u64) -> u64 {
        let newer = n.saturating_sub(self.newest(device, writer));
        self.devices.get(&device).map_or(newer, |device| device.missing(newer))
    }

    /// How many numbers of a device no record has, as it said.
    pub(crate) fn void(&self, device: Id) -> u64 {
        self.devices.get(&device).map_or(0, |device| device.void)
    }

    /// Notes a record without contents.
    pub(crate) fn note_emptied(&mut self, device: Id, rid: Rid) {
        self.devices.entry(device).or_default().emptied += 1;
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
        let withheld =
            self.devices.values().map(|device| device.missing(0).saturating_sub(device.void));
        withheld.fold(0, u64::saturating_add)
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
        assert!(
            seen.note(id(1), id(1), 1) && seen.note(id(2), id(2), 1) && seen.note(id(1), id(1), 3)
        );
        assert_eq!(seen.withheld(), 1);
        seen.note_emptied(id(1), Rid::new([9; 32]));
        assert_eq!((seen.withheld(), seen.unexplained()), (0, 1));
        seen.explain([Rid::new([9; 32])]);
        assert_eq!((seen.withheld(), seen.unexplained()), (0, 0));
    }

    #[test]
    fn numbers_of_records_that_the_server_had_already_are_no_gap() {
        let mut seen = Seen::default();
        // The store has another number since it was restored.
        assert!(
            seen.note(id(1), id(1), 1) && seen.note(id(1), id(1), 5) && seen.note(id(1), id(3), 1)
        );
        assert_eq!((seen.withheld(), seen.missing(id(1), id(3), 2)), (3, 4));
        seen.note_void(id(1), 3);
        assert_eq!(seen.withheld(), 0);
        assert!(seen.note(id(2), id(3), 2));
        assert_eq!(seen.withheld(), 1, "one device speaks for another one");
    }

    #[test]
    fn numbers_that_are_too_large_to_be_counted_are_many() {
        let mut seen = Seen::default();
        assert!(seen.note(id(1), id(1), u64::MAX) && seen.note(id(2), id(2), u64::MAX));
        assert_eq!(seen.withheld(), u64::MAX);
    }

    #[test]
    fn a_repeated_or_swapped_record_is_out_of_place() {
        let mut seen = Seen::default();
        assert!(seen.note(id(1), id(1), 2));
        assert!(!seen.note(id(1), id(1), 2) && !seen.note(id(1), id(1), 1));
    }
}
