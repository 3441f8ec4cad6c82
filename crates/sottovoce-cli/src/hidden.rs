//! Reads secrets from the terminal without showing them.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use zeroize::Zeroizing;

const CTRL_C: u8 = 3;

/// The terminal itself, independent of the standard streams, with echo off.
pub(crate) struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&terminal)?;
        let mut mode = before.clone();
        mode.local_modes.remove(LocalModes::ECHO);
        // As a signal, Ctrl-C would leave the terminal with echo off. As a line end it is handled here.
        mode.local_modes.remove(LocalModes::ISIG);
        mode.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        tcsetattr(&terminal, OptionalActions::Flush, &mode)?;
        Ok(Self { terminal, before })
    }

    /// Asks for one line. `None` if the user pressed Ctrl-C or closed the terminal.
    pub(crate) fn ask(&mut self, question: &str) -> io::Result<Option<Zeroizing<String>>> {
        write!(self.terminal, "{question}")?;
        // A terminal delivers one line at a time, and none longer than this.
        let mut bytes = Zeroizing::new([0; 4096]);
        let read = self.terminal.read(bytes.as_mut_slice());
        writeln!(self.terminal)?;
        let line = bytes.get(..read?).unwrap_or_default();
        if line.is_empty() || line.ends_with(&[CTRL_C]) {
            return Ok(None);
        }
        let line = str::from_utf8(line).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "what was typed is not UTF-8")
        })?;
        Ok(Some(Zeroizing::new(line.trim_end_matches(['\r', '\n']).to_owned())))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
