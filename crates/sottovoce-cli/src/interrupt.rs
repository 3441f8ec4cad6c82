//! Being asked to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How one is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
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

    /// Returns when a signal has come since the last call, or comes.
    pub(crate) async fn heard(&mut self) -> Heard {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Heard::Interrupt,
            _ = self.terminate.recv() => Heard::Terminate,
            _ = hangup => Heard::Terminate,
        }
    }
}
