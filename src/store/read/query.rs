//! Selects the messages to read, and finds them in a pack.

use std::ops::{Range, RangeInclusive};

use jiff::Timestamp;

use crate::error::Result;
use crate::store::folder::pack::Pack;
use crate::store::folder::pack::pack_lines::PackLines;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;

/// Names with at most so many numbers between them are read together.
const GAP: u64 = 8;

/// Selects the messages to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RangeQuery {
    Seqs(RangeInclusive<u64>),
    Times(Range<Timestamp>),
    /// Those with these names, sorted.
    Names(Vec<RecordName>),
}

impl RangeQuery {
    pub(crate) fn has(&self, name: RecordName) -> bool {
        match self {
            Self::Seqs(seqs) => seqs.contains(&name.seq),
            Self::Times(times) => name.time.timestamp().is_some_and(|time| times.contains(&time)),
            Self::Names(names) => names.binary_search(&name).is_ok(),
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
            Self::Names(names) => names.iter().any(|name| pack.covers(*name)),
        }
    }

    /// Whether a pack may have nothing else.
    pub(crate) fn surrounds(&self, pack: &PackName) -> bool {
        match self {
            Self::Seqs(seqs) => *seqs.start() <= pack.lowest && pack.highest <= *seqs.end(),
            Self::Times(_) => self.has(pack.first) && self.has(pack.last),
            Self::Names(_) => false,
        }
    }

    /// The parts of a pack that have them, found by binary search. Packs are sorted by time; by number too, except in
    /// imported conversations.
    pub(crate) fn parts_of(&self, pack: &Pack) -> Result<Vec<Range<u64>>> {
        let part = |first, is_over: &dyn Fn(RecordName) -> bool| -> Result<Range<u64>> {
            let end = PackLines::first_near(pack, first, |name| !is_over(name))?;
            Ok(first..end.max(first))
        };
        match self {
            Self::Times(times) => {
                let at = |name: RecordName| name.time.timestamp();
                let is_before = |name| at(name).is_some_and(|time| time < times.start);
                let first = PackLines::first_after(pack, is_before)?;
                let is_over = |name| at(name).is_some_and(|time| time >= times.end);
                Ok(vec![part(first, &is_over)?])
            }
            Self::Seqs(seqs) => {
                let first = PackLines::first_after(pack, |name| name.seq < *seqs.start())?;
                Ok(vec![part(first, &|name| name.seq > *seqs.end())?])
            }
            Self::Names(names) => {
                let here: Vec<_> = names.iter().copied().filter(|n| pack.name.covers(*n)).collect();
                let (mut parts, mut after) = (Vec::new(), 0);
                for run in here.chunk_by(|one, next| next.seq.abs_diff(one.seq) <= GAP) {
                    let (Some(begin), Some(last)) = (run.first(), run.last()) else { continue };
                    let first = PackLines::first_near(pack, after, |name| name < *begin)?;
                    let run = match run.len() {
                        // The line that starts there.
                        1 => first..first + 1,
                        _ => part(first, &|name| name > *last)?,
                    };
                    after = if run.end == first + 1 { first } else { run.end };
                    parts.push(run);
                }
                Ok(parts)
            }
        }
    }
}
