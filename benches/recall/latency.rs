//! How long a question takes, with the index in memory, on one thread.

use std::hint::black_box;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use rustix::time::{ClockId, clock_gettime};
use sottovoce_recall::{Asked, BuildOptions, Index, Question, Segment};

use super::rows::{Goal, Row, grouped};
use super::talk::Talk;

/// Messages of one segment, as stores have them.
const PER_SEGMENT: usize = 1024;
const QUESTIONS: usize = 400;
const ROUNDS: usize = 5;
/// The most milliseconds, for half and for 99 % of the questions.
const GOALS: [(usize, [f64; 2]); 2] = [(10_000, [0.5, 1.]), (100_000, [3., 5.])];

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
    let asked = asked(&index);
    index.rank(&Question::new(&talk.questions[0], &asked), |_| true, 20);
    // The least of several rounds: others use the processor too, and its caches.
    let mut least = vec![Duration::MAX; QUESTIONS];
    for _ in 0..ROUNDS {
        for (text, least) in talk.questions.iter().zip(&mut least) {
            let begun = thread_time();
            black_box(index.rank(&Question::new(text, &asked), |_| true, 20));
            *least = (*least).min(thread_time() - begun);
        }
    }
    least.sort_unstable();
    let at = |share: f64| least[((QUESTIONS - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    Latency { turns, half: at(0.5), most: at(0.99) }
}

fn asked(index: &Index) -> Asked<'static> {
    Asked::new(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), index.years().unwrap())
}

/// The time that this thread has computed.
fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
