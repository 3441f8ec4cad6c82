//! The error of everything above the remote

use sottovoce::Error as StoreError;

use crate::remote::error::RemoteError;

/// Why syncing failed. It contains no words of conversations, no keys and no credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The store on this device failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The remote failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The store does not sync yet.
    #[error("this store does not sync with other devices")]
    NotSetUp,
    /// The store syncs already.
    #[error("this store syncs already, through {address}")]
    SetUpAlready {
        /// The remote's address.
        address: String,
    },
    /// Another process syncs this store now.
    #[error("another process syncs this store now")]
    Busy,
    /// A code that is no invitation, or was mistyped.
    #[error("the code is not one that `sottovoce device add` shows: {reason}")]
    InvalidCode {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The space of an invitation has no devices: its remote is another, or was emptied.
    #[error("{address}: no device has ever published here, or its objects are gone")]
    EmptySpace {
        /// The remote's address.
        address: String,
    },
    /// A device closed the space: after a device was removed, the others join the new space.
    #[error(
        "a device was removed and the others share a new space since; this one has to join that"
    )]
    Closed,
    /// The own stream at the remote keeps changing.
    #[error("the remote keeps returning another state of this device's stream than was written")]
    Contested,
    /// No device has that name or identifier.
    #[error("no device is called {name:?}")]
    NoSuchDevice {
        /// What was asked for.
        name: String,
    },
    /// An object of the remote cannot be used.
    #[error("{place}: {reason}")]
    Object {
        /// The object's place.
        place: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The state of syncing in the store cannot be used.
    #[error("the state of syncing in the store cannot be read: {reason}")]
    State {
        /// What is wrong with it.
        reason: &'static str,
    },
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
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandom,
}

/// The result of syncing.
pub type SyncResult<T> = Result<T, SyncError>;

impl SyncError {
    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Store(error) => error.help(),
            Self::NotSetUp => {
                "`sottovoce sync init ADDRESS` begins a space; `sottovoce device join CODE` joins one"
            }
            Self::SetUpAlready { .. } => {
                "`sottovoce sync stop` ends that; nothing is deleted by it on this device"
            }
            Self::Busy => "wait until it has ended, or let the running host sync",
            Self::InvalidCode { .. } => {
                "show the code again on a device of the space: `sottovoce device add`"
            }
            Self::EmptySpace { .. } => {
                "check the address and the credentials, and run `sottovoce sync` on a device of the space"
            }
            Self::Closed => {
                "show a code on a device of the new space (`sottovoce device add`), then run `sottovoce device join CODE` here"
            }
            Self::NoTeam => {
                "`sottovoce team join LINK` joins one; `sottovoce team create LINK NAME` begins one"
            }
            Self::SeveralTeams => "name one with --team; `sottovoce team status` lists them",
            Self::InvalidLink { .. } => "ask for the link again: `sottovoce team invite` shows it",
            Self::SeveralMembers { .. } => "name one by the id that `sottovoce team members` shows",
            Self::NotNamed { .. } => "say it in a named one, such as `--room plans`",
            Self::NoSuch { .. } => {
                "`sottovoce team status` and `sottovoce team members` show what there is"
            }
            Self::NotAMember { .. } => {
                "ask for a new link (`sottovoce team invite`); what is on this device stays"
            }
            Self::NoSuchDevice { .. } => "`sottovoce device list` shows the devices",
            Self::State { .. } => {
                "`sottovoce sync stop` ends syncing; then join the space again with a code of another device"
            }
            Self::Contested => {
                "another copy of this store may be syncing at the same time: give each its own, with `sottovoce sync stop` and `sottovoce device join CODE`"
            }
            Self::Remote(_) | Self::Object { .. } | Self::NoRandom => return None,
        })
    }

    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Remote(error) => error.is_transient(),
            Self::Busy => true,
            _ => false,
        }
    }
}

/// Does work that takes the processor for a while on a thread that may block, so that the host's turns do not wait for it.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> SyncResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| SyncError::Store(StoreError::ShuttingDown))
}
