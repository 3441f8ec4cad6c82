//! Keys of another program. They are never arguments, because shells keep arguments in their history and process
//! lists show them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::exit::Failure;
use crate::hidden::Hidden;

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
        let given_up = self.ask_key && !ask(&mut keys)?;
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
fn ask(keys: &mut Keys) -> Result<bool, Failure> {
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
