//! Candidates of a search: the turns that hold all its words, by their stems.

use super::{Entry, Index};
use crate::{
    search::SearchQuery,
    secret::Word,
    segment::Segment,
    text::{language::Language, lists::lists, words::is_unspaced},
};

impl Index {
    /// The turns that may match a search and pass its filters, newest first. The caller fetches their texts and asks
    /// [`SearchQuery::matches`]: stop words and the order of words are not in the index.
    pub fn search(&mut self, query: &SearchQuery, visible: impl Fn(u64) -> bool) -> Vec<u64> {
        self.refresh();
        let words: Vec<&str> =
            query.phrases.iter().flatten().map(Word::as_str).filter(|word| narrows(word)).collect();
        let mut found = Vec::new();
        let entries: Vec<&Entry> = self.entries().collect();
        for entry in entries.into_iter().rev() {
            let segment = &entry.segment;
            let turns = candidates(segment, &words);
            let passing = segment.turns.iter().zip(turns).rev().filter(|(turn, is_candidate)| {
                *is_candidate
                    && query.passes(turn.role, segment.speaker(turn), turn.day)
                    && visible(turn.seq)
            });
            found.extend(passing.map(|(turn, _)| turn.seq));
        }
        found
    }
}

/// Whether the index knows where a word stands in every language.
fn narrows(word: &str) -> bool {
    let traits = lists().traits(word);
    let is_single = word.chars().nth(1).is_none() && word.chars().all(is_unspaced);
    !is_single && !Language::ALL.iter().any(|language| traits.is_stop(*language))
}

/// Whether each turn of a segment holds all words, in any form.
fn candidates(segment: &Segment, words: &[&str]) -> Vec<bool> {
    let mut turn_of = vec![0u32; segment.passages.len()];
    for (number, (_, passages)) in (0..).zip(segment.turn_passages()) {
        turn_of.get_mut(passages).unwrap_or_default().fill(number);
    }
    let mut all = vec![true; segment.turns.len()];
    for word in words {
        let mut holds = vec![false; segment.turns.len()];
        for language in Language::ALL {
            let stem = segment.find_stem(language.stem(word).as_str());
            for passage in stem.map(|stem| segment.stem_passages(stem)).unwrap_or_default() {
                let turn = turn_of.get(*passage as usize);
                if let Some(holds) = turn.and_then(|turn| holds.get_mut(*turn as usize)) {
                    *holds = true;
                }
            }
        }
        all.iter_mut().zip(holds).for_each(|(all, holds)| *all &= holds);
    }
    all
}
