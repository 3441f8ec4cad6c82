//! `sottovoce key export`

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use serde::Serialize;
use sottovoce::{EncryptionKey, Error};

use crate::cmd::backup::key::{of_store, wrong};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BOLD};
use crate::private_file;
use crate::session::Session;

/// Copies the store's key to a safe place: 64 hexadecimal digits, usable as a key file
///
/// Anyone who has them can read everything in the store, even if the key is derived from a passphrase.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Writes a new file that only its owner can read, instead of printing the digits
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Prints them without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Exported<'a> {
    id: &'a str,
    file: &'a std::path::Path,
}

pub(super) fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let root = config.storage_root()?;
    if let Some(file) = &args.to {
        private_file::check(file, false, &config)?;
    }
    let keys = match session.keys(&config) {
        Err(Failure::Library(Error::NoKey | Error::PlaceholderKey)) => {
            return Err(Failure::Nothing { folder: root });
        }
        keys => keys?,
    };
    let keys = of_store(&root, &keys)?;
    let Some(key) = keys.first() else {
        return Err(Failure::Nothing { folder: root });
    };
    let text = key.export().ok_or_else(|| wrong(&root, key))?;
    if let Some(file) = args.to {
        let exported = EncryptionKey::from_hex(&text).ok_or(Error::NoKey)?;
        if !exported.write_file(&file)? {
            return Err(Failure::input(
                format!("{} already exists", file.display()),
                "name a file that does not exist; nothing is overwritten",
            ));
        }
        if session.json {
            output::json(&Exported { id: key.id(), file: &file })?;
        } else {
            output::note(&format!("wrote key {} to {}", key.id(), file.display()));
            output::note(
                "anyone who has this file can read everything: move it away from this machine",
            );
            output::note(&format!("`sottovoce key check --key-file {}` tries it", file.display()));
        }
        return Ok(Exit::Done);
    }
    if !args.yes && !confirmed()? {
        output::note("nothing was shown");
        return Ok(Exit::Done);
    }
    output::note(&format!("key {} of the store in {}", key.id(), root.display()));
    output::note("put these 64 digits into a file and name it as Context.KeyFile to use it");
    output::bytes(text.as_bytes())?;
    Ok(Exit::Done)
}

fn confirmed() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::input(
            "this would print the key",
            "give a file with --to, or confirm with --yes",
        ));
    }
    let mut out = anstream::stderr();
    write!(
        out,
        "{BOLD}Show the key on this screen? Anyone who sees it can read everything. [y/N]{BOLD:#} "
    )?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
