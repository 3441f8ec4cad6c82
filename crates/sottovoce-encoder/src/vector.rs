//! A vector of a meaning, and its stored form.

use std::fmt;

use rten_simd::{
    Isa, Simd, SimdOp,
    ops::{BitOps, Extend, NumOps, ToFloat},
};

/// How many numbers a vector has, and how many bytes it takes when stored.
pub const WIDTH: usize = 384;

/// What a stored byte counts in: 127 of them are .248. Hardly any number of a vector is larger; those that are become .248.
const STEP: f32 = 1.0 / 512.0;

/// A text's meaning as a direction: 384 numbers whose squares add up to 1. It tells what the words mean, so `Debug` shows nothing.
#[derive(Clone, PartialEq)]
pub struct Vector([f32; WIDTH]);

impl Vector {
    pub(crate) fn unit(mut numbers: [f32; WIDTH]) -> Self {
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt().max(1e-12);
        numbers.iter_mut().for_each(|number| *number /= length);
        Self(numbers)
    }

    /// What sets this vector apart from the mean of all, as a direction.
    pub(crate) fn centred(mut self, mean: &[f32]) -> Self {
        self.0.iter_mut().zip(mean).for_each(|(number, mean)| *number -= mean);
        Self::unit(self.0)
    }

    /// The numbers.
    #[must_use]
    pub fn numbers(&self) -> &[f32; WIDTH] {
        &self.0
    }

    /// How alike two texts mean: 1 for the same, about 0 for nothing in common.
    #[must_use]
    pub fn dot(&self, other: &Self) -> f32 {
        self.0.iter().zip(&other.0).map(|(one, two)| one * two).sum()
    }

    /// As [`dot`](Self::dot), with a vector as it is stored. The result is within .01 of it.
    #[must_use]
    pub fn dot_bytes(&self, stored: &[u8; WIDTH]) -> f32 {
        SumOfProducts { numbers: &self.0, bytes: stored }.dispatch() * STEP
    }

    /// The vector as it is stored: a signed byte a number.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; WIDTH] {
        self.0.map(|number| ((number / STEP).round().clamp(-127.0, 127.0) as i8).cast_unsigned())
    }

    /// The vector that was stored, but for rounding. Any bytes make a vector.
    #[must_use]
    pub fn from_bytes(stored: &[u8; WIDTH]) -> Self {
        Self::unit(stored.map(|byte| f32::from(byte.cast_signed())))
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vector(..)")
    }
}

/// The sum of floats times signed bytes.
struct SumOfProducts<'a> {
    numbers: &'a [f32; WIDTH],
    bytes: &'a [u8; WIDTH],
}

impl SimdOp for SumOfProducts<'_> {
    type Output = f32;

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> f32 {
        let (floats, words, shorts, signed, bytes) =
            (isa.f32(), isa.i32(), isa.i16(), isa.i8(), isa.u8());
        let mut sums = [floats.zero(); 4];
        for (numbers, stored) in
            self.numbers.chunks_exact(bytes.len()).zip(self.bytes.chunks_exact(bytes.len()))
        {
            let stored = signed.from_bits(bytes.load(stored).to_bits());
            let (low, high) = (signed.extend_low(stored), signed.extend_high(stored));
            let parts = [
                shorts.extend_low(low),
                shorts.extend_high(low),
                shorts.extend_low(high),
                shorts.extend_high(high),
            ];
            for ((sum, part), numbers) in
                sums.iter_mut().zip(parts).zip(numbers.chunks_exact(floats.len()))
            {
                *sum = floats.mul_add(floats.load(numbers), words.to_float(part), *sum);
            }
        }
        let [a, b, c, d] = sums;
        floats.sum(floats.add(floats.add(a, b), floats.add(c, d)))
    }
}
