//! A folder of a simulated disk as a process sees it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::directory::{Check, Directory, EntryKind, Fill, LOCK, Lock, Refill, Source, Streamed};
use crate::store::tests::power_cut::disk::{Disk, File, State, file_of};
use crate::store::tests::power_cut::process::Process;

#[derive(Debug)]
pub(super) struct ProcessView {
    path: PathBuf,
    names: Vec<String>,
    /// The levels from the root down to it.
    levels: Vec<Arc<Disk>>,
    process: Arc<Process>,
}

impl ProcessView {
    pub(super) fn new(names: Vec<String>, levels: Vec<Arc<Disk>>, process: Arc<Process>) -> Self {
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

    /// Makes a level's name durable in its parent.
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
            if !self.process.has_given_up(&path.join(name)) {
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
        self.process.takes_up(&self.path.join(name));
        let mut state = self.disk().state();
        state.shown.insert(name.to_owned(), file_of(bytes));
        // Stamps of lives that ended with a cut are not given again.
        state.mark += 1_000_003;
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

impl Directory for ProcessView {
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

    fn read_cached(&self, name: &str) -> Result<Option<Vec<u8>>> {
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

    fn replace_verified(
        &self,
        name: &str,
        fill: &mut Refill<'_>,
        check: &mut Check<'_>,
    ) -> Result<bool> {
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
        self.process.takes_up(&path);
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

    fn folder(&self, name: &str) -> Arc<dyn Directory> {
        let below = self.disk().below.lock().unwrap().entry(name.to_owned()).or_default().clone();
        let names = self.names.iter().cloned().chain([name.to_owned()]).collect();
        let levels = self.levels.iter().cloned().chain([below]).collect();
        Arc::new(Self::new(names, levels, self.process.clone()))
    }

    fn link_count(&self, name: &str) -> Result<u64> {
        let is_lock = name == LOCK && self.is_made();
        Ok((is_lock || self.disk().state().shown.contains_key(name)).into())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.process.change("remove", &self.path.join(name))?;
        let mut state = self.disk().state();
        if state.shown.remove(name).is_some() {
            // Stamps of lives that ended with a cut are not given again.
            state.mark += 1_000_003;
        }
        Ok(())
    }

    fn remove_folder(&self, _: &str) -> Result<()> {
        unreachable!("no folder is removed here")
    }

    fn move_into(&self, _: &[u8], _: &str) -> Result<bool> {
        unreachable!("nothing here has to go to quarantine")
    }

    fn sync(&self) -> Result<()> {
        self.make()?;
        self.sync_names(self.disk(), &self.path)
    }

    fn sync_ancestors(&self) -> Result<()> {
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

    fn change_stamp(&self) -> Result<Option<u64>> {
        Ok(self.is_made().then(|| self.disk().state().mark))
    }

    fn renew_change_stamp(&self) -> Result<Option<u64>> {
        if !self.is_made() || self.process.fails("mark", &self.path) {
            return Ok(None);
        }
        let mut state = self.disk().state();
        // Stamps of lives that ended with a cut are not given again.
        state.mark += 1_000_003;
        Ok(Some(state.mark))
    }

    fn is_on_disk(&self) -> bool {
        false
    }

    fn lock(&self, _: Duration) -> Result<Box<dyn Lock>> {
        self.make()?;
        self.process.change("lock", &self.path)?;
        let mut state = self.disk().state();
        assert!(!state.is_locked, "one thread waits for its own lock");
        state.is_locked = true;
        let is_dirty = std::mem::replace(&mut state.is_busy, true);
        Ok(Box::new(Held { disk: self.disk().clone(), process: self.process.clone(), is_dirty }))
    }

    fn remove_temp_files(&self) -> Result<()> {
        Ok(())
    }
}

struct Held {
    disk: Arc<Disk>,
    process: Arc<Process>,
    is_dirty: bool,
}

impl Lock for Held {
    fn was_dirty(&self) -> bool {
        self.is_dirty
    }

    fn release_clean(self: Box<Self>) {
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
