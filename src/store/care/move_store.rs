//! Moves a store to another folder. Whenever the program ends, the settings point to one complete store.
//!
//! All conversations are locked. Each file gets a hard link at the new place, or a copy on another file system. Then
//! the caller changes the settings with one rename. Only then is the old place removed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::directory::fs::FsDirectory;
use crate::directory::fs::relocate::{Tree, exists, remove, rename};
use crate::directory::{Directory, Lock};
use crate::error::{Error, Result};
use crate::store::folder::conversation_folders::conversation_folders;

/// How long to wait for a conversation's lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// The extension of the new folder until it is complete.
const ARRIVING: &str = ".moving";

/// The extension of the old folder once the settings name the new one.
const LEAVING: &str = ".moved";

/// The outcome of moving a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedStore {
    /// The number of files.
    pub files: usize,
    /// The number of bytes copied; 0 within a file system.
    pub copied: u64,
    /// The old folder, if it could not be removed or was written to in the meantime.
    pub left: Option<PathBuf>,
}

/// The folder's name with an extension.
fn named(folder: &Path, ending: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Moves the store in `from` to the new folder `to`. Calls `switch` once everything is there, which must change the
/// settings durably. Until `switch` succeeds, the old folder stays as it is.
///
/// If the move is interrupted, run it again. Programs that have the store open must be restarted.
///
/// # Errors
/// [`Error::LockTimeout`] while another program writes, [`Error::Io`] if `to` is not empty, and what `switch`
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
            locks.into_iter().for_each(|lock| lock.release_as_found());
            return Err(error.into());
        }
    };
    let switched = switch();
    // Keep what a program that ignores locks has written in the meantime.
    let is_same = Tree::of(&from).is_ok_and(|now| now == tree);
    let gone = named(&from, LEAVING);
    let mut left = Some(from.clone()).filter(|_| !is_same);
    if switched.is_ok() && is_same {
        // An earlier move left a folder of that name. Its files were copied completely.
        let moved = remove(&gone).and_then(|()| rename(&from, &gone));
        left =
            moved.and_then(|()| remove(&gone)).is_err().then_some(gone).filter(|gone| exists(gone));
        left = left.or_else(|| exists(&from).then_some(from));
    }
    locks.into_iter().for_each(|lock| lock.release_as_found());
    switched?;
    Ok(MovedStore { files: tree.files(), copied, left })
}

/// Locks all conversations of a root, so that nobody writes.
fn lock_all(root: &Path) -> Result<Vec<Box<dyn Lock>>> {
    let directory: Arc<dyn Directory> = Arc::new(FsDirectory::new(root, &[])?);
    let mut findings = Vec::new();
    let places = conversation_folders(&directory, &mut findings)?;
    places.iter().map(|place| place.directory.lock(PATIENCE)).collect()
}

/// Links or copies everything to the new place.
fn bring(from: &Path, to: &Path) -> Result<(Tree, u64)> {
    let arriving = named(to, ARRIVING);
    // An earlier move was interrupted.
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
    // Dropping locks without releasing them makes the next writer run its recovery.
    drop(lock_all(&arriving)?);
    rename(&arriving, to)?;
    Ok((tree, copied))
}
