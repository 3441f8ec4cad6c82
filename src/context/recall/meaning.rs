//! What texts mean: the vectors of the encoder, if this edition has it.

use std::ops::Range;

use sottovoce_recall::{Meaning, Vector, goes_on, orders, sentences};
use zeroize::Zeroizing;

use crate::message::ChatMessage;
use crate::message::hidden::is_mostly_hidden;

/// Characters of the message before that are encoded with a passage.
const BEFORE: usize = 300;

/// Whether this edition has the encoder.
pub(super) const IS_IN: bool = cfg!(feature = "meaning");

/// The vector of a text.
pub(super) fn of(text: &str) -> Option<Vector> {
    #[cfg(feature = "meaning")]
    return Some(
        sottovoce_encoder::Encoder::shared().ok()?.encode(&crate::message::hidden::readable(text)),
    );
    #[cfg(not(feature = "meaning"))]
    {
        let _ = text;
        None
    }
}

/// What a question means.
pub(super) struct Meant {
    pub(super) vector: Zeroizing<Vector>,
    /// Whether it goes on from what was said before.
    pub(super) goes_on: bool,
}

/// What a question means. One that goes on from the utterance before it means little without.
pub(super) fn of_question(text: &str, earlier: Option<&str>) -> Option<Meant> {
    let alone = of(text)?;
    let Some(earlier) = earlier.filter(|_| goes_on(&alone)) else {
        return Some(Meant { vector: Zeroizing::new(alone), goes_on: false });
    };
    let both = Zeroizing::new([earlier, " ", text].concat());
    Some(Meant { vector: Zeroizing::new(of(&both)?), goes_on: true })
}

/// What a passage of a message's text means, told after the end of the message `before`. Speakers that are known are
/// named: what “I” did is asked for by their names.
pub(super) fn of_passage(
    before: Option<&ChatMessage>,
    message: &ChatMessage,
    text: &str,
    passage: Range<usize>,
) -> Option<Meaning> {
    let words = text.get(passage)?;
    let text = named(message, words);
    let with_before = match before {
        None => None,
        Some(before) => {
            let end = &*before.content;
            let start = end.char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
            let before = named(before, end.get(start..).unwrap_or_default());
            Some(of(&Zeroizing::new([&*before, " ", &*text].concat()))?)
        }
    };
    let own = of(&text)?;
    // Most of what people say is one sentence, whose vector is known then.
    let of_sentence = |sentence: &str| if *sentence == **text { Some(own) } else { of(sentence) };
    let does_order = holds_order(words, of_sentence);
    Some(Meaning::new(&own, with_before.as_ref()).of_text(words).ordering(does_order))
}

/// Whether any sentence orders the assistant about, as far as the encoder tells, or more is hidden than people hide. An
/// order may stand among sentences that tell something.
pub(super) fn gives_orders(words: &str) -> bool {
    holds_order(words, of)
}

fn holds_order(words: &str, of: impl Fn(&str) -> Option<Vector>) -> bool {
    let mut sentences = sentences(words).into_iter().filter_map(|range| words.get(range));
    let is_order = |sentence: &str| of(sentence).is_some_and(|vector| orders(&vector));
    is_mostly_hidden(words) || sentences.any(is_order)
}

/// Words of a message after the name of its speaker, if it is known.
fn named(message: &ChatMessage, text: &str) -> Zeroizing<String> {
    Zeroizing::new(match message.speaker() {
        Some(speaker) => [speaker, ": ", text].concat(),
        None => text.to_owned(),
    })
}
