//! Exit codes and error reports.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use sottovoce::persona::PersonaFailure;

pub(crate) type Outcome = Result<Exit, Failure>;

/// A documented exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Misused = 2,
    Problems = 3,
    Key = 4,
    Config = 5,
    Model = 6,
    #[cfg(feature = "share")]
    Later = 7,
    Interrupted = 130,
}

impl Exit {
    /// The exit code of a command that found all as it should be, or not.
    pub(crate) fn of(is_sound: bool) -> Self {
        if is_sound { Self::Done } else { Self::Problems }
    }

    /// All exit codes with their meanings, one a line, as helps end with them.
    pub(crate) fn table() -> String {
        let meanings = [
            (Self::Done, "done"),
            (Self::Failed, "failed; see the message"),
            (Self::Misused, "mistyped, or refused; if nobody can be asked, say --yes"),
            (Self::Problems, "something is wrong or was left out, or nothing was found"),
            (Self::Key, "no key, or the wrong one"),
            (Self::Config, "the configuration cannot be used"),
            (Self::Model, "no model answered"),
            #[cfg(feature = "share")]
            (Self::Later, "the remote cannot be reached now, or another process syncs"),
            (Self::Interrupted, "interrupted; what was acknowledged is kept"),
        ];
        let lines = meanings.map(|(code, meaning)| format!("\n{:>3}  {meaning}", code as u8));
        format!("Exit codes:{}", lines.concat())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Library(sottovoce::Error),
    #[cfg(feature = "share")]
    Sync(sottovoce_sync::SyncError),
    #[cfg(feature = "share")]
    Team(sottovoce_team::TeamError),
    Io(io::Error),
    /// There is no store yet. This is not an error.
    Nothing {
        folder: PathBuf,
    },
    /// The user pressed Ctrl-C: what is kept or undone, if that is worth a note.
    Interrupted(&'static str),
    /// Nothing has this name: the existing names, and what to do.
    NotFound {
        what: String,
        help: String,
    },
    /// The input is wrong: what is wrong, and what to do.
    Input {
        what: String,
        help: String,
    },
}

impl Failure {
    pub(crate) fn input(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Input { what: what.into(), help: help.into() }
    }

    /// Names the setting that the input came from.
    #[cfg(feature = "servers")]
    pub(crate) fn of(self, setting: &str) -> Self {
        match self {
            Self::Input { what, help } => Self::Input { what: format!("{setting}: {what}"), help },
            other => other,
        }
    }

    pub(crate) fn code(&self) -> Exit {
        match self {
            _ if self.is_broken_pipe() => Exit::Done,
            Self::Library(error) => code(error),
            #[cfg(feature = "share")]
            Self::Sync(error) => sync_code(error),
            #[cfg(feature = "share")]
            Self::Team(error) => team_code(error),
            Self::Nothing { .. } => Exit::Done,
            Self::NotFound { .. } => Exit::Failed,
            Self::Input { .. } => Exit::Misused,
            Self::Interrupted(_) => Exit::Interrupted,
            Self::Io(_) => Exit::Failed,
        }
    }

    /// Whether the reader of the output has closed it, as `head` does.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let cause = match self {
            Self::Library(error) => std::error::Error::source(error),
            Self::Io(error) => return error.kind() == io::ErrorKind::BrokenPipe,
            _ => None,
        };
        cause
            .and_then(|cause| cause.downcast_ref::<io::Error>())
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The exit code for an error.
pub(crate) fn code(error: &sottovoce::Error) -> Exit {
    use sottovoce::Error::{
        Config, EmptyKey, EmptyPassphrase, KeyChanged, KeyFile, KeyLost, Model, NoKey,
        PassphraseNeeded, Persona, PlaceholderKey, WrongKey,
    };
    match error {
        NoKey
        | PlaceholderKey
        | EmptyKey
        | EmptyPassphrase
        | KeyFile { .. }
        | KeyLost { .. }
        | PassphraseNeeded { .. }
        | WrongKey { .. }
        | KeyChanged { .. } => Exit::Key,
        Config { .. } => Exit::Config,
        Model { .. } => Exit::Model,
        // A field outside its limits is a usage error, as for an option.
        Persona(PersonaFailure::Invalid { .. }) => Exit::Misused,
        _ => Exit::Failed,
    }
}

/// The exit code for an error of syncing.
#[cfg(feature = "share")]
fn sync_code(error: &sottovoce_sync::SyncError) -> Exit {
    use sottovoce_sync::{Failure as _, SyncError};
    match error {
        error if error.is_transient() => Exit::Later,
        SyncError::Store(error) => code(error),
        SyncError::InvalidCode { .. } => Exit::Misused,
        SyncError::Remote(error) if crate::advice::is_of_the_address(error) => Exit::Misused,
        _ => Exit::Failed,
    }
}

/// The exit code for an error of a team.
#[cfg(feature = "share")]
fn team_code(error: &sottovoce_team::TeamError) -> Exit {
    use sottovoce_team::TeamError;
    match error {
        TeamError::Sync(error) => sync_code(error),
        TeamError::InvalidLink { .. } => Exit::Misused,
        _ => Exit::Failed,
    }
}

impl From<sottovoce::Error> for Failure {
    fn from(error: sottovoce::Error) -> Self {
        Self::Library(error)
    }
}

#[cfg(feature = "share")]
impl From<sottovoce_sync::SyncError> for Failure {
    fn from(error: sottovoce_sync::SyncError) -> Self {
        match error {
            sottovoce_sync::SyncError::Store(error) => Self::Library(error),
            error => Self::Sync(error),
        }
    }
}

#[cfg(feature = "share")]
impl From<sottovoce_team::TeamError> for Failure {
    fn from(error: sottovoce_team::TeamError) -> Self {
        match error {
            sottovoce_team::TeamError::Sync(error)
                if !matches!(error, sottovoce_sync::SyncError::Remote(_)) =>
            {
                error.into()
            }
            error => Self::Team(error),
        }
    }
}

#[cfg(feature = "share")]
impl From<sottovoce_remote::RemoteError> for Failure {
    fn from(error: sottovoce_remote::RemoteError) -> Self {
        Self::Sync(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
