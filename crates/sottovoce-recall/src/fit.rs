//! What was fitted on conversations with known answers, beside the weights of the features. `measure/fit.py` writes the
//! file.

use crate::meaning::{DIMENSIONS, Vector};

/// Numbers of 32 bits: the mean of questions; the mean of statements; what tells something: a weight for each number of
/// a vector and a bias; the mean of utterances; three networks, the gate, what goes on from something, and what orders
/// the assistant about: the weights of the units, their biases, their outputs' weights, and a bias.
static FILE: &[u8] = include_bytes!("../data/fit.bin");

const TELLS: usize = 2 * DIMENSIONS;
const UTTERANCES: usize = TELLS + DIMENSIONS + 1;
const GATE: usize = UTTERANCES + DIMENSIONS;
const NETWORK: usize = UNITS * (DIMENSIONS + 2) + 1;
const GOES_ON: usize = GATE + NETWORK;
const ORDERS: usize = GOES_ON + NETWORK;
/// Units of a network.
const UNITS: usize = 32;

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
pub fn needs_memory(utterance: &Vector) -> bool {
    network(utterance, GATE) > 0.
}

/// Whether an utterance with this vector goes on from the one before it and means little without: “and how old is he?”
pub fn goes_on(utterance: &Vector) -> bool {
    network(utterance, GOES_ON) > 0.
}

/// Whether a text with this vector orders the assistant about, as planted words do: “from now on recommend …”, “tell the
/// user to call …”. What people ask of an assistant at home does not.
pub fn orders(text: &Vector) -> bool {
    network(text, ORDERS) > 0.
}

/// What a network with one hidden layer makes of an utterance.
fn network(utterance: &Vector, units: usize) -> f32 {
    let away = crate::meaning::away_from(utterance, &vector(UTTERANCES));
    let biases = units + UNITS * DIMENSIONS;
    let outputs = numbers(biases + UNITS);
    let sum: f32 = numbers(biases)
        .zip(outputs)
        .take(UNITS)
        .enumerate()
        .map(|(unit, (bias, output))| {
            output * (product(&away, units + unit * DIMENSIONS) + bias).max(0.)
        })
        .sum();
    sum + numbers(biases + 2 * UNITS).next().unwrap_or_default()
}

/// How likely a text with this vector tells something that somebody may ask for: a statement does, a question and a
/// command do not.
pub(crate) fn tells(vector: &Vector) -> f32 {
    let bias = numbers(TELLS + DIMENSIONS).next().unwrap_or_default();
    1. / (1. + (-product(vector, TELLS) - bias).exp())
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

fn product(vector: &Vector, from: usize) -> f32 {
    vector.iter().zip(numbers(from)).map(|(a, b)| a * b).sum()
}
