//! A folder in memory: for tests, and for hosts without a disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Blobs, EntryKind, LOCK, Lock};
use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct MemoryBlobs {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
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
    abandoned: bool,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Blobs for MemoryBlobs {
    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn list(&self, visit: &mut dyn FnMut(&[u8], EntryKind)) -> Result<()> {
        hold(&self.files).keys().for_each(|name| visit(name.as_bytes(), EntryKind::File));
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(hold(&self.files).get(name).cloned())
    }

    fn peek(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.read(name)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let mut files = hold(&self.files);
        let free = !files.contains_key(name);
        if free {
            files.insert(name.into(), bytes.into());
        }
        Ok(free)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        hold(&self.files).insert(name.into(), bytes.into());
        Ok(())
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.replace(name, bytes)
    }

    fn links(&self, name: &str) -> Result<u64> {
        // The lock is no file here, but always there.
        Ok((name == LOCK || hold(&self.files).contains_key(name)).into())
    }

    fn remove(&self, name: &str) -> Result<()> {
        hold(&self.files).remove(name);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
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
            abandoned: std::mem::replace(&mut state.abandoned, true),
        }))
    }

    fn sweep(&self) -> Result<()> {
        Ok(())
    }
}

struct MemoryLock {
    gate: Arc<Gate>,
    abandoned: bool,
}

impl Lock for MemoryLock {
    fn abandoned(&self) -> bool {
        self.abandoned
    }

    fn finish(self: Box<Self>) {
        hold(&self.gate.state).abandoned = false;
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        hold(&self.gate.state).held = false;
        self.gate.freed.notify_one();
    }
}
