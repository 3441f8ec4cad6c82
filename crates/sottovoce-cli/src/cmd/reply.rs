//! Shows an answer on the terminal, or why there is none.

use std::io;
use std::time::Duration;

use sottovoce::config::ModelKind;
use sottovoce::conversation::{TurnOutcome, TurnReport};
use sottovoce::model::ModelFailure;
use sottovoce::{Answer, AnswerEvent, Config, Error, with_causes};
use tokio::time::Instant;

use crate::advice;
use crate::exit::{self, Exit};
use crate::interrupt::{Interrupt, StopRequest};
use crate::output::waiting::{BLINK, Waiting};
use crate::output::wrap::Wrap;
use crate::output::{self, grouped};

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
    wrap: Wrap,
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
    show: impl Fn(&mut Wrap, &AnswerEvent) -> io::Result<()>,
) -> io::Result<Reply> {
    let (mut words, mut wrap) = (String::new(), Wrap::answer());
    let kept = answer.utterance().is_some();
    let (mut waiting, mut is_thinking) = (Some(Waiting::begin()), false);
    let mut blink = tokio::time::interval_at(Instant::now() + BLINK, BLINK);
    loop {
        let piece = tokio::select! {
            piece = answer.next() => piece,
            _ = blink.tick(), if waiting.is_some() => {
                if let Some(line) = &mut waiting {
                    line.say(&doing(is_thinking, answer.report()));
                }
                continue;
            }
            heard = interrupt.heard() => {
                drop(waiting);
                let report = answer.report().cloned();
                // Waits until the shown text is stored, not for the model.
                let end = match answer.spoken_up_to(words.chars().count()).await {
                    Err(error @ Error::UtteranceForgotten) => End::Failed(error),
                    // Closing the conversation tries again to store it, and reports the error.
                    Ok(_) | Err(_) => End::Interrupted(heard),
                };
                return Ok(Reply { words, kept, report, end, wrap });
            }
        };
        match piece {
            Some(Ok(AnswerEvent::Thinking | AnswerEvent::LookedUp(_))) => {}
            _ => waiting = None,
        }
        is_thinking = matches!(piece, Some(Ok(AnswerEvent::Thinking)));
        let end = match piece {
            Some(Ok(AnswerEvent::Done(kept))) => End::Complete(kept),
            Some(Ok(piece)) => {
                if let Err(error) = show(&mut wrap, &piece) {
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
        return Ok(Reply { words, kept, report: answer.report().cloned(), end, wrap });
    }
}

/// What a model that has said nothing yet is doing.
fn doing(is_thinking: bool, report: Option<&TurnReport>) -> String {
    match report {
        _ if is_thinking => "thinking".to_owned(),
        None => "preparing the prompt".to_owned(),
        Some(report) => format!("reading {} tokens", grouped(report.receipt.used_tokens as u64)),
    }
}

impl Reply {
    /// Ends the current line, so that the report starts on a new one.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if self.words.is_empty() || self.words.ends_with('\n') {
            return Ok(());
        }
        output::line(self.wrap.end())
    }

    /// Reports the turn's figures. Returns the exit code.
    pub(crate) fn say_done(&self, report: &TurnReport) -> Exit {
        turn(report);
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
            None => output::error(&with_causes(error), advice::help(error)),
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

/// Reports a turn's figures and problems.
fn turn(report: &TurnReport) {
    output::skipped(&report.receipt.skipped);
    if report.truncated {
        output::warning(
            "the server seems to have cut the prompt; set LanguageModel.NumCtx to its window",
        );
    }
    output::note(&status(report));
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

/// Lists the models on the server.
const MODELS: &str = "sottovoce models";

/// Why there is no model, and the commands that change that.
pub(crate) struct NoModel {
    pub(crate) what: String,
    pub(crate) commands: Vec<String>,
}

impl NoModel {
    /// Returns a value if no model exists; `None` if the model failed.
    pub(crate) fn of(config: &Config, error: &Error) -> Option<Self> {
        let Error::Model { failure, .. } = error else { return None };
        let model = &config.language_model;
        let url = output::without_login(&model.base_url);
        let (serve, pull) = match model.kind {
            ModelKind::OpenAi => (vec!["llama-server -m MODEL.gguf".to_owned()], MODELS.to_owned()),
            _ => {
                let pull = format!("ollama pull {}", model.model);
                (vec!["ollama serve".to_owned(), pull.clone()], pull)
            }
        };
        match failure {
            ModelFailure::Unreachable(cause) => Some(Self {
                what: format!("no model is running at {url} ({})", innermost(&**cause)),
                commands: serve,
            }),
            ModelFailure::NoSuchModel { model } => Some(Self {
                what: format!("the server at {url} has no model {model:?}"),
                commands: vec![pull],
            }),
            _ => None,
        }
    }

    /// Reports it on standard error.
    pub(crate) fn report(&self) {
        let these = match self.commands.as_slice() {
            [only] if only == MODELS => "set LanguageModel.Model to one that this command lists",
            [_] => "this command changes that; `sottovoce models` lists what the server has",
            _ => "these commands change that, each in a terminal of its own",
        };
        let commands: Vec<String> =
            self.commands.iter().map(|command| format!("\n        {command}")).collect();
        output::error(&self.what, &output::printable(&format!("{these}:{}", commands.concat())));
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
