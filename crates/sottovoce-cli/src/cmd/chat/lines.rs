//! Lines of input: edited on a terminal, read as they are from a pipe.

use std::io::{self, BufRead, IsTerminal};
use std::thread;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::Editor;
use rustyline::config::Builder;
use rustyline::error::ReadlineError;
use rustyline::history::{History, MemHistory};
use tokio::sync::mpsc;

use super::completion::Completion;

/// What was typed.
#[derive(Debug)]
pub(super) enum Line {
    Words(String),
    /// An empty line, or one that was given up with Ctrl-C.
    Nothing,
    /// What is no text.
    Garbled,
    End,
}

/// What the thread that reads is asked to do.
enum Request {
    Read { prompt: String, remember: bool },
    Forget,
}

/// Lines of standard input, read on a thread of its own: one that waits for a key cannot be stopped, and must not
/// keep the program from ending.
pub(super) struct Lines {
    requests: mpsc::UnboundedSender<Request>,
    lines: mpsc::UnboundedReceiver<io::Result<Line>>,
    terminal: Option<Termios>,
}

impl Lines {
    pub(super) fn start() -> io::Result<Self> {
        let (requests, asked) = mpsc::unbounded_channel();
        let (answers, lines) = mpsc::unbounded_channel();
        let is_terminal = io::stdin().is_terminal();
        let terminal = tcgetattr(io::stdin()).ok().filter(|_| is_terminal);
        if is_terminal {
            let config = Builder::new().auto_add_history(false).build();
            // In memory only: what was said is on disk sealed or not at all.
            let mut editor =
                Editor::with_history(config, MemHistory::new()).map_err(io::Error::other)?;
            editor.set_helper(Some(Completion));
            thread::spawn(move || edit(editor, asked, &answers));
        } else {
            thread::spawn(move || read(asked, &answers));
        }
        Ok(Self { requests, lines, terminal })
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// The next line, which can be called back later unless it is off the record; or the answer to a question.
    pub(super) async fn next(&mut self, question: Option<&str>) -> io::Result<Line> {
        let prompt = question.unwrap_or("> ").to_owned();
        let _ = self.requests.send(Request::Read { prompt, remember: question.is_none() });
        self.lines.recv().await.unwrap_or(Ok(Line::End))
    }

    /// Lets go of the lines of this session.
    pub(super) fn forget(&self) {
        let _ = self.requests.send(Request::Forget);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The thread may be waiting for a key, with the terminal in its hands.
        if let Some(terminal) = &self.terminal {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, terminal);
        }
    }
}

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
                    let _ = editor.add_history_entry(line.as_str());
                }
                Ok(words(&line))
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
            Ok(_) => Ok(words(&line)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Line::Garbled),
            Err(error) => Err(error),
        };
        if answers.send(line).is_err() {
            return;
        }
    }
}

fn words(line: &str) -> Line {
    match line.trim() {
        "" => Line::Nothing,
        words => Line::Words(words.to_owned()),
    }
}
