//! Asks for passphrases on the terminal.

use std::io::{self, IsTerminal};

use zeroize::Zeroizing;

use crate::exit::Failure;
use crate::hidden::Hidden;
use crate::output;

/// Asks for a passphrase; `None` without a terminal.
pub(crate) fn ask(what: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    if !io::stdin().is_terminal() && !io::stderr().is_terminal() {
        return Ok(None);
    }
    let Ok(mut terminal) = Hidden::open() else {
        return Ok(None);
    };
    let text = terminal.ask(&format!("{what}: "))?.ok_or(Failure::Interrupted(""))?;
    if text.chars().any(char::is_control) {
        let help = "type it again; keys that move the cursor do not work here";
        return Err(Failure::input("the passphrase holds control characters", help));
    }
    Ok(Some(text))
}

/// Whether it is short enough to be guessed.
pub(crate) fn is_short(text: &str) -> bool {
    text.chars().count() < 8
}

pub(crate) fn warn_of_short() {
    output::warning(
        "so short a passphrase can be guessed from a stolen disk; several words are better",
    );
}

/// Asks for a new passphrase, twice.
pub(crate) fn ask_new() -> Result<Option<Zeroizing<String>>, Failure> {
    let Some(first) = ask("New passphrase")? else {
        return Ok(None);
    };
    match ask("The same again")? {
        Some(second) if second == first => Ok(Some(first)),
        _ => Err(Failure::input("the two are not the same", "type the same passphrase twice")),
    }
}
