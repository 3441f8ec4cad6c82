//! Numbers of words for summing their meanings: short, and laid out in fours.

use std::{collections::HashMap, ops::Range};

use zeroize::{Zeroize, Zeroizing};

use crate::{
    secret::extend,
    segment::{REPEATED, Segment},
    vectors,
};

/// No word at all.
pub(super) const NO_WORD: u16 = u16::MAX;

/// A number for each meaning: a word of one piece has the piece's, and words of several pieces follow.
#[derive(Default)]
pub(super) struct WordNumbers {
    numbers: HashMap<Box<[u16]>, u16>,
    pieces: Zeroizing<Vec<u16>>,
    ends: Vec<u32>,
}

impl WordNumbers {
    /// The number of a word with these pieces, unless all numbers are given.
    fn number(&mut self, pieces: &[u16]) -> Option<u16> {
        match pieces {
            [] => return Some(NO_WORD),
            [only] => return Some(*only),
            _ => {}
        }
        if let Some(number) = self.numbers.get(pieces) {
            return Some(*number);
        }
        let number = u16::try_from(vectors::count() + self.ends.len())
            .ok()
            .filter(|number| *number < NO_WORD)?;
        self.numbers.insert(pieces.into(), number);
        extend(&mut self.pieces, pieces);
        self.ends.push(self.pieces.len() as u32);
        Some(number)
    }

    /// Completes a list that holds a product for each piece: a word of several pieces has their mean.
    pub(super) fn complete(&self, products: &mut [i32; 1 << 16]) {
        let mut start = 0;
        for (number, end) in (vectors::count()..).zip(&self.ends) {
            let range: Range<usize> = start..*end as usize;
            start = range.end;
            let pieces = self.pieces.get(range).unwrap_or_default();
            let product = mean(pieces, products);
            if let Some(place) = products.get_mut(number) {
                *place = product;
            }
        }
    }
}

impl Drop for WordNumbers {
    fn drop(&mut self) {
        for (mut pieces, _) in self.numbers.drain() {
            pieces.zeroize();
        }
    }
}

/// The mean product of a word's pieces.
pub(super) fn mean(pieces: &[u16], products: &[i32; 1 << 16]) -> i32 {
    let of_piece = |piece: &u16| products.get(usize::from(*piece)).copied().unwrap_or_default();
    match pieces {
        [first, second] => (of_piece(first) + of_piece(second)) / 2,
        _ => pieces.iter().map(of_piece).sum::<i32>() / pieces.len().max(1) as i32,
    }
}

/// The words of a segment's passages, in fours that [`NO_WORD`] fills up.
#[derive(Default)]
pub(super) struct PassageWords {
    pub fours: Zeroizing<Vec<[u16; 4]>>,
    /// The number of each passage's last four plus one.
    pub ends: Vec<u32>,
}

impl PassageWords {
    /// The words of a segment, unless there are not enough numbers for them.
    pub(super) fn of(segment: &Segment, numbers: &mut WordNumbers) -> Option<Self> {
        let of_word =
            (0..segment.words.len()).map(|word| numbers.number(segment.word_pieces(word)));
        let mut numbered = Zeroizing::new(Vec::with_capacity(segment.words.len()));
        for number in of_word {
            numbered.push(number?);
        }
        let mut words = Self::default();
        words.ends.reserve_exact(segment.passages.len());
        let fours = |passage| segment.entries(passage).len().div_ceil(4);
        words.fours.reserve_exact((0..segment.passages.len()).map(fours).sum());
        for passage in 0..segment.passages.len() {
            let numbers = segment.entries(passage).iter();
            let numbers =
                numbers.filter_map(|entry| numbered.get((entry & !REPEATED) as usize).copied());
            let mut numbers = numbers.filter(|number| *number != NO_WORD);
            while let Some(first) = numbers.next() {
                let mut next = || numbers.next().unwrap_or(NO_WORD);
                words.fours.push([first, next(), next(), next()]);
            }
            words.ends.push(words.fours.len() as u32);
        }
        Some(words)
    }
}
