//! The error of all remotes: what was tried, where, why it failed, and whether trying again helps

use std::fmt;

/// Why a remote could not do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No answer came, or the server cannot answer now. Trying again later helps.
    Unreachable,
    /// The server or the file system refused access, or there are no credentials.
    Refused,
    /// The bucket, the container or the folder of the remote does not exist. Nothing creates it.
    NoContainer,
    /// An object or a listing exceeds the limits of [`MAX_OBJECT`](crate::MAX_OBJECT) and [`MAX_NAMES`](crate::MAX_NAMES).
    TooLarge,
    /// Anything else, such as an invalid name or address, or a full disk.
    Other,
}

/// What a remote was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Opening the remote.
    Open,
    /// Writing an object.
    Put,
    /// Reading an object.
    Get,
    /// Listing a folder.
    List,
    /// Deleting an object.
    Delete,
}

/// The failure of one operation on a remote. It contains no credentials and nothing of an object's contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{action} {place}: {reason}")]
pub struct RemoteError {
    kind: ErrorKind,
    action: Action,
    place: String,
    reason: String,
}

impl RemoteError {
    /// An error of a remote. `place` is the address without credentials, and the name of the object.
    #[must_use]
    pub fn new(
        kind: ErrorKind,
        action: Action,
        place: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self { kind, action, place: place.into(), reason: reason.into() }
    }

    /// Why it failed.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was tried.
    #[must_use]
    pub fn action(&self) -> Action {
        self.action
    }

    /// The address of the remote without credentials, and the name of the object or folder.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    #[cfg(feature = "http")]
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether the same operation may succeed later, with nothing changed on this side.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.kind == ErrorKind::Unreachable
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "cannot open",
            Self::Put => "cannot write",
            Self::Get => "cannot read",
            Self::List => "cannot list",
            Self::Delete => "cannot delete",
        })
    }
}
