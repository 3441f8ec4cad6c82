//! How far a conversation goes, and what remains of one that was forgotten completely.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::record::seq_set::SeqSet;

/// How far a conversation goes at some moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

/// The number of a conversation in which nothing was ever said: that of the record of one forgotten message.
const LOWEST: u64 = 2;

/// What remains of a conversation that was forgotten completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgottenConversation {
    /// The highest number that it assigned; at least 2, and higher than when it was forgotten before.
    pub(crate) last: u64,
    pub(crate) at: Timestamp,
}

impl ForgottenConversation {
    pub(crate) fn new(last: u64, at: Timestamp) -> Self {
        Self { last: last.max(LOWEST), at }
    }

    /// The entry of a conversation that was forgotten once before: its number is higher, also if nothing was said since.
    pub(crate) fn after(self, before: &Self) -> Self {
        Self { last: self.last.max(before.last + 1), ..self }
    }
}
