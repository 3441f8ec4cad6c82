//! Taking a whole conversation away, files and all, once it is backed up. Nothing stays that would keep a backup from
//! bringing it back, as forgetting does.

use std::sync::Arc;

use super::Writer;
use crate::blob::{Blobs, EntryKind, LOCK};
use crate::error::{Error, Result};
use crate::scope::ScopeKind;
use crate::store::catalog;

/// Where a conversation's folder is moved first, so that it is gone at once or not at all.
pub(crate) const FOLDER: &str = ".gone";

impl Writer {
    /// Takes the conversation away, unless something was stored after the number `seen`, or the settings have another
    /// revision than `rev`. Whether it did. Whoever has it open finds its folder replaced.
    ///
    /// # Errors
    /// [`Error::InvalidScope`] for the default conversation, whose folder is the root.
    pub(crate) fn remove(&mut self, seen: u64, rev: u64) -> Result<bool> {
        let folder = Arc::clone(&self.reader);
        let folder = &folder.folder;
        let mut below = folder.scope.folder()?;
        let reason = "the default conversation cannot be taken away";
        let name = below.pop().ok_or(Error::InvalidScope { reason })?;
        let parent = below.iter().fold(Arc::clone(&folder.root), |at, name| at.folder(name));
        let limits = self.limits.clone();
        let mut removed = false;
        let outcome = self.locked(|pen, tail, _| {
            if tail.last_seq == seen && tail.profile.rev == rev {
                catalog::leave(pen, tail, &limits)?;
                removed = parent.set_aside(name.as_bytes(), FOLDER)?;
            }
            Ok(())
        });
        if removed {
            // Whatever became of the lock: another process may have purged it along with the folder.
            purge(&*parent)?;
            return Ok(true);
        }
        outcome.map(|()| false)
    }
}

/// Deletes what was taken away, also what somebody was killed over.
pub(crate) fn purge_all(root: &dyn Blobs) -> Result<()> {
    ScopeKind::ALL.iter().try_for_each(|kind| purge(&*root.folder(kind.folder())))
}

fn purge(parent: &dyn Blobs) -> Result<()> {
    let gone = parent.folder(FOLDER);
    empty(&*gone)?;
    parent.remove_folder(FOLDER)
}

fn empty(folder: &dyn Blobs) -> Result<()> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    folder.list(&mut |name, kind| {
        let Ok(name) = str::from_utf8(name) else { return };
        match kind {
            EntryKind::Folder => folders.push(name.to_owned()),
            EntryKind::File | EntryKind::Other => files.push(name.to_owned()),
        }
    })?;
    for name in folders {
        empty(&*folder.folder(&name))?;
        folder.remove_folder(&name)?;
    }
    // Whoever still waits for the lock is to find the folder replaced, and no other lock.
    files.sort_by_key(|name| name == LOCK);
    files.iter().try_for_each(|name| folder.remove(name))
}
