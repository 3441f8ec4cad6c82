//! What `sottovoce sync`, `device` and `team` have in common: remotes, codes, reports

mod address;
pub(crate) mod background;
pub(crate) mod credentials;
mod device;
mod newcomer;
mod report;
pub(crate) mod stores;
mod sync;
pub(crate) mod team;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use sottovoce::config::OpenConversations;
use sottovoce_sync::{OpenRemote, SyncError, Syncer};
use zeroize::Zeroizing;

use crate::exit::{Failure, Outcome};
use crate::output::{self, Object};
use crate::private_file::{self, PrivateFile};
use crate::session::Session;

/// The commands that share conversations.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Sync(sync::Args),
    Device(device::Args),
    Team(team::Args),
}

impl Command {
    /// Whether it goes on until it is stopped.
    pub(crate) fn is_server(&self) -> bool {
        match self {
            Self::Sync(args) => args.watch,
            Self::Team(args) => args.is_server(),
            Self::Device(_) => false,
        }
    }
}

pub(crate) async fn run(session: &Session, command: Command) -> Outcome {
    match command {
        Command::Sync(args) => Box::pin(sync::run(session, args)).await,
        Command::Device(args) => Box::pin(device::run(session, args)).await,
        Command::Team(args) => Box::pin(team::run(session, args)).await,
    }
}

/// More bytes than any code or link has.
const LONGEST: usize = 1 << 20;

/// The store's conversations. Makes the key on first use, or returns `None`: before that, nothing is shared.
fn conversations(
    session: &Session,
    makes: bool,
) -> Result<Option<Arc<OpenConversations>>, Failure> {
    let keys = match makes {
        true => Some(session.stores_or_make()?.keys()),
        false => session.known_keys()?,
    };
    let config = session.config()?;
    let open = keys.map(|keys| OpenConversations::new(config.clone(), keys, session.clock()));
    Ok(open.transpose()?)
}

/// What syncs the store.
fn syncer(session: &Session, remote: OpenRemote) -> Result<Syncer, Failure> {
    let conversations = conversations(session, false)?.ok_or(SyncError::NotSetUp)?;
    Ok(stores::syncer(conversations, remote))
}

/// For commands that ask no remote.
pub(crate) fn no_remote() -> OpenRemote {
    Box::new(|address| sottovoce_remote::open(address, &sottovoce_remote::Credentials::default()))
}

/// Where a code or a link goes.
#[derive(Debug, clap::Args)]
struct Target {
    /// Writes it to a new file that only its owner can read, instead of showing it
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Target {
    /// Refuses a file that cannot be written, before anything is done.
    fn check(&self, session: &Session) -> Result<(), Failure> {
        self.to.iter().try_for_each(|file| private_file::check(file, session).map(drop))
    }

    /// The text, or the file that it is in, as JSON.
    fn shown(&self, row: Object, what: &str, text: &str) -> Object {
        row.maybe(what, self.to.is_none().then_some(text)).maybe("file", self.to.as_ref())
    }

    /// Writes the text to its file. Whether there is none, so that it is shown.
    fn write(&self, what: &str, text: &str, session: &Session) -> Result<bool, Failure> {
        let Some(file) = &self.to else { return Ok(true) };
        let mut new = PrivateFile::begin(file, session)?;
        // Not as one text, since that copy would not be wiped.
        let written = new.file.write_all(text.as_bytes()).and_then(|()| new.file.write_all(b"\n"));
        written.map_err(|error| new.unwritable(&error))?;
        new.end()?;
        output::note(&format!("wrote the {what} to {}", file.display()));
        Ok(false)
    }
}

/// A code or a link: the argument itself, that of a file, or that of standard input. `source` is the command that shows it.
fn given<E: Into<Failure>>(
    argument: &str,
    (what, source): (&str, &str),
    is_itself: bool,
    invalid: impl FnOnce(&'static str) -> E,
) -> Result<Zeroizing<String>, Failure> {
    if argument == "-" {
        if io::stdin().is_terminal() {
            output::note(&format!("paste the {what}, then press Ctrl-D"));
        }
        return limited(io::stdin(), "standard input", source);
    }
    match File::open(argument) {
        Ok(file) => limited(file, argument, source),
        // It is no path that exists.
        Err(_) if is_itself => Ok(Zeroizing::new(argument.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(invalid("it has no address, and no file has this name").into())
        }
        Err(error) => Err(Failure::input(
            format!("{argument}: {error}"),
            format!("name a file that this user can read, or give the {what} itself"),
        )),
    }
}

fn limited(from: impl Read, place: &str, source: &str) -> Result<Zeroizing<String>, Failure> {
    // Of full size, so that no copy stays behind a growing one.
    let mut text = Zeroizing::new(String::with_capacity(LONGEST));
    let read = from.take(LONGEST as u64).read_to_string(&mut text);
    read.map_err(|error| {
        Failure::input(format!("{place}: {error}"), format!("give what `{source}` has shown"))
    })?;
    Ok(text)
}
