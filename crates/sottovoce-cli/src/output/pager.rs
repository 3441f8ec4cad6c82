//! Long lists on a terminal go through the user's pager.

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use anstream::AutoStream;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stderr, dup2_stdout};

use crate::interrupt::Interrupt;
use crate::output;
use crate::output::wrap::{self, set_paged};

/// What `less` does unless LESS says otherwise: it ends by itself if all fits the screen, shows colors, and leaves the text there.
const LESS: &str = "FRX";

/// A running pager that shows standard output and standard error. Dropping it waits until the user has left it.
pub(crate) struct Pager {
    child: Child,
    terminal: (OwnedFd, OwnedFd),
}

impl Pager {
    /// Starts one if both streams are a terminal that can show it. Without one, everything is printed.
    pub(crate) fn start() -> io::Result<Option<Self>> {
        let is_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
        let is_dumb = output::is_dumb() || env::var_os("TERM").is_none();
        let command = env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        let words = shlex::split(&command).unwrap_or_default();
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        if !is_terminal || is_dumb || program == "cat" {
            return Ok(None);
        }
        let mut pager = Command::new(program);
        pager.args(arguments).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            pager.env("LESS", LESS);
        }
        // From now on Ctrl-C is the pager's.
        Interrupt::listen()?;
        let terminal =
            (fcntl_dupfd_cloexec(io::stdout(), 3)?, fcntl_dupfd_cloexec(io::stderr(), 3)?);
        let Ok(mut child) = pager.spawn() else { return Ok(None) };
        let Some(pipe) = child.stdin.take() else { return Ok(None) };
        AutoStream::choice(&io::stdout()).write_global();
        set_paged(wrap::columns(io::stdout()));
        io::stdout().flush()?;
        dup2_stdout(&pipe)?;
        dup2_stderr(&pipe)?;
        Ok(Some(Self { child, terminal }))
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        if io::stdout().flush().is_err()
            && let Ok(nowhere) = File::create("/dev/null")
        {
            // What somebody who has left does not read would otherwise stand below, on the terminal.
            let _ = dup2_stdout(&nowhere);
            let _ = io::stdout().flush();
        }
        // The pager reads to the end once nobody holds its pipe.
        let _ = dup2_stdout(&self.terminal.0);
        let _ = dup2_stderr(&self.terminal.1);
        let _ = self.child.wait();
        set_paged(None);
    }
}
