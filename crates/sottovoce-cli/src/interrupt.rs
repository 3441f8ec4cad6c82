//! Signals that stop the program.

use std::io;
use std::pin::pin;

use indicatif::ProgressBar;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failure;
use crate::output;
use crate::output::waiting::{BLINK, Waiting};

/// The kind of signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// Ctrl-C: stop the current work.
    Interrupt,
    /// SIGTERM, or the terminal was closed: end the program.
    Terminate,
}

/// Listens for Ctrl-C and SIGTERM from its creation on, so that no signal is missed between two calls.
pub(crate) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

/// Whether SIGHUP is ignored, as far as the system reports it. It is the first bit of the mask.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // If that is unknown, nothing is changed.
    mask.is_none_or(|mask| mask & 1 == 1)
}

impl Interrupt {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Also listens for the closing of the terminal. Only for commands that need one: others may run under `nohup`,
    /// which listening would undo.
    pub(crate) fn and_hangup(mut self) -> io::Result<Self> {
        self.hangup = Some(signal(SignalKind::hangup())?);
        Ok(self)
    }

    /// Also listens for the closing of the terminal, unless the program was started to survive it, as `nohup` does.
    pub(crate) fn and_hangup_if_heeded(self) -> io::Result<Self> {
        match is_hangup_ignored() {
            true => Ok(self),
            false => self.and_hangup(),
        }
    }

    /// Returns at the next signal, or at once if one has come since the last call.
    pub(crate) async fn heard(&mut self) -> StopRequest {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => StopRequest::Interrupt,
            _ = self.terminate.recv() => StopRequest::Terminate,
            _ = hangup => StopRequest::Terminate,
        }
    }

    /// The result of this work, which `stop` asks to end early when a signal comes.
    pub(crate) async fn or_stop<T>(
        &mut self,
        stop: impl FnOnce(),
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            _ = self.heard() => {
                stop();
                work.await
            }
            done = &mut work => done,
        }
    }

    /// The result of this work, or a failure if a signal comes first: the note on what is `kept` then may be empty.
    pub(crate) async fn or<T>(
        &mut self,
        kept: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            _ = self.heard() => Err(Failure::Interrupted(kept)),
            done = work => Ok(done),
        }
    }
}

/// Runs work of unknown length, with a line that says `what` it is, until it is done or a signal comes.
pub(crate) async fn awaited<T>(
    what: &str,
    kept: &'static str,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    let mut interrupt = Interrupt::listen()?.and_hangup_if_heeded()?;
    let (mut line, mut work) = (Waiting::begin(), pin!(work));
    let shown = async {
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(BLINK) => line.say(what),
            }
        }
    };
    interrupt.or(kept, shown).await
}

/// Runs work with a progress bar, until it is done or a signal comes: the note on what is `kept` then may be empty.
pub(crate) async fn attended<T>(
    what: &'static str,
    total: u64,
    kept: &'static str,
    work: impl AsyncFnOnce(&ProgressBar) -> T,
) -> Result<T, Failure> {
    let mut interrupt = Interrupt::listen()?.and_hangup_if_heeded()?;
    interrupt.or(kept, output::with_bar(Some(total), what, work)).await
}
