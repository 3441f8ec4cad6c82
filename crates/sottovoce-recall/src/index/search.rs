//! Candidates of a search: the turns that may hold all its words, by their stems.

use std::{collections::HashSet, sync::OnceLock};

use zeroize::Zeroizing;

use super::{Index, segments::Entry};
use crate::{
    search::SearchQuery,
    secret::Word,
    segment::Segment,
    text::{fold::fold, language::Language, passages::MOST, stop_words, words::is_unspaced},
};

/// Letters at the end of a stem that its accents may have changed.
const CHANGED: usize = 2;
/// Letters of the shortest stem that is taken for the beginning of a longer word.
const SHORTEST: usize = 3;

impl Index {
    /// The turns that may match a search and pass its filters, newest first. The caller fetches their texts and asks
    /// [`SearchQuery::matches`]: stop words and the order of words are not in the index.
    pub fn search(&mut self, query: &SearchQuery) -> Vec<u64> {
        self.refresh();
        let words = query.phrases.iter().flat_map(|phrase| phrase.words());
        let stems: Vec<Vec<&Word>> = words
            .filter(|(word, may_go_on)| narrows(word, *may_go_on))
            .map(|(word, may_go_on)| self.stems_of(word, may_go_on))
            .collect();
        let mut found = Vec::new();
        let entries: Vec<&Entry> = self.segments.entries().collect();
        for entry in entries.into_iter().rev() {
            let segment = &entry.segment;
            let turns = candidates(segment, &stems);
            let passing = segment.turns.iter().zip(turns).rev().filter(|(turn, is_candidate)| {
                *is_candidate && query.passes(turn.role, segment.speaker(turn), turn.day)
            });
            found.extend(passing.map(|(turn, _)| turn.seq));
        }
        found
    }

    /// The numbers of all turns.
    pub fn seqs(&self) -> impl Iterator<Item = u64> {
        let noted = self.noted.iter().map(|turn| turn.seq);
        self.segments.entries().flat_map(|entry| entry.segment.seqs()).chain(noted)
    }

    /// The stems that a word in any language may have, whatever its accents are.
    fn stems_of(&self, word: &str, may_go_on: bool) -> Vec<&Word> {
        let own: HashSet<Word> = Language::ALL.iter().map(|language| language.stem(word)).collect();
        let mut plain = Zeroizing::new(String::with_capacity(1024));
        let may_be = |stem: &&Word| {
            if own.contains(*stem) {
                return true;
            }
            plain.clear();
            plain.extend(fold(stem.as_str()));
            let alike = word.chars().zip(plain.chars()).take_while(|(a, b)| a == b).count();
            let length = plain.chars().count();
            match (may_go_on, stem.as_str().is_ascii()) {
                (true, _) => {
                    alike >= length.min(word.chars().count()).saturating_sub(CHANGED).max(1)
                }
                (false, true) => alike == length && length >= SHORTEST,
                (false, false) => alike >= length.saturating_sub(CHANGED).max(1),
            }
        };
        self.segments.stems().filter(may_be).collect()
    }
}

/// Whether the index knows where a word without accents stands in every language.
pub(super) fn narrows(word: &str, may_go_on: bool) -> bool {
    static STOP_WORDS: OnceLock<Vec<String>> = OnceLock::new();
    let stop_words =
        STOP_WORDS.get_or_init(|| stop_words::all().map(|word| fold(word).collect()).collect());
    let is_single = word.chars().nth(1).is_none() && word.chars().all(is_unspaced);
    !is_single
        && !stop_words::is_stop_word(word, Language::English)
        && !stop_words.iter().any(|stop| stop == word || (may_go_on && stop.starts_with(word)))
}

/// Whether each turn of a segment holds a stem of every word. Turns that are not indexed to their end may.
fn candidates(segment: &Segment, words: &[Vec<&Word>]) -> Vec<bool> {
    let mut turn_of = vec![0u32; segment.passages.len()];
    let mut is_cut = vec![false; segment.turns.len()];
    for ((number, (_, passages)), is_cut) in (0..).zip(segment.turn_passages()).zip(&mut is_cut) {
        *is_cut = passages.len() >= MOST;
        turn_of.get_mut(passages).unwrap_or_default().fill(number);
    }
    let mut all = vec![true; segment.turns.len()];
    for stems in words {
        let mut holds = is_cut.clone();
        for stem in stems {
            let stem = segment.find_stem(stem.as_str());
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
