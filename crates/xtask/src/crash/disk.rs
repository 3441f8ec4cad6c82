//! A small disk in a file. After a power cut, the file holds what the disk would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::task::Result;

/// The size of a disk in bytes: enough for every step, and quickly copied.
const SIZE: u64 = 8 << 20;
const BLOCK: usize = 4096;

/// The file system of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With a journal: changes of names become durable in their order.
    Ext4,
    /// Without a journal: each folder and file is written when it is synced, or by chance, in any order.
    Ext2,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Ext4, Self::Ext2];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext2 => "ext2",
        }
    }

    fn features(self) -> [&'static str; 2] {
        match self {
            Self::Ext4 => ["-J", "size=1"],
            Self::Ext2 => ["-O", "^has_journal"],
        }
    }

    /// Disables ext4's own precautions, which would hide a missing fsync: frequent commits, and writing out a file
    /// that replaces another.
    fn options(self) -> &'static str {
        match self {
            Self::Ext4 => "loop,commit=600,noauto_da_alloc",
            Self::Ext2 => "loop,noauto_da_alloc",
        }
    }
}

/// Creates an empty disk.
pub(crate) fn make(image: &Path, kind: Kind) -> Result<()> {
    fs::File::create(image)?.set_len(SIZE)?;
    let mut command = Command::new("mkfs.ext4");
    run(command.args(["-q", "-F", "-b", "1024"]).args(kind.features()).arg(image))
}

/// A mounted disk, until it is dropped.
pub(crate) struct Mounted {
    at: PathBuf,
    kind: Kind,
}

impl Mounted {
    /// Mounts a disk, after the recovery that follows a power cut.
    pub(crate) fn new(image: &Path, kind: Kind, at: &Path) -> Result<Self> {
        if kind == Kind::Ext2 {
            let checked = Command::new("e2fsck").args(["-f", "-y"]).arg(image).output()?;
            if checked.status.code().is_none_or(|code| code >= 4) {
                let said = String::from_utf8_lossy(&checked.stdout).into_owned();
                return Err(format!("e2fsck cannot repair the disk: {said}").into());
            }
        }
        fs::create_dir_all(at)?;
        run(Command::new("mount").args(["-t", "ext4", "-o", kind.options()]).arg(image).arg(at))?;
        Ok(Self { at: at.to_owned(), kind })
    }

    /// Writes what may be written by chance at any time: ext4's journal, so that all changes of names are durable
    /// while unsynced bytes are not; or one folder before all others.
    pub(crate) fn write_by_chance(&self, folder: &Path) -> Result<()> {
        match self.kind {
            Kind::Ext4 => fs::File::create(self.at.join("something else"))?.sync_all()?,
            Kind::Ext2 if folder.exists() => fs::File::open(folder)?.sync_all()?,
            Kind::Ext2 => {}
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let umount = |lazily: &[&str]| run(Command::new("umount").args(lazily).arg(&self.at));
        if umount(&[]).or_else(|_| umount(&["--lazy"])).is_err() {
            eprintln!("cannot unmount {}", self.at.display());
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}", said.trim()).into())
}

/// The difference of a disk from the step's initial disk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change(Vec<(usize, Vec<u8>)>);

impl Change {
    pub(crate) fn between(seed: &[u8], image: &Path) -> Result<Self> {
        let now = fs::read(image)?;
        let blocks = seed.chunks(BLOCK).zip(now.chunks(BLOCK)).enumerate();
        let changed = blocks.filter(|(_, (before, after))| before != after);
        Ok(Self(changed.map(|(at, (_, after))| (at * BLOCK, after.to_vec())).collect()))
    }

    /// Writes the changed disk to a file.
    pub(crate) fn apply(&self, seed: &[u8], image: &Path) -> Result<()> {
        let mut bytes = seed.to_vec();
        for (at, block) in &self.0 {
            if let Some(place) = bytes.get_mut(*at..*at + block.len()) {
                place.copy_from_slice(block);
            }
        }
        renew(image, &bytes)
    }
}

/// Writes an image as a new file, because a disk that is still being unmounted writes to the old one.
pub(crate) fn renew(image: &Path, bytes: &[u8]) -> Result<()> {
    if image.exists() {
        fs::remove_file(image)?;
    }
    Ok(fs::write(image, bytes)?)
}
