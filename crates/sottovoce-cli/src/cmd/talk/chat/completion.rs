//! Tab completion of chat commands.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// All chat commands with fixed text.
const COMMANDS: [&str; 25] = [
    "/context",
    "/context add ",
    "/context add-folder ",
    "/context add-search ",
    "/context artifacts",
    "/context clear",
    "/context compact",
    "/context export ",
    "/context history",
    "/context list",
    "/context messages",
    "/context new ",
    "/context prune ",
    "/context restore ",
    "/context save ",
    "/context show ",
    "/context stats",
    "/context use ",
    "/explain",
    "/forget last",
    "/help",
    "/off ",
    "/quit",
    "/retry",
    "/scope ",
];

pub(super) struct Completion;

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, candidates(line.get(..at).unwrap_or(line))))
    }
}

fn candidates(begun: &str) -> Vec<String> {
    if !begun.starts_with('/') {
        return Vec::new();
    }
    // Complete one word at a time, so that `/context` is offered before its subcommands.
    let words = begun.split(' ').count();
    let next_word = |command: &str| {
        let end = command.match_indices(' ').nth(words - 1).map_or(command.len(), |(at, _)| at + 1);
        command.get(..end).unwrap_or(command).to_owned()
    };
    let meant = COMMANDS.iter().filter(|command| command.starts_with(begun));
    let mut found: Vec<String> = meant.map(|command| next_word(command)).collect();
    found.dedup_by(|next, kept| next.trim_end() == kept.trim_end());
    found
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}

impl Validator for Completion {}

impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::candidates;

    #[test]
    fn commands_are_completed_word_by_word_and_utterances_not_at_all() {
        assert_eq!(candidates("/c"), ["/context"]);
        assert_eq!(candidates("/context "), super::COMMANDS[1..18]);
        assert_eq!(
            candidates("/context s"),
            ["/context save ", "/context show ", "/context stats"]
        );
        assert_eq!(candidates("/o"), ["/off "]);
        assert_eq!(candidates("/f"), ["/forget "]);
        assert_eq!(candidates("/forget "), ["/forget last"]);
        assert_eq!(candidates("//x"), [""; 0]);
        assert_eq!(candidates("context"), [""; 0]);
    }
}
