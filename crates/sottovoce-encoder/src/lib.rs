//! Turns a sentence of any language into a vector of its meaning. The weights are part of the program: there is no
//! download and no network.
//!
//! The model is multilingual-e5-small: 12 layers, 384 numbers a vector, a hundred languages. The crate's README says how
//! its data file was made, and what that costs in quality.
//!
//! ```
//! use sottovoce_encoder::{Encoder, Vector};
//!
//! # fn main() -> Result<(), sottovoce_encoder::Error> {
//! let encoder = Encoder::shared()?;
//! let said = encoder.encode("We got a hamster and called it Pixel.");
//! let asked = encoder.encode("Wie heißt unser Haustier?");
//! let other = encoder.encode("Turn on the light in the kitchen.");
//! let alike = |vector: &Vector| asked.iter().zip(vector).map(|(a, b)| a * b).sum::<f32>();
//! assert!(alike(&said) > alike(&other));
//! # Ok(())
//! # }
//! ```

mod data;
mod encoder;
mod error;
mod layer;
mod matrix;
mod table;
mod tokens;

pub use encoder::Encoder;
pub use error::Error;

/// How many numbers a vector has.
pub const WIDTH: usize = 384;

/// A text's meaning as a direction: numbers whose squares add up to one.
pub type Vector = [f32; WIDTH];
