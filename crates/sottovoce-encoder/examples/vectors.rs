//! Reads lines and writes a vector for each: 384 numbers a line, or with `--raw` 384 floats of 32 bits, little endian.
//! `--data FILE` takes another data file.
#![allow(clippy::print_stdout)]

use std::{
    error::Error,
    io::{BufRead, BufWriter, Write, stdin, stdout},
};

use sottovoce_encoder::Encoder;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let raw = arguments.iter().any(|argument| argument == "--raw");
    let file = arguments.iter().skip_while(|argument| *argument != "--data").nth(1);
    let encoder = match file {
        Some(file) => Encoder::from_data(Vec::leak(std::fs::read(file)?))?,
        None => Encoder::load()?,
    };
    let mut out = BufWriter::new(stdout().lock());
    for line in stdin().lock().lines() {
        let vector = encoder.encode(&line?);
        if raw {
            for number in vector {
                out.write_all(&number.to_le_bytes())?;
            }
        } else {
            let numbers: Vec<String> = vector.iter().map(ToString::to_string).collect();
            writeln!(out, "{}", numbers.join(" "))?;
        }
    }
    Ok(out.flush()?)
}
