//! An index of records by number. It takes some tens of bytes for each, in one allocation.

use std::ops::RangeInclusive;

use crate::store::record::name::RecordName;

#[derive(Debug, Default)]
pub(crate) struct RecordIndex {
    /// Sorted by number and then by name, without duplicates.
    names: Vec<RecordName>,
}

fn key(name: &RecordName) -> (u64, RecordName) {
    (name.seq, *name)
}

impl RecordIndex {
    /// Adds records. Returns whether some were known already or occurred twice.
    pub(crate) fn add(&mut self, mut more: Vec<RecordName>) -> bool {
        let given = more.len();
        more.sort_by_key(key);
        more.dedup();
        // Known records move nothing, however often they are added.
        more.retain(|name| !self.contains(*name));
        let is_doubled = more.len() < given;
        let (Some(first), Some(last)) = (more.first(), more.last()) else {
            return is_doubled;
        };
        let at = self.names.partition_point(|name| key(name) < key(first));
        let is_between = self.names.get(at).is_none_or(|next| key(last) < key(next));
        if is_between {
            self.names.splice(at..at, more);
        } else {
            self.names.extend(more);
            self.names.sort_by_key(key);
        }
        is_doubled
    }

    pub(crate) fn contains(&self, name: RecordName) -> bool {
        self.names.binary_search_by_key(&key(&name), key).is_ok()
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&RecordName) -> bool) {
        self.names.retain(keep);
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = RecordName> + '_ {
        self.names.iter().copied()
    }

    /// The records of each number.
    pub(crate) fn by_number(&self) -> impl Iterator<Item = &[RecordName]> + '_ {
        self.names.chunk_by(|a, b| a.seq == b.seq)
    }

    /// The highest number; 0 if there is none.
    pub(crate) fn highest(&self) -> u64 {
        self.names.last().map_or(0, |name| name.seq)
    }

    /// The numbers as ranges without gaps.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let runs = self.names.chunk_by(|a, b| b.seq - a.seq <= 1);
        runs.filter_map(|run| Some(run.first()?.seq..=run.last()?.seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_record_index_is_a_set_of_names(batches in prop::collection::vec(
            prop::collection::vec((1u64..30, 0..3u64), 0..8), 0..8)
        ) {
            let (mut register, mut model) = (RecordIndex::default(), BTreeSet::new());
            for batch in batches {
                let names: Vec<RecordName> = batch
                    .iter()
                    .map(|(seq, ms)| format!("20250824T163625{ms:03}Z_{seq:04}_user.json").parse().unwrap())
                    .collect();
                let before = model.len();
                model.extend(names.iter().map(|name| (name.seq, *name)));
                prop_assert_eq!(register.add(names.clone()), model.len() < before + names.len());
            }
            prop_assert!(register.names().map(|name| (name.seq, name)).eq(model.iter().copied()));
            let seqs: BTreeSet<u64> = model.iter().map(|(seq, _)| *seq).collect();
            prop_assert!(register.runs().flatten().eq(seqs.iter().copied()));
            prop_assert_eq!(register.by_number().count(), seqs.len());
            prop_assert_eq!(register.highest(), seqs.last().copied().unwrap_or(0));
            prop_assert!(model.iter().all(|(_, name)| register.contains(*name)));
        }
    }
}
