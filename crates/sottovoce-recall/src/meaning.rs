//! Meanings: what a passage says, as a vector of a sentence encoder. The caller has the encoder.

use zeroize::Zeroizing;

use crate::secret::extend;

/// Numbers of a vector.
pub const DIMENSIONS: usize = 384;

/// A vector of the encoder, of length one.
pub type Vector = [f32; DIMENSIONS];

/// The meanings of the passages of a segment: eight bits a number, and a scale for each passage. They tell words, and
/// are as secret.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Meanings {
    /// By passage; 0 for one without a meaning.
    scales: Zeroizing<Vec<f32>>,
    /// By passage; empty if no passage has a meaning.
    numbers: Zeroizing<Vec<i8>>,
}

impl Meanings {
    /// Makes room for this many passages in all.
    pub(crate) fn resize(&mut self, passages: usize) {
        if self.scales.len() < passages {
            let more = vec![0.; passages - self.scales.len()];
            extend(&mut self.scales, &more);
            self.fill();
        }
    }

    fn fill(&mut self) {
        let wanted = self.scales.len() * DIMENSIONS;
        if !self.numbers.is_empty() && self.numbers.len() < wanted {
            let more = vec![0; wanted - self.numbers.len()];
            extend(&mut self.numbers, &more);
        }
    }

    /// The scale and the numbers of a passage.
    pub(crate) fn get(&self, passage: usize) -> Option<(f32, &[i8; DIMENSIONS])> {
        let scale = *self.scales.get(passage).filter(|scale| **scale > 0.)?;
        let numbers = self.numbers.get(passage * DIMENSIONS..)?.first_chunk()?;
        Some((scale, numbers))
    }

    /// Sets what a passage means.
    pub(crate) fn set(&mut self, passage: usize, scale: f32, numbers: &[i8; DIMENSIONS]) {
        self.resize(passage + 1);
        if self.numbers.is_empty() {
            self.numbers = Zeroizing::new(vec![0; self.scales.len() * DIMENSIONS]);
        }
        let place = self.numbers.get_mut(passage * DIMENSIONS..);
        if let Some(place) = place.and_then(|place| place.first_chunk_mut())
            && let Some(known) = self.scales.get_mut(passage)
        {
            *place = *numbers;
            *known = scale;
        }
    }

    /// Sets what a passage means to a vector.
    pub(crate) fn set_vector(&mut self, passage: usize, vector: &Vector) {
        let largest = vector.iter().fold(0f32, |largest, value| largest.max(value.abs()));
        // A passage that means nothing has been looked at too.
        let scale = largest.max(f32::MIN_POSITIVE) / f32::from(i8::MAX);
        self.set(passage, scale, &vector.map(|value| (value / scale).round() as i8));
    }

    /// How well each passage fits an asked meaning, in order; 0 for one without a meaning.
    pub(crate) fn fits(&self, asked: &Asked) -> impl Iterator<Item = f32> {
        let rows = self.numbers.as_chunks::<DIMENSIONS>().0;
        self.scales.iter().zip(rows).map(|(scale, row)| asked.product(row) * scale)
    }
}

/// The meaning of a question: sixteen bits a number, so that products are whole and summed in any order.
pub(crate) struct Asked {
    numbers: Zeroizing<Vec<i16>>,
    scale: f32,
}

impl Asked {
    pub(crate) fn new(vector: &Vector) -> Self {
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
