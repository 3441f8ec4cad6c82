//! Room on a full disk, so that messages can be forgotten in order to make room.

use crate::crypto::random;
use crate::error::{Error, Result};
use crate::store::folder::{Folder, segments};
use crate::store::record::layout::RESERVE;
use crate::store::record::seq_set::SeqSet;

/// The bytes of the reserve. A forgetting writes a few kibibytes, unless its lists are very long, but XFS makes a file only
/// if it has a quarter of a mebibyte.
const RESERVED: usize = 512 << 10;

/// Does some work. If the disk is full, makes room and does the work once more.
pub(crate) fn with_room<T>(folder: &Folder, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    match work() {
        Err(Error::NoSpace { .. }) => {
            make(folder)?;
            work()
        }
        outcome => outcome,
    }
}

/// Removes the reserve and what can be made again from the messages.
pub(crate) fn make(folder: &Folder) -> Result<()> {
    tracing::warn!("the disk is full: the search index makes room for forgetting");
    folder.root.remove(RESERVE)?;
    folder.root.sync()?;
    segments::remove(folder, &SeqSet::everything())
}

/// Makes the reserve if it is missing. Without one, forgetting on a full disk may fail.
pub(crate) fn keep_reserve(folder: &Folder) {
    let made = || {
        if !folder.root.is_on_disk() || folder.root.link_count(RESERVE)? > 0 {
            return Ok(false);
        }
        // Zeros take no room where a file system compresses.
        let mut bytes = vec![0; RESERVED];
        random(&mut bytes)?;
        folder.root.create(RESERVE, &bytes)
    };
    if let Err(error) = made() {
        tracing::debug!(%error, "could not set room aside for forgetting");
    }
}
