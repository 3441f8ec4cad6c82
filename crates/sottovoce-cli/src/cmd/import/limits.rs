//! Limits of a source, which are imported only on request.

use std::io::{self, IsTerminal};

use sottovoce::import::ImportedLimits;

use crate::cmd::memory::stats::duration;
use crate::exit::Failure;
use crate::output;

/// Options for a source's limits.
#[derive(clap::Args, Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    /// Also imports the source's limits: messages that exceed them are hidden, and deleted with the next append
    #[arg(long = "with-limits")]
    pub(super) are_wanted: bool,

    /// Imports the limits without asking
    #[arg(long, requires = "are_wanted")]
    yes: bool,
}

impl Limits {
    /// Asks for confirmation, showing how many messages the limits hide.
    pub(super) fn confirm(self, limits: ImportedLimits, over: usize) -> Result<bool, Failure> {
        let hidden = match over {
            0 => String::new(),
            over => format!(", which hide at least {} at once", output::messages(over)),
        };
        self.ask(&format!(
            "each conversation gets the limits {}{hidden}; hidden messages are deleted with the next append",
            in_words(limits)
        ))
    }

    /// Asks for confirmation before the source is read.
    pub(super) fn confirm_those_of(self, source: &str) -> Result<bool, Failure> {
        self.ask(&format!(
            "each conversation gets the limits of {source}: messages that exceed them, here too, are hidden at once, and \
             deleted with the next append"
        ))
    }

    fn ask(self, what: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::input(
                format!("{what}; this needs confirmation, and there is no terminal"),
                "confirm with --yes, or leave out --with-limits to keep all messages",
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
