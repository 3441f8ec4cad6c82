//! How long a question takes with the index in memory: encoding it and ranking what was said.

use std::hint::black_box;
use std::time::{Duration, Instant};

use jiff::{Timestamp, tz::TimeZone};
use sottovoce_encoder::Encoder;
use sottovoce_recall::{Asked, BuildOptions, Index, Meaning, Question, Segment};

use super::rows::{Goal, Row, grouped};
use super::talk::{Talk, vector};

/// Messages of one segment, as stores have them.
const PER_SEGMENT: usize = 1024;
const QUESTIONS: usize = 400;
const ROUNDS: usize = 5;
/// The most milliseconds, for half and for 99 % of the questions.
const GOALS: [(usize, [f64; 2]); 2] = [(10_000, [12., 20.]), (100_000, [18., 28.])];

/// Milliseconds that half and 99 % of the questions take at most.
pub(crate) struct Latency {
    pub(crate) turns: usize,
    pub(crate) half: f64,
    pub(crate) most: f64,
}

pub(crate) fn measure(turns: &[usize], rows: &mut Vec<Row>) -> Vec<Latency> {
    let latencies: Vec<Latency> = turns.iter().map(|turns| latency(*turns)).collect();
    for (turns, goals) in GOALS {
        for latency in latencies.iter().filter(|latency| latency.turns == turns) {
            let shares = [("half", latency.half), ("99 %", latency.most)];
            for ((share, value), goal) in shares.into_iter().zip(goals) {
                let figure = format!("{} turns: {share} of the questions take", grouped(turns));
                rows.push(Row::new(figure, value, "ms", Goal::AtMost(goal)));
            }
        }
    }
    latencies
}

fn latency(turns: usize) -> Latency {
    let talk = Talk::new(turns, QUESTIONS);
    let mut index = Index::default();
    for (number, first) in (0..).zip((0..turns).step_by(PER_SEGMENT)) {
        let block = (first..turns.min(first + PER_SEGMENT)).map(|turn| talk.turn(turn));
        let stored = Segment::build(block, &BuildOptions::default()).to_bytes();
        index.insert(number, Segment::from_bytes(&stored).unwrap());
    }
    index.refresh();
    let meanings = index.without_meaning(usize::MAX).into_iter().map(|(seq, passages)| {
        let meaning = |_| Meaning::new(&vector(seq as usize), None);
        (seq, passages.iter().map(meaning).collect())
    });
    let meanings = meanings.collect();
    index.set_meanings(&meanings);
    let asked = asked(&index);
    let encoder = Encoder::shared().unwrap();
    let answer = |index: &mut Index, text: &str| {
        let question = Question::new(text, &asked).meaning(&encoder.encode(text));
        black_box(index.rank(&question, |_| true, 20));
    };
    answer(&mut index, &talk.questions[0]);
    // The least of several rounds: others use the processor too, and its caches.
    let mut least = vec![Duration::MAX; QUESTIONS];
    for _ in 0..ROUNDS {
        for (text, least) in talk.questions.iter().zip(&mut least) {
            let begun = Instant::now();
            answer(&mut index, text);
            *least = (*least).min(begun.elapsed());
        }
    }
    least.sort_unstable();
    let at = |share: f64| least[((QUESTIONS - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    Latency { turns, half: at(0.5), most: at(0.99) }
}

fn asked(index: &Index) -> Asked<'static> {
    Asked::new(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), index.years().unwrap())
}
