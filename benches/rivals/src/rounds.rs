//! Measures all contenders in turns, round after round, until their medians are stable.

use std::time::{Duration, Instant};

use crate::contender::Outcome;
use crate::figure::{Cell, Figure, Who};
use crate::quiet::Quiet;
use crate::stats::Samples;

/// The most that the medians of the first and last half may differ.
const DRIFT: f64 = 0.1;
/// The time for a contender in one sitting. A slower one skips most rounds.
const BUDGET: Duration = Duration::from_secs(8);
/// But at least this many samples remain.
const FEWEST: usize = 7;

/// A participant.
#[derive(Clone, Copy)]
pub(crate) struct Entrant {
    pub(crate) figure: Figure,
    pub(crate) who: Who,
}

pub(crate) struct Rounds {
    pub(crate) rounds: usize,
    /// How often all rounds are repeated if the medians do not agree before.
    pub(crate) sittings: usize,
    pub(crate) quiet: Quiet,
}

impl Rounds {
    /// Measures with `sample`. Drops the first sample of each participant as a warm-up.
    pub(crate) fn hold(
        &mut self,
        messages: usize,
        rounds: usize,
        entrants: &[Entrant],
        mut sample: impl FnMut(Entrant) -> Outcome<f64>,
    ) -> Outcome<Vec<Cell>> {
        let Some(first) = entrants.first() else {
            return Ok(Vec::new());
        };
        self.quiet.wait(&format!("{}, {messages} messages", first.figure.name()));
        let mut seats = Vec::new();
        for &entrant in entrants {
            let started = Instant::now();
            sample(entrant)?;
            let stride = stride(started.elapsed(), rounds);
            tidy_heap();
            seats.push(Seat { entrant, stride, samples: Samples::default() });
        }
        for _ in 0..self.sittings {
            for round in 0..rounds {
                // Rotates the order, so that nobody always follows the same contender.
                let first = round % seats.len();
                let (before, after) = seats.split_at_mut(first);
                for seat in after.iter_mut().chain(before) {
                    if round.is_multiple_of(seat.stride) {
                        seat.samples.push(sample(seat.entrant)?);
                        tidy_heap();
                    }
                }
            }
            if seats.iter().all(Seat::is_settled) {
                break;
            }
        }
        Ok(seats.iter().map(|seat| seat.cell(messages)).collect())
    }
}

/// Makes the allocator merge freed memory. The C library postpones that until somebody asks for a large block. After
/// a million names or messages it takes 60 ms, which would count for the next contender.
fn tidy_heap() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(128 << 10)));
}

/// Every how many rounds a contender of this speed takes part.
fn stride(each: Duration, rounds: usize) -> usize {
    let affordable = BUDGET.as_secs_f64() / each.as_secs_f64();
    let wanted = (rounds as f64 / affordable).ceil() as usize;
    wanted.clamp(1, (rounds / FEWEST).max(1))
}

struct Seat {
    entrant: Entrant,
    stride: usize,
    samples: Samples,
}

impl Seat {
    fn is_settled(&self) -> bool {
        self.samples.drift() <= DRIFT
    }

    fn cell(&self, messages: usize) -> Cell {
        let Entrant { figure, who } = self.entrant;
        let settled = self.is_settled();
        Cell { figure, messages, who, summary: self.samples.summary(), settled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Kind;

    const ENTRANTS: [Entrant; 2] = [
        Entrant { figure: Figure::Open, who: Who::Store(Kind::Ours) },
        Entrant { figure: Figure::Open, who: Who::Store(Kind::Redb) },
    ];

    fn rounds() -> Rounds {
        Rounds { rounds: 10, sittings: 3, quiet: Quiet::new(Duration::ZERO) }
    }

    #[test]
    fn contenders_take_turns_and_the_first_one_changes() {
        let mut order = Vec::new();
        let sample = |entrant: Entrant| {
            order.push(entrant.who);
            Ok(1.0)
        };
        rounds().hold(6, 2, &ENTRANTS, sample).unwrap();
        let [a, b] = ENTRANTS.map(|entrant| entrant.who);
        assert_eq!(order, [a, b, a, b, b, a]);
    }

    #[test]
    fn rounds_go_on_until_the_medians_hold_and_tell_if_they_never_do() {
        let mut grown = 0.0;
        let cells = rounds().hold(6, 10, &ENTRANTS, |entrant| {
            if entrant.who == ENTRANTS[0].who {
                return Ok(1.0);
            }
            grown += 1.0;
            Ok(grown)
        });
        let cells = cells.unwrap();
        assert_eq!(cells[0].summary.samples, 30);
        assert!(cells[0].settled && !cells[1].settled);
    }

    #[test]
    fn a_slow_contender_sits_out_but_keeps_enough_samples() {
        assert_eq!(stride(Duration::from_millis(1), 100), 1);
        assert_eq!(stride(Duration::from_millis(800), 100), 10);
        assert_eq!(stride(Duration::from_secs(60), 100), 14);
        assert_eq!(stride(Duration::from_secs(60), 2), 1);
    }
}
