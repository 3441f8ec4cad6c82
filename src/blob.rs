//! Bytes by name: the folder that a conversation lives in, without knowing what the bytes mean.
//!
//! The trait's methods block; callers choose the thread. A name is one path element, made by this crate or read from
//! a listing, never a host's id.

pub(crate) mod fs;
pub(crate) mod memory;

#[cfg(test)]
mod contract;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;

/// The most bytes that are read of one file.
pub(crate) const READ_LIMIT: u64 = 16 << 20;

/// How the names of unfinished publications begin.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// The name of the lock's file.
pub(crate) const LOCK: &str = "lock";

/// What a listing says of an entry, as far as the file system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Other,
}

/// A flat folder of named byte strings.
pub(crate) trait Blobs: Debug + Send + Sync {
    /// Where this is, for messages.
    fn path(&self) -> &Path;

    /// Calls `visit` with each entry's raw name. An absent folder is an empty one.
    fn list(&self, visit: &mut dyn FnMut(&[u8], EntryKind)) -> Result<()>;

    /// The bytes of a file; `None` where there is none.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// [`read`](Self::read) for a small file that is read again and again: a few hundred nanoseconds when unchanged.
    fn peek(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Publishes a new file whole, its bytes durable, its name only after [`sync`](Self::sync). `false`, and nothing
    /// changed, where the name is taken.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool>;

    /// Publishes a file whole in place of any that has the name; durable after [`sync`](Self::sync).
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// [`replace`](Self::replace) for what must not get lost on the way, and may be too long to be held in memory: `fill`
    /// gives the new bytes away, and once they are durable, `check` reads them back. `false`, and nothing changed,
    /// where it finds fault.
    fn exchange(&self, name: &str, fill: &mut Refill<'_>, check: &mut Check<'_>) -> Result<bool>;

    /// Changes a file's bytes in place, not made durable. It must exist and should have the same length.
    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// An existing file to be read piece by piece; `None` where there is none.
    fn open(&self, name: &str) -> Result<Option<Box<dyn Source>>>;

    /// [`create`](Self::create) for what is too long to be held in memory: `fill` gives its bytes away one piece after
    /// the other, and in the end the name. `None` from it, or an error, publishes nothing.
    fn stream(&self, fill: &mut Fill<'_>) -> Result<Streamed>;

    /// Makes a file's bytes durable that were changed in place.
    fn flush(&self, name: &str) -> Result<()>;

    /// The folder of that name in this one. It is not made before something is written.
    fn folder(&self, name: &str) -> Arc<dyn Blobs>;

    /// How many names the file has in the whole file system; 0 where there is none.
    fn links(&self, name: &str) -> Result<u64>;

    /// Removes a file; no error where there is none.
    fn remove(&self, name: &str) -> Result<()>;

    /// Removes a folder in this one if it is empty; no error where there is none.
    fn remove_folder(&self, name: &str) -> Result<()>;

    /// Moves an entry, whatever it is, into the folder of that name in this one, durably and without replacing
    /// anything: where the name is taken there, a number behind it keeps them apart. `false` where there is none.
    fn set_aside(&self, name: &[u8], folder: &str) -> Result<bool>;

    /// Makes every name published or removed so far durable.
    ///
    /// # Errors
    /// [`Error::NotDurable`](crate::Error::NotDurable), for want of space too: systems tell of it once, and the names may be
    /// lost though the next call succeeds.
    fn sync(&self) -> Result<()>;

    /// Makes durable what is there already, whoever left it: every name in this folder and in those above it, up to the
    /// one that holds the root. That a name is there says nothing of a power cut: who gave it may have been killed
    /// before it was durable. Folders that are missing stay so.
    fn anchor(&self) -> Result<()>;

    /// What marks the folder's names as they are now; `None` where there is no folder. Whoever publishes or removes a
    /// name takes the mark away.
    fn mark(&self) -> Result<Option<u64>>;

    /// Gives the folder a new mark. `None` where it cannot be marked.
    fn renew_mark(&self) -> Result<Option<u64>>;

    /// Takes the folder's only lock, making the folder if need be.
    fn lock(&self, timeout: Duration) -> Result<Box<dyn Lock>>;

    /// Removes what interrupted publications left behind. Only for the holder of the lock.
    fn sweep(&self) -> Result<()>;
}

/// Takes a file's bytes, one piece after the other.
pub(crate) type Sink<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// Writes a file into a sink and then says what it is to be called.
pub(crate) type Fill<'a> = dyn FnMut(&mut Sink<'_>) -> Result<Option<String>> + 'a;

/// Writes a file of a known name into a sink.
pub(crate) type Refill<'a> = dyn FnMut(&mut Sink<'_>) -> Result<()> + 'a;

/// Says whether what was written is what it should be.
pub(crate) type Check<'a> = dyn FnMut(Box<dyn Source>) -> Result<bool> + 'a;

/// What came of streaming a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Streamed {
    Published(String),
    /// Nothing changed: something has the name already.
    Taken(String),
    /// Nothing changed: there was no name.
    Abandoned,
}

/// An open file. It stays readable when its name goes.
pub(crate) trait Source: Debug + Send {
    fn size(&self) -> u64;

    /// Reads as many bytes as there are from that place on, at most as many as fit.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

/// An open file that is read from its beginning to its end.
#[derive(Debug)]
pub(crate) struct SourceReader {
    source: Box<dyn Source>,
    at: u64,
}

impl SourceReader {
    pub(crate) fn new(source: Box<dyn Source>) -> Self {
        Self { source, at: 0 }
    }
}

impl io::Read for SourceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(self.at, into)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A lock that is held until dropped.
pub(crate) trait Lock: Send {
    /// Whether the holder before went away without [`finish`](Self::finish): what it was doing is half done.
    fn abandoned(&self) -> bool;

    /// Says that the work under the lock is whole, and gives the lock back.
    fn finish(self: Box<Self>);

    /// Gives the lock back after work that left as it was what the holder before may have left half done: that is for
    /// the next one to find.
    fn pass_on(self: Box<Self>) {
        if !self.abandoned() {
            self.finish();
        }
    }
}
