//! Bounds how many folders and files all directories of this process keep open between uses.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::SystemTime;

use rustix::process::{Resource, getrlimit};

use super::file_id::FileId;

/// The most directories that stay open, however many files the process may open. Each holds two files at most.
const MOST: u64 = 1024;

/// The directories that hold something open, in the order in which they will be asked to close it.
static OPEN: Mutex<VecDeque<Weak<OpenFiles>>> = Mutex::new(VecDeque::new());

/// What one directory keeps open: its folder, and one file. The next use opens again what was closed meanwhile.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    pub(super) folder: Mutex<Opened>,
    pub(super) cached: Mutex<Option<CachedFile>>,
    /// Whether it was used since it was last asked to close.
    used: AtomicBool,
}

/// A folder that was opened once.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) folder: Option<Arc<OpenFolder>>,
    /// Which folder it was, also after it was closed. With the time of its creation, because the file system may give the
    /// number of a removed folder to a new one.
    pub(super) identity: Option<(FileId, Option<SystemTime>)>,
}

/// The open folder.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub(super) fd: File,
    pub(super) id: FileId,
}

#[derive(Debug)]
pub(super) struct CachedFile {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    pub(super) file: File,
}

impl OpenFiles {
    pub(super) fn folder(&self) -> MutexGuard<'_, Opened> {
        self.used.store(true, Ordering::Relaxed);
        held(&self.folder)
    }

    pub(super) fn cached(&self) -> MutexGuard<'_, Option<CachedFile>> {
        self.used.store(true, Ordering::Relaxed);
        held(&self.cached)
    }

    /// Counts a directory whose folder was just opened. If too many are open, closes those that were not used lately. A
    /// folder in use is closed at the end of the use.
    pub(super) fn count(self: &Arc<Self>) {
        let mut open = held(&OPEN);
        open.push_back(Arc::downgrade(self));
        let most = most(getrlimit(Resource::Nofile).current);
        if open.len() <= most {
            return;
        }
        open.retain(|other| other.strong_count() > 0);
        // Each may be passed over once because it was used, and once because it is in use.
        for _ in 0..open.len() * 2 {
            if open.len() <= most {
                break;
            }
            let Some(other) = open.pop_front() else { break };
            let is_kept = other
                .upgrade()
                .is_some_and(|other| other.used.swap(false, Ordering::Relaxed) || !other.close());
            if is_kept {
                open.push_back(other);
            }
        }
    }

    /// Closes the folder and the file. Returns `false` if they are in use.
    pub(super) fn close(&self) -> bool {
        let (cached, folder) = (free(&self.cached), free(&self.folder));
        let (Some(mut cached), Some(mut folder)) = (cached, folder) else { return false };
        *cached = None;
        folder.folder = None;
        true
    }
}

/// How many directories stay open in a process that may open so many files.
fn most(limit: Option<u64>) -> usize {
    // The other half is for connections, locks and files that are being read.
    usize::try_from((limit.unwrap_or(MOST) / 4).clamp(8, MOST)).unwrap_or(8)
}

fn free<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl super::FsDirectory {
    /// Closes what the directory keeps open, as if too many were.
    pub(crate) fn close(&self) -> bool {
        self.open.close()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.folder().folder.is_some()
    }
}
