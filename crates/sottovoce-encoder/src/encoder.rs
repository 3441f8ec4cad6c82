//! The encoder: loads the data file and turns texts into vectors.

use std::{fmt, sync::OnceLock};

use zeroize::Zeroizing;

use crate::{
    Error, Vector, WIDTH,
    data::Reader,
    layer::{Layer, Norm},
    matrix::Kernels,
    table::Table,
    tokens::{END, START, Tokens},
};

static DATA: &[u8] = include_bytes!("../data/encoder.bin");
const LAYERS: usize = 12;

/// The model sees no more tokens of a text than this, its start and end among them.
const MOST_TOKENS: usize = 512;

/// What a text of so many bytes has beyond is not looked at.
const MOST_BYTES: usize = 16 * 1024;

/// What the model was trained to see before a text that another one is compared with.
const PREFIX: &str = "query: ";

/// Turns texts into vectors. Takes 30 MB of memory, and 25 MB of the program's file are read. Several threads can use one
/// encoder.
///
/// A call uses all of Rayon's threads. After it, the buffers of the threads' kernels still hold numbers of the last texts.
pub struct Encoder {
    tokens: Tokens,
    table: Table,
    places: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

impl Encoder {
    /// Unpacks the weights that the program contains, which takes about a tenth of a second.
    ///
    /// # Errors
    /// The program contains a damaged data file.
    pub fn load() -> Result<Self, Error> {
        Self::from_data(DATA)
    }

    /// The encoder that all of the program shares, loaded when it is first asked for.
    ///
    /// # Errors
    /// As [`load`](Self::load); the same each time.
    pub fn shared() -> Result<&'static Self, Error> {
        static SHARED: OnceLock<Result<Encoder, Error>> = OnceLock::new();
        SHARED.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    /// As [`load`](Self::load), from another data file.
    ///
    /// # Errors
    /// The data are of another kind, another version or another length.
    pub fn from_data(data: &'static [u8]) -> Result<Self, Error> {
        let mut data = Reader::new(data);
        if data.bytes(8)? != b"SVENCODE" || data.number()? != 1 {
            return Err(Error { what: "it is of another kind or version" });
        }
        let (count, coded_bytes, exact, parts) =
            (data.number()?, data.number()?, data.number()?, data.number()?);
        let tokens = Tokens::read(&mut data, count, coded_bytes)?;
        let table = Table::read(&mut data, count + 3, exact, parts)?;
        let places = data.halves(MOST_TOKENS * WIDTH)?;
        let norm = Norm::read(&mut data)?;
        let kernels = Kernels::new();
        let layers =
            (0..LAYERS).map(|_| Layer::read(&mut data, &kernels)).collect::<Result<_, _>>()?;
        data.end()?;
        Ok(Self { tokens, table, places, norm, layers })
    }

    /// The vector of a text's meaning, of length one: of its first 507 tokens, which are some 350 words. What comes after
    /// them is not seen. It tells what the words mean, and is as secret as they are. The same text gives the same vector
    /// on one machine, whatever else is encoded. No text fails or panics.
    pub fn encode(&self, text: &str) -> Vector {
        let cut = text.floor_char_boundary(MOST_BYTES);
        let text = Zeroizing::new([PREFIX, text.get(..cut).unwrap_or_default()].concat());
        let pieces = self.tokens.encode(&text, MOST_TOKENS - 2);
        let ids = [START].iter().chain(&*pieces).chain(&[END]);

        let places = self.places.iter().take((pieces.len() + 2) * WIDTH).copied();
        let mut rows = Zeroizing::new(places.collect::<Vec<f32>>());
        rows.chunks_exact_mut(WIDTH).zip(ids).for_each(|(row, &id)| self.table.add(id, row));
        self.norm.apply(&mut rows);
        let kernels = Kernels::new();
        for layer in &self.layers {
            layer.apply(&kernels, &mut rows);
        }
        let mut sum = [0.0; WIDTH];
        for row in rows.chunks_exact(WIDTH) {
            sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
        sum.map(|number| number / length.max(f32::MIN_POSITIVE))
    }

    /// The pieces that the model sees of a text, for comparing them with another tokenizer's.
    #[doc(hidden)]
    pub fn pieces(&self, text: &str) -> Vec<String> {
        self.tokens.encode(text, usize::MAX).iter().map(|&id| self.tokens.spelling(id)).collect()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}
