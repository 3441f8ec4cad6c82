//! How far a conversation goes.

use std::ops::RangeInclusive;

use jiff::Timestamp;

use crate::store::record::seq_set::SeqSet;

/// How far a conversation goes at some moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// The highest number ever given; 0 if there is none. A number is never given twice.
    pub last_seq: u64,
    /// Grows with every commit that another one must not overlook.
    pub revision: u64,
    /// The place in time of the newest message that is stored, or a later one. New messages are placed there or after it.
    pub newest: Option<Timestamp>,
    pub(crate) forgotten: SeqSet,
}

impl StoreState {
    /// A state with that highest number, revision and newest place in time, in which nothing was deleted.
    pub fn new(last_seq: u64, revision: u64, newest: Option<Timestamp>) -> Self {
        Self { last_seq, revision, newest, forgotten: SeqSet::default() }
    }

    /// Sets the numbers that were deleted, in any order.
    #[must_use]
    pub fn with_forgotten(mut self, seqs: impl IntoIterator<Item = RangeInclusive<u64>>) -> Self {
        self.forgotten.extend(seqs.into_iter());
        self
    }

    /// The numbers that were deleted, sorted. None of them touches another.
    pub fn forgotten(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.forgotten.ranges()
    }
}
