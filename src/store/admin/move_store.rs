//! A store goes to another folder, so that whatever ends the program, one whole store is where the settings say.
//!
//! All conversations are locked. Everything gets a second name at the new place, or a copy on another file system; then
//! the caller switches the settings, which is one rename; only then does the old place go.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::blob::fs::FsBlobs;
use crate::blob::fs::relocate::{Tree, exists, remove, rename};
use crate::blob::{Blobs, Lock};
use crate::error::{Error, Result};
use crate::store::folder::scopes::places;

/// How long others may hold a conversation's lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the new place is called until everything is there.
const ARRIVING: &str = ".moving";

/// What the old place is called once the settings name the new one.
const LEAVING: &str = ".moved";

/// What moving a store took.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedStore {
    /// How many files it has.
    pub files: usize,
    /// How many bytes had to be copied; none within a file system.
    pub copied: u64,
    /// What could not be removed of the old place, or was written there meanwhile.
    pub left: Option<PathBuf>,
}

/// The folder's name with an ending.
fn named(folder: &Path, ending: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Moves the store in `from` to the new folder `to`. Calls `switch` once everything is there, to have the settings name
/// the new place durably; until it returns well, the old place stays as it is.
///
/// Killed at any moment, it can be run again. Programs that have the store open must be started anew.
///
/// # Errors
/// [`Error::LockTimeout`] while somebody writes, [`Error::Io`] if there is something in `to` already, and what `switch`
/// returns.
pub fn move_store<E: From<Error>>(
    from: &Path,
    to: &Path,
    switch: impl FnOnce() -> Result<(), E>,
) -> Result<MovedStore, E> {
    let absolute = |path| {
        std::path::absolute(path).map_err(|error| Error::io("resolve the path", path, error))
    };
    let (from, to) = (absolute(from)?, absolute(to)?);
    if exists(&to) || to.starts_with(&from) {
        return Err(Error::io("move the store there", to, ErrorKind::AlreadyExists.into()).into());
    }
    let locks = lock_all(&from)?;
    let brought = bring(&from, &to);
    let (tree, copied) = match brought {
        Ok(brought) => brought,
        Err(error) => {
            locks.into_iter().for_each(|lock| lock.pass_on());
            return Err(error.into());
        }
    };
    let switched = switch();
    // Nothing that was written meanwhile, by a program that heeds no lock, may go.
    let is_same = Tree::of(&from).is_ok_and(|now| now == tree);
    let gone = named(&from, LEAVING);
    let mut left = Some(from.clone()).filter(|_| !is_same);
    if switched.is_ok() && is_same {
        // A leftover of that name was copied whole before.
        let moved = remove(&gone).and_then(|()| rename(&from, &gone));
        left =
            moved.and_then(|()| remove(&gone)).is_err().then_some(gone).filter(|gone| exists(gone));
        left = left.or_else(|| exists(&from).then_some(from));
    }
    locks.into_iter().for_each(|lock| lock.pass_on());
    switched?;
    Ok(MovedStore { files: tree.files(), copied, left })
}

/// Locks all conversations of a root, so that nobody writes.
fn lock_all(root: &Path) -> Result<Vec<Box<dyn Lock>>> {
    let blobs: Arc<dyn Blobs> = Arc::new(FsBlobs::new(root, &[])?);
    let mut findings = Vec::new();
    let places = places(&blobs, &mut findings)?;
    places.iter().map(|place| place.blobs.lock(PATIENCE)).collect()
}

/// Has everything at the new place too.
fn bring(from: &Path, to: &Path) -> Result<(Tree, u64)> {
    let arriving = named(to, ARRIVING);
    // Somebody was killed over it.
    remove(&arriving)?;
    let tree = Tree::of(from)?;
    let copied = tree.mirror(from, &arriving)?;
    if Tree::of(from)? != tree {
        return Err(Error::io(
            "move the store, which is in use",
            from,
            ErrorKind::ResourceBusy.into(),
        ));
    }
    // Locks that nobody has given back make the next writer take stock of the folder.
    drop(lock_all(&arriving)?);
    rename(&arriving, to)?;
    Ok((tree, copied))
}
