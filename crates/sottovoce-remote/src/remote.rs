//! The trait of all remotes, and their limits

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::RemoteError;

/// The result of an operation on a remote.
pub type Result<T, E = RemoteError> = std::result::Result<T, E>;

/// The most bytes of one object: 16 MiB.
pub const MAX_OBJECT: usize = 16 << 20;

/// The most names of one listing.
pub const MAX_NAMES: usize = 100_000;

/// A store of whole, small objects.
///
/// A name consists of parts that `/` separates. A part has 1 to 128 ASCII letters, digits, `-`, `_` and `.`, and does not start
/// with a dot; a name has at most 512 bytes. Every operation refuses another name with [`ErrorKind::Other`](crate::ErrorKind::Other).
/// No object may have the name of a folder: what a server then does is its own affair.
///
/// Each operation may be repeated without harm. One that failed may have happened all the same, and may even happen later.
/// After a `put` was cut off, some servers keep a truncated object, even in place of one that a repeated `put` wrote. The caller
/// must be able to recognise one.
#[async_trait]
pub trait Remote: std::fmt::Debug + Send + Sync {
    /// Writes an object of at most [`MAX_OBJECT`] bytes, and replaces an older one of that name.
    ///
    /// # Errors
    /// [`RemoteError`] of any kind.
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()>;

    /// Reads an object. `None` if there is none of that name, but its container exists.
    ///
    /// # Errors
    /// [`RemoteError`] of any kind; one of kind `TooLarge` for an object of more than [`MAX_OBJECT`] bytes.
    async fn get(&self, name: &str) -> Result<Option<Bytes>>;

    /// Lists one level of a folder; `""` is the remote itself. Returns the last parts of the objects' names, and of the folders'
    /// with a `/` behind them, sorted. A folder that does not exist is empty. Names that no remote could have written are
    /// left out.
    ///
    /// # Errors
    /// [`RemoteError`] of any kind; one of kind `TooLarge` for more than [`MAX_NAMES`] names.
    async fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Deletes an object. One that is absent counts as deleted.
    ///
    /// # Errors
    /// [`RemoteError`] of any kind.
    async fn delete(&self, name: &str) -> Result<()>;
}

#[async_trait]
impl<R: Remote + ?Sized> Remote for std::sync::Arc<R> {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        (**self).put(name, bytes).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        (**self).get(name).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        (**self).list(folder).await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        (**self).delete(name).await
    }
}
