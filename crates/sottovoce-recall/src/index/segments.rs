//! The segments of an index, and how many passages hold each stem.

use std::collections::{BTreeMap, HashMap};

use crate::{secret::Word, segment::Segment};

/// Segments in the order of the conversation.
#[derive(Default)]
pub(super) struct Segments {
    /// Those by the number under which the caller put them, which orders them.
    pub(super) packs: BTreeMap<u64, Entry>,
    /// Small ones after those, the newest last.
    pub(super) tail: Vec<Entry>,
    /// All stems, with the number of passages that hold each.
    stems: HashMap<Word, u32>,
    frequencies: Vec<u32>,
}

/// A segment and what the index adds to it.
pub(super) struct Entry {
    pub(super) segment: Segment,
    /// The index's number of each stem.
    stem_numbers: Vec<u32>,
    /// The earliest and the latest day.
    pub(super) days: Option<(i32, i32)>,
}

impl Segments {
    /// All of them, in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.packs.values().chain(&self.tail)
    }

    /// Counts a segment's stems.
    pub(super) fn entry(&mut self, segment: Segment) -> Entry {
        let mut stem_numbers = Vec::with_capacity(segment.stems.len());
        for (stem, word) in segment.stems.iter().enumerate() {
            let number = match self.stems.get(word) {
                Some(number) => *number,
                None => {
                    let number = self.frequencies.len() as u32;
                    self.stems.insert(word.clone(), number);
                    self.frequencies.push(0);
                    number
                }
            };
            if let Some(frequency) = self.frequencies.get_mut(number as usize) {
                *frequency += segment.stem_passages(stem).len() as u32;
            }
            stem_numbers.push(number);
        }
        let days = segment.turns.iter().map(|turn| turn.day);
        let days = days.clone().min().zip(days.max());
        Entry { segment, stem_numbers, days }
    }

    /// Stops counting a segment's stems.
    pub(super) fn take_out(&mut self, entry: Entry) -> Segment {
        for (stem, number) in entry.stem_numbers.iter().enumerate() {
            if let Some(frequency) = self.frequencies.get_mut(*number as usize) {
                *frequency -= (entry.segment.stem_passages(stem).len() as u32).min(*frequency);
            }
        }
        entry.segment
    }

    /// Numbers all stems again, without those that no passage holds any more, if there are such.
    pub(super) fn drop_gone_stems(&mut self) {
        if !self.frequencies.contains(&0) {
            return;
        }
        self.stems = HashMap::new();
        self.frequencies = Vec::new();
        for (number, entry) in std::mem::take(&mut self.packs) {
            let entry = self.entry(entry.segment);
            self.packs.insert(number, entry);
        }
        for entry in std::mem::take(&mut self.tail) {
            let entry = self.entry(entry.segment);
            self.tail.push(entry);
        }
    }

    /// All stems.
    pub(super) fn stems(&self) -> impl ExactSizeIterator<Item = &Word> {
        self.stems.keys()
    }

    /// Passages that hold a stem.
    pub(super) fn frequency(&self, stem: &str) -> u32 {
        let number = self.stems.get(stem).copied();
        number.and_then(|number| self.frequencies.get(number as usize)).copied().unwrap_or_default()
    }
}
