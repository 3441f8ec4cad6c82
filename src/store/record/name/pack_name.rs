//! Pack file names: a summary of the pack's records.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::store::record::layout::PACKS;
use crate::store::record::name::RecordName;
use crate::store::record::seq_set::SeqSet;

/// A pack's name: its first and last record in conversation order, the lowest and highest number, and the count.
/// Names sort by their first records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PackName {
    pub(crate) first: RecordName,
    pub(crate) last: RecordName,
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
    pub(crate) count: u64,
}

impl PackName {
    /// The name of a pack with one record. [`add`](Self::add) adds more.
    fn of_one(name: RecordName) -> Self {
        Self { first: name, last: name, lowest: name.seq, highest: name.seq, count: 1 }
    }

    /// Adds a record to the name.
    pub(crate) fn add(name: &mut Option<Self>, record: RecordName) {
        match name {
            None => *name = Some(Self::of_one(record)),
            Some(name) => {
                name.first = name.first.min(record);
                name.last = name.last.max(record);
                name.lowest = name.lowest.min(record.seq);
                name.highest = name.highest.max(record.seq);
                name.count += 1;
            }
        }
    }

    /// The name of a pack with both packs' records.
    pub(crate) fn joined(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            lowest: self.lowest.min(other.lowest),
            highest: self.highest.max(other.highest),
            count: self.count + other.count,
        }
    }

    pub(crate) fn seqs(&self) -> RangeInclusive<u64> {
        self.lowest..=self.highest
    }

    /// How many numbers of its range are not in this set.
    pub(crate) fn numbers_beside(&self, others: &SeqSet) -> u64 {
        std::iter::once(self.seqs()).collect::<SeqSet>().without(others).count()
    }

    /// Whether the pack may hold this record, judging by its name.
    pub(crate) fn covers(&self, record: RecordName) -> bool {
        (self.first..=self.last).contains(&record) && self.seqs().contains(&record.seq)
    }

    /// Whether the pack may hold all of another pack's records.
    pub(crate) fn surrounds(&self, other: &Self) -> bool {
        self != other && self.count >= other.count && self.covers_range(other)
    }

    fn covers_range(&self, other: &Self) -> bool {
        self.first <= other.first
            && other.last <= self.last
            && self.lowest <= other.lowest
            && other.highest <= self.highest
    }

    /// The pack's path in the conversation's folder, for findings.
    pub(crate) fn place(&self) -> String {
        format!("{PACKS}/{self}")
    }

    /// The place of one of its records, for findings.
    pub(crate) fn place_of(&self, record: RecordName) -> String {
        format!("{PACKS}/{self}:{record}")
    }
}

impl fmt::Display for PackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, lowest, highest, count } = self;
        write!(f, "{}.{}.{lowest}-{highest}.{count}.pack", first.stem(), last.stem())
    }
}

/// Accepts only what `Display` writes.
impl FromStr for PackName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.strip_suffix(".pack").ok_or(())?.split('.');
        let mut part = || parts.next().ok_or(());
        let (first, last, seqs, count) = (part()?, part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(());
        }
        let (lowest, highest) = seqs.split_once('-').ok_or(())?;
        let number = |digits: &str| {
            let canonical = digits == "0" || !digits.starts_with(['0', '+']);
            digits.parse::<u64>().ok().filter(|_| canonical).ok_or(())
        };
        let name = Self {
            first: RecordName::from_stem(first).ok_or(())?,
            last: RecordName::from_stem(last).ok_or(())?,
            lowest: number(lowest)?,
            highest: number(highest)?,
            count: number(count)?,
        };
        let ends = [name.first, name.last];
        let possible = name.first <= name.last
            && name.count > 0
            && ends.iter().all(|end| !end.is_forget() && name.seqs().contains(&end.seq));
        possible.then_some(name).ok_or(())
    }
}
