//! A disk on which only what was synced outlives a power cut, and the processes that use it until something happens to
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::blob::{Blobs, Check, EntryKind, Fill, LOCK, Lock, Refill, Source, Streamed};
use crate::store::faults::{no_space, not_durable};
use crate::{Error, Result};

/// A file's bytes, as the system shows them and as they are on the disk.
#[derive(Debug, Clone, Default)]
struct Bytes {
    shown: Vec<u8>,
    durable: Vec<u8>,
}

type File = Arc<Mutex<Bytes>>;

/// A folder.
#[derive(Debug, Default)]
pub(super) struct Disk {
    state: Mutex<State>,
    below: Mutex<BTreeMap<String, Arc<Disk>>>,
}

#[derive(Debug, Default)]
struct State {
    is_made: bool,
    /// Whether its own name is durable in the folder above.
    is_entered: bool,
    shown: BTreeMap<String, File>,
    durable: BTreeMap<String, File>,
    mark: u64,
    durable_mark: u64,
    is_locked: bool,
    /// Whoever held the lock has not finished.
    is_busy: bool,
}

/// What a cut may leave or take besides what was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Luck {
    /// What was removed is gone though that was never synced.
    pub(super) is_removed: bool,
    /// What was written in place is there though it was never flushed.
    pub(super) is_written: bool,
}

impl Luck {
    pub(super) const ALL: [Self; 2] = [
        Self { is_removed: false, is_written: false },
        Self { is_removed: true, is_written: true },
    ];
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The disk as the next boot finds it.
    pub(super) fn cut(&self, luck: Luck) -> Arc<Self> {
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

    /// Gives a file another name, durably, as a bad disk or a person may.
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

fn file_of(bytes: &[u8]) -> File {
    Arc::new(Mutex::new(Bytes { shown: bytes.to_vec(), durable: bytes.to_vec() }))
}

/// What happens to a process at one of its calls that change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mishap {
    /// Neither this call nor any later one reaches the disk.
    Killed,
    /// There is no room, once. What a sync was to make durable then, no later one of this process does: systems tell of
    /// it once.
    NoRoom,
}

#[derive(Debug)]
pub(super) struct Process {
    mishap: Mishap,
    /// How many calls come before it.
    left: Mutex<Option<usize>>,
    happened: Mutex<Option<String>>,
    given_up: Mutex<BTreeSet<PathBuf>>,
}

impl Process {
    /// A process on that disk, which has a mishap at that call, counted from 0.
    pub(super) fn on(disk: &Arc<Disk>, mishap: Mishap, at: usize) -> (Arc<dyn Blobs>, Arc<Self>) {
        let process = Arc::new(Self {
            mishap,
            left: Mutex::new(Some(at)),
            happened: Mutex::default(),
            given_up: Mutex::default(),
        });
        (Arc::new(View::new(vec!["root".to_owned()], vec![disk.clone()], process.clone())), process)
    }

    /// A process to which nothing happens.
    pub(super) fn unharmed(disk: &Arc<Disk>) -> Arc<dyn Blobs> {
        Self::on(disk, Mishap::Killed, usize::MAX).0
    }

    /// At which call it had its mishap.
    pub(super) fn mishap(&self) -> Option<String> {
        self.happened.lock().unwrap().clone()
    }

    fn is_dead(&self) -> bool {
        self.mishap == Mishap::Killed && self.left.lock().unwrap().is_none()
    }

    /// Counts a call; whether it is the one that fails, or comes after a kill.
    fn fails(&self, call: &str, path: &Path) -> bool {
        let mut left = self.left.lock().unwrap();
        let now = match *left {
            None => return self.mishap == Mishap::Killed,
            Some(calls) => calls == 0,
        };
        *left = left.and_then(|calls| calls.checked_sub(1));
        if now {
            *self.happened.lock().unwrap() = Some(format!("{call} {}", path.display()));
        }
        now
    }

    fn change(&self, call: &str, path: &Path) -> Result<()> {
        match (self.fails(call, path), self.mishap) {
            (false, _) => Ok(()),
            (true, Mishap::Killed) => Err(killed(path)),
            (true, Mishap::NoRoom) => Err(no_space(path)),
        }
    }

    /// A call that makes these durable.
    fn settle(&self, call: &str, path: &Path, what: Vec<PathBuf>) -> Result<()> {
        match (self.fails(call, path), self.mishap) {
            (false, _) => Ok(()),
            (true, Mishap::Killed) => Err(killed(path)),
            (true, Mishap::NoRoom) => {
                self.given_up.lock().unwrap().extend(what);
                Err(not_durable(path))
            }
        }
    }

    fn has_given_up(&self, path: &Path) -> bool {
        self.given_up.lock().unwrap().contains(path)
    }
}

fn killed(path: &Path) -> Error {
    Error::io("be", path, io::Error::other("killed"))
}

/// A folder as a process sees it.
#[derive(Debug)]
struct View {
    path: PathBuf,
    names: Vec<String>,
    /// From the root down to it.
    levels: Vec<Arc<Disk>>,
    process: Arc<Process>,
}

impl View {
    fn new(names: Vec<String>, levels: Vec<Arc<Disk>>, process: Arc<Process>) -> Self {
        Self { path: names.iter().collect(), names, levels, process }
    }

    fn disk(&self) -> &Arc<Disk> {
        self.levels.last().unwrap()
    }

    fn is_made(&self) -> bool {
        self.levels.iter().all(|level| level.state().is_made)
    }

    /// Each level with its path.
    fn chain(&self) -> impl Iterator<Item = (&Arc<Disk>, PathBuf)> {
        let path = |height: usize| self.names.iter().take(height + 1).collect();
        self.levels.iter().enumerate().map(move |(height, level)| (level, path(height)))
    }

    fn make(&self) -> Result<()> {
        for (level, path) in self.chain() {
            if !level.state().is_made {
                self.process.change("make", &path)?;
                level.state().is_made = true;
                self.enter(level, &path)?;
            }
        }
        Ok(())
    }

    /// Makes a level's name durable in the folder above.
    fn enter(&self, level: &Disk, path: &Path) -> Result<()> {
        self.process.settle("sync what is above", path, vec![path.to_owned()])?;
        level.state().is_entered |= !self.process.has_given_up(path);
        Ok(())
    }

    fn sync_names(&self, level: &Disk, path: &Path) -> Result<()> {
        let below = level.below.lock().unwrap();
        let mut state = level.state();
        let State { shown, durable, .. } = &mut *state;
        let is_pending = |name: &str, file: &File| {
            durable.get(name).is_none_or(|durable| !Arc::ptr_eq(durable, file))
        };
        let files = shown.iter().filter(|(name, file)| is_pending(name, file));
        let folders = below.iter().filter(|(_, folder)| !folder.state().is_entered);
        let pending = files.map(|(name, _)| name).chain(folders.map(|(name, _)| name));
        self.process.settle("sync", path, pending.map(|name| path.join(name)).collect())?;
        durable.retain(|name, _| shown.contains_key(name));
        for (name, file) in shown {
            if !self.process.has_given_up(&path.join(&*name)) {
                durable.insert(name.clone(), file.clone());
            }
        }
        state.durable_mark = state.mark;
        for (name, folder) in &*below {
            let is_lost = self.process.has_given_up(&path.join(name));
            let mut folder = folder.state();
            folder.is_entered |= folder.is_made && !is_lost;
        }
        Ok(())
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        self.process.given_up.lock().unwrap().remove(&self.path.join(name));
        let mut state = self.disk().state();
        state.shown.insert(name.to_owned(), file_of(bytes));
        state.mark += 1;
    }
}

fn filled(fill: &mut Refill<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fill(&mut |more| {
        bytes.extend_from_slice(more);
        Ok(())
    })?;
    Ok(bytes)
}

impl Blobs for View {
    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self, visit: &mut dyn FnMut(&[u8], EntryKind)) -> Result<()> {
        if self.is_made() {
            let state = self.disk().state();
            state.shown.keys().for_each(|name| visit(name.as_bytes(), EntryKind::File));
            let below = self.disk().below.lock().unwrap();
            let made = below.iter().filter(|(_, folder)| folder.state().is_made);
            made.for_each(|(name, _)| visit(name.as_bytes(), EntryKind::Folder));
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let file = self.disk().state().shown.get(name).cloned();
        Ok(file.filter(|_| self.is_made()).map(|file| file.lock().unwrap().shown.clone()))
    }

    fn peek(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.read(name)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        self.make()?;
        self.process.change("create", &self.path.join(name))?;
        let is_free = !self.disk().state().shown.contains_key(name);
        if is_free {
            self.put(name, bytes);
        }
        Ok(is_free)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.make()?;
        self.process.change("replace", &self.path.join(name))?;
        self.put(name, bytes);
        Ok(())
    }

    fn exchange(&self, name: &str, fill: &mut Refill<'_>, check: &mut Check<'_>) -> Result<bool> {
        let bytes = filled(fill)?;
        let is_good = check(Box::new(Opened(bytes.clone())))?;
        if is_good {
            self.replace(name, &bytes)?;
        }
        Ok(is_good)
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        self.process.change("overwrite", &path)?;
        self.process.given_up.lock().unwrap().remove(&path);
        let file = self.disk().state().shown.get(name).cloned();
        file.unwrap().lock().unwrap().shown = bytes.to_vec();
        Ok(())
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Source>>> {
        Ok(self.read(name)?.map(|bytes| Box::new(Opened(bytes)) as Box<dyn Source>))
    }

    fn stream(&self, fill: &mut Fill<'_>) -> Result<Streamed> {
        let mut name = None;
        let bytes = filled(&mut |sink| {
            name = fill(sink)?;
            Ok(())
        })?;
        let Some(name) = name else { return Ok(Streamed::Abandoned) };
        let is_new = self.create(&name, &bytes)?;
        Ok(if is_new { Streamed::Published(name) } else { Streamed::Taken(name) })
    }

    fn flush(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        self.process.settle("flush", &path, vec![path.clone()])?;
        let file = self.disk().state().shown.get(name).cloned();
        if let Some(file) = file.filter(|_| !self.process.has_given_up(&path)) {
            let mut file = file.lock().unwrap();
            file.durable = file.shown.clone();
        }
        Ok(())
    }

    fn folder(&self, name: &str) -> Arc<dyn Blobs> {
        let below = self.disk().below.lock().unwrap().entry(name.to_owned()).or_default().clone();
        let names = self.names.iter().cloned().chain([name.to_owned()]).collect();
        let levels = self.levels.iter().cloned().chain([below]).collect();
        Arc::new(Self::new(names, levels, self.process.clone()))
    }

    fn links(&self, name: &str) -> Result<u64> {
        let is_lock = name == LOCK && self.is_made();
        Ok((is_lock || self.disk().state().shown.contains_key(name)).into())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.process.change("remove", &self.path.join(name))?;
        let mut state = self.disk().state();
        if state.shown.remove(name).is_some() {
            state.mark += 1;
        }
        Ok(())
    }

    fn set_aside(&self, _: &[u8], _: &str) -> Result<bool> {
        unreachable!("nothing here has to go to quarantine")
    }

    fn sync(&self) -> Result<()> {
        self.make()?;
        self.sync_names(self.disk(), &self.path)
    }

    fn anchor(&self) -> Result<()> {
        for (height, (level, path)) in self.chain().enumerate() {
            if level.state().is_made {
                if height == 0 {
                    self.enter(level, &path)?;
                }
                self.sync_names(level, &path)?;
            }
        }
        Ok(())
    }

    fn mark(&self) -> Result<Option<u64>> {
        Ok(self.is_made().then(|| self.disk().state().mark))
    }

    fn set_mark(&self, mark: Option<u64>) -> Result<Option<u64>> {
        if !self.is_made() || self.process.fails("mark", &self.path) {
            return Ok(None);
        }
        let mut state = self.disk().state();
        state.mark = mark.unwrap_or(state.mark + 1_000_003);
        Ok(Some(state.mark))
    }

    fn lock(&self, _: Duration) -> Result<Box<dyn Lock>> {
        self.make()?;
        self.process.change("lock", &self.path)?;
        let mut state = self.disk().state();
        assert!(!state.is_locked, "one thread waits for its own lock");
        state.is_locked = true;
        let is_abandoned = std::mem::replace(&mut state.is_busy, true);
        Ok(Box::new(Held {
            disk: self.disk().clone(),
            process: self.process.clone(),
            is_abandoned,
        }))
    }

    fn sweep(&self) -> Result<()> {
        Ok(())
    }
}

struct Held {
    disk: Arc<Disk>,
    process: Arc<Process>,
    is_abandoned: bool,
}

impl Lock for Held {
    fn abandoned(&self) -> bool {
        self.is_abandoned
    }

    fn finish(self: Box<Self>) {
        if !self.process.is_dead() {
            self.disk.state().is_busy = false;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.disk.state().is_locked = false;
    }
}

#[derive(Debug)]
struct Opened(Vec<u8>);

impl Source for Opened {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.0[self.0.len().min(usize::try_from(offset).unwrap())..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}
