//! Meaning: how well each passage's word vectors fit the question's.

use super::{
    Entry, Index,
    rank::{Scratch, renew},
    view::{NO_WORD, Part, PassageWords, View},
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
        let mut pieces = Vec::new();
        for word in words {
            pieces.clear();
            vectors::pieces(&word.text, &mut pieces);
            vectors::add_word(&mut asked, &pieces);
        }
    }
    let norm = length(&asked);
    if norm < 1e-6 {
        scratch.around.fill(0.);
        return;
    }
    asked.iter_mut().for_each(|value| *value /= norm);
    vectors::products(&asked, view.pieces.iter().copied(), &mut scratch.products);
    for (entry, part) in index.entries().zip(&view.parts) {
        let slots = view.slot_of.get(part.first_passage..).unwrap_or_default();
        sense_of(entry, part, slots, scratch);
    }
    add_neighbours(&scratch.sense, &mut scratch.around);
}

/// The dot product of the question's meaning with each passage of a segment: the sum of its words'.
fn sense_of(entry: &Entry, part: &Part, slots: &[u32], scratch: &mut Scratch) {
    let segment = &entry.segment;
    let mut start = 0;
    let products = &scratch.products;
    let of_piece = |piece: &u16| products.get(usize::from(*piece)).copied().unwrap_or_default();
    let of_words = segment.piece_ends.iter().map(|end| {
        let pieces = segment.pieces.get(start as usize..*end as usize).unwrap_or_default();
        start = *end;
        match pieces {
            [] => 0,
            [only] => of_piece(only),
            [first, second] => (of_piece(first) + of_piece(second)) / 2,
            _ => pieces.iter().map(of_piece).sum::<i32>() / pieces.len() as i32,
        }
    });
    let slots = slots.iter().take(part.passages);
    if let Some(words) = &part.words {
        // A list as long as there are numbers needs no look at its end.
        let of_number = scratch.of_number.get_or_insert_with(|| Box::new([0; 1 << 16]));
        for (number, word) in of_number.iter_mut().zip(of_words) {
            *number = word;
        }
        if let Some(none) = of_number.get_mut(usize::from(NO_WORD)) {
            *none = 0;
        }
        sum_fours(words, of_number, slots, &mut scratch.sense);
        return;
    }
    scratch.of_word.clear();
    scratch.of_word.extend(of_words);
    let of_word = &scratch.of_word;
    let mut start = 0;
    for (passage, slot) in segment.passages.iter().zip(slots) {
        let entries =
            segment.entries.get(start as usize..passage.entries_end as usize).unwrap_or_default();
        start = passage.entries_end;
        let product =
            |entry: &u32| of_word.get((entry & !REPEATED) as usize).copied().unwrap_or_default();
        if let Some(sense) = scratch.sense.get_mut(*slot as usize) {
            *sense = entries.iter().map(product).sum::<i32>() as f32 * (1. / vectors::UNIT);
        }
    }
}

fn sum_fours<'a>(
    words: &PassageWords,
    of_number: &[i32; 1 << 16],
    slots: impl Iterator<Item = &'a u32>,
    sense: &mut [f32],
) {
    let of = |number: u16| of_number.get(usize::from(number)).copied().unwrap_or_default();
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
