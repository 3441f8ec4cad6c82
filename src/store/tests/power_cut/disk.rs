//! A simulated disk that keeps only synced data after a power cut.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// A file's bytes, as seen by the system and as they are on disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Bytes {
    pub(super) shown: Vec<u8>,
    pub(super) durable: Vec<u8>,
}

pub(super) type File = Arc<Mutex<Bytes>>;

/// A folder.
#[derive(Debug, Default)]
pub(super) struct Disk {
    state: Mutex<State>,
    pub(super) below: Mutex<BTreeMap<String, Arc<Disk>>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) is_made: bool,
    /// Whether its own name is durable in its parent.
    pub(super) is_entered: bool,
    pub(super) shown: BTreeMap<String, File>,
    pub(super) durable: BTreeMap<String, File>,
    pub(super) mark: u64,
    pub(super) durable_mark: u64,
    pub(super) is_locked: bool,
    /// Whether the last holder of the lock has not released it clean.
    pub(super) is_busy: bool,
}

/// What a power cut may keep or lose besides synced data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutOutcome {
    /// A removed file is gone although its removal was never synced.
    pub(super) is_removed: bool,
    /// Bytes written in place are there although they were never flushed.
    pub(super) is_written: bool,
}

impl CutOutcome {
    pub(super) const ALL: [Self; 2] = [
        Self { is_removed: false, is_written: false },
        Self { is_removed: true, is_written: true },
    ];
}

impl Disk {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The disk as the next boot finds it.
    pub(super) fn cut(&self, luck: CutOutcome) -> Arc<Self> {
        let state = self.state();
        let mut files = BTreeMap::new();
        for (name, file) in &state.durable {
            if luck.is_removed && !state.shown.contains_key(name) {
                continue;
            }
            let file = file.lock().unwrap();
            let durable = if luck.is_written { &file.shown } else { &file.durable }.clone();
            files.insert(name.clone(), file_of(&durable));
        }
        let has_removed = files.len() < state.durable.len();
        let mark = if has_removed { state.mark } else { state.durable_mark };
        let mut below = BTreeMap::new();
        for (name, folder) in &*self.below.lock().unwrap() {
            below.insert(name.clone(), folder.cut(luck));
        }
        let is_made = state.is_made && state.is_entered;
        if !is_made {
            return Arc::default();
        }
        let state = State {
            is_made,
            is_entered: true,
            shown: files.clone(),
            durable: files,
            mark,
            durable_mark: mark,
            ..State::default()
        };
        Arc::new(Self { state: Mutex::new(state), below: Mutex::new(below) })
    }

    /// Renames a file durably, as a bad disk or a person may.
    pub(super) fn rename(&self, has: &str, from: &str, to: &str) {
        let mut state = self.state();
        let name = state.shown.keys().find(|name| name.contains(has)).unwrap().clone();
        let file = state.shown.remove(&name).unwrap();
        state.shown.insert(name.replace(from, to), file);
        state.durable = state.shown.clone();
        state.mark += 1;
        state.durable_mark = state.mark;
    }
}

pub(super) fn file_of(bytes: &[u8]) -> File {
    Arc::new(Mutex::new(Bytes { shown: bytes.to_vec(), durable: bytes.to_vec() }))
}
