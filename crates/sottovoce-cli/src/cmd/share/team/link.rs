//! Links, as they are given and shown.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sottovoce::Config;
use sottovoce_team::{Link, TeamError};
use zeroize::Zeroizing;

use crate::cmd::share::text;
use crate::exit::Failure;
use crate::output;
use crate::private_file;
use crate::session::Session;

/// More than any link has.
const LONGEST: u64 = 1 << 20;

/// What to do if it cannot be read.
const HELP: &str = "give what `sottovoce team invite` has shown";

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
        let revealed = link.reveal();
        if let Some(file) = &self.to {
            text::write(file, &revealed, config)?;
            output::note(&format!("wrote the link to {}", file.display()));
        }
        if session.json {
            let shown = self.to.is_none().then_some(revealed.as_str());
            output::json(&Row { team: link.team(), link: shown, file: self.to.as_deref() })?;
        } else if self.to.is_none() {
            output::line(&*revealed)?;
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
        text::limited(io::stdin(), LONGEST, "standard input", HELP)?
    } else if argument.contains("#") && argument.contains("://") {
        Zeroizing::new(argument.to_owned())
    } else {
        match std::fs::File::open(Path::new(argument)) {
            Ok(file) => text::limited(file, LONGEST, argument, HELP)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let reason = "it has no address, and no file has this name";
                return Err(TeamError::InvalidLink { reason }.into());
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

/// The name of this machine's user.
pub(super) fn user_name() -> String {
    let named = ["USER", "LOGNAME"].into_iter();
    let name = named.filter_map(|name| std::env::var(name).ok()).find(|name| !name.is_empty());
    name.unwrap_or_else(|| "somebody".to_owned())
}
