//! The rows of the tokens, quantized.

use crate::{
    Error, WIDTH,
    data::{BLOCK, Reader, add_blocks},
};

/// How many centroids a part of a quantized row can point to.
const CENTROIDS: usize = 256;

/// The row of each token. The likeliest tokens' rows have 4 bits a number. The others' are product-quantized: turned so
/// that parts of it say about equally much, with a byte for each part that names one of 256 centroids.
pub(crate) struct Table {
    /// Where each token's row is, among the rows of its kind.
    places: Vec<Place>,
    scales: Vec<f32>,
    nibbles: &'static [u8],
    parts: usize,
    /// Turns a quantized row back: 384 rows of 384.
    rotation: Vec<f32>,
    centroids: Vec<f32>,
    lengths: Vec<f32>,
    codes: &'static [u8],
}

enum Place {
    Exact(u32),
    Quantized(u32),
}

impl Table {
    pub(crate) fn read(
        data: &mut Reader,
        rows: usize,
        exact: usize,
        parts: usize,
    ) -> Result<Self, Error> {
        if exact > rows || parts == 0 || !WIDTH.is_multiple_of(parts) {
            return Err(Error { what: "its table has an impossible size" });
        }
        let marks = data.bytes(rows.div_ceil(8))?;
        let (mut next_exact, mut next_quantized) = (0, 0);
        let bits =
            marks.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1)).take(rows);
        let places = bits.map(|exact| {
            let (next, place): (&mut u32, fn(u32) -> Place) = if exact {
                (&mut next_exact, Place::Exact)
            } else {
                (&mut next_quantized, Place::Quantized)
            };
            *next += 1;
            place(*next - 1)
        });
        let places = places.collect();
        if next_exact as usize != exact {
            return Err(Error { what: "its table has another size than it says" });
        }
        let blocks = exact * WIDTH / BLOCK;
        Ok(Self {
            places,
            scales: data.halves(blocks)?,
            nibbles: data.bytes(blocks * BLOCK / 2)?,
            parts,
            rotation: data.halves(WIDTH * WIDTH)?,
            centroids: data.halves(CENTROIDS * WIDTH)?,
            lengths: data.halves(rows - exact)?,
            codes: data.bytes((rows - exact) * parts)?,
        })
    }

    /// Adds a token's row to `out`.
    pub(crate) fn add(&self, token: u32, out: &mut [f32]) {
        match self.places.get(token as usize) {
            Some(&Place::Exact(place)) => {
                let blocks = WIDTH / BLOCK;
                let first = place as usize * blocks;
                let nibbles = self.nibbles.get(first * BLOCK / 2..).unwrap_or_default();
                add_blocks(self.scales.get(first..).unwrap_or_default(), nibbles, out);
            }
            Some(&Place::Quantized(place)) => {
                let (place, wide) = (place as usize, WIDTH / self.parts);
                let length = self.lengths.get(place).copied().unwrap_or_default();
                let codes = self.codes.get(place * self.parts..).unwrap_or_default();
                let books = self.centroids.chunks_exact(CENTROIDS * wide);
                let turned = codes.iter().zip(books).flat_map(|(&code, book)| {
                    let first = usize::from(code) * wide;
                    book.get(first..first + wide).unwrap_or_default()
                });
                for (number, axis) in turned.zip(self.rotation.chunks_exact(WIDTH)) {
                    out.iter_mut().zip(axis).for_each(|(out, part)| *out += length * number * part);
                }
            }
            None => {}
        }
    }
}
