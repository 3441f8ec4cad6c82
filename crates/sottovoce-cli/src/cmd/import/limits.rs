//! The limits that a source has, set here only for whoever asks for it.

use std::io::{self, IsTerminal};

use sottovoce::import::ImportedLimits;

use crate::cmd::stats::duration;
use crate::exit::Failure;
use crate::output;

/// Whether they are set.
#[derive(clap::Args, Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    /// Also sets the limits that the source has: what is over them is hidden, and removed with the next message
    #[arg(long = "with-limits")]
    pub(super) are_wanted: bool,

    /// Sets them without asking
    #[arg(long, requires = "are_wanted")]
    yes: bool,
}

impl Limits {
    /// Whether somebody wants them who knows how many messages they hide.
    pub(super) fn confirm(self, limits: ImportedLimits, over: usize) -> Result<bool, Failure> {
        let hidden = match over {
            0 => String::new(),
            over => format!(", which hide at least {} of them at once", output::messages(over)),
        };
        self.ask(&format!(
            "each conversation gets the limits {}{hidden}; what is hidden is removed with the next message",
            in_words(limits)
        ))
    }

    /// The same before anybody has looked.
    pub(super) fn confirm_those_of(self, source: &str) -> Result<bool, Failure> {
        self.ask(&format!(
            "each conversation gets the limits of {source}: what is over them, here too, is hidden at once and removed \
             with the next message"
        ))
    }

    fn ask(self, what: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::input(
                format!("{what}; nobody is here to be asked"),
                "say --yes if that is what you want, or leave out --with-limits to keep every word",
            ));
        }
        output::warning(what);
        Ok(output::confirmed("Set these limits?")?)
    }
}

/// "at most 15 messages, for 1 d".
pub(super) fn in_words(limits: ImportedLimits) -> String {
    let retention = limits.retention.unwrap_or_default();
    let most = retention.max_messages.map(|most| most.get().into());
    let most = most.map(|most| format!("at most {}", output::counted(most, "message")));
    let ttl = retention.ttl_seconds.map(|ttl| format!("for {}", duration(ttl.get())));
    let window = limits.window_seconds;
    let window = window.map(|window| format!("a window of {}", duration(window.get())));
    let all: Vec<_> = [most, ttl, window].into_iter().flatten().collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
