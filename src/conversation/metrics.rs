//! Counts for monitoring. They tell neither what was said nor whose conversation it was.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::error::{Error, ModelFailure};

/// The upper bounds of the histogram, in milliseconds: from a cached prompt to a model that has to be loaded.
const BOUNDS: [u64; 10] = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// The answer reached its end, or the model called functions.
    Whole,
    /// Somebody interrupted it.
    Interrupted,
    /// There was no answer, or not all of it.
    Failed,
}

/// What kept a turn from its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// No model server answers.
    ModelUnreachable,
    /// The model server refused the request, or broke off.
    Model,
    /// What was said cannot be read or stored.
    Store,
    /// Another turn is in progress.
    Busy,
    /// The context is deleted, expired or full.
    Context,
    /// The request cannot be a turn.
    Request,
}

/// The kinds in the order of their counts, with their names.
const KINDS: [(ErrorKind, &str); 6] = [
    (ErrorKind::ModelUnreachable, "model_unreachable"),
    (ErrorKind::Model, "model"),
    (ErrorKind::Store, "store"),
    (ErrorKind::Busy, "busy"),
    (ErrorKind::Context, "context"),
    (ErrorKind::Request, "request"),
];

impl From<&Error> for ErrorKind {
    fn from(error: &Error) -> Self {
        match error {
            Error::Model { failure: ModelFailure::Unreachable(_), .. } => Self::ModelUnreachable,
            Error::Model { .. } | Error::NoModel => Self::Model,
            Error::TurnInProgress => Self::Busy,
            Error::Persona(_) => Self::Context,
            Error::InvalidMessage { .. }
            | Error::InvalidScope { .. }
            | Error::TooLarge { .. }
            | Error::ToolResults { .. }
            | Error::UtteranceForgotten => Self::Request,
            _ => Self::Store,
        }
    }
}

/// What the conversations of a process did since it started.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By [`TurnEnd`].
    turns: [AtomicU64; 3],
    /// By the smallest bound that the time does not exceed; the last is for longer ones.
    first_words: [AtomicU64; BOUNDS.len() + 1],
    first_words_micros: AtomicU64,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    recalled: AtomicU64,
    /// By [`KINDS`].
    errors: [AtomicU64; KINDS.len()],
}

impl Metrics {
    /// Counts a turn.
    pub fn turn(&self, end: TurnEnd) {
        let [whole, interrupted, failed] = &self.turns;
        let count = match end {
            TurnEnd::Whole => whole,
            TurnEnd::Interrupted => interrupted,
            TurnEnd::Failed => failed,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Counts the time from the start of a turn to the first text of its answer.
    pub fn first_word(&self, after: Duration) {
        let at = BOUNDS.iter().position(|bound| after <= Duration::from_millis(*bound));
        if let Some(count) = self.first_words.get(at.unwrap_or(BOUNDS.len())) {
            count.fetch_add(1, Relaxed);
        }
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.first_words_micros.fetch_add(micros, Relaxed);
    }

    /// Counts the tokens of a prompt as the model server counted them, and how many of them it took from its cache.
    pub fn tokens(&self, prompt: u64, cached: u64) {
        self.prompt_tokens.fetch_add(prompt, Relaxed);
        self.cached_tokens.fetch_add(cached, Relaxed);
    }

    /// Counts messages that were recalled for a prompt.
    pub fn recalled(&self, messages: usize) {
        self.recalled.fetch_add(messages as u64, Relaxed);
    }

    /// Counts an error that kept a turn from its answer.
    pub fn failed(&self, kind: impl Into<ErrorKind>) {
        let kind = kind.into();
        for ((known, _), count) in KINDS.iter().zip(&self.errors) {
            if *known == kind {
                count.fetch_add(1, Relaxed);
            }
        }
    }

    /// The counts in OpenMetrics' text format, without the line that ends it.
    pub fn open_metrics(&self) -> String {
        let mut text = String::new();
        let ends = ["whole", "interrupted", "failed"].into_iter().zip(&self.turns);
        labelled(&mut text, "sottovoce_turns", "Turns, by how they ended.", "end", ends);
        self.histogram(&mut text);
        for (name, help, count) in [
            (
                "sottovoce_prompt_tokens",
                "Tokens of prompts, as the model server counted them.",
                &self.prompt_tokens,
            ),
            (
                "sottovoce_cached_prompt_tokens",
                "Tokens of prompts that the model server took from its cache, if it tells.",
                &self.cached_tokens,
            ),
            ("sottovoce_recalled_messages", "Messages recalled for prompts.", &self.recalled),
        ] {
            head(&mut text, name, "counter", help);
            let _ = writeln!(text, "{name}_total {}", count.load(Relaxed));
        }
        let kinds = KINDS.into_iter().map(|(_, name)| name).zip(&self.errors);
        labelled(&mut text, "sottovoce_errors", "Errors in turns, by kind.", "kind", kinds);
        text
    }

    fn histogram(&self, text: &mut String) {
        const NAME: &str = "sottovoce_first_word_seconds";
        head(text, NAME, "histogram", "From the start of a turn to the first text of its answer.");
        let mut count = 0;
        for (at, counted) in self.first_words.iter().enumerate() {
            count += counted.load(Relaxed);
            let bound = match BOUNDS.get(at) {
                Some(millis) => format!("{:?}", Duration::from_millis(*millis).as_secs_f64()),
                None => "+Inf".to_owned(),
            };
            let _ = writeln!(text, "{NAME}_bucket{{le=\"{bound}\"}} {count}");
        }
        let sum = Duration::from_micros(self.first_words_micros.load(Relaxed)).as_secs_f64();
        let _ = writeln!(text, "{NAME}_count {count}\n{NAME}_sum {sum:?}");
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

fn labelled<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    label: &str,
    counts: impl Iterator<Item = (&'static str, &'a AtomicU64)>,
) {
    head(text, name, "counter", help);
    for (value, count) in counts {
        let _ = writeln!(text, "{name}_total{{{label}=\"{value}\"}} {}", count.load(Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_counted_in_every_bucket_that_holds_it() {
        let metrics = Metrics::default();
        for millis in [40, 50, 51, 700_000] {
            metrics.first_word(Duration::from_millis(millis));
        }
        metrics.turn(TurnEnd::Interrupted);
        metrics.tokens(7, 3);
        metrics.failed(&Error::NoModel);
        let text = metrics.open_metrics();
        for line in [
            "sottovoce_first_word_seconds_bucket{le=\"0.05\"} 2",
            "sottovoce_first_word_seconds_bucket{le=\"0.1\"} 3",
            "sottovoce_first_word_seconds_bucket{le=\"60.0\"} 3",
            "sottovoce_first_word_seconds_bucket{le=\"+Inf\"} 4",
            "sottovoce_first_word_seconds_count 4",
            "sottovoce_first_word_seconds_sum 700.141",
            "sottovoce_turns_total{end=\"whole\"} 0",
            "sottovoce_turns_total{end=\"interrupted\"} 1",
            "sottovoce_prompt_tokens_total 7",
            "sottovoce_cached_prompt_tokens_total 3",
            "sottovoce_errors_total{kind=\"model\"} 1",
            "sottovoce_errors_total{kind=\"store\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
        }
    }
}
