//! Interrupted steps: the state of the disk after each system call.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::crash::disk::{self, Change, Kind, Mounted};
use crate::crash::step::Step;
use crate::crash::told::Told;
use crate::crash::trace::Trace;
use crate::task::Result;

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The process alone is killed. Everything that it did is on disk.
    Killed,
    /// The power fails, and only synced data is on disk.
    Cut(Kind),
    /// The power fails, and by chance more was written, after every call.
    CutLater(Kind),
}

impl End {
    pub(crate) const ALL: [Self; 5] = [
        Self::Killed,
        Self::Cut(Kind::Ext4),
        Self::CutLater(Kind::Ext4),
        Self::Cut(Kind::Ext2),
        Self::CutLater(Kind::Ext2),
    ];

    /// The disk whose power failed, if it did.
    pub(crate) fn cut(self) -> Option<Kind> {
        match self {
            Self::Killed => None,
            Self::Cut(kind) | Self::CutLater(kind) => Some(kind),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed => f.write_str("killed"),
            Self::Cut(kind) => write!(f, "{} cut", kind.name()),
            Self::CutLater(Kind::Ext4) => f.write_str("ext4 cut after commit"),
            Self::CutLater(Kind::Ext2) => f.write_str("ext2 cut after folder"),
        }
    }
}

/// The state after a system call, and what was acknowledged by then.
pub(crate) struct Cut {
    pub(crate) after: String,
    pub(crate) told: Told,
    left: Left,
}

#[derive(PartialEq, Eq)]
enum Left {
    Files(Files),
    Disk(Kind, Change),
}

/// Files with their bytes, and folders.
type Files = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A step with its initial states, and room to try its endings.
pub(crate) struct Bench<'a> {
    pub(crate) step: &'a Step,
    room: TempDir,
    files: Files,
    disks: Vec<(Kind, Vec<u8>)>,
    /// The calls of a complete run.
    pub(crate) calls: Vec<String>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(step: &'a Step, kinds: &[Kind]) -> Result<Self> {
        let room = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let (files, disks) = (Files::new(), Vec::new());
        let mut bench = Self { step, room, files, disks, calls: Vec::new() };
        let seeds = bench.path("seed files");
        (step.seed)(&root_in(&seeds))?;
        if seeds.exists() {
            bench.files = files_in(&seeds)?;
        }
        for &kind in kinds {
            let image = bench.path("seed");
            disk::make(&image, kind)?;
            let mounted = Mounted::new(&image, kind, &bench.path("at"))?;
            (step.seed)(&root_in(&bench.path("at")))?;
            drop(mounted);
            bench.disks.push((kind, fs::read(&image)?));
        }
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn disk(&self, kind: Kind) -> Result<&[u8]> {
        let disk = self.disks.iter().find(|(other, _)| *other == kind);
        Ok(disk.map(|(_, bytes)| bytes).ok_or("there is no such disk")?)
    }

    /// Runs the step once and records the state after each call. With `lie`, the fsync of that number is skipped, and
    /// states before it are not recorded.
    pub(crate) fn cuts(&mut self, end: End, lie: Option<usize>) -> Result<Vec<Cut>> {
        let (at, image) = (self.path("at"), self.path("running"));
        let mounted = match end.cut() {
            Some(kind) => {
                disk::renew(&image, self.disk(kind)?)?;
                Some(Mounted::new(&image, kind, &at)?)
            }
            None => {
                put(&self.files, &at)?;
                None
            }
        };
        let mut trace = Trace::start(self.step.name, &root_in(&at), &at, lie)?;
        let (mut calls, mut cuts) = (Vec::new(), Vec::<Cut>::new());
        let mut takes = lie.is_none();
        while let Some(after) = trace.next()? {
            calls.push(after.clone());
            takes |= after.contains("(INJECTED)");
            if let (End::CutLater(_), Some(mounted)) = (end, &mounted) {
                mounted.write_by_chance(&root_in(&at))?;
            }
            if !takes {
                continue;
            }
            let left = match end.cut() {
                None => Left::Files(files_in(&at)?),
                Some(kind) => Left::Disk(kind, Change::between(self.disk(kind)?, &image)?),
            };
            let told = trace.told.clone();
            if cuts.last().is_none_or(|last| last.left != left || last.told != told) {
                cuts.push(Cut { after, told, left });
            }
        }
        trace.finish()?;
        if mounted.is_none() {
            fs::remove_dir_all(at)?;
        }
        if lie.is_none() {
            self.calls = calls;
        }
        Ok(cuts)
    }

    /// Restores a state and checks it as the next process would. Returns what is wrong.
    pub(crate) fn check(&self, cut: &Cut) -> Result<(), String> {
        let at = self.path("at");
        self.check_in(&at, cut).map_err(|e| e.to_string().replace(&at.display().to_string(), ""))
    }

    fn check_in(&self, at: &Path, cut: &Cut) -> Result<()> {
        match &cut.left {
            Left::Disk(kind, change) => {
                let image = self.path("checked");
                change.apply(self.disk(*kind)?, &image)?;
                let _mounted = Mounted::new(&image, *kind, at)?;
                (self.step.check)(&root_in(at), &cut.told)
            }
            Left::Files(files) => {
                put(files, at)?;
                let checked = (self.step.check)(&root_in(at), &cut.told);
                fs::remove_dir_all(at)?;
                checked
            }
        }
    }
}

/// The store's root, in folders that do not exist at first either.
fn root_in(folder: &Path) -> PathBuf {
    folder.join("house/root")
}

fn files_in(folder: &Path) -> Result<Files> {
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
