//! Turns and questions with what they mean, by the encoder of the program.

use std::collections::HashMap;

use sottovoce_encoder::Encoder;
use sottovoce_recall::{Asked, Index, Meaning, Question, Vector};

pub(crate) fn vector(text: &str) -> Vector {
    Encoder::shared().unwrap().encode(text)
}

/// A question with what it means.
pub(crate) fn question(text: &str, asked: &Asked<'_>) -> Question {
    Question::new(text, asked).meaning(&vector(text))
}

/// Gives all turns their meanings. `text_of` tells the text of a turn. Each text is encoded once.
pub(crate) fn understand<'a>(index: &mut Index, text_of: impl Fn(u64) -> &'a str) {
    index.refresh();
    let mut known: HashMap<String, Vector> = HashMap::new();
    let mut meanings = HashMap::new();
    for (seq, passages) in index.without_meaning(usize::MAX) {
        let of_passage = |range: &std::ops::Range<usize>| {
            let text = text_of(seq).get(range.clone()).unwrap();
            let own = known.entry(text.to_owned()).or_insert_with(|| vector(text));
            Meaning::new(own, None)
        };
        meanings.insert(seq, passages.iter().map(of_passage).collect());
    }
    index.set_meanings(&meanings);
    assert_eq!(index.with_meaning(), index.len());
}
