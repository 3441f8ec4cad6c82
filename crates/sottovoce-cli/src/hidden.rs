//! Asking for what nobody may read over the shoulder.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use zeroize::Zeroizing;

const CTRL_C: u8 = 3;

/// The terminal itself, whatever the standard streams are, with what is typed not shown.
pub(crate) struct Hidden {
    terminal: File,
    lines: BufReader<File>,
    before: Termios,
}

impl Hidden {
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&terminal)?;
        let mut mode = before.clone();
        mode.local_modes.remove(LocalModes::ECHO);
        // As a signal, Ctrl-C would leave a terminal behind that shows nothing. As the end of a line it is seen here.
        mode.local_modes.remove(LocalModes::ISIG);
        mode.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        tcsetattr(&terminal, OptionalActions::Flush, &mode)?;
        let lines = BufReader::new(terminal.try_clone()?);
        Ok(Self { terminal, lines, before })
    }

    /// Asks for one line. `None` where it was given up with Ctrl-C, or the terminal was closed.
    pub(crate) fn ask(&mut self, question: &str) -> io::Result<Option<Zeroizing<String>>> {
        write!(self.terminal, "{question}")?;
        let mut line = Zeroizing::new(String::with_capacity(1024));
        let read = self.lines.read_line(&mut line);
        writeln!(self.terminal)?;
        if read? == 0 || line.ends_with(char::from(CTRL_C)) {
            return Ok(None);
        }
        let length = line.trim_end_matches(['\r', '\n']).len();
        line.truncate(length);
        Ok(Some(line))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
