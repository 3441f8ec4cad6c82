//! Reads the numbers of the data file.

use crate::Error;

/// How many numbers of 4 bits share a scale.
pub(crate) const BLOCK: usize = 32;

/// Reads the data file's parts in their order. All numbers are little endian.
pub(crate) struct Reader {
    rest: &'static [u8],
}

impl Reader {
    pub(crate) fn new(data: &'static [u8]) -> Self {
        Self { rest: data }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'static [u8], Error> {
        let (first, rest) =
            self.rest.split_at_checked(count).ok_or(Error { what: "it ends early" })?;
        self.rest = rest;
        Ok(first)
    }

    fn groups<const N: usize>(&mut self, count: usize) -> Result<&'static [[u8; N]], Error> {
        let bytes = count.checked_mul(N).ok_or(Error { what: "a size is too large" })?;
        Ok(self.bytes(bytes)?.as_chunks::<N>().0)
    }

    pub(crate) fn number(&mut self) -> Result<usize, Error> {
        let bytes = self.groups::<4>(1)?.first().copied().unwrap_or_default();
        usize::try_from(u32::from_le_bytes(bytes))
            .map_err(|_| Error { what: "a size is too large" })
    }

    pub(crate) fn floats(&mut self, count: usize) -> Result<Vec<f32>, Error> {
        Ok(self.groups::<4>(count)?.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
    }

    pub(crate) fn halves(&mut self, count: usize) -> Result<Vec<f32>, Error> {
        Ok(self.groups::<2>(count)?.iter().map(|&bytes| half(u16::from_le_bytes(bytes))).collect())
    }

    pub(crate) fn shorts(&mut self, count: usize) -> Result<Vec<u16>, Error> {
        Ok(self.groups::<2>(count)?.iter().map(|&bytes| u16::from_le_bytes(bytes)).collect())
    }

    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.rest.is_empty() { Ok(()) } else { Err(Error { what: "it is longer than it says" }) }
    }
}

/// A float of 16 bits (IEEE 754 binary16) as one of 32.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) =
        (u32::from(bits >> 15) << 31, u32::from(bits >> 10 & 31), u32::from(bits & 1023));
    match exponent {
        0 => f32::from_bits(sign | 0x3880_0000) * (fraction as f32 / 1024.0),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// Adds numbers of 4 bits to `out`: byte `j` of a block holds the numbers `j` and `j + 16`, less 8.
pub(crate) fn add_blocks(scales: &[f32], nibbles: &[u8], out: &mut [f32]) {
    for ((scale, bytes), out) in
        scales.iter().zip(nibbles.chunks_exact(BLOCK / 2)).zip(out.chunks_exact_mut(BLOCK))
    {
        let (low, high) = out.split_at_mut(BLOCK / 2);
        for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
            *low += (f32::from(byte & 15) - 8.0) * scale;
            *high += (f32::from(byte >> 4) - 8.0) * scale;
        }
    }
}
