//! Secrets that are typed or read from files: passphrases and other programs' keys. They are never arguments, because shells
//! keep arguments in their history and process lists show them.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use zeroize::Zeroizing;

use crate::exit::Failure;
use crate::output;

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

/// Asks for a passphrase; `None` without a terminal.
pub(crate) fn ask_passphrase(what: &str) -> Result<Option<Zeroizing<String>>, Failure> {
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
    let Some(first) = ask_passphrase("New passphrase")? else {
        return Ok(None);
    };
    match ask_passphrase("The same again")? {
        Some(second) if second == first => Ok(Some(first)),
        _ => Err(Failure::input("the two are not the same", "type the same passphrase twice")),
    }
}

/// The most bytes that a file of keys may have.
const LARGEST: u64 = 1 << 20;

/// Sources of the other program's keys
#[derive(clap::Args)]
#[command(next_help_heading = "Keys")]
pub(crate) struct Sources {
    /// An environment variable with a key string; may be repeated
    #[arg(long, value_name = "NAME")]
    key_env: Vec<String>,

    /// A file with one key string a line, `-` for standard input, or /dev/fd/3; may be repeated
    #[arg(long, value_name = "FILE")]
    key_file: Vec<PathBuf>,

    /// Asks for keys on the terminal, without showing them, until an empty line
    #[arg(long)]
    ask_key: bool,
}

pub(crate) type Keys = Vec<Zeroizing<String>>;

impl Sources {
    /// The keys; `None` if the user gave up entering them.
    pub(crate) fn read(&self) -> Result<Option<Keys>, Failure> {
        let mut keys = Keys::new();
        for name in &self.key_env {
            keys.push(variable(name)?);
        }
        for file in &self.key_file {
            keys.extend(lines(file)?);
        }
        let given_up = self.ask_key && !ask_keys(&mut keys)?;
        Ok((!given_up).then_some(keys))
    }
}

fn variable(name: &str) -> Result<Zeroizing<String>, Failure> {
    std::env::var(name).map(Zeroizing::new).map_err(|_| {
        Failure::input(
            format!("the environment variable {name} is not set, or is not text"),
            "export it first; --key-env takes the variable's name, not the key",
        )
    })
}

/// A key is a whole line, spaces included.
fn lines(file: &Path) -> Result<Keys, Failure> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
    let read = match file.to_str() {
        Some("-") => io::stdin().lock().take(LARGEST).read_to_end(&mut bytes),
        _ => File::open(file).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)),
    };
    let unusable = |why: &str| {
        Failure::input(
            format!("{}: not usable as a file of keys: {why}", file.display()),
            "it must be text with one key string a line",
        )
    };
    read.map_err(|error| unusable(&error.to_string()))?;
    let text = str::from_utf8(&bytes).map_err(|_| unusable("it is not UTF-8"))?;
    let keys: Keys = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| Zeroizing::new(line.to_owned()))
        .collect();
    if keys.is_empty() { Err(unusable("it holds none")) } else { Ok(keys) }
}

/// Returns `false` if the user gave up.
fn ask_keys(keys: &mut Keys) -> Result<bool, Failure> {
    let no_terminal =
        |_| Failure::input("there is no terminal to ask at", "use --key-env or --key-file");
    let mut terminal = Hidden::open().map_err(no_terminal)?;
    while let Some(key) = terminal.ask("Key (empty when there are no more): ")? {
        if key.is_empty() {
            return Ok(true);
        }
        keys.push(key);
    }
    Ok(false)
}
