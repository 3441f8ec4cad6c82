//! Word vectors: what English words mean, as sums of the vectors of their pieces.
//!
//! The file holds for each piece of a word a length, its letters (`##` before a piece within a word), a scale and one
//! byte a dimension. Without the feature `vectors` no word has pieces, and everything here is zero.

/// Dimensions of a vector.
pub(crate) const DIMENSIONS: usize = 128;

/// A vector, or a sum of vectors.
pub(crate) type Vector = [f32; DIMENSIONS];

/// Products are whole numbers of this fraction: they are summed fast, and in any order.
pub(crate) const UNIT: f32 = 65536.;

/// The length of a vector.
pub(crate) fn length(vector: &Vector) -> f32 {
    // Eight sums side by side, which the processor adds at once.
    let mut sums = [0f32; 8];
    for part in vector.as_chunks::<8>().0 {
        for (sum, value) in sums.iter_mut().zip(part) {
            *sum += value * value;
        }
    }
    sums.iter().sum::<f32>().sqrt()
}

/// Adds `vector` times `factor`.
pub(crate) fn add(sum: &mut Vector, vector: &Vector, factor: f32) {
    for (sum, value) in sum.iter_mut().zip(vector) {
        *sum += value * factor;
    }
}

#[cfg(feature = "vectors")]
pub(crate) use embedded::{add_word, count, pieces, products};

#[cfg(feature = "vectors")]
mod embedded {
    use std::sync::OnceLock;

    use zeroize::Zeroizing;

    use super::{DIMENSIONS, UNIT, Vector};
    use crate::secret::extend;

    static FILE: &[u8] = include_bytes!("../data/vectors/potion-128.bin");

    /// Where the pieces stand in the file.
    struct Table {
        /// The offset of each piece.
        pieces: Vec<u32>,
        /// A hash table of piece numbers plus one, with linear probing.
        slots: Vec<u16>,
        /// Where each piece's vector stands, and its scale.
        vectors: Vec<(u32, f32)>,
        longest: usize,
    }

    /// One piece's letters, scale and vector.
    struct Piece {
        letters: &'static [u8],
        scale: f32,
        vector: &'static [u8; DIMENSIONS],
        end: usize,
    }

    fn piece_at(offset: usize) -> Option<Piece> {
        let (length, rest) = FILE.get(offset..)?.split_first()?;
        let (letters, rest) = rest.split_at_checked(usize::from(*length))?;
        let (scale, rest) = rest.split_first_chunk::<4>()?;
        let vector = rest.first_chunk::<DIMENSIONS>()?;
        let end = offset + 5 + letters.len() + DIMENSIONS;
        Some(Piece { letters, scale: f32::from_le_bytes(*scale), vector, end })
    }

    fn hash(is_within: bool, letters: &[u8]) -> usize {
        let seed = if is_within { 0x9e37_79b9_7f4a_7c15_u64 } else { 0xcbf2_9ce4_8422_2325 };
        let hash = letters
            .iter()
            .fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        (hash ^ hash >> 29) as usize
    }

    /// Whether a piece stands within a word, and its letters.
    fn split(letters: &[u8]) -> (bool, &[u8]) {
        letters
            .strip_prefix(b"##")
            .filter(|rest| !rest.is_empty())
            .map_or((false, letters), |rest| (true, rest))
    }

    impl Table {
        fn read() -> Self {
            let mut table = Self {
                pieces: Vec::with_capacity(30_000),
                slots: vec![0; 1 << 16],
                vectors: Vec::with_capacity(30_000),
                longest: 0,
            };
            let mut offset = 8;
            while let (Some(piece), Ok(number)) =
                (piece_at(offset), u16::try_from(table.pieces.len() + 1))
            {
                let (is_within, letters) = split(piece.letters);
                table.longest = table.longest.max(letters.len());
                let mut slot = hash(is_within, letters);
                while let Some(taken) = table.slots.get_mut(slot & 0xffff) {
                    if *taken == 0 {
                        *taken = number;
                        break;
                    }
                    slot = slot.wrapping_add(1);
                }
                table.pieces.push(u32::try_from(offset).unwrap_or_default());
                let vector = u32::try_from(piece.end - DIMENSIONS).unwrap_or_default();
                table.vectors.push((vector, piece.scale));
                offset = piece.end;
            }
            table
        }

        fn get(&self, number: u16) -> Option<Piece> {
            piece_at(*self.pieces.get(usize::from(number))? as usize)
        }

        fn find(&self, is_within: bool, letters: &[u8]) -> Option<u16> {
            let mut slot = hash(is_within, letters);
            loop {
                let number = self.slots.get(slot & 0xffff)?.checked_sub(1)?;
                if self
                    .get(number)
                    .is_some_and(|piece| split(piece.letters) == (is_within, letters))
                {
                    return Some(number);
                }
                slot = slot.wrapping_add(1);
            }
        }
    }

    fn table() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(Table::read)
    }

    /// Adds the numbers of a word's pieces: the longest that fits, again and again. Adds none if letters remain. Signs
    /// of other scripts have vectors, but these tell nothing.
    pub(crate) fn pieces(word: &str, found: &mut Zeroizing<Vec<u16>>) {
        if !word.is_ascii() {
            return;
        }
        let table = table();
        let before = found.len();
        let mut start = 0;
        while start < word.len() {
            let ends = (start + 1..=word.len().min(start + table.longest)).rev();
            let fitting = ends.filter_map(|end| Some((end, word.get(start..end)?)));
            let mut fitting = fitting.filter_map(|(end, letters)| {
                Some((end, table.find(start > 0, letters.as_bytes())?))
            });
            let Some((end, piece)) = fitting.next() else {
                found.truncate(before);
                return;
            };
            extend(found, &[piece]);
            start = end;
        }
    }

    /// How many pieces the file has.
    pub(crate) fn count() -> usize {
        table().pieces.len()
    }

    /// Adds a word's vector, the mean of its pieces'.
    pub(crate) fn add_word(sum: &mut Vector, pieces: &[u16]) {
        for piece in pieces.iter().filter_map(|piece| table().get(*piece)) {
            let factor = piece.scale / pieces.len() as f32;
            for (sum, value) in sum.iter_mut().zip(piece.vector) {
                *sum += f32::from(*value as i8) * factor;
            }
        }
    }

    /// The dot product of two rows. Plain enough to be fast in every build: without optimization between crates,
    /// `map` of an array stays a call for each number.
    fn product_of(whole: &[i16; DIMENSIONS], vector: &[u8; DIMENSIONS]) -> i32 {
        let mut sum = 0;
        for (a, b) in whole.iter().zip(vector) {
            sum += i32::from(*a) * i32::from(*b as i8);
        }
        sum
    }

    /// The dot product of `vector`, of length one, with each piece of `pieces`, in [`UNIT`]s; `products` is by piece.
    pub(crate) fn products(
        vector: &Vector,
        pieces: impl Iterator<Item = u16>,
        products: &mut [i32],
    ) {
        let table = table();
        // Integers are summed faster than floats, and in any order.
        let scale = f32::from(i16::MAX);
        let mut whole = [0i16; DIMENSIONS];
        for (whole, value) in whole.iter_mut().zip(vector) {
            *whole = (value * scale).round() as i16;
        }
        let factor = UNIT / scale;
        for number in pieces {
            let place = table.vectors.get(usize::from(number));
            let row = place.and_then(|(at, _)| FILE.get(*at as usize..)?.first_chunk());
            if let (Some((_, scale)), Some(row), Some(product)) =
                (place, row, products.get_mut(usize::from(number)))
            {
                *product = (product_of(&whole, row) as f32 * scale * factor) as i32;
            }
        }
    }
}

#[cfg(not(feature = "vectors"))]
mod absent {
    use zeroize::Zeroizing;

    use super::Vector;

    pub(crate) fn pieces(_: &str, _: &mut Zeroizing<Vec<u16>>) {}

    pub(crate) fn count() -> usize {
        0
    }

    pub(crate) fn add_word(_: &mut Vector, _: &[u16]) {}

    pub(crate) fn products(_: &Vector, _: impl Iterator<Item = u16>, _: &mut [i32]) {}
}

#[cfg(not(feature = "vectors"))]
pub(crate) use absent::{add_word, count, pieces, products};
