//! A small disk in a file: what is in the file is what a power cut leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// Bytes of a disk: enough for every step and quickly copied.
const SIZE: u64 = 8 << 20;
const BLOCK: usize = 4096;

/// With none of ext4's own precautions, which would hide a missing fsync: it commits after seconds and writes out
/// what is renamed over another file.
const BARE: &str = "loop,commit=600,noauto_da_alloc";

/// Makes an empty disk.
pub(crate) fn make(image: &Path) -> Result<()> {
    fs::File::create(image)?.set_len(SIZE)?;
    run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "1024", "-J", "size=1"]).arg(image))
}

/// A mounted disk, until it is dropped.
pub(crate) struct Mounted {
    at: PathBuf,
}

impl Mounted {
    pub(crate) fn new(image: &Path, at: &Path) -> Result<Self> {
        fs::create_dir_all(at)?;
        run(Command::new("mount").args(["-t", "ext4", "-o", BARE]).arg(image).arg(at))?;
        Ok(Self { at: at.to_owned() })
    }

    /// Has the journal committed, as happens by chance every few seconds: changes of names become durable, and bytes
    /// that nobody synced do not.
    pub(crate) fn commit(&self) -> Result<()> {
        let file = fs::File::create(self.at.join("something else"))?;
        Ok(file.sync_all()?)
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

/// What of a disk differs from the one that a step begins with.
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
        Ok(fs::write(image, bytes)?)
    }
}
