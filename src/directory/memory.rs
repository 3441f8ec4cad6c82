//! A directory in memory, for tests and for hosts without a disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Check, Directory, EntryKind, Fill, LOCK, Lock, Refill, Source, Streamed};
use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct MemoryDirectory {
    path: PathBuf,
    files: Mutex<BTreeMap<String, Arc<Vec<u8>>>>,
    folders: Mutex<BTreeMap<String, Arc<MemoryDirectory>>>,
    stamp: AtomicU64,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    held: bool,
    dirty: bool,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryDirectory {
    /// Whether anything was ever written in it or below it.
    fn is_made(&self) -> bool {
        !hold(&self.files).is_empty() || hold(&self.folders).values().any(|folder| folder.is_made())
    }

    fn below(&self, name: &str) -> Arc<Self> {
        let made = || Arc::new(Self { path: self.path().join(name), ..Self::default() });
        Arc::clone(hold(&self.folders).entry(name.into()).or_insert_with(made))
    }

    fn renew_stamp(&self) {
        self.stamp.fetch_add(1, Ordering::SeqCst);
    }
}

impl Directory for MemoryDirectory {
    fn path(&self) -> &Path {
        if self.path.as_os_str().is_empty() { Path::new("memory") } else { &self.path }
    }

    fn list(&self, visit: &mut dyn FnMut(&[u8], EntryKind)) -> Result<()> {
        hold(&self.files).keys().for_each(|name| visit(name.as_bytes(), EntryKind::File));
        let folders = hold(&self.folders);
        let made = folders.iter().filter(|(_, folder)| folder.is_made());
        made.for_each(|(name, _)| visit(name.as_bytes(), EntryKind::Folder));
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(hold(&self.files).get(name).map(|bytes| bytes.to_vec()))
    }

    fn read_cached(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.read(name)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let mut files = hold(&self.files);
        let free = !files.contains_key(name);
        if free {
            files.insert(name.into(), Arc::new(bytes.into()));
            self.renew_stamp();
        }
        Ok(free)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.renew_stamp();
        self.overwrite(name, bytes)
    }

    fn replace_verified(
        &self,
        name: &str,
        fill: &mut Refill<'_>,
        check: &mut Check<'_>,
    ) -> Result<bool> {
        let mut bytes = Vec::new();
        fill(&mut |more| {
            bytes.extend_from_slice(more);
            Ok(())
        })?;
        let bytes = Arc::new(bytes);
        let good = check(Box::new(MemorySource(Arc::clone(&bytes))))?;
        if good {
            self.renew_stamp();
            hold(&self.files).insert(name.into(), bytes);
        }
        Ok(good)
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()> {
        hold(&self.files).insert(name.into(), Arc::new(bytes.into()));
        Ok(())
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Source>>> {
        let bytes = hold(&self.files).get(name).cloned();
        Ok(bytes.map(|bytes| Box::new(MemorySource(bytes)) as Box<dyn Source>))
    }

    fn stream(&self, fill: &mut Fill<'_>) -> Result<Streamed> {
        let mut bytes = Vec::new();
        let name = fill(&mut |more| {
            bytes.extend_from_slice(more);
            Ok(())
        })?;
        let Some(name) = name else {
            return Ok(Streamed::Abandoned);
        };
        let streamed =
            if self.create(&name, &bytes)? { Streamed::Published } else { Streamed::Taken };
        Ok(streamed(name))
    }

    fn flush(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    fn folder(&self, name: &str) -> Arc<dyn Directory> {
        self.below(name)
    }

    fn link_count(&self, name: &str) -> Result<u64> {
        // The lock is not a file here, but always exists.
        Ok((name == LOCK || hold(&self.files).contains_key(name)).into())
    }

    fn remove(&self, name: &str) -> Result<()> {
        if hold(&self.files).remove(name).is_some() {
            self.renew_stamp();
        }
        Ok(())
    }

    fn remove_folder(&self, name: &str) -> Result<()> {
        hold(&self.folders).retain(|known, folder| known != name || folder.is_made());
        Ok(())
    }

    fn move_into(&self, name: &[u8], folder: &str) -> Result<bool> {
        let name = String::from_utf8_lossy(name).into_owned();
        let aside = self.below(folder);
        if let Some(moved) = hold(&self.folders).remove(&name) {
            hold(&aside.folders).insert(name, moved);
            return Ok(true);
        }
        let Some(bytes) = hold(&self.files).remove(&name) else {
            return Ok(false);
        };
        self.renew_stamp();
        let mut number = 1;
        let mut target = name.clone();
        while !aside.create(&target, &bytes)? {
            number += 1;
            target = format!("{name}.{number}");
        }
        Ok(true)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn sync_ancestors(&self) -> Result<()> {
        Ok(())
    }

    fn change_stamp(&self) -> Result<Option<u64>> {
        Ok(Some(self.stamp.load(Ordering::SeqCst)))
    }

    fn renew_change_stamp(&self) -> Result<Option<u64>> {
        self.renew_stamp();
        self.change_stamp()
    }

    fn is_on_disk(&self) -> bool {
        false
    }

    fn lock(&self, timeout: Duration) -> Result<Box<dyn Lock>> {
        let (mut state, waited) = self
            .gate
            .freed
            .wait_timeout_while(hold(&self.gate.state), timeout, |state| state.held)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && state.held {
            return Err(Error::LockTimeout {
                path: self.path().join(LOCK),
                waited_ms: timeout.as_millis().try_into().unwrap_or(u64::MAX),
            });
        }
        state.held = true;
        Ok(Box::new(MemoryLock {
            gate: Arc::clone(&self.gate),
            dirty: std::mem::replace(&mut state.dirty, true),
        }))
    }

    fn remove_temp_files(&self) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct MemorySource(Arc<Vec<u8>>);

impl Source for MemorySource {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(from..).unwrap_or_default();
        let length = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..length), rest.get(..length)) {
            into.copy_from_slice(rest);
        }
        Ok(length)
    }
}

struct MemoryLock {
    gate: Arc<Gate>,
    dirty: bool,
}

impl Lock for MemoryLock {
    fn was_dirty(&self) -> bool {
        self.dirty
    }

    fn release_clean(self: Box<Self>) {
        hold(&self.gate.state).dirty = false;
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        hold(&self.gate.state).held = false;
        self.gate.freed.notify_one();
    }
}
