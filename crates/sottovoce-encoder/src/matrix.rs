//! Multiplies activations of 8 bits with weights of 7 bits.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::SimdOp;
use rten_tensor::NdTensorView;
use rten_vecmath::{ExtendInit, MinMax, Quantize};
use zeroize::Zeroizing;

use crate::{
    Error,
    data::{BLOCK, Reader, add_blocks},
};

/// Weights become integers of 7 bits: the sum of two products with 8 bits then fits the 16 bits that processors without
/// instructions for neural networks add them in, so that each kind of processor computes the same.
const LARGEST: f32 = 63.0;

/// A matrix of small integers, multiplied with activations that become bytes on the way.
pub(crate) struct Matrix {
    weights: PackedBMatrix<i8>,
    /// What one step of each output's integer weights stands for.
    scales: Vec<f32>,
    /// The sum of each output's integer weights.
    sums: Vec<i32>,
    bias: Vec<f32>,
}

/// A matrix's numbers as they stand in the data file: a row of `inputs` for each output.
pub(crate) struct Rows {
    inputs: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Rows {
    pub(crate) fn read(data: &mut Reader, inputs: usize, outputs: usize) -> Result<Self, Error> {
        let blocks = inputs * outputs / BLOCK;
        let scales = data.halves(blocks)?;
        let nibbles = data.bytes(blocks * BLOCK / 2)?;
        let mut weights = vec![0.0; inputs * outputs];
        add_blocks(&scales, nibbles, &mut weights);
        Ok(Self { inputs, weights, bias: data.floats(outputs)? })
    }

    /// This matrix with the other's outputs after its own.
    pub(crate) fn beside(mut self, other: Self) -> Self {
        self.weights.extend(other.weights);
        self.bias.extend(other.bias);
        self
    }
}

/// The kernels for this processor. They cannot be shared between threads, so each call of the encoder makes its own.
pub(crate) struct Kernels {
    integers: GemmExecutor<u8, i8, i32>,
    pub(crate) floats: GemmExecutor<f32>,
}

impl Kernels {
    pub(crate) fn new() -> Self {
        Self { integers: GemmExecutor::new(), floats: GemmExecutor::new() }
    }

    pub(crate) fn pack(&self, rows: Rows) -> Matrix {
        let outputs = rows.bias.len();
        let (mut scales, mut sums) = (Vec::with_capacity(outputs), Vec::with_capacity(outputs));
        let mut integers: Vec<i8> = Vec::with_capacity(rows.weights.len());
        for row in rows.weights.chunks_exact(rows.inputs) {
            let (low, high) = MinMax::new(row).dispatch();
            let scale = high.max(-low).max(1e-12) / LARGEST;
            let inverse = scale.recip();
            let first = integers.len();
            // Rounds what is at least -63: a cast is faster than `round`, of which older processors have none.
            integers.extend(row.iter().map(|number| ((number * inverse + 64.5) as i32 - 64) as i8));
            sums.push(integers.iter().skip(first).map(|&integer| i32::from(integer)).sum());
            scales.push(scale);
        }
        let view = NdTensorView::from_data([outputs, rows.inputs], integers.as_slice());
        Matrix {
            weights: self.integers.prepack_b(view.transposed()),
            scales,
            sums,
            bias: rows.bias,
        }
    }

    /// One row of outputs for each row of inputs.
    pub(crate) fn multiply(&self, inputs: &[f32], matrix: &Matrix) -> Zeroizing<Vec<f32>> {
        let (wide, outputs) = (matrix.weights.rows(), matrix.bias.len());
        let rows = inputs.len() / wide;
        let mut bytes = Zeroizing::new(Vec::with_capacity(inputs.len()));
        let mut ranges = Vec::with_capacity(rows);
        for row in inputs.chunks_exact(wide) {
            let (low, high) = MinMax::new(row).dispatch();
            let (low, high) = (low.min(0.0), high.max(0.0));
            let step = ((high - low) / 255.0).max(1e-12);
            let zero = (-low / step).round() as u8;
            bytes.extend_init(|room| {
                let room = room.get_mut(..wide).unwrap_or_default();
                Quantize::new(row, room, step.recip(), zero).dispatch()
            });
            ranges.push((step, i32::from(zero)));
        }
        let mut products = Zeroizing::new(vec![0i32; rows * outputs]);
        let done = self.integers.gemm(
            &mut products,
            GemmInputA::Unpacked(NdTensorView::from_data([rows, wide], bytes.as_slice())),
            GemmInputB::Packed(&matrix.weights),
            GemmOptions::default(),
        );
        debug_assert!(done.is_ok(), "{done:?}");
        let mut out = Zeroizing::new(Vec::with_capacity(products.len()));
        for (products, (step, zero)) in products.chunks_exact(outputs).zip(ranges) {
            let columns = products.iter().zip(&matrix.sums).zip(&matrix.scales).zip(&matrix.bias);
            out.extend(columns.map(|(((&product, sum), scale), bias)| {
                (product - zero * sum) as f32 * (scale * step) + bias
            }));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between -1 and 1, the same each time.
    fn numbers(count: usize, mut state: u32) -> Vec<f32> {
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn the_kernels_multiply_as_plain_loops_do_but_for_rounding() {
        for (rows, inputs, outputs) in
            [(1, 384, 1152), (7, 384, 1536), (20, 1536, 384), (70, 384, 384)]
        {
            let (weights, bias, mut activations) =
                (numbers(inputs * outputs, 1), numbers(outputs, 2), numbers(rows * inputs, 3));
            for (row, numbers) in activations.chunks_exact_mut(inputs).enumerate() {
                numbers
                    .iter_mut()
                    .for_each(|number| *number = *number * 0.5 + row as f32 % 3.0 * 0.3 - 0.3);
            }
            let kernels = Kernels::new();
            let matrix =
                kernels.pack(Rows { inputs, weights: weights.clone(), bias: bias.clone() });
            let got = kernels.multiply(&activations, &matrix);
            for (row, got) in activations.chunks_exact(inputs).zip(got.chunks_exact(outputs)) {
                for ((weights, bias), got) in weights.chunks_exact(inputs).zip(&bias).zip(got) {
                    let expected = row.iter().zip(weights).map(|(a, b)| a * b).sum::<f32>() + bias;
                    assert!(
                        (expected - got).abs() < 0.6,
                        "{rows} rows of {inputs}: {got} instead of {expected}"
                    );
                }
            }
        }
    }
}
