//! The trait of all contenders: a way to store a conversation.

mod document;
mod json_file;
mod json_lines;
mod ours;
mod redb;
mod sqlcipher;

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use jiff::Timestamp;
use sottovoce::ChatMessage;
use sottovoce::store::ReadResult;

pub(crate) use ours::crossing;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// An open store.
pub(crate) trait Contender {
    /// Stores one message, durably if this contender is durable ([`Kind::is_durable`]).
    fn append(&mut self, message: ChatMessage) -> Outcome<()>;

    /// Stores many messages in its fastest way with the same durability.
    fn append_all(&mut self, messages: Vec<ChatMessage>) -> Outcome<()>;

    /// The newest `n`, oldest first.
    fn tail(&mut self, n: usize) -> Outcome<Words>;

    /// Reads the tail several times in a row, as a host that is already on the right thread.
    fn tails(&mut self, n: usize, times: usize) -> Outcome<Words> {
        for _ in 1..times {
            std::hint::black_box(self.tail(n)?);
        }
        self.tail(n)
    }

    /// Reads every message, with this many threads if the store supports that.
    fn all(&mut self, threads: usize) -> Outcome<Words>;

    /// Reads the messages of a time span.
    fn between(&mut self, times: &Range<Timestamp>) -> Outcome<Words>;

    /// Moves data from a journal into the store proper.
    fn tidy(&mut self) -> Outcome<()> {
        Ok(())
    }
}

/// The result of a read, in the store's own form.
pub(crate) enum Words {
    Owned(Vec<ChatMessage>),
    Shared(ReadResult),
}

impl Words {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Owned(messages) => messages.len(),
            Self::Shared(reading) => reading.messages.len(),
        }
    }

    pub(crate) fn newest(&self) -> Option<&ChatMessage> {
        match self {
            Self::Owned(messages) => messages.last(),
            Self::Shared(reading) => reading.messages.last().map(|stored| &stored.message),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Ours,
    Document,
    SqlCipher,
    Redb,
    JsonLines,
    JsonFile,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Ours, Self::Document, Self::SqlCipher, Self::Redb, Self::JsonLines, Self::JsonFile];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "sottovoce",
            Self::Document => "one file each",
            Self::SqlCipher => "SQLCipher",
            Self::Redb => "redb",
            Self::JsonLines => "JSON lines",
            Self::JsonFile => "one JSON file",
        }
    }

    /// The folder's name, and the name for child processes.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Document => "document",
            Self::SqlCipher => "sqlcipher",
            Self::Redb => "redb",
            Self::JsonLines => "json-lines",
            Self::JsonFile => "json-file",
        }
    }

    pub(crate) fn by_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether an append that has returned survives a power cut.
    pub(crate) fn is_durable(self) -> bool {
        matches!(self, Self::Ours | Self::SqlCipher | Self::Redb)
    }

    /// Whether only one process may have it open.
    pub(crate) fn is_exclusive(self) -> bool {
        self == Self::Redb
    }

    /// The most messages it is measured with. Beyond, rewriting one file for each message takes seconds.
    pub(crate) fn limit(self) -> usize {
        if self == Self::JsonFile { 100_000 } else { usize::MAX }
    }

    /// Creates an empty store in an existing folder.
    pub(crate) fn create(self, folder: &Path) -> Outcome<Box<dyn Contender>> {
        if self == Self::SqlCipher {
            sqlcipher::SqlCipher::create(folder)?;
        }
        self.open(folder)
    }

    pub(crate) fn open(self, folder: &Path) -> Outcome<Box<dyn Contender>> {
        Ok(match self {
            Self::Ours => Box::new(ours::Ours::open(folder)?),
            Self::Document => Box::new(document::Document::open(folder)),
            Self::SqlCipher => Box::new(sqlcipher::SqlCipher::open(folder)?),
            Self::Redb => Box::new(redb::Redb::open(folder)?),
            Self::JsonLines => Box::new(json_lines::JsonLines::open(folder)),
            Self::JsonFile => Box::new(json_file::JsonFile::open(folder)),
        })
    }
}
