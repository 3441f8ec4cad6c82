//! What was fitted on conversations with known answers, beside the weights of the features: directions in the space of
//! the encoder's vectors. `measure/fit.py` writes the file.

use crate::meaning::{DIMENSIONS, Vector};

/// Numbers of 32 bits: the mean of questions, the mean of statements, the gate and what tells something.
static FILE: &[u8] = include_bytes!("../data/fit.bin");

/// What questions have in common, which says nothing of what they ask for.
pub(crate) fn asked_mean() -> Vector {
    vector(0)
}

/// What statements have in common.
pub(crate) fn told_mean() -> Vector {
    vector(DIMENSIONS)
}

/// Whether an utterance with this vector needs something of what was said before: “what is my dog called?” does, “turn
/// on the light”, “thank you” and “what is the capital of Portugal?” do not.
pub fn needs_memory(vector: &Vector) -> bool {
    logistic(2 * DIMENSIONS, vector) > 0.5
}

/// How likely a text with this vector tells something that somebody may ask for: a statement does, a question and a
/// command do not.
pub(crate) fn tells(vector: &Vector) -> f32 {
    logistic(3 * DIMENSIONS + 1, vector)
}

fn numbers(from: usize) -> impl Iterator<Item = f32> {
    let rest = FILE.as_chunks::<4>().0.get(from..).unwrap_or_default();
    rest.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

fn vector(from: usize) -> Vector {
    let mut vector = [0.; DIMENSIONS];
    vector.iter_mut().zip(numbers(from)).for_each(|(number, read)| *number = read);
    vector
}

fn logistic(from: usize, vector: &Vector) -> f32 {
    let mut weights = numbers(from);
    let sum: f32 = vector.iter().zip(weights.by_ref()).map(|(a, b)| a * b).sum();
    let sum = sum + weights.next().unwrap_or_default();
    1. / (1. + (-sum).exp())
}
