//! Links, as they are given and shown.

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sottovoce::Config;
use sottovoce_sync::SyncError;
use sottovoce_team::Link;
use zeroize::Zeroizing;

use crate::exit::Failure;
use crate::output;
use crate::private_file::{self, PrivateFile};
use crate::session::Session;

/// More than any link has.
const LONGEST: u64 = 1 << 20;

/// Where a link goes.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// Writes the link to a new file that only its owner can read, instead of showing it
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row<'a> {
    team: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
}

impl Target {
    /// Refuses a file that cannot be written, before anything is done.
    pub(super) fn check(&self, config: &Config) -> Result<(), Failure> {
        match &self.to {
            Some(file) => private_file::check(file, false, config).map(drop),
            None => Ok(()),
        }
    }

    /// Writes the link to its file, or shows it.
    pub(super) fn put(
        &self,
        session: &Session,
        config: &Config,
        link: &Link,
        whose: &str,
    ) -> Result<(), Failure> {
        let text = link.reveal();
        if let Some(file) = &self.to {
            let mut new = PrivateFile::begin(file, false, config)?;
            let written = new.file.write_all(format!("{}\n", *text).as_bytes());
            written.map_err(|error| new.unwritable(&error))?;
            new.end()?;
            output::note(&format!("wrote the link to {}", file.display()));
        }
        if session.json {
            let shown = self.to.is_none().then_some(text.as_str());
            output::json(&Row { team: link.team(), link: shown, file: self.to.as_deref() })?;
        } else if self.to.is_none() {
            output::line(&*text)?;
        }
        output::note(whose);
        Ok(())
    }
}

/// The link of an argument: itself, that of a file, or that of standard input.
pub(super) fn read(argument: &str) -> Result<Link, Failure> {
    let text = if argument == "-" {
        if io::stdin().is_terminal() {
            output::note("paste the link, then press Ctrl-D");
        }
        limited(io::stdin(), "standard input")?
    } else if argument.contains("#") && argument.contains("://") {
        Zeroizing::new(argument.to_owned())
    } else {
        match std::fs::File::open(Path::new(argument)) {
            Ok(file) => limited(file, argument)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let reason = "it has no address, and no file has this name";
                return Err(SyncError::InvalidLink { reason }.into());
            }
            Err(error) => {
                return Err(Failure::input(
                    format!("{argument}: {error}"),
                    "name a file that this user can read, or give the link itself",
                ));
            }
        }
    };
    Ok(text.parse()?)
}

fn limited(from: impl Read, place: &str) -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::new());
    from.take(LONGEST).read_to_string(&mut text).map_err(|error| {
        Failure::input(format!("{place}: {error}"), "give what `sottovoce team invite` has shown")
    })?;
    Ok(text)
}

/// The name of this machine's user.
pub(super) fn user_name() -> String {
    let named = ["USER", "LOGNAME"].into_iter();
    let name = named.filter_map(|name| std::env::var(name).ok()).find(|name| !name.is_empty());
    name.unwrap_or_else(|| "somebody".to_owned())
}
