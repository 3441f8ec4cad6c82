//! Why a file or record was not imported.

use std::{fmt, io};

use crate::error::Error;

/// A file or record that was not imported. The source keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Its name, with unprintable characters escaped.
    pub file: String,
    /// Why it was not imported.
    pub reason: RefusalReason,
}

impl Refusal {
    /// Refuses the file or record of that name, and escapes what is unprintable in the name.
    pub fn new(name: impl AsRef<[u8]>, reason: RefusalReason) -> Self {
        let file = String::from_utf8_lossy(name.as_ref()).escape_debug().collect();
        Self { file, reason }
    }

    /// Adds what a store refused to the list.
    ///
    /// # Errors
    /// An error that concerns more than that file or record.
    pub(super) fn note(list: &mut Vec<Self>, name: &str, error: Error) -> Result<(), Error> {
        let reason = RefusalReason::for_store_error(&error).ok_or(error)?;
        list.push(Self::new(name, reason));
        Ok(())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)
    }
}

/// Reasons for a refusal. `Display` describes them in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// None of the given keys opens it, or it is damaged. Without a key's name in it, the two look the same.
    Undecryptable,
    /// It does not have the system's format.
    Corrupt(&'static str),
    /// It is not a plain file, or is too large.
    NotPlain(&'static str),
    /// The operating system could not read it.
    Unreadable(io::ErrorKind),
    /// Its time is more than 24 hours ahead of the clock.
    FromTheFuture,
    /// Its record would exceed the store's limit.
    TooLarge {
        /// Size of the record as JSON, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The store cannot represent it.
    Unstorable(&'static str),
}

impl RefusalReason {
    /// The reason for which a store refused a single message; `None` for errors that concern more than that message.
    pub fn for_store_error(error: &Error) -> Option<Self> {
        match error {
            Error::FromTheFuture => Some(Self::FromTheFuture),
            Error::TooLarge { size, limit } => Some(Self::TooLarge { size: *size, limit: *limit }),
            Error::InvalidMessage { reason } => Some(Self::Unstorable(reason)),
            _ => None,
        }
    }

    /// The reason for which a single file could not be read.
    ///
    /// # Errors
    /// Returns errors that concern more than that file as they are.
    pub fn for_read_error(error: Error) -> Result<Self, Error> {
        match error {
            Error::NotPlain { found, .. } => Ok(Self::NotPlain(found)),
            Error::Io { source, .. } => Ok(Self::Unreadable(source.kind())),
            error => Err(error),
        }
    }

    /// A short name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Undecryptable => "undecryptable",
            Self::Corrupt(_) => "corrupt",
            Self::NotPlain(_) => "not-plain",
            Self::Unreadable(_) => "unreadable",
            Self::FromTheFuture => "from-the-future",
            Self::TooLarge { .. } => "too-large",
            Self::Unstorable(_) => "unstorable",
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecryptable => f.write_str("wrong key or damaged"),
            Self::Corrupt(reason) | Self::Unstorable(reason) => f.write_str(reason),
            Self::NotPlain(found) => write!(f, "{found}; it is not followed"),
            Self::Unreadable(kind) => write!(f, "the operating system could not read it: {kind}"),
            Self::FromTheFuture => {
                f.write_str("its time is more than 24 hours ahead of this machine's clock")
            }
            Self::TooLarge { size, limit } => {
                write!(f, "its record would take {size} bytes; the limit is {limit}")
            }
        }
    }
}
