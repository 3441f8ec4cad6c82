//! The error of sharing with devices

use sottovoce::Error as StoreError;
use sottovoce_remote::{ErrorKind, RemoteError};

/// What is asked of a failure by whatever goes on syncing.
pub trait Failure: std::error::Error + Send {
    /// Whether nothing was tried: nothing is shared here, or another process is at it.
    fn is_idle(&self) -> bool;

    /// Whether trying again later may help.
    fn is_transient(&self) -> bool;

    /// The kind of the remote's or the server's failure, if it is one.
    fn of_remote(&self) -> Option<ErrorKind>;
}

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
    #[error("the code is no invitation: {reason}")]
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
    /// Nothing of a space is there that this store has synced with: a folder is not mounted, or was emptied.
    #[error("{address}: nothing is there of what the devices have published")]
    Absent {
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
            Self::NotSetUp => "begin a space, or join one with the invitation of another device",
            Self::SetUpAlready { .. } => "stop that first; nothing is deleted by it on this device",
            Self::Busy => "wait until it has ended, or let the running host sync",
            Self::InvalidCode { .. } => "show the invitation again on a device of the space",
            Self::EmptySpace { .. } => {
                "check the address and the credentials, and sync a device of the space"
            }
            Self::Absent { .. } => {
                "see whether the folder is mounted; if it was emptied, mend the space on a device that has its messages"
            }
            Self::Closed => {
                "show an invitation on a device of the new space, and join with it here"
            }
            Self::State { .. } => "stop syncing, then join the space again",
            Self::Contested => {
                "another copy of this store may be syncing at the same time: stop both, and have each join by itself"
            }
            Self::NoSuchDevice { .. } => "list the devices",
            Self::Remote(_) | Self::Object { .. } | Self::NoRandom => return None,
        })
    }
}

impl Failure for SyncError {
    fn is_idle(&self) -> bool {
        matches!(self, Self::NotSetUp | Self::Busy)
    }

    fn is_transient(&self) -> bool {
        match self {
            Self::Remote(error) => error.is_transient(),
            Self::Busy | Self::Absent { .. } => true,
            _ => false,
        }
    }

    fn of_remote(&self) -> Option<ErrorKind> {
        match self {
            Self::Remote(error) => Some(error.kind()),
            _ => None,
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
