//! A home whose commands use a scripted model server.

use std::io::Read;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use ollama::OllamaStub;

const WAIT: Duration = Duration::from_secs(20);

pub(super) struct Talk {
    pub(super) home: Home,
    pub(super) stub: OllamaStub,
}

impl Talk {
    pub(super) fn new() -> Self {
        Self { home: Home::new(), stub: OllamaStub::start() }
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        command.env("SOTTOVOCE__LANGUAGEMODEL__BASEURL", self.stub.url());
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs with lines on standard input.
    pub(super) fn feed(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
        let mut running = self.spawn(arguments);
        running.input.as_mut().unwrap().write_all(input.as_ref()).unwrap();
        running.ended()
    }

    /// Starts a command with pipes for all streams.
    pub(super) fn spawn(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        Running::new(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// The messages as JSON.
    pub(super) fn kept(&self) -> Vec<Value> {
        rows(&self.home.run(&["tail", "--json", "-n", "1000"]))
    }
}

/// A running command, and its output so far.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) input: Option<std::process::ChildStdin>,
    shown: Pipe,
    said: Pipe,
}

impl Running {
    fn new(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let shown = Pipe::new(child.stdout.take().unwrap());
        let said = Pipe::new(child.stderr.take().unwrap());
        Self { child, input, shown, said }
    }

    pub(super) fn type_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits until standard output contains this.
    pub(super) fn until_shown(&mut self, part: &str) -> String {
        self.shown.until(part)
    }

    /// Waits until standard error contains this.
    pub(super) fn until_said(&mut self, part: &str) -> String {
        self.said.until(part)
    }

    /// Closes the input, and waits for the end.
    pub(super) fn ended(mut self) -> Output {
        drop(self.input.take());
        let (stdout, stderr) = (self.shown.rest(), self.said.rest());
        let status = ended(self.child).status;
        Output { status, stdout, stderr }
    }
}

/// Output of a pipe or a terminal as it arrives.
pub(super) struct Pipe {
    more: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
    /// How much of it earlier waits have consumed.
    at: usize,
}

impl Pipe {
    pub(super) fn new(mut from: impl Read + Send + 'static) -> Self {
        let (send, more) = channel();
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut some) {
                if send.send(some[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { more, bytes: Vec::new(), at: 0 }
    }

    /// Waits until this has arrived since the last wait, and returns the output until then.
    pub(super) fn until(&mut self, part: &str) -> String {
        loop {
            let new = &self.bytes[self.at..];
            if let Some(found) = new.windows(part.len()).position(|some| some == part.as_bytes()) {
                let until = String::from_utf8_lossy(&new[..found + part.len()]).into_owned();
                self.at += found + part.len();
                return until;
            }
            let Ok(more) = self.more.recv_timeout(WAIT) else {
                panic!("{part:?} did not come: {:?}", String::from_utf8_lossy(&self.bytes));
            };
            self.bytes.extend(more);
        }
    }

    fn rest(mut self) -> Vec<u8> {
        while let Ok(more) = self.more.recv_timeout(WAIT) {
            self.bytes.extend(more);
        }
        self.bytes
    }
}
