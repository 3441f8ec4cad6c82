//! Meaning: how well each passage's word vectors fit the question's.

use zeroize::Zeroizing;

use super::{
    Entry, Index,
    numbers::{NO_WORD, PassageWords, mean},
    rank::{Scratch, renew},
    view::View,
};
use crate::{
    question::{Question, QuestionWord},
    segment::{REPEATED, norms::FADES},
    text::language::Language,
    vectors::{self, DIMENSIONS, Vector, length},
};

/// How much of the question's meaning each passage has, alone and with its neighbours.
pub(super) fn sense(
    index: &Index,
    view: &View,
    question: &Question,
    words: &[&QuestionWord],
    scratch: &mut Scratch,
) {
    let slots = view.cues.len();
    renew(&mut scratch.sense, slots);
    scratch.around.resize(slots, 0.);
    let mut asked: Vector = [0.; DIMENSIONS];
    if question.language == Language::English {
        let mut pieces = Zeroizing::new(Vec::new());
        for word in words {
            pieces.clear();
            vectors::pieces(word.text.as_str(), &mut pieces);
            vectors::add_word(&mut asked, &pieces);
        }
    }
    let norm = length(&asked);
    if norm < 1e-6 {
        scratch.around.fill(0.);
        return;
    }
    asked.iter_mut().for_each(|value| *value /= norm);
    // A list as long as there are numbers needs no look at its end.
    let products = scratch.products.get_or_insert_with(|| Box::new([0; 1 << 16]));
    vectors::products(&asked, view.pieces.iter().copied(), products.as_mut_slice());
    view.numbers.complete(products);
    if let Some(none) = products.get_mut(usize::from(NO_WORD)) {
        *none = 0;
    }
    for (entry, part) in index.entries().zip(&view.parts) {
        let slots = view.slot_of.get(part.first_passage..).unwrap_or_default();
        let slots = slots.iter().take(part.passages);
        match &part.words {
            Some(words) => sum_fours(words, products, slots, &mut scratch.sense),
            None => sum_words(entry, products, slots, &mut scratch.sense),
        }
    }
    add_neighbours(&scratch.sense, &mut scratch.around);
}

/// The dot product of the question's meaning with each passage of a segment: the sum of its words'.
fn sum_words<'a>(
    entry: &Entry,
    products: &[i32; 1 << 16],
    slots: impl Iterator<Item = &'a u32>,
    sense: &mut [f32],
) {
    let segment = &entry.segment;
    let of_entry = |entry: &u32| match segment.word_pieces((entry & !REPEATED) as usize) {
        [] => 0,
        pieces => mean(pieces, products),
    };
    for (passage, slot) in slots.enumerate() {
        if let Some(sense) = sense.get_mut(*slot as usize) {
            let sum = segment.entries(passage).iter().map(of_entry).sum::<i32>();
            *sense = sum as f32 * (1. / vectors::UNIT);
        }
    }
}

/// The sum, from words that are laid out in groups of four.
fn sum_fours<'a>(
    words: &PassageWords,
    products: &[i32; 1 << 16],
    slots: impl Iterator<Item = &'a u32>,
    sense: &mut [f32],
) {
    let of = |number: u16| products.get(usize::from(number)).copied().unwrap_or_default();
    let mut fours = words.fours.iter();
    let mut start = 0;
    for (end, slot) in words.ends.iter().zip(slots) {
        let mut sum = 0i32;
        for [a, b, c, d] in fours.by_ref().take((end - start) as usize) {
            sum += (of(*a) + of(*b)) + (of(*c) + of(*d));
        }
        start = *end;
        if let Some(sense) = sense.get_mut(*slot as usize) {
            *sense = sum as f32 * (1. / vectors::UNIT);
        }
    }
}

/// Adds to each passage what its neighbours have, faded. Empty slots between sessions hold nothing.
fn add_neighbours(own: &[f32], around: &mut [f32]) {
    /// Slots that fit a processor's nearest memory.
    const BLOCK: usize = 2048;
    for (block, around) in around.chunks_mut(BLOCK).enumerate() {
        let start = block * BLOCK;
        around.copy_from_slice(own.get(start..start + around.len()).unwrap_or_default());
        for (distance, fade) in (1..).zip(FADES) {
            add_faded(around, own.get(start + distance..).unwrap_or_default(), fade);
            match start.checked_sub(distance) {
                Some(start) => add_faded(around, own.get(start..).unwrap_or_default(), fade),
                None => add_faded(around.get_mut(distance..).unwrap_or_default(), own, fade),
            }
        }
    }
}

fn add_faded(sums: &mut [f32], values: &[f32], fade: f32) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += fade * value;
    }
}
