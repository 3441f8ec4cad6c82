//! Samples and their statistics.

use serde::Serialize;

#[derive(Default)]
pub(crate) struct Samples(Vec<f64>);

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) lower_quartile: f64,
    pub(crate) upper_quartile: f64,
    pub(crate) mean: f64,
    pub(crate) samples: usize,
}

impl Samples {
    pub(crate) fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    pub(crate) fn summary(&self) -> Summary {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Summary {
            median: at(&sorted, 50),
            lower_quartile: at(&sorted, 25),
            upper_quartile: at(&sorted, 75),
            mean: sorted.iter().sum::<f64>() / sorted.len().max(1) as f64,
            samples: sorted.len(),
        }
    }

    /// The relative difference between the medians of the first and last half.
    pub(crate) fn drift(&self) -> f64 {
        let (first, last) = self.0.split_at(self.0.len() / 2);
        let median = |half: &[f64]| {
            let mut sorted = half.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            at(&sorted, 50)
        };
        (median(last) / median(first) - 1.0).abs()
    }
}

impl Summary {
    pub(crate) fn of(value: f64) -> Self {
        Self {
            median: value,
            lower_quartile: value,
            upper_quartile: value,
            mean: value,
            samples: 1,
        }
    }

    /// Half the distance between the quartiles, which a few disturbed rounds do not change.
    pub(crate) fn spread(&self) -> f64 {
        (self.upper_quartile - self.lower_quartile) / 2.0
    }
}

/// The mean of the two nearest samples if a share falls between them.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let place = sorted.len().saturating_sub(1) * percent;
    let value = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    f64::midpoint(value(place / 100), value(place.div_ceil(100)))
}

#[cfg(test)]
mod tests {
    use super::Samples;

    fn samples(values: &[f64]) -> Samples {
        Samples(values.to_vec())
    }

    #[test]
    fn a_few_disturbed_rounds_move_neither_the_median_nor_the_spread() {
        let summary = samples(&[3.0, 1.0, 2.0, 4.0, 900.0]).summary();
        assert_eq!((summary.median, summary.spread(), summary.samples), (3.0, 1.0, 5));
        assert_eq!(samples(&[1.0, 2.0]).summary().median, 1.5);
    }

    #[test]
    fn what_grows_from_round_to_round_is_not_settled() {
        assert!(samples(&[1.0, 1.0, 2.0, 2.0]).drift() > 0.9);
        assert!(samples(&[1.0, 2.0, 1.0, 2.0]).drift() < 0.1);
    }
}
