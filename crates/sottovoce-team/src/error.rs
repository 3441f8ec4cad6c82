//! The error of sharing with teams

use sottovoce::Error as StoreError;
use sottovoce_remote::{ErrorKind, RemoteError};
use sottovoce_sync::{Failure, SyncError};

/// Why sharing with a team failed. It contains no words of conversations, no keys and no tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TeamError {
    /// What may fail between devices too: the store, its state, the server, or another process is at it.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The store is in no team.
    #[error("this store is in no team")]
    NoTeam,
    /// The store is in several teams, and it was not said which one is meant.
    #[error("this store is in several teams")]
    SeveralTeams,
    /// A link that lets nobody into a team, or was mistyped.
    #[error("this is not a link to a team: {reason}")]
    InvalidLink {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Nothing has that name or identifier.
    #[error("there is no {what} {name:?}")]
    NoSuch {
        /// What was looked for.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
    /// Several members have that name.
    #[error("several members are called {name:?}")]
    SeveralMembers {
        /// What was asked for.
        name: String,
    },
    /// A conversation that is not a named one was to be shared with a team.
    #[error("{scope} is no named conversation, and no other is shared with a team")]
    NotNamed {
        /// The conversation.
        scope: String,
    },
    /// The server of a team does not know this member any more.
    #[error(
        "{address}: the server does not know this member any more: it was removed, or its token has expired"
    )]
    NotAMember {
        /// The server's address.
        address: String,
    },
}

/// The result of sharing with a team.
pub type TeamResult<T> = Result<T, TeamError>;

impl TeamError {
    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            // What a server of a team says no to is not what a folder or a bucket lacks.
            Self::Sync(error) => match error.of_remote() {
                Some(ErrorKind::NoContainer) => {
                    "ask for a new link: each lets in one member, once, and expires"
                }
                Some(ErrorKind::Refused) => "ask an owner or an administrator of the team",
                Some(ErrorKind::Other) => {
                    "change what is in the way, such as by inviting another owner first, or ask who runs the server"
                }
                _ => return error.help(),
            },
            Self::NoTeam => "join one with a member's link, or begin one with that of a server",
            Self::SeveralTeams => "name one of them",
            Self::InvalidLink { .. } => "ask for the link again",
            Self::NoSuch { .. } => "look which teams, members and shared conversations there are",
            Self::SeveralMembers { .. } => "name one by its id",
            Self::NotNamed { .. } => "say it in a named one",
            Self::NotAMember { .. } => "ask for a new link; what is on this device stays",
        })
    }
}

impl Failure for TeamError {
    fn is_idle(&self) -> bool {
        match self {
            Self::Sync(error) => error.is_idle(),
            error => matches!(error, Self::NoTeam),
        }
    }

    fn is_transient(&self) -> bool {
        matches!(self, Self::Sync(error) if error.is_transient())
    }

    fn of_remote(&self) -> Option<ErrorKind> {
        match self {
            Self::Sync(error) => error.of_remote(),
            _ => None,
        }
    }
}

impl From<StoreError> for TeamError {
    fn from(error: StoreError) -> Self {
        Self::Sync(error.into())
    }
}

impl From<RemoteError> for TeamError {
    fn from(error: RemoteError) -> Self {
        Self::Sync(error.into())
    }
}
