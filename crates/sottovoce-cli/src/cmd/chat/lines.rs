//! Reads lines of input: edited on a terminal, unchanged from a pipe.

use std::io::{self, BufRead, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use rustyline::completion::Completer;
use rustyline::config::Builder;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History, MemHistory};
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use tokio::sync::mpsc;

use crate::output;

/// A line of input.
#[derive(Debug)]
pub(super) enum Line {
    Words(String),
    /// An empty line, or one that Ctrl-C cancelled.
    Nothing,
    /// Input that is not text.
    Garbled,
    End,
}

/// A request to the reading thread.
enum Request {
    Read { prompt: String, remember: bool },
    Forget,
}

/// Lines of standard input, read on a thread of its own. A thread that waits for a key cannot be stopped, and must
/// not keep the program from ending.
///
/// Lines that are typed early wait: in the terminal if the system has not delivered them, and in the editor's buffer if it has read them.
pub(super) struct Lines {
    requests: mpsc::UnboundedSender<Request>,
    lines: mpsc::UnboundedReceiver<io::Result<Line>>,
    /// A line that was typed before a question, and is no answer to it.
    waiting: Option<Line>,
    /// Whether somebody was told what becomes of lines that come together.
    is_told: bool,
    /// The terminal's mode before the chat.
    terminal: Option<Termios>,
}

impl Lines {
    pub(super) fn start(commands: Vec<String>) -> io::Result<Self> {
        let (requests, asked) = mpsc::unbounded_channel();
        let (answers, lines) = mpsc::unbounded_channel();
        let is_terminal = io::stdin().is_terminal();
        let terminal = tcgetattr(io::stdin()).ok().filter(|_| is_terminal);
        if is_terminal {
            let config = Builder::new().auto_add_history(false).build();
            // History stays in memory: conversation text is on disk only sealed.
            let mut editor =
                Editor::with_history(config, MemHistory::new()).map_err(io::Error::other)?;
            editor.set_helper(Some(Completion(commands)));
            thread::spawn(move || edit(editor, asked, &answers));
        } else {
            thread::spawn(move || read(asked, &answers));
        }
        let lines = Self { requests, lines, waiting: None, is_told: false, terminal };
        lines.set_mode(false)?;
        Ok(lines)
    }

    /// Lends standard input to a command that reads it in line mode, or takes it back.
    pub(super) fn lend(&self, is_lent: bool) -> io::Result<()> {
        self.set_mode(is_lent)
    }

    /// Sets the terminal's mode while the editor is not reading. Ctrl-C is then a signal for the answer, and does not
    /// discard typed lines.
    ///
    /// Unless a command reads lines, the terminal delivers keys: in line mode it would cut a line at 4,095 bytes and
    /// lose Ctrl-D. On a terminal without an editor, only line mode knows Ctrl-D.
    fn set_mode(&self, by_line: bool) -> io::Result<()> {
        let Some(terminal) = &self.terminal else { return Ok(()) };
        let mut keeping = terminal.clone();
        keeping.local_modes |= LocalModes::NOFLSH;
        if !by_line && !output::is_dumb() {
            keeping.local_modes -= LocalModes::ICANON;
            keeping.special_codes[SpecialCodeIndex::VMIN] = 1;
            keeping.special_codes[SpecialCodeIndex::VTIME] = 0;
        }
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &keeping)?)
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// The next line, or the answer to a question. A line can be recalled later unless it is off the record.
    pub(super) async fn next(&mut self, question: Option<&str>) -> io::Result<Line> {
        if question.is_none()
            && let Some(line) = self.waiting.take()
        {
            if let Line::Words(words) = &line {
                output::line(format!("{PROMPT}{}", output::printable(words)))?;
            }
            return Ok(line);
        }
        let prompt = question.unwrap_or(PROMPT).to_owned();
        let _ = self.requests.send(Request::Read { prompt, remember: question.is_none() });
        let asked = Instant::now();
        let line = self.lines.recv().await.unwrap_or(Ok(Line::End))?;
        let is_early = matches!(line, Line::Words(_)) && asked.elapsed() < KEYSTROKE;
        if is_early && self.is_terminal() && !std::mem::replace(&mut self.is_told, true) {
            output::note("lines that come together are asked one by one, each as an utterance");
        }
        Ok(line)
    }

    /// Puts back a line that was not an answer to a question.
    pub(super) fn put_back(&mut self, line: Line) {
        self.waiting = Some(line);
    }

    /// Forgets the lines of this session.
    pub(super) fn forget(&self) {
        let _ = self.requests.send(Request::Forget);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The thread may be waiting for a key and hold the terminal's mode.
        if let Some(terminal) = &self.terminal {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, terminal);
        }
    }
}

/// Nobody types a line in less.
const KEYSTROKE: Duration = Duration::from_millis(10);

/// The prompt of the chat.
const PROMPT: &str = "> ";

type Answers = mpsc::UnboundedSender<io::Result<Line>>;

fn edit(
    mut editor: Editor<Completion, MemHistory>,
    mut asked: mpsc::UnboundedReceiver<Request>,
    answers: &Answers,
) {
    while let Some(request) = asked.blocking_recv() {
        let (prompt, remember) = match request {
            Request::Read { prompt, remember } => (prompt, remember),
            Request::Forget => {
                let _ = editor.history_mut().clear();
                continue;
            }
        };
        let line = match editor.readline(&prompt) {
            Ok(line) => {
                if remember && !line.starts_with("/off") {
                    let _ = editor.add_history_entry(&line);
                }
                Ok(words_of(&line))
            }
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(ReadlineError::Interrupted) => Ok(Line::Nothing),
            Err(ReadlineError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        };
        if answers.send(line).is_err() {
            return;
        }
    }
}

fn read(mut asked: mpsc::UnboundedReceiver<Request>, answers: &Answers) {
    let mut input = io::stdin().lock();
    while let Some(request) = asked.blocking_recv() {
        let Request::Read { .. } = request else { continue };
        let mut line = String::new();
        let line = match input.read_line(&mut line) {
            Ok(0) => Ok(Line::End),
            Ok(_) => Ok(words_of(&line)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Line::Garbled),
            Err(error) => Err(error),
        };
        if answers.send(line).is_err() {
            return;
        }
    }
}

fn words_of(line: &str) -> Line {
    match line.trim_start_matches('\u{feff}').trim() {
        "" => Line::Nothing,
        words => Line::Words(words.to_owned()),
    }
}

/// Completes these commands.
struct Completion(Vec<String>);

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, candidates(&self.0, line.get(..at).unwrap_or(line))))
    }
}

fn candidates(commands: &[String], begun: &str) -> Vec<String> {
    if !begun.starts_with('/') {
        return Vec::new();
    }
    // Complete one word at a time, so that `/context` is offered before its subcommands.
    let words = begun.split(' ').count();
    let next_word = |command: &str| {
        let end = command.match_indices(' ').nth(words - 1).map_or(command.len(), |(at, _)| at + 1);
        command.get(..end).unwrap_or(command).to_owned()
    };
    let meant = commands.iter().filter(|command| command.starts_with(begun));
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
        let commands = crate::cmd::chat::context::commands();
        let candidates = |begun| candidates(&commands, begun);
        assert_eq!(candidates("/c"), ["/context"]);
        assert_eq!(candidates("/context ").len(), 17);
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
