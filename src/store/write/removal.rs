//! Removes a whole conversation with its files, once it is backed up. Unlike forgetting, this leaves nothing behind
//! that would prevent restoring the backup.

use std::sync::Arc;

use crate::directory::{Directory, EntryKind, LOCK};
use crate::error::{Error, Result};
use crate::scope::{Scope, ScopeKind};
use crate::store::read::tail::Tail;
use crate::store::record::layout::REMOVED;
use crate::store::record::store_state::ForgottenConversation;
use crate::store::write::compact::Compactor;
use crate::store::write::{Writer, catalog, forgotten_conversation, import_tombstones};

impl Writer {
    /// Removes the conversation unless something was stored after the number `seen` or the settings have another
    /// revision than `rev`. Returns whether it did. Others who have it open find its folder replaced.
    ///
    /// # Errors
    /// [`Error::InvalidScope`] for the default conversation, whose folder is the root.
    pub(crate) fn remove(&mut self, seen: u64, rev: u64) -> Result<bool> {
        let folder = Arc::clone(&self.reader);
        let folder = &folder.folder;
        let mut below = folder.scope.folder()?;
        let reason = "the default conversation cannot be removed";
        let name = below.pop().ok_or(Error::InvalidScope { reason })?;
        let parent = below.iter().fold(Arc::clone(&folder.root), |at, name| at.folder(name));
        let limits = self.limits.clone();
        let mut removed = false;
        let outcome = self.locked(|committer, tail, _| {
            if tail.last_seq == seen && tail.profile.rev == rev {
                catalog::leave(committer, tail, &limits)?;
                removed = parent.move_into(name.as_bytes(), REMOVED)?;
            }
            Ok(())
        });
        if removed {
            // Ignore errors of the lock: another process may have deleted it with the folder. It may be purging too; what is
            // left is deleted by the next upkeep.
            folder.drop_witness();
            if let Err(error) = purge(&*parent).and_then(|()| leave_parents(&folder.root, below)) {
                tracing::warn!(%error, "could not delete all of a removed conversation");
            }
            return Ok(true);
        }
        outcome.map(|()| false)
    }

    /// Removes the folder of a conversation that was forgotten completely, if it has nothing else. First records in
    /// the default conversation what must be known of it. Returns whether it did.
    pub(crate) fn remove_forgotten(&mut self) -> Result<bool> {
        let scope = Arc::clone(&self.reader.folder.scope);
        if *scope == Scope::Default || self.is_fresh()? {
            return Ok(false);
        }
        let (last, rev, origins) = self.locked(|committer, tail, _| {
            // A list that does not open now may open later, so the folder stays.
            let origins = match forgotten_conversation::is_bare(committer, tail)? {
                true => import_tombstones::listed(committer.folder, &tail.profile).ok(),
                false => None,
            };
            Ok((tail.last_seq, tail.profile.rev, origins))
        })?;
        let Some(mut origins) = origins else { return Ok(false) };
        let gone = ForgottenConversation::new(last, self.limits.clock.now().timestamp());
        let root = Arc::new(self.reader.of_root());
        let mut root = Self::new(root, self.limits.clone(), Compactor::keeping(64));
        root.locked(|committer, tail, _| {
            let committer = &committer.with_reserve();
            let id = forgotten_conversation::digest(&scope);
            origins.removed.insert(id, std::mem::take(&mut origins.origins));
            import_tombstones::note(committer, tail, &origins)?;
            committer.change_profile(tail, |profile| {
                let listed = &mut profile.forgotten_scopes;
                let id = forgotten_conversation::id(&scope);
                let again = listed.get(&id).map(|before| gone.after(before)).unwrap_or(gone);
                listed.insert(id, again);
            })
        })?;
        self.remove(last, rev)
    }

    /// Records the forgotten numbers of a conversation that has no folder any more. Call it before checking whether a
    /// message was forgotten. Returns whether there was anything to record.
    pub(crate) fn record_if_forgotten(&mut self) -> Result<bool> {
        let is_gone = Tail::load(&self.reader.folder, 0, None)?.last_seq == 0
            && forgotten_conversation::find(&self.reader.folder)?.is_some();
        if is_gone {
            self.locked(|_, _, _| Ok(()))?;
        }
        Ok(is_gone)
    }
}

/// Removes the folders above a conversation, if they are empty: they would still name a guild and a channel.
fn leave_parents(root: &Arc<dyn Directory>, mut below: Vec<String>) -> Result<()> {
    while let Some(name) = below.pop().filter(|_| !below.is_empty()) {
        let parent = below.iter().fold(Arc::clone(root), |at, name| at.folder(name));
        parent.remove_folder(&name)?;
    }
    Ok(())
}

/// Deletes removed conversations, including those of interrupted runs.
pub(crate) fn purge_all(root: &dyn Directory) -> Result<()> {
    let below = |kind: &ScopeKind| purge_below(&*root.folder(kind.folder()), kind.levels());
    ScopeKind::ALL.iter().try_for_each(below)
}

/// Searches that many levels of folders.
fn purge_below(folder: &dyn Directory, levels: usize) -> Result<()> {
    purge(folder)?;
    if levels <= 1 {
        return Ok(());
    }
    let mut names = Vec::new();
    folder.list(&mut |name, kind| {
        if let (Ok(name), EntryKind::Folder) = (str::from_utf8(name), kind) {
            names.push(name.to_owned());
        }
    })?;
    names.iter().try_for_each(|name| purge_below(&*folder.folder(name), levels - 1))
}

fn purge(parent: &dyn Directory) -> Result<()> {
    let gone = parent.folder(REMOVED);
    empty(&*gone)?;
    parent.remove_folder(REMOVED)
}

pub(crate) fn empty(folder: &dyn Directory) -> Result<()> {
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
    // Delete the lock last: a waiting process must find the folder replaced, not another lock.
    files.sort_by_key(|name| name == LOCK);
    files.iter().try_for_each(|name| folder.remove(name))
}
