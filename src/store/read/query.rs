//! Selects the messages to read, and finds them in a pack.

use std::ops::{Range, RangeInclusive};

use jiff::Timestamp;

use crate::error::Result;
use crate::store::pack::Pack;
use crate::store::pack::pack_lines::PackLines;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;

/// Selects the messages to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RangeQuery {
    Seqs(RangeInclusive<u64>),
    Times(Range<Timestamp>),
}

impl RangeQuery {
    pub(crate) fn has(&self, name: RecordName) -> bool {
        match self {
            Self::Seqs(seqs) => seqs.contains(&name.seq),
            Self::Times(times) => name.time.timestamp().is_some_and(|time| times.contains(&time)),
        }
    }

    /// Whether it selects every message that another query selects.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Seqs(this), Self::Seqs(other)) => {
                this.start() <= other.start() && other.end() <= this.end()
            }
            (Self::Times(this), Self::Times(other)) => {
                this.start <= other.start && other.end <= this.end
            }
            _ => false,
        }
    }

    /// Whether a pack may have any of them.
    pub(crate) fn may_be_in(&self, pack: &PackName) -> bool {
        match self {
            Self::Seqs(seqs) => *seqs.start() <= pack.highest && pack.lowest <= *seqs.end(),
            Self::Times(times) => {
                pack.last.time.timestamp().is_none_or(|last| times.start <= last)
                    && pack.first.time.timestamp().is_none_or(|first| first < times.end)
            }
        }
    }

    /// Whether a pack may have nothing else.
    pub(crate) fn surrounds(&self, pack: &PackName) -> bool {
        match self {
            Self::Seqs(seqs) => *seqs.start() <= pack.lowest && pack.highest <= *seqs.end(),
            Self::Times(_) => self.has(pack.first) && self.has(pack.last),
        }
    }

    /// The part of a pack that has them, found by binary search. Packs are sorted by time; by number too, except in
    /// imported conversations.
    pub(crate) fn part_of(&self, pack: &Pack) -> Result<Range<u64>> {
        let (first, end) = match self {
            Self::Times(times) => {
                let at = |name: RecordName| name.time.timestamp();
                let is_before = |name| at(name).is_some_and(|time| time < times.start);
                let is_over = |name| at(name).is_some_and(|time| time >= times.end);
                let first = PackLines::first_after(pack, is_before)?;
                (first, PackLines::first_near(pack, first, |name| !is_over(name))?)
            }
            Self::Seqs(seqs) => {
                let first = PackLines::first_after(pack, |name| name.seq < *seqs.start())?;
                (first, PackLines::first_near(pack, first, |name| name.seq <= *seqs.end())?)
            }
        };
        Ok(first..end.max(first))
    }
}
