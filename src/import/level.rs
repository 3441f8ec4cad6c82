//! Folders within a source, looked into one level after the other: names come from listings, and links are not followed.

use std::sync::Arc;

use crate::blob::{Blobs, EntryKind};
use crate::error::Result;
use crate::import::{PassedOver, Refusal, RefusalReason};

/// A folder on the way, and its path below the folder of all.
pub(super) struct Level {
    pub(super) blobs: Arc<dyn Blobs>,
    path: String,
}

impl Level {
    pub(super) fn top(root: &dyn Blobs, name: &str) -> Self {
        Self { blobs: root.folder(name), path: name.to_owned() }
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn of(blobs: Arc<dyn Blobs>, name: &str) -> Self {
        Self { blobs, path: name.to_owned() }
    }

    pub(super) fn below(&self, name: &str) -> Self {
        Self { blobs: self.blobs.folder(name), path: self.place(name) }
    }

    /// How reports name what is in it.
    pub(super) fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Its entries, sorted; none where it cannot be looked into, which is refused.
    pub(super) fn list(&self, refused: &mut Vec<Refusal>) -> Result<Vec<(Vec<u8>, EntryKind)>> {
        let mut entries = Vec::new();
        let listed = self.blobs.list(&mut |name, kind| entries.push((name.to_vec(), kind)));
        if let Err(error) = listed {
            refused.push(Refusal::new(&self.path, RefusalReason::unread(error)?));
            return Ok(Vec::new());
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    /// The folders in it; files beside them are passed over.
    pub(super) fn folders(
        &self,
        refused: &mut Vec<Refusal>,
        passed_over: &mut PassedOver,
    ) -> Result<Vec<String>> {
        let mut folders = Vec::new();
        for (name, kind) in self.list(refused)? {
            match (kind, str::from_utf8(&name)) {
                (EntryKind::Folder, Ok(name)) => folders.push(name.to_owned()),
                (EntryKind::File, _) => passed_over.add("files beside folders", 1),
                (kind, _) => refused.push(self.refusal(&name, misnamed(kind))),
            }
        }
        Ok(folders)
    }

    pub(super) fn refusal(&self, name: &[u8], reason: RefusalReason) -> Refusal {
        Refusal::new([self.path.as_bytes(), b"/", name].concat(), reason)
    }
}

/// Why what has such a name is not what it should be.
pub(super) fn misnamed(kind: EntryKind) -> RefusalReason {
    match kind {
        EntryKind::Folder => RefusalReason::NotPlain("a folder"),
        EntryKind::Other => RefusalReason::NotPlain("a link, pipe or device"),
        EntryKind::File => RefusalReason::Corrupt("its name is not text"),
    }
}
