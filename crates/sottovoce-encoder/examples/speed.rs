//! Prints what the encoder takes: to load, for a question of ten words, and for sentences of 16 words. Say `RAYON_NUM_THREADS=1` for
//! one core.
#![allow(clippy::print_stdout)]

use std::{hint::black_box, time::Instant};

use sottovoce_encoder::{Encoder, Error};

const QUESTION: &str = "Do you remember where I put the spare house keys?";
const SENTENCE: &str =
    "The plumber comes on Thursday at nine and needs the key to the cellar, he said";

fn main() -> Result<(), Error> {
    let start = Instant::now();
    let encoder = Encoder::load()?;
    println!("load: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let mut times: Vec<f64> = (0..200).map(|_| seconds(&encoder, QUESTION) * 1e3).collect();
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!(
        "a question of ten words: {:.1} ms at best, {:.1} ms half of the time, {:.1} ms at p99",
        at(0),
        at(50),
        at(99)
    );
    let total: f64 = (0..200).map(|_| seconds(&encoder, SENTENCE)).sum();
    println!("sentences of 16 words: {:.0} a second", 200.0 / total);
    println!("a text of 512 tokens: {:.0} ms", seconds(&encoder, &SENTENCE.repeat(40)) * 1e3);
    Ok(())
}

fn seconds(encoder: &Encoder, text: &str) -> f64 {
    let start = Instant::now();
    black_box(encoder.encode(black_box(text)));
    start.elapsed().as_secs_f64()
}
