//! Words that are nearly written alike, for "did you mean".

use std::ops::Range;

use zeroize::Zeroizing;

use crate::{
    search::SearchQuery,
    text::{fold::fold, words::Words},
};

/// How many letters may be wrong in a word of so many.
pub(crate) fn most_wrong(letters: usize) -> usize {
    match letters {
        ..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// The word of a text that is nearest to a word without accents, and how many letters differ; `None` if no word is near, or one is
/// the same.
pub fn nearest<'a>(word: &str, text: &'a str) -> Option<(usize, &'a str)> {
    let most = most_wrong(word.chars().count());
    let words = Words::of(text).folded();
    let near = words.range(0..words.len()).zip(0..).filter_map(|((other, _), at)| {
        // No two words of such different lengths are near.
        let is_long = other.len().abs_diff(word.len()) > 4 * (most + 1);
        let wrong = if is_long { usize::MAX } else { strsim::osa_distance(word, other) };
        (wrong <= most).then_some((wrong, at))
    });
    let (wrong, at) = near.min()?;
    Some((wrong, text.get(words.source(at))?)).filter(|(wrong, _)| *wrong > 0)
}

impl SearchQuery {
    /// The words without accents, and where each stands in [`text`](Self::text).
    pub fn words(&self) -> Vec<(Range<usize>, Zeroizing<String>)> {
        let words = Words::of(self.text());
        let all = words.range(0..words.len()).zip(0..);
        let folded = |word: &str| {
            let mut folded = Zeroizing::new(String::with_capacity(word.len() * 18));
            folded.extend(fold(word));
            folded
        };
        all.map(|((word, _), at)| (words.source(at), folded(word))).collect()
    }
}
