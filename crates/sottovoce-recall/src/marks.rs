//! Where a text holds what was looked for, in bytes of the text.

use std::{collections::HashSet, ops::Range};

use crate::{
    hit::Why,
    search::SearchQuery,
    secret::Word,
    text::{language::Language, words::Words},
};

impl SearchQuery {
    /// Where a text holds the words and phrases, in order and without overlaps.
    pub fn marks(&self, text: &str) -> Vec<Range<usize>> {
        let words = Words::of(text).folded();
        let mut places: Vec<_> =
            self.phrases.iter().flat_map(|phrase| phrase.places(text, &words)).collect();
        places.sort_by_key(|place| (place.start, place.end));
        let mut marks: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match marks.last_mut() {
                Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
                _ => marks.push(place),
            }
        }
        marks
    }
}

impl Why {
    /// Where a text holds the question's words in any form: "dogs" for "dog".
    pub fn marks(&self, text: &str) -> Vec<Range<usize>> {
        let asked: HashSet<Word> = self.words.iter().flat_map(|(word, _)| stems(word)).collect();
        let words = Words::of(text);
        let all = words.range(0..words.len()).zip(0..);
        let held = all.filter(|((word, _), _)| stems(word).any(|stem| asked.contains(&stem)));
        held.map(|(_, number)| words.source(number)).collect()
    }
}

fn stems(word: &str) -> impl Iterator<Item = Word> {
    Language::ALL.iter().map(|language| language.stem(word))
}
