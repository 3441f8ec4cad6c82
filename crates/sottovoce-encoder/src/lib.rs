//! Turns a sentence of any language into a vector of its meaning. The weights are part of the program: there is no download and
//! no network.
//!
//! The model is multilingual-e5-small: 12 layers, 384 numbers a vector, a hundred languages. The crate's README says how its data
//! file was made, and what that costs in quality.
//!
//! ```
//! use sottovoce_encoder::Encoder;
//!
//! # fn main() -> Result<(), sottovoce_encoder::Error> {
//! let encoder = Encoder::shared()?;
//! let said = encoder.encode("We got a hamster and called it Pixel.");
//! let asked = encoder.encode("Wie heißt unser Haustier?");
//! let other = encoder.encode("Turn on the light in the kitchen.");
//! assert!(asked.dot(&said) > asked.dot(&other));
//!
//! let stored = said.to_bytes();
//! assert!((asked.dot_bytes(&stored) - asked.dot(&said)).abs() < 0.01);
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
mod vector;

pub use encoder::Encoder;
pub use error::Error;
pub use vector::{Vector, WIDTH};
