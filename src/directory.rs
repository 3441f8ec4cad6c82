//! A directory of named files: the storage below a store, on disk or in memory.
//!
//! The trait's methods block; callers choose the thread. A name is one path element. It comes from this crate or from a
//! listing, never from a host's id.

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

/// The largest file that is read whole.
pub(crate) const READ_LIMIT: u64 = 16 << 20;

/// The prefix of temporary files.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// The name of the lock's file.
pub(crate) const LOCK: &str = "lock";

/// An entry's type, as far as the file system reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Other,
}

/// A directory of files. Several processes may use it at once.
pub(crate) trait Directory: Debug + Send + Sync {
    /// The path, for messages.
    fn path(&self) -> &Path;

    /// Calls `visit` with each entry's raw name. A directory that does not exist lists nothing.
    fn list(&self, visit: &mut dyn FnMut(&[u8], EntryKind)) -> Result<()>;

    /// Reads a file whole. `None` if it does not exist.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Like [`read`](Self::read), but keeps the file open, so that reading an unchanged small file again takes a few
    /// hundred nanoseconds.
    fn read_cached(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Publishes a new file. Its bytes are durable at once, its name after [`sync`](Self::sync). Returns `false` and
    /// changes nothing if the name is taken.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool>;

    /// Publishes a file and replaces any file of that name. Durable after [`sync`](Self::sync).
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Like [`replace`](Self::replace), but streams and verifies: `fill` writes the new bytes, and once they are durable,
    /// `check` reads them back. Returns `false` and changes nothing if `check` rejects them.
    fn replace_verified(
        &self,
        name: &str,
        fill: &mut Refill<'_>,
        check: &mut Check<'_>,
    ) -> Result<bool>;

    /// Writes over a file's bytes in place, without making them durable. The file must exist and should have the same
    /// length.
    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Opens a file for reading in parts. `None` if it does not exist.
    fn open(&self, name: &str) -> Result<Option<Box<dyn Source>>>;

    /// Like [`create`](Self::create), but streams: `fill` writes the bytes and returns the name. If it returns `None` or
    /// an error, nothing is published.
    fn stream(&self, fill: &mut Fill<'_>) -> Result<Streamed>;

    /// Makes bytes durable that were changed in place.
    fn flush(&self, name: &str) -> Result<()>;

    /// The directory of that name in this one. The first write creates it.
    fn folder(&self, name: &str) -> Arc<dyn Directory>;

    /// How many hard links the file has; 0 if it does not exist.
    fn link_count(&self, name: &str) -> Result<u64>;

    /// Removes a file, if it exists.
    fn remove(&self, name: &str) -> Result<()>;

    /// Removes a directory in this one, if it exists and is empty.
    fn remove_folder(&self, name: &str) -> Result<()>;

    /// Moves an entry of any type into the directory of that name in this one, durably and without replacing anything: a
    /// number is appended to a name that is taken there. Returns `false` if there is no such entry.
    fn move_into(&self, name: &[u8], folder: &str) -> Result<bool>;

    /// Makes every name that was published or removed so far durable (fsync of the directory).
    ///
    /// # Errors
    /// [`Error::NotDurable`](crate::Error::NotDurable), also if the disk is full. Systems report a failed sync once: the
    /// names may be lost although the next call succeeds.
    fn sync(&self) -> Result<()>;

    /// Fsyncs this directory and its ancestors, up to the one that holds the root. A process may have been killed before
    /// it made a name durable, so a name that is visible can still be lost in a power cut. Creates nothing.
    fn sync_ancestors(&self) -> Result<()>;

    /// A number that differs once a name in the directory was published or removed. `None` if the directory does not
    /// exist.
    fn change_stamp(&self) -> Result<Option<u64>>;

    /// Sets a new change stamp. `None` if the file system cannot hold one.
    fn renew_change_stamp(&self) -> Result<Option<u64>>;

    /// Whether files take room on a disk, which may be full.
    fn is_on_disk(&self) -> bool {
        true
    }

    /// Takes the directory's exclusive lock. Creates the directory if necessary.
    fn lock(&self, timeout: Duration) -> Result<Box<dyn Lock>>;

    /// Removes the temporary files of interrupted publications, and leaves those that somebody is writing.
    fn remove_temp_files(&self) -> Result<()>;
}

/// Takes a file's bytes part by part.
pub(crate) type Sink<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// Writes a file into a sink and returns its name.
pub(crate) type Fill<'a> = dyn FnMut(&mut Sink<'_>) -> Result<Option<String>> + 'a;

/// Writes a file of a known name into a sink.
pub(crate) type Refill<'a> = dyn FnMut(&mut Sink<'_>) -> Result<()> + 'a;

/// Reads back what was written and returns whether it is right.
pub(crate) type Check<'a> = dyn FnMut(Box<dyn Source>) -> Result<bool> + 'a;

/// The result of streaming a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Streamed {
    Published(String),
    /// Nothing changed: the name is taken.
    Taken(String),
    /// Nothing changed: `fill` returned no name.
    Abandoned,
}

/// An open file. It stays readable after its name was removed.
pub(crate) trait Source: Debug + Send {
    fn size(&self) -> u64;

    /// Reads from the offset on, at most as many bytes as fit.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

/// Reads an open file from its beginning to its end.
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
    /// Whether the previous holder went away without [`release_clean`](Self::release_clean), so that its work may be half
    /// done.
    fn was_dirty(&self) -> bool;

    /// Releases the lock and records that all work under it is complete.
    fn release_clean(self: Box<Self>);

    /// Releases the lock and leaves it as dirty or clean as it was taken: nothing was repaired, so the next holder still
    /// has to.
    fn release_as_found(self: Box<Self>) {
        if !self.was_dirty() {
            self.release_clean();
        }
    }
}
