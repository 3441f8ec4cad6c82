//! Bytes by name: the folder that a conversation lives in, without knowing what the bytes mean.
//!
//! The trait's methods block; callers choose the thread. A name is one path element, made by this crate or read from
//! a listing, never a host's id.

pub(crate) mod fs;
pub(crate) mod memory;

#[cfg(test)]
mod contract;

use std::fmt::Debug;
use std::path::Path;
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

    /// Changes a file's bytes in place, not made durable. It must exist and should have the same length.
    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// How many names the file has in the whole file system; 0 where there is none.
    fn links(&self, name: &str) -> Result<u64>;

    /// Removes a file; no error where there is none.
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes every name published or removed so far durable.
    fn sync(&self) -> Result<()>;

    /// Takes the folder's only lock, making the folder if need be.
    fn lock(&self, timeout: Duration) -> Result<Box<dyn Lock>>;

    /// Removes what interrupted publications left behind. Only for the holder of the lock.
    fn sweep(&self) -> Result<()>;
}

/// A lock that is held until dropped.
pub(crate) trait Lock: Send {
    /// Whether the holder before went away without [`finish`](Self::finish): what it was doing is half done.
    fn abandoned(&self) -> bool;

    /// Says that the work under the lock is whole, and gives the lock back.
    fn finish(self: Box<Self>);
}
