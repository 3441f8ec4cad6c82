//! The error: what happened, where, and what to do about it

use std::net::SocketAddr;
use std::path::PathBuf;

use sottovoce_net::ReadError;
use sottovoce_remote::RemoteError;

/// The result of what may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something failed. It contains neither contents nor secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is none, or the caller may not know of it.
    #[error("there is no such {what}")]
    NotFound {
        /// What was asked for.
        what: &'static str,
    },
    /// The request shows no token, or none that is valid now.
    #[error("the request shows no valid token")]
    Unauthorized,
    /// The caller's role or grant does not suffice.
    #[error("{what}")]
    Forbidden {
        /// What is missing.
        what: &'static str,
    },
    /// It contradicts what is stored.
    #[error("{what}")]
    Conflict {
        /// What it contradicts.
        what: &'static str,
    },
    /// The request is not one of this interface.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// Something is longer than allowed.
    #[error("{what} may have at most {most}")]
    TooLarge {
        /// What is too long.
        what: &'static str,
        /// The most that it may have, in bytes or in records.
        most: usize,
    },
    /// The body did not arrive in time.
    #[error("the body of the request did not arrive in time")]
    TooSlow,
    /// A member, an organisation or an address asks too often.
    #[error("{who} asks too often")]
    TooMany {
        /// Whose requests are counted.
        who: &'static str,
        /// After how many seconds to repeat the request.
        seconds: u64,
    },
    /// The organisation has used what it may store.
    #[error("the organisation may not store more")]
    Quota,
    /// There is no room for a further one.
    #[error("there are as many {what} as are allowed")]
    Full {
        /// Of what there are too many.
        what: &'static str,
    },
    /// All connections of the database, or all memory for bodies, are in use.
    #[error("the server is busy")]
    Busy,
    /// The database cannot be reached, or has broken off. What was asked may have happened all the same.
    #[error("the database cannot be reached")]
    Unavailable,
    /// The database refuses something.
    #[error("the database refuses: {code}")]
    Database {
        /// The database's own code for it.
        code: String,
    },
    /// A newer version of this program has changed the database.
    #[error("the database has version {found}, and this program knows versions up to {known}")]
    Newer {
        /// The version of the database.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The address of the database cannot be used.
    #[error("the address of the database {reason}")]
    DatabaseAddress {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The object store failed.
    #[error(transparent)]
    Objects(#[from] RemoteError),
    /// A stored object is missing or was changed.
    #[error("the object store has lost or changed {what}")]
    Damaged {
        /// What it was.
        what: &'static str,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandom,
    /// The server cannot listen at the address.
    #[error(transparent)]
    Address(#[from] sottovoce_net::ListenError),
    /// Other machines can reach the address, and nothing encrypts what they say.
    #[error("other machines can reach {address}, and plain HTTP shows tokens on the way")]
    PlainHttp {
        /// The address.
        address: SocketAddr,
    },
    /// The certificate or its key cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] sottovoce_net::TlsError),
    /// A file cannot be used.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::unread(error, 0)
    }
}

impl Error {
    /// The body of a request, of at most so many bytes, could not be read.
    pub(crate) fn unread(error: ReadError, most: usize) -> Self {
        match error {
            ReadError::TooLong => Self::TooLarge { what: "the body of this request", most },
            ReadError::Incomplete => {
                Self::Invalid { what: "the body of the request broke off".to_owned() }
            }
            ReadError::TooSlow => Self::TooSlow,
            ReadError::Busy => Self::Busy,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound { .. } => {
                "check the identifier, and ask for a grant if it is somebody else's"
            }
            Self::Unauthorized => {
                "send `Authorization: Bearer TOKEN` with a token that was neither revoked nor has expired"
            }
            Self::Forbidden { .. } => "ask somebody who may do it",
            Self::Invalid { .. } => "see /openapi.json",
            Self::TooLarge { .. } => "send it in several requests",
            Self::TooSlow => "send the whole body at once",
            Self::TooMany { .. } | Self::Busy | Self::Unavailable => {
                "repeat the request after the time that the header Retry-After tells"
            }
            Self::Quota => "delete artifacts or conversations, or ask the operator for more",
            Self::Full { .. } => "remove some first",
            Self::Newer { .. } => {
                "run the newer version of this program, or restore the database from before its migration"
            }
            Self::DatabaseAddress { .. } => {
                "use postgres://USER:PASSWORD@HOST/DATABASE, or the path of a file for SQLite"
            }
            Self::Database { .. } => "see the log of the database",
            Self::Damaged { .. } => "restore the object store from its backup",
            Self::Address(_) => "choose another address or port",
            Self::PlainHttp { .. } => {
                "give a certificate, or allow plain HTTP if a proxy in front speaks TLS"
            }
            #[cfg(feature = "tls")]
            Self::Tls(_) => "give a certificate and its key, both in PEM",
            Self::Conflict { .. } | Self::Objects(_) | Self::NoRandom | Self::File { .. } => {
                return None;
            }
        })
    }

    /// The status of the answer, and a fixed word for programs.
    pub(crate) fn answer(&self) -> (u16, &'static str) {
        match self {
            Self::NotFound { .. } => (404, "not-found"),
            Self::Unauthorized => (401, "unauthorized"),
            Self::Forbidden { .. } => (403, "forbidden"),
            Self::Conflict { .. } => (409, "conflict"),
            Self::Full { .. } => (409, "full"),
            Self::Invalid { .. } => (400, "invalid"),
            Self::TooLarge { .. } => (413, "too-large"),
            Self::TooSlow => (408, "too-slow"),
            Self::TooMany { .. } => (429, "too-many-requests"),
            Self::Quota => (429, "quota"),
            Self::Busy => (503, "busy"),
            Self::Unavailable => (503, "unavailable"),
            Self::Objects(error) if error.is_transient() => (503, "object-store"),
            Self::Objects(_) => (500, "object-store"),
            Self::Damaged { .. } => (500, "damaged"),
            _ => (500, "internal"),
        }
    }

    /// After how many seconds to repeat the request, if that may help.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::TooMany { seconds, .. } => Some((*seconds).max(1)),
            Self::Quota => Some(3600),
            Self::Busy => Some(1),
            Self::Unavailable => Some(2),
            Self::Objects(error) if error.is_transient() => Some(5),
            _ => None,
        }
    }
}
