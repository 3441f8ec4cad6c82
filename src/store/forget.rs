//! Deleting for ever, on record.

use crate::error::Result;
use crate::store::erased::Erased;
use crate::store::finding::Finding;
use crate::store::folder::{Folder, Opened};
use crate::store::name::RecordName;
use crate::store::pack::PackName;
use crate::store::pack::weed::weed;

/// What a request to forget came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forgotten {
    /// How many numbers are recorded as forgotten that were not before, whether or not they had a file.
    pub numbers: u64,
    /// Numbers of the messages whose files were removed.
    pub removed: Vec<u64>,
    /// Files that carry a forgotten number but do not open, so that they may be something else: they stay, are
    /// never read, and can be removed by hand.
    pub left: Vec<Finding>,
}

/// Removes the files of forgotten records, each only once it has proved to be what its name says.
pub(crate) fn remove_erased(folder: &Folder, names: &[RecordName]) -> Result<Forgotten> {
    let mut forgotten = Forgotten::default();
    for &name in names {
        match folder.open(name)? {
            Opened::Message(message) => {
                folder.blobs.remove(&name.to_string())?;
                forgotten.removed.push(message.seq);
            }
            Opened::Forget(_) => folder.blobs.remove(&name.to_string())?,
            Opened::Skipped(kind) => forgotten.left.push(kind.in_file(name.to_string())),
            Opened::Gone => {}
        }
    }
    if !names.is_empty() {
        folder.blobs.sync()?;
    }
    forgotten.removed.sort_unstable();
    Ok(forgotten)
}

/// Removes the lines of forgotten records from packs.
pub(crate) fn remove_packed(
    folder: &Folder,
    packs: &[PackName],
    erased: &Erased,
    forgotten: &mut Forgotten,
) -> Result<()> {
    let mut weeded = weed(folder, packs, erased)?;
    forgotten.removed.append(&mut weeded.removed);
    forgotten.removed.sort_unstable();
    // What an interruption left in two places was one message.
    forgotten.removed.dedup();
    forgotten.left.append(&mut weeded.left);
    Ok(())
}
