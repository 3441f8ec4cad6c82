//! Turns that may hold a word that is nearly written like another.

use std::cmp::Reverse;

use zeroize::Zeroizing;

use super::{Index, search::narrows};
use crate::{
    near::most_wrong,
    secret::Word,
    text::{fold::fold, language::Language},
};

/// Letters of the shortest stem that is looked at.
const SHORTEST: usize = 3;
/// Letters that an ending adds to a stem.
const ENDING: usize = 6;
/// The most stems that are taken for near, and the most turns of each.
const STEMS: usize = 16;
const TURNS: usize = 4;

impl Index {
    /// Turns whose words may be nearly written like a word without accents, the nearest stems first; `None` if a turn holds the
    /// word itself, or the index does not know whether one does. The caller asks their texts for the [`nearest`](crate::nearest)
    /// word: the index has only stems.
    pub fn near(&mut self, word: &str) -> Option<Vec<u64>> {
        self.refresh();
        let own = Language::ALL.map(|language| language.stem(word));
        if !narrows(word, false)
            || own.iter().any(|stem| self.segments.frequency(stem.as_str()) > 0)
        {
            return None;
        }
        let stems = self.stems_near(word);
        let mut turns = Vec::new();
        for stem in stems {
            let newest = self.segments.entries().collect::<Vec<_>>().into_iter().rev();
            let holding = newest.flat_map(|entry| {
                let segment = &entry.segment;
                let stem = segment.find_stem(stem.as_str());
                let passages = stem.map(|stem| segment.stem_passages(stem)).unwrap_or_default();
                passages.iter().rev().filter_map(|passage| {
                    let holds =
                        |range: &std::ops::Range<usize>| range.contains(&(*passage as usize));
                    Some(segment.turn_passages().find(|(_, range)| holds(range))?.0.seq)
                })
            });
            turns.extend(holding.take(TURNS));
        }
        Some(turns)
    }

    /// Stems that a word may have whose letters are a few wrong, the nearest first, of these the most frequent.
    fn stems_near(&self, word: &str) -> Vec<&Word> {
        let letters = word.chars().count();
        let most = most_wrong(letters);
        let mut plain = Zeroizing::new(String::with_capacity(1024));
        let mut near: Vec<_> = self
            .segments
            .stems()
            .filter_map(|stem| {
                plain.clear();
                plain.extend(fold(stem.as_str()));
                let length = plain.chars().count();
                if length < SHORTEST || length + ENDING < letters || length > letters + most {
                    return None;
                }
                let end = word.char_indices().nth(length).map_or(word.len(), |(end, _)| end);
                let beginning = strsim::osa_distance(&plain, word.get(..end)?);
                let wrong = beginning.min(strsim::osa_distance(&plain, word));
                let frequency = Reverse(self.segments.frequency(stem.as_str()));
                (wrong <= most).then_some((wrong, length.abs_diff(letters), frequency, stem))
            })
            .collect();
        near.sort_unstable();
        near.into_iter().map(|(.., stem)| stem).take(STEMS).collect()
    }
}
