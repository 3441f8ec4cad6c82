//! Being asked to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How one is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// Ctrl-C: whatever goes on is to stop.
    Interrupt,
    /// SIGTERM, or a terminal that was closed: the program is to end.
    Terminate,
}

/// Listens for Ctrl-C and for SIGTERM from when it is made, so that none is missed between two questions.
pub(crate) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

/// Whether SIGHUP does nothing, as far as the system says it: it is the first signal of the mask.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Where nobody knows, nothing is changed.
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

    /// Listens for the closing of the terminal too. Only for what needs one: anything else may run under `nohup`, and
    /// listening would undo that.
    pub(crate) fn and_hangup(mut self) -> io::Result<Self> {
        self.hangup = Some(signal(SignalKind::hangup())?);
        Ok(self)
    }

    /// The same unless whoever started the program has it go on without a terminal, as `nohup` does.
    pub(crate) fn and_hangup_if_heeded(self) -> io::Result<Self> {
        match is_hangup_ignored() {
            true => Ok(self),
            false => self.and_hangup(),
        }
    }

    /// Returns when a signal has come since the last call, or comes.
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
}
