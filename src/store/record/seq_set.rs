//! Sets of message numbers.

pub(crate) mod forget_record;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::store::record::name::RecordName;

/// A set of numbers: inclusive ranges from 1, sorted, neither overlapping nor adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub(crate) struct SeqSet {
    erased: Vec<(u64, u64)>,
}

/// The ranges before they are checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    erased: Vec<(u64, u64)>,
}

impl TryFrom<Unchecked> for SeqSet {
    type Error = &'static str;

    fn try_from(unchecked: Unchecked) -> Result<Self, Self::Error> {
        Self::try_from(unchecked.erased)
    }
}

impl TryFrom<Vec<(u64, u64)>> for SeqSet {
    type Error = &'static str;

    fn try_from(ranges: Vec<(u64, u64)>) -> Result<Self, Self::Error> {
        let sorted: Self = ranges.iter().map(|&(first, last)| first..=last).collect();
        match sorted.erased == ranges {
            true => Ok(sorted),
            false => Err("the numbers are not in order"),
        }
    }
}

impl SeqSet {
    pub(crate) fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.erased.iter().map(|&(first, last)| first..=last)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.erased.is_empty()
    }

    pub(crate) fn contains(&self, seq: u64) -> bool {
        let after = self.erased.partition_point(|&(first, _)| first <= seq);
        after
            .checked_sub(1)
            .and_then(|at| self.erased.get(at))
            .is_some_and(|&(_, last)| seq <= last)
    }

    /// Every number.
    pub(crate) fn everything() -> Self {
        Self::up_to(u64::MAX)
    }

    /// The numbers from 1 to this one.
    pub(crate) fn up_to(last: u64) -> Self {
        std::iter::once(1..=last).collect()
    }

    /// The end of the range that starts at 1; 0 if there is none.
    pub(crate) fn unbroken(&self) -> u64 {
        self.ranges().next().filter(|run| *run.start() == 1).map_or(0, |run| *run.end())
    }

    /// The highest number; 0 if the set is empty.
    pub(crate) fn highest(&self) -> u64 {
        self.erased.last().map_or(0, |&(_, last)| last)
    }

    /// How many numbers the set has.
    pub(crate) fn count(&self) -> u64 {
        self.ranges().fold(0, |count, range| {
            count.saturating_add(range.end() - range.start()).saturating_add(1)
        })
    }

    /// The lowest `most` numbers.
    pub(crate) fn lowest(&self, most: u64) -> Self {
        let mut left = most;
        let ranges = self.ranges().map_while(|range| {
            let (first, last) = (*range.start(), *range.end());
            let last = last.min(first.saturating_add(left.checked_sub(1)?));
            left -= last - first + 1;
            Some(first..=last)
        });
        ranges.collect()
    }

    /// The ranges of missing numbers below the highest one.
    pub(crate) fn holes(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.ranges()
            .scan(0, |before, range| {
                let hole = *before + 1..=range.start() - 1;
                *before = *range.end();
                Some(hole)
            })
            .filter(|hole| !hole.is_empty())
    }

    /// Whether the set has any of these numbers.
    pub(crate) fn intersects(&self, seqs: &RangeInclusive<u64>) -> bool {
        let before = self.erased.partition_point(|&(_, last)| last < *seqs.start());
        self.erased.get(before).is_some_and(|(first, _)| first <= seqs.end())
    }

    /// The numbers that `other` does not have.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut rest = Vec::new();
        for range in self.ranges() {
            let (mut next, last) = (*range.start(), *range.end());
            let before = other.erased.partition_point(|&(_, end)| end < next);
            let others = other.erased.get(before..).unwrap_or_default().iter();
            for (start, end) in others.take_while(|(start, _)| *start <= last) {
                // Empty if the previous range ends right before this one.
                rest.push(next..=start - 1);
                next = end.saturating_add(1);
            }
            if !other.contains(last) {
                rest.push(next..=last);
            }
        }
        rest.into_iter().collect()
    }

    /// This set plus the numbers of these records.
    pub(crate) fn with(&self, records: &[RecordName]) -> Self {
        let mut all = self.clone();
        all.extend(records.iter().map(|name| name.seq..=name.seq));
        all
    }

    /// Adds ranges in any order, overlapping or not. Ignores empty ranges and 0.
    pub(crate) fn extend(&mut self, ranges: impl Iterator<Item = RangeInclusive<u64>>) {
        let added = ranges.map(|range| ((*range.start()).max(1), *range.end()));
        self.erased.extend(added.filter(|(first, last)| first <= last));
        self.erased.sort_unstable();
        self.erased.dedup_by(|next, kept| {
            let joins = next.0 <= kept.1.saturating_add(1);
            if joins {
                kept.1 = kept.1.max(next.1);
            }
            joins
        });
    }
}

/// Ranges of message numbers in ascending order, without overlapping or neighbouring ones. Ignores empty ranges and 0.
pub fn merged_ranges(
    ranges: impl IntoIterator<Item = RangeInclusive<u64>>,
) -> Vec<RangeInclusive<u64>> {
    ranges.into_iter().collect::<SeqSet>().ranges().collect()
}

/// See [`SeqSet::extend`].
impl FromIterator<RangeInclusive<u64>> for SeqSet {
    fn from_iter<I: IntoIterator<Item = RangeInclusive<u64>>>(ranges: I) -> Self {
        let mut erased = Self::default();
        erased.extend(ranges.into_iter());
        erased
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_of_numbers_is_what_it_is(ranges in prop::collection::vec((0u64..60, 0u64..60), 0..12)) {
            let mut erased = SeqSet::default();
            for (first, last) in &ranges {
                erased.extend([*first..=*last].into_iter());
            }
            for seq in 0..70 {
                let expected = seq > 0 && ranges.iter().any(|(a, b)| (a..=b).contains(&&seq));
                prop_assert_eq!(erased.contains(seq), expected, "{}", seq);
            }
            let (some, others) = ranges.split_at(ranges.len() / 2);
            let of = |ranges: &[(u64, u64)]| {
                let mut erased = SeqSet::default();
                erased.extend(ranges.iter().map(|(a, b)| *a..=*b));
                erased
            };
            let rest = of(some).without(&of(others));
            for seq in 0..70 {
                let expected = of(some).contains(seq) && !of(others).contains(seq);
                prop_assert_eq!(rest.contains(seq), expected, "{}", seq);
                prop_assert_eq!(rest.intersects(&(seq..=seq)), expected, "{}", seq);
            }
            let json = serde_json::to_vec(&erased).unwrap();
            prop_assert_eq!(serde_json::from_slice::<SeqSet>(&json).unwrap(), erased);
        }
    }
}
