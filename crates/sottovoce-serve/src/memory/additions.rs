//! What memory adds to a request, as changes to its body.

use std::ops::Range;

use sottovoce::ChatRole;
use sottovoce::context::{Context, TokenRates};
use sottovoce::model::earlier_text;

use super::Asked;
use crate::request::{Splice, escaped, tail_start};
use crate::session::Turn;
use crate::time_line;

/// What memory adds: what was said before the session at the end of the system prompt, and beside each utterance what
/// was recalled for it, as when it was new. The beginning of the request thus stays as it was.
pub(super) struct Additions<'a> {
    pub(super) history: &'a Context,
    pub(super) turns: &'a [Turn],
    /// For each utterance of the request, its turn.
    pub(super) aligned: &'a [Option<usize>],
}

impl Additions<'_> {
    /// The changes, and the tokens that they add, as estimated.
    pub(super) fn splices(&self, asked: &Asked<'_>, moves_time: bool) -> (Vec<Splice>, usize) {
        let body = str::from_utf8(asked.body).unwrap_or_default();
        let mut splices = Vec::new();
        let mut added = String::new();
        let mut history = earlier_text(self.history).trim_end().to_owned();
        if let Some(system) = &asked.request.system {
            let end = system.place.end.saturating_sub(1);
            let time = moved_time(body, system, moves_time).unwrap_or(end..end);
            if !history.is_empty() {
                let is_bare = system.text.trim().is_empty() || time.start == system.place.start + 1;
                history = format!("{}{history}", if is_bare { "" } else { "\n\n" });
            }
            added.push_str(&history);
            if !time.is_empty() || !history.is_empty() {
                splices.push(Splice { at: time, text: escaped(&history) });
            }
            history.clear();
        }
        let users = asked.request.lines.iter().filter(|line| line.speaker == ChatRole::User);
        for (line, turn) in users.zip(self.aligned) {
            let Some(place) = &line.place else { continue };
            let turn = turn.and_then(|at| self.turns.get(at));
            let mut text = String::new();
            // Without a system prompt it stands before the first words, since a system prompt would replace the model's.
            if !history.is_empty() {
                text.push_str(&history);
                text.push_str("\n\n");
                history.clear();
            }
            if let Some(turn) = turn {
                if let Some(time) = &turn.time {
                    text.push_str(time);
                    text.push_str("\n\n");
                }
                let recalled = earlier_text(&turn.recalled);
                if !recalled.is_empty() {
                    text.push_str(&recalled);
                    text.push('\n');
                }
            }
            if !text.is_empty() {
                let at = place.start + 1;
                splices.push(Splice { at: at..at, text: escaped(&text) });
                added.push_str(&text);
            }
        }
        (splices, TokenRates::default().estimate(&added))
    }
}

/// Where the current time stands in the body, at the end of the system prompt.
fn moved_time(body: &str, system: &crate::request::System, moves: bool) -> Option<Range<usize>> {
    if !moves {
        return None;
    }
    let start = time_line::start(&system.text)?;
    // White space before it goes along.
    let kept = system.text.get(..start)?.trim_end().len();
    let raw = body.get(system.place.clone())?;
    let from = tail_start(raw, system.text.len() - kept)?;
    Some(system.place.start + from..system.place.end - 1)
}
