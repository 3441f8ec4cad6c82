//! What is left of a step that ends after one of its system calls.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Result;
use crate::crash::disk::{self, Change, Mounted};
use crate::crash::step::{Step, Told};
use crate::crash::trace::Trace;

/// Who is to blame for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    /// The process alone is killed: everything that it did is there.
    Killed,
    /// The power fails, and nothing was written but what was synced.
    Cut,
    /// The power fails right after the journal was committed by chance: all names are there, and those bytes that
    /// were synced.
    CutAfterCommit,
}

impl Power {
    pub(crate) const ALL: [Self; 3] = [Self::Killed, Self::Cut, Self::CutAfterCommit];

    pub(crate) fn is_cut(self) -> bool {
        self != Self::Killed
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "killed",
            Self::Cut => "power cut",
            Self::CutAfterCommit => "power cut and journal committed",
        })
    }
}

/// The state after a system call, and what had been acknowledged by then.
pub(crate) struct Cut {
    pub(crate) after: String,
    pub(crate) told: Told,
    left: Left,
}

#[derive(PartialEq, Eq)]
enum Left {
    Files(Files),
    Disk(Change),
}

/// Files with their bytes, and folders.
type Files = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A step, the state that it begins from, and room to try out how it ends.
pub(crate) struct Bench<'a> {
    pub(crate) step: &'a Step,
    room: TempDir,
    /// The disk that it begins from, where disks can be mounted.
    seed: Option<Vec<u8>>,
    /// The calls that it made when nothing was left out.
    pub(crate) calls: Vec<String>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(step: &'a Step, mounts: bool) -> Result<Self> {
        let room = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let mut bench = Self { step, room, seed: None, calls: Vec::new() };
        let image = bench.path("seed");
        if mounts {
            disk::make(&image)?;
        }
        {
            let _mounted = bench.mounted(mounts, "seed")?;
            (step.seed)(&bench.root())?;
        }
        if mounts {
            bench.seed = Some(fs::read(&image)?);
        } else {
            let files = files(&bench.path("at"))?;
            fs::remove_dir_all(bench.path("at"))?;
            put(&files, &bench.path("seeded"))?;
        }
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    /// Where disks are mounted, and files are where they cannot be.
    fn root(&self) -> PathBuf {
        self.path("at").join("house/root")
    }

    fn mounted(&self, mounts: bool, image: &str) -> Result<Option<Mounted>> {
        fs::create_dir_all(self.path("at"))?;
        mounts.then(|| Mounted::new(&self.path(image), &self.path("at"))).transpose()
    }

    /// Does the step once, and takes what would be left wherever it may end. With `lie`, its fsync of that number is
    /// not made, and what would be left before is not taken.
    pub(crate) fn cuts(&mut self, power: Power, lie: Option<usize>) -> Result<Vec<Cut>> {
        let seed = self.seed.as_ref();
        match seed {
            Some(seed) => fs::write(self.path("running"), seed)?,
            None => put(&files(&self.path("seeded"))?, &self.path("at"))?,
        }
        let mounted = self.mounted(seed.is_some(), "running")?;
        let mut trace = Trace::start(self.step.name, &self.root(), &self.path("at"), lie)?;
        let mut cuts: Vec<Cut> = Vec::new();
        let mut calls = Vec::new();
        let mut takes = lie.is_none();
        while let Some(after) = trace.next()? {
            calls.push(after.clone());
            takes |= after.contains("(INJECTED)");
            if let (Power::CutAfterCommit, Some(mounted)) = (power, &mounted) {
                mounted.commit()?;
            }
            if !takes {
                continue;
            }
            let left = match seed.filter(|_| power.is_cut()) {
                None => Left::Files(files(&self.path("at"))?),
                Some(seed) => Left::Disk(Change::between(seed, &self.path("running"))?),
            };
            let told = trace.told.clone();
            if cuts.last().is_none_or(|last| last.left != left || last.told != told) {
                cuts.push(Cut { after, told, left });
            }
        }
        trace.finish()?;
        drop(mounted);
        if lie.is_none() {
            self.calls = calls;
        }
        if self.seed.is_none() {
            fs::remove_dir_all(self.path("at"))?;
        }
        Ok(cuts)
    }

    /// Puts what was left in place and looks at it as the next process would.
    pub(crate) fn check(&self, cut: &Cut) -> Result<()> {
        match (&cut.left, &self.seed) {
            (Left::Disk(change), Some(seed)) => {
                change.apply(seed, &self.path("checked"))?;
                let _mounted = self.mounted(true, "checked")?;
                (self.step.check)(&self.root(), &cut.told)
            }
            (Left::Disk(_), None) => Err("there is no disk to begin from".into()),
            (Left::Files(files), _) => {
                let at = self.path("checked files");
                put(files, &at)?;
                let checked = (self.step.check)(&at.join("house/root"), &cut.told);
                fs::remove_dir_all(at)?;
                checked
            }
        }
    }
}

fn files(folder: &Path) -> Result<Files> {
    let mut found = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            let path = entry.path();
            let bytes = if entry.file_type()?.is_dir() {
                if entry.file_name() == "lost+found" {
                    continue;
                }
                folders.push(path.clone());
                None
            } else {
                Some(fs::read(&path)?)
            };
            found.insert(path.strip_prefix(folder)?.to_owned(), bytes);
        }
    }
    Ok(found)
}

fn put(files: &Files, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (path, bytes) in files {
        let path = folder.join(path);
        match bytes {
            None => fs::create_dir(path)?,
            Some(bytes) => fs::write(path, bytes)?,
        }
    }
    Ok(())
}
