//! Ranks the matching texts of a search.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use jiff::Timestamp;

use super::words::{Counted, SearchWords};
use crate::store::StoredMessage;

/// The constants of BM25, with their usual values: how fast repetitions of a word stop to count, and how much long
/// texts count less.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// The weight of a word inside a longer word.
const PART: f64 = 0.3;

/// Word frequencies and text lengths of a sample of texts.
pub(super) struct Sample {
    texts: u64,
    bytes: u64,
    having: Vec<u64>,
}

/// How well a text matches.
pub(super) enum Match {
    No,
    /// The text contains all words, or any of them if one suffices. The score is 0 to 1.
    Yes(f64),
}

impl Sample {
    pub(super) fn new(words: &SearchWords) -> Self {
        Self { texts: 0, bytes: 0, having: vec![0; words.len()] }
    }

    pub(super) fn add(&mut self, words: &SearchWords, folded: &str) {
        self.texts += 1;
        self.bytes += folded.len() as u64;
        for (having, counted) in self.having.iter_mut().zip(words.count(folded)) {
            *having += u64::from(counted.whole > 0);
        }
    }

    /// Scores a text. If all words are required, texts with more of them as whole words always come first. BM25
    /// decides the rest: rare words count more than common ones, and short texts more than long ones.
    pub(super) fn rank(
        &self,
        words: &SearchWords,
        folded: &str,
        any: bool,
        only_whole: bool,
    ) -> Match {
        let texts = self.texts.max(1) as f64;
        let length = folded.len() as f64 * texts / self.bytes.max(1) as f64;
        let (mut sum, mut whole, mut missing) = (0.0, 0_usize, 0_usize);
        let each = words.count(folded).zip(&self.having).zip(words.long_enough());
        for ((Counted { whole: by_itself, parts }, having), is_long) in each {
            let parts = if only_whole || (any && !is_long) { 0 } else { parts };
            if by_itself == 0 && parts == 0 {
                missing += 1;
                continue;
            }
            whole += usize::from(by_itself > 0);
            let having = *having as f64;
            let rarity = (1.0 + (texts - having + 0.5).max(0.0) / (having + 0.5)).ln();
            let often = by_itself as f64 + PART * parts as f64;
            let room = SATURATION * (1.0 - LENGTH + LENGTH * length);
            sum += rarity * often * (SATURATION + 1.0) / (often + room);
        }
        if missing == words.len() || (missing > 0 && !any) {
            return Match::No;
        }
        let fine = sum / (1.0 + sum);
        Match::Yes(match any {
            true => fine,
            false => (whole as f64 + fine) / (words.len() as f64 + 1.0),
        })
    }
}

/// Collects the best texts; if scores are equal, the newest. Numbers do not follow time if messages were imported, so
/// the order of arrival does not matter.
pub(super) struct Best {
    limit: usize,
    heap: BinaryHeap<Reverse<Ranked>>,
}

struct Ranked {
    score: f64,
    stored: Arc<StoredMessage>,
}

impl Ranked {
    fn place(&self) -> (Timestamp, u64) {
        (self.stored.ordered_at(), self.stored.seq)
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then_with(|| self.place().cmp(&other.place()))
    }
}

impl Best {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::new() }
    }

    pub(super) fn take(&mut self, score: f64, stored: Arc<StoredMessage>) {
        self.heap.push(Reverse(Ranked { score, stored }));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    pub(super) fn in_order(self) -> impl Iterator<Item = (f64, Arc<StoredMessage>)> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(ranked)| (ranked.score, ranked.stored))
    }
}
