//! A line that says what is being waited for.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::output::{DIM, is_dumb};

/// How long nothing is said, and how often what is said is renewed.
pub(crate) const BLINK: Duration = Duration::from_millis(400);
/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\u{1b}[K";

/// A line on standard error, if that is a terminal. It is gone when this is dropped, and so is the ^C that a terminal may have put behind it.
pub(crate) struct Waiting {
    since: Instant,
    is_shown: bool,
}

impl Waiting {
    pub(crate) fn begin() -> Self {
        Self { since: Instant::now(), is_shown: false }
    }

    /// Shows this, with the time so far.
    pub(crate) fn say(&mut self, what: &str) {
        if !io::stderr().is_terminal() || is_dumb() {
            return;
        }
        self.is_shown = true;
        let seconds = self.since.elapsed().as_secs();
        let _ = write!(io::stderr(), "{CLEAR}");
        let _ = write!(anstream::stderr(), "{DIM}{what} … {seconds} s{DIM:#}");
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "{CLEAR}");
        }
    }
}
