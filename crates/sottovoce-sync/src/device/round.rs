//! What one head is to add to the stream

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use zeroize::Zeroizing;

use crate::device::state::{Covered, Own, Published};
use crate::id::Id;
use crate::stream::change::Batch;

/// The most bytes of text that are collected for one head.
const FULL: usize = 64 << 20;

/// What one head is to add to the stream.
#[derive(Default)]
pub(super) struct Round {
    /// The batches, still without the numbers of their publishes, with what they cover and their size.
    pub(super) batches: Vec<(Batch, Covered, usize)>,
    bytes: usize,
    /// What is published of each conversation afterwards.
    pub(super) scopes: BTreeMap<String, Published>,
    /// Numbers of messages that were forgotten here, whose segments are to be written again without them.
    pub(super) erased: BTreeMap<String, Vec<RangeInclusive<u64>>>,
    /// Conversations of which published settings have changed.
    pub(super) purged: BTreeSet<String>,
    /// Conversations that were forgotten completely.
    pub(super) removed: BTreeSet<String>,
    /// The objects with the contents of new artifacts, and of deleted ones.
    pub(super) pieces: BTreeMap<String, Vec<Id>>,
    pub(super) dropped: Vec<String>,
    pub(super) said: usize,
    pub(super) forgotten: usize,
    /// Whether there is more to publish.
    pub(super) is_cut: bool,
}

impl Round {
    pub(super) fn push(&mut self, batch: Batch, covered: Covered) {
        if batch.is_empty() {
            return;
        }
        let bytes = serde_json::to_vec(&batch).map_or(0, |text| Zeroizing::new(text).len());
        self.bytes += bytes;
        self.said += batch.said.len();
        self.forgotten += batch.gone.len();
        self.batches.push((batch, covered, bytes));
    }

    /// Whether it is as large as one head's share may be.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= FULL
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.erased.is_empty() && self.purged.is_empty()
    }

    /// Notes in the stream's state what the round publishes.
    pub(super) fn note_in(&mut self, own: &mut Own) {
        own.scopes.append(&mut self.scopes);
        own.pieces.append(&mut self.pieces);
        self.dropped.iter().for_each(|id| drop(own.pieces.remove(id)));
    }

    /// Whether something that a segment has of a conversation may have to go.
    pub(super) fn concerns(&self, scope: &str, covered: Covered) -> bool {
        let erased = self.erased.get(scope).is_some_and(|erased| {
            let meets = |(first, last): (u64, u64)| {
                erased.iter().any(|range| *range.start() <= last && first <= *range.end())
            };
            covered.seqs.is_some_and(meets)
        });
        let set = covered.set && (self.purged.contains(scope) || self.removed.contains(scope));
        erased || set
    }
}
