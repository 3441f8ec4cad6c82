//! An answer on the terminal.

use std::io;
use std::time::Duration;

use sottovoce::{Answer, Error, Kept, Piece, TurnReport};

use crate::interrupt::Interrupt;

/// What became of an answer.
pub(crate) struct Reply {
    /// The words that were handed out.
    pub(crate) words: String,
    pub(crate) end: End,
}

pub(crate) enum End {
    Kept(Box<Kept>),
    Interrupted,
    Failed(Error),
}

/// Reads an answer to its end, or until someone has had enough of it, and shows its words as they come.
pub(crate) async fn read(
    mut answer: Answer,
    interrupt: &mut Interrupt,
    mut show: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<Reply> {
    let mut words = String::new();
    loop {
        let piece = tokio::select! {
            piece = answer.next() => piece,
            () = interrupt.heard() => return Ok(Reply { words, end: End::Interrupted }),
        };
        let end = match piece {
            Some(Ok(Piece::Text(text))) => {
                show(&text)?;
                words.push_str(&text);
                continue;
            }
            Some(Ok(Piece::Done(kept))) => End::Kept(kept),
            Some(Ok(_)) => continue,
            Some(Err(error)) => End::Failed(error),
            None => End::Failed(Error::ShuttingDown),
        };
        return Ok(Reply { words, end });
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
    if report.retries > 0 {
        parts.push("history dropped, since it was too long".to_owned());
    }
    if report.usage.cut {
        parts.push("cut at its greatest length".to_owned());
    }
    parts.join(", ")
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
