//! Helpers shared by the benchmarks: a conversation to measure with, and statistics.
#![allow(dead_code, reason = "each benchmark uses some of it")]

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sottovoce::{ChatMessage, ChatRole, EncryptionKey, StoreOptions};

/// Typical lengths for people and voice assistants: short questions, answers of a sentence or two.
const QUESTIONS: [&str; 6] = [
    "What's the weather like tomorrow?",
    "Turn the heating down to nineteen degrees when I leave the house.",
    "Remind me to call my sister about the dinner on Saturday.",
    "And in the evening?",
    "Which bus gets me to the station before eight?",
    "Read me the shopping list, please.",
];
const ANSWERS: [&str; 5] = [
    "Tomorrow will be mostly sunny with a high of twenty-four degrees; there is a small chance of a shower after four.",
    "Done.",
    "I will remind you on Friday at six in the evening, when you are usually back from work. Shall I also put the dinner itself in your calendar, so that nobody books that evening?",
    "The 7:12 from the church arrives at 7:41, and the 7:27 arrives at 7:56; the second one is often late on weekdays.",
    "Milk, eggs, bread, half a kilo of coffee beans, and something for the cat.",
];

/// The secret of the stores' key.
pub(crate) const SECRET: &str = "a secret for measuring";

pub(crate) fn options() -> StoreOptions {
    StoreOptions::new(EncryptionKey::from_secret(SECRET).unwrap())
}

/// The message at one place of an endless conversation, 20 seconds after the previous one.
pub(crate) fn message(at: usize) -> ChatMessage {
    let start: Timestamp = "2025-01-06T07:00:00.250Z".parse().unwrap();
    let (role, texts) = if at.is_multiple_of(2) {
        (ChatRole::User, &QUESTIONS[..])
    } else {
        (ChatRole::Assistant, &ANSWERS[..])
    };
    let text = format!("{} ({at})", texts[at / 2 % texts.len()]);
    let mut message =
        ChatMessage::at(role, text, start + SignedDuration::from_secs(at as i64 * 20));
    message.offset_minutes = Some(60);
    message
}

/// Whether this is a trial run by `cargo test`, which passes no `--bench`.
pub(crate) fn is_trial() -> bool {
    let mut arguments = std::env::args();
    let bench = std::env::args().any(|argument| argument == "--bench");
    !bench || arguments.any(|argument| argument == "--test")
}

pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let outcome = std::hint::black_box(work());
    (started.elapsed(), outcome)
}

#[derive(Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub(crate) fn median(&mut self) -> Duration {
        self.at(50)
    }

    /// Half the distance between the quartiles, which a few disturbed rounds do not change.
    pub(crate) fn spread(&mut self) -> Duration {
        (self.at(75) - self.at(25)) / 2
    }

    fn at(&mut self, percent: usize) -> Duration {
        self.0.sort_unstable();
        self.0[(self.0.len() - 1) * percent / 100]
    }
}

/// At most three significant digits, in a suitable unit.
pub(crate) fn shown(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        m if m < 10.0 => format!("{m:.2} µs"),
        m if m < 100.0 => format!("{m:.1} µs"),
        m if m < 1e3 => format!("{m:.0} µs"),
        m if m < 1e4 => format!("{:.2} ms", m / 1e3),
        m if m < 1e5 => format!("{:.1} ms", m / 1e3),
        m => format!("{:.0} ms", m / 1e3),
    }
}

pub(crate) fn print_table(head: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(head[column].chars().count())
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(|(at, (cell, &width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        println!("| {} |", cells.join(" | "));
    };
    line(&mut head.iter().copied());
    let rules: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(at, &width)| if at == 0 { "-".repeat(width) } else { "-".repeat(width - 1) + ":" })
        .collect();
    line(&mut rules.iter().map(String::as_str));
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}
