//! Shows an answer on the terminal.

use std::io;
use std::time::Duration;

use sottovoce::conversation::{TurnOutcome, TurnReport};
use sottovoce::{Answer, AnswerEvent, Config, Error, with_causes};

use crate::exit::{self, Exit};
use crate::interrupt::{Interrupt, StopRequest};
use crate::no_model::NoModel;
use crate::output;

/// The share of its room at which a history counts as nearly full.
pub(crate) const NEARLY_FULL: f64 = 0.8;

/// The result of an answer.
pub(crate) struct Reply {
    /// The text that was shown.
    pub(crate) words: String,
    /// Whether the turn is stored. It is not if it was off the record.
    pub(crate) kept: bool,
    /// The figures of the turn so far. `None` if no prompt was built.
    pub(crate) report: Option<TurnReport>,
    pub(crate) end: End,
}

pub(crate) enum End {
    Complete(Box<TurnOutcome>),
    Interrupted(StopRequest),
    Failed(Error),
}

/// Reads an answer until it ends or the user interrupts it, and shows its pieces as they arrive.
pub(crate) async fn read(
    mut answer: Answer,
    interrupt: &mut Interrupt,
    mut show: impl FnMut(&AnswerEvent) -> io::Result<()>,
) -> io::Result<Reply> {
    let mut words = String::new();
    let kept = answer.utterance().is_some();
    loop {
        let piece = tokio::select! {
            piece = answer.next() => piece,
            heard = interrupt.heard() => {
                let report = answer.report().cloned();
                // Waits until the shown text is stored, not for the model.
                let end = match answer.spoken_up_to(words.chars().count()).await {
                    Err(error @ Error::UtteranceForgotten) => End::Failed(error),
                    // Closing the conversation tries again to store it, and reports the error.
                    Ok(_) | Err(_) => End::Interrupted(heard),
                };
                return Ok(Reply { words, kept, report, end });
            }
        };
        let end = match piece {
            Some(Ok(AnswerEvent::Done(kept))) => End::Complete(kept),
            Some(Ok(piece)) => {
                if let Err(error) = show(&piece) {
                    // Text that could not be shown is not stored. If storing the rest fails, closing tries again.
                    drop(answer.spoken_up_to(words.chars().count()).await);
                    return Err(error);
                }
                if let AnswerEvent::Text(text) = piece {
                    words.push_str(&text);
                }
                continue;
            }
            Some(Err(error)) => End::Failed(error),
            None => End::Failed(Error::ShuttingDown),
        };
        return Ok(Reply { words, kept, report: answer.report().cloned(), end });
    }
}

impl Reply {
    /// Ends the current line, so that the report starts on a new one.
    pub(crate) fn end_line(&self) -> io::Result<()> {
        if self.words.is_empty() || self.words.ends_with('\n') {
            return Ok(());
        }
        output::line("")
    }

    /// Reports the turn's figures. Returns the exit code.
    pub(crate) fn say_done(&self, report: &TurnReport) -> Exit {
        output::turn(report);
        if self.words.is_empty() {
            let what = "the model called a function instead of answering";
            output::error(what, "ask again, or choose another model");
            return Exit::Model;
        }
        Exit::Done
    }

    pub(crate) fn say_interrupted(&self) -> Exit {
        output::note(&format!("interrupted; {}", self.what_is_kept()));
        Exit::Interrupted
    }

    /// Reports why there is no whole answer, and what to do.
    pub(crate) fn say_failed(&self, config: &Config, error: &Error, retry: &str) -> Exit {
        match NoModel::of(config, error) {
            Some(missing) => missing.report(),
            None => output::error(&with_causes(error), exit::help(error)),
        }
        if !matches!(error, Error::UtteranceForgotten) {
            output::note(&format!("{}{retry}", self.what_is_kept()));
        }
        exit::code(error)
    }

    fn what_is_kept(&self) -> &'static str {
        match (self.kept, self.words.trim().is_empty()) {
            (false, _) => "nothing is kept",
            (true, true) => "the utterance is kept",
            (true, false) => "what was shown is kept",
        }
    }
}

/// The figures of a turn in one line.
pub(crate) fn status(report: &TurnReport) -> String {
    let mut parts = Vec::new();
    if let Some(time) = report.time_to_first_token {
        parts.push(format!("first word after {}", seconds(time)));
    }
    if let Some(tokens) = report.usage.prompt_tokens {
        parts.push(format!("{tokens} tokens read"));
    }
    if let Some(share) = report.unchanged_share() {
        parts.push(format!("{:.0} % of the request unchanged", 100.0 * share));
    }
    if report.lookups > 0 {
        parts.push(output::counted(report.lookups.into(), "lookup"));
    }
    if report.retries > 0 {
        parts.push("history dropped because it was too long".to_owned());
    }
    match &report.usage.cut_at {
        Some(limit) => parts.push(format!("cut off at {limit}")),
        None if report.usage.cut => parts.push("cut at its length limit".to_owned()),
        None => {}
    }
    parts.join(", ")
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
