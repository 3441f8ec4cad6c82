//! What texts mean: the vectors of the encoder, if this edition has it.

use std::ops::Range;

use sottovoce_recall::{Meaning, Vector};
use zeroize::Zeroizing;

/// Characters of the message before that are encoded with a passage.
const BEFORE: usize = 300;

/// Whether this edition has the encoder.
pub(super) const IS_IN: bool = cfg!(feature = "meaning");

/// The vector of a text.
pub(super) fn of(text: &str) -> Option<Vector> {
    #[cfg(feature = "meaning")]
    return Some(sottovoce_encoder::Encoder::shared().ok()?.encode(text));
    #[cfg(not(feature = "meaning"))]
    {
        let _ = text;
        None
    }
}

/// What a text's passages mean, told after the end of the text `before`.
pub(super) fn of_passages(
    before: &str,
    text: &str,
    passages: &[Range<usize>],
) -> Option<Vec<Meaning>> {
    let start = before.char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    let before = before.get(start..).unwrap_or_default();
    let of_passage = |passage: &Range<usize>| {
        let text = text.get(passage.clone()).unwrap_or_default();
        let with_before = match before.is_empty() {
            true => None,
            false => Some(of(&Zeroizing::new(format!("{before} {text}")))?),
        };
        Some(Meaning::new(&of(text)?, with_before.as_ref()))
    };
    passages.iter().map(of_passage).collect()
}
