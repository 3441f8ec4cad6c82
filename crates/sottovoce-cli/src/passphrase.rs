//! Asking for a passphrase on the terminal, which does not show it.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use zeroize::Zeroizing;

use crate::exit::Failure;

/// What Ctrl-C sends.
const INTERRUPT: u8 = 3;

/// The longest passphrase, in bytes; terminals take no longer lines.
const LONGEST: usize = 4096;

/// Asks for a passphrase; `None` where there is nobody to ask.
pub(crate) fn ask(what: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    if !io::stdin().is_terminal() && !io::stderr().is_terminal() {
        return Ok(None);
    }
    let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(None);
    };
    let quiet = Quiet::make(&terminal)?;
    write!(&terminal, "{what}: ")?;
    let line = read_line(&terminal)?;
    drop(quiet);
    writeln!(&terminal)?;
    if line.contains(&INTERRUPT) {
        return Err(Failure::Interrupted);
    }
    let text = str::from_utf8(&line)
        .map_err(|_| Failure::input("the passphrase is not UTF-8", "set the terminal to UTF-8"))?;
    if text.chars().any(char::is_control) {
        let help = "type it again; keys that move the cursor do not work here";
        return Err(Failure::input("the passphrase holds control characters", help));
    }
    Ok(Some(Zeroizing::new(text.to_owned())))
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

fn read_line(mut terminal: &File) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut line = Zeroizing::new(Vec::with_capacity(LONGEST));
    let mut byte = Zeroizing::new([0]);
    while line.len() < LONGEST && terminal.read(byte.as_mut_slice())? == 1 {
        match *byte {
            [b'\n'] => break,
            [INTERRUPT] => {
                line.push(INTERRUPT);
                break;
            }
            [other] => line.push(other),
        }
    }
    Ok(line)
}

/// A terminal that shows nothing of what is typed, until dropped.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn make(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        // A signal would end the program with the terminal still quiet, so Ctrl-C ends the line instead.
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}
