//! Meanings: what a passage says, as a vector of a sentence encoder. The caller has the encoder.

use std::{collections::HashSet, fmt};

use zeroize::{Zeroize, Zeroizing};

use crate::{fit, secret::extend};

/// The share of new letters that plain texts reach, and the letters below which a text is too short to tell.
const PLAIN: f32 = 0.8;
const SHORT: usize = 24;

/// Numbers of a vector.
pub const DIMENSIONS: usize = 384;

/// A vector of the encoder, of length one.
pub type Vector = [f32; DIMENSIONS];

/// What a passage means.
pub struct Meaning {
    vector: Vector,
    tells: f32,
}

impl Meaning {
    /// From the vector of a passage, and of the end of the turn before with it: an answer such as “at seven” means little
    /// without its question.
    pub fn new(own: &Vector, with_before: Option<&Vector>) -> Self {
        let mean = fit::told_mean();
        let mut vector = away_from(own, &mean);
        if let Some(both) = with_before {
            let both = away_from(both, &mean);
            vector.iter_mut().zip(&both).for_each(|(sum, number)| *sum += number);
            vector = unit(vector);
        }
        Self { vector, tells: fit::tells(own) }
    }

    /// Weighs it by how much of its text is new: one that says its words over and over, to be found by them, fits less.
    #[must_use]
    pub fn of_text(mut self, text: &str) -> Self {
        let new = share_of_new(text);
        self.vector.iter_mut().for_each(|number| *number *= new);
        self
    }

    /// Marks it as ordering the assistant about, if it does. The sign says so.
    #[must_use]
    pub fn ordering(mut self, does: bool) -> Self {
        self.tells = if does { -self.tells.abs() } else { self.tells };
        self
    }
}

/// How much of a text is new, up to 1: the share of three letters in a row that did not stand before. Nearly all of what
/// people say has more than [`PLAIN`] of them.
fn share_of_new(text: &str) -> f32 {
    let letters = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    let letters: Zeroizing<Vec<char>> = Zeroizing::new(letters.collect());
    let seen: HashSet<&[char]> = letters.windows(3).collect();
    if letters.len() < SHORT {
        return 1.;
    }
    (seen.len() as f32 / (letters.len() - 2) as f32 / PLAIN).min(1.).powi(2)
}

impl Drop for Meaning {
    fn drop(&mut self) {
        self.vector.zeroize();
    }
}

/// Shows nothing: it tells words.
impl fmt::Debug for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meaning(..)")
    }
}

/// How much a text means what a question asks for, up to 1, by their vectors.
pub fn alike(question: &Vector, text: &Vector) -> f32 {
    let asked = away_from(question, &fit::asked_mean());
    let told = away_from(text, &fit::told_mean());
    asked.iter().zip(&told).map(|(a, b)| a * b).sum()
}

/// The direction in which a vector lies from a mean.
pub(crate) fn away_from(vector: &Vector, mean: &Vector) -> Vector {
    let mut away = *vector;
    away.iter_mut().zip(mean).for_each(|(number, mean)| *number -= mean);
    unit(away)
}

fn unit(vector: Vector) -> Vector {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.map(|number| number / length.max(f32::MIN_POSITIVE))
}

/// The meanings of the passages of a segment: eight bits a number, with a scale for each passage and how likely it tells
/// something, negative if it orders the assistant about. They tell words, and are as secret.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Meanings {
    /// By passage: scale, and how likely it tells something. The scale is 0 for one without a meaning.
    rows: Zeroizing<Vec<[f32; 2]>>,
    /// By passage; empty if no passage has a meaning.
    numbers: Zeroizing<Vec<i8>>,
}

impl Meanings {
    /// Makes room for this many passages in all.
    pub(crate) fn resize(&mut self, passages: usize) {
        let more = passages.saturating_sub(self.rows.len());
        extend(&mut self.rows, &vec![[0.; 2]; more]);
        if !self.numbers.is_empty() {
            extend(&mut self.numbers, &vec![0; more * DIMENSIONS]);
        }
    }

    /// Scale, how likely it tells something, and the numbers of a passage.
    pub(crate) fn get(&self, passage: usize) -> Option<([f32; 2], &[i8; DIMENSIONS])> {
        let row = *self.rows.get(passage).filter(|[scale, _]| *scale > 0.)?;
        let numbers = self.numbers.get(passage * DIMENSIONS..)?.first_chunk()?;
        Some((row, numbers))
    }

    /// Sets what a passage means, as `get` returns it.
    pub(crate) fn set(&mut self, passage: usize, row: [f32; 2], numbers: &[i8; DIMENSIONS]) {
        self.resize(passage + 1);
        if self.numbers.is_empty() {
            self.numbers = Zeroizing::new(vec![0; self.rows.len() * DIMENSIONS]);
        }
        let place = self.numbers.get_mut(passage * DIMENSIONS..);
        if let Some(place) = place.and_then(|place| place.first_chunk_mut())
            && let Some(known) = self.rows.get_mut(passage)
        {
            *place = *numbers;
            *known = row;
        }
    }

    /// Sets what a passage means.
    pub(crate) fn set_meaning(&mut self, passage: usize, meaning: &Meaning) {
        let largest = meaning.vector.iter().fold(0f32, |largest, value| largest.max(value.abs()));
        // A passage that means nothing has been looked at too.
        let scale = largest.max(f32::MIN_POSITIVE) / f32::from(i8::MAX);
        let numbers = meaning.vector.map(|value| (value / scale).round() as i8);
        self.set(passage, [scale, meaning.tells], &numbers);
    }

    /// How likely each passage tells something, and how well it fits an asked meaning, in order; `None` for one without a
    /// meaning.
    pub(crate) fn fits(&self, asked: &Asked) -> impl Iterator<Item = Option<(f32, f32)>> {
        let numbers = self.numbers.as_chunks::<DIMENSIONS>().0;
        let rows = self.rows.iter().zip(numbers);
        rows.map(|([scale, tells], row)| {
            (*scale > 0.).then(|| (tells.abs(), asked.product(row) * scale))
        })
    }
}

/// The meaning of a question: sixteen bits a number, so that products are whole and summed in any order.
pub(crate) struct Asked {
    numbers: Zeroizing<Vec<i16>>,
    scale: f32,
}

impl Asked {
    pub(crate) fn new(vector: &Vector) -> Self {
        let vector = away_from(vector, &fit::asked_mean());
        let largest = vector.iter().fold(0f32, |largest, value| largest.max(value.abs()));
        let scale = largest.max(f32::MIN_POSITIVE) / f32::from(i16::MAX);
        let mut numbers = Zeroizing::new(Vec::with_capacity(DIMENSIONS));
        numbers.extend(vector.iter().map(|value| (value / scale).round() as i16));
        Self { numbers, scale }
    }

    /// Plain enough to be fast in every build: without optimization between crates, `map` stays a call for each number.
    fn product(&self, row: &[i8; DIMENSIONS]) -> f32 {
        let mut sum = 0i32;
        for (a, b) in self.numbers.iter().zip(row) {
            sum += i32::from(*a) * i32::from(*b);
        }
        sum as f32 * self.scale
    }
}
