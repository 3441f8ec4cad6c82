//! A layer of the model: attention, and two matrices with a bend between them.

use rten_gemm::{GemmInputA, GemmInputB, GemmOptions};
use rten_simd::{SimdOp, SimdUnaryOp};
use rten_tensor::NdTensorView;
use rten_vecmath::{Gelu, Normalize, NormalizeOptions, Softmax, Sum, SumSquareSub};
use zeroize::Zeroizing;

use crate::{
    Error, WIDTH,
    data::Reader,
    matrix::{Kernels, Matrix, Rows},
};

const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;
const INNER: usize = 1536;
const EPSILON: f32 = 1e-12;

/// Brings rows to a mean of 0 and a variance of 1, then scales and moves each column.
pub(crate) struct Norm {
    scale: Vec<f32>,
    bias: Vec<f32>,
}

impl Norm {
    pub(crate) fn read(data: &mut Reader) -> Result<Self, Error> {
        Ok(Self { scale: data.floats(WIDTH)?, bias: data.floats(WIDTH)? })
    }

    pub(crate) fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(WIDTH) {
            let mean = Sum::new(row).dispatch() / WIDTH as f32;
            let variance = SumSquareSub::new(row, mean).dispatch() / WIDTH as f32;
            let options = NormalizeOptions {
                pre_scale_bias: mean,
                scale: (variance + EPSILON).sqrt().recip(),
                element_scale: Some(&self.scale),
                element_bias: Some(&self.bias),
                ..NormalizeOptions::default()
            };
            Normalize::new_mut(row, options).dispatch();
        }
    }
}

/// One of the model's layers: attention, then two matrices with a bend between.
pub(crate) struct Layer {
    /// To queries, keys and values, side by side.
    attention: Matrix,
    attended: Matrix,
    attended_norm: Norm,
    inner: Matrix,
    outer: Matrix,
    outer_norm: Norm,
}

impl Layer {
    pub(crate) fn read(data: &mut Reader, kernels: &Kernels) -> Result<Self, Error> {
        let queries = Rows::read(data, WIDTH, WIDTH)?;
        let keys = Rows::read(data, WIDTH, WIDTH)?;
        let values = Rows::read(data, WIDTH, WIDTH)?;
        Ok(Self {
            attention: kernels.pack(queries.beside(keys).beside(values)),
            attended: kernels.pack(Rows::read(data, WIDTH, WIDTH)?),
            attended_norm: Norm::read(data)?,
            inner: kernels.pack(Rows::read(data, WIDTH, INNER)?),
            outer: kernels.pack(Rows::read(data, INNER, WIDTH)?),
            outer_norm: Norm::read(data)?,
        })
    }

    /// `rows` holds 384 numbers for each token.
    pub(crate) fn apply(&self, kernels: &Kernels, rows: &mut [f32]) {
        let attended = attend(kernels, &kernels.multiply(rows, &self.attention));
        add(rows, &kernels.multiply(&attended, &self.attended));
        self.attended_norm.apply(rows);
        let mut inner = kernels.multiply(rows, &self.inner);
        Gelu {}.map_mut(&mut inner);
        add(rows, &kernels.multiply(&inner, &self.outer));
        self.outer_norm.apply(rows);
    }
}

fn add(rows: &mut [f32], more: &[f32]) {
    rows.iter_mut().zip(more).for_each(|(number, more)| *number += more);
}

/// Each token's values, mixed by how well its query fits the keys, head by head.
fn attend(kernels: &Kernels, all: &[f32]) -> Zeroizing<Vec<f32>> {
    let tokens = all.len() / (3 * WIDTH);
    let all = NdTensorView::from_data([tokens, 3 * WIDTH], all);
    let mut fits = Zeroizing::new(vec![0.0; tokens * tokens]);
    let mut mixed = Zeroizing::new(vec![0.0; tokens * HEAD]);
    let mut out = Zeroizing::new(vec![0.0; tokens * WIDTH]);
    for head in (0..WIDTH).step_by(HEAD) {
        let columns = |start: usize| all.slice((.., start + head..start + head + HEAD));
        let (queries, keys, values) = (columns(0), columns(WIDTH), columns(2 * WIDTH));
        let options = GemmOptions { alpha: (HEAD as f32).sqrt().recip(), ..GemmOptions::default() };
        let done = kernels.floats.gemm(
            &mut fits,
            GemmInputA::Unpacked(queries),
            GemmInputB::Unpacked(keys.transposed()),
            options,
        );
        debug_assert!(done.is_ok(), "{done:?}");
        fits.chunks_exact_mut(tokens).for_each(|row| {
            Softmax::new_mut(row).dispatch();
        });
        let fits = NdTensorView::from_data([tokens, tokens], fits.as_slice());
        let done = kernels.floats.gemm(
            &mut mixed,
            GemmInputA::Unpacked(fits),
            GemmInputB::Unpacked(values),
            GemmOptions::default(),
        );
        debug_assert!(done.is_ok(), "{done:?}");
        for (out, mixed) in out.chunks_exact_mut(WIDTH).zip(mixed.chunks_exact(HEAD)) {
            if let Some(out) = out.get_mut(head..head + HEAD) {
                out.copy_from_slice(mixed);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 % 1009) as f32 / 504.5 - 1.0) * 2.0).collect()
    }

    #[test]
    fn attention_mixes_values_as_plain_loops_do() {
        let tokens = 5;
        let all = numbers(tokens * 3 * WIDTH);
        let got = attend(&Kernels::new(), &all);
        let at = |token: usize, column: usize| all[token * 3 * WIDTH + column];
        for token in 0..tokens {
            for head in 0..HEADS {
                let columns = head * HEAD..head * HEAD + HEAD;
                let fit = |other: usize| {
                    columns.clone().map(|c| at(token, c) * at(other, WIDTH + c)).sum::<f32>()
                        / (HEAD as f32).sqrt()
                };
                let shares: Vec<f32> = (0..tokens).map(|other| fit(other).exp()).collect();
                let total: f32 = shares.iter().sum();
                for column in columns.clone() {
                    let expected: f32 = (0..tokens)
                        .map(|other| shares[other] / total * at(other, 2 * WIDTH + column))
                        .sum();
                    let got = got[token * WIDTH + column];
                    assert!(
                        (expected - got).abs() < 1e-3,
                        "token {token}, column {column}: {got} instead of {expected}"
                    );
                }
            }
        }
    }
}
