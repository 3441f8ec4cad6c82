//! Relocates a folder with all its contents: by hard links, or by copies on another file system. The caller holds the
//! locks and decides when to remove the old place.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::durable;
use crate::directory::{LOCK, TEMPORARY};
use crate::error::{Error, Result};

/// The bytes compared at a time.
const PIECE: usize = 1 << 18;

/// The contents of a folder, by paths below it. Two readings are equal if nothing was written between them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    folders: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Stamp>,
}

/// A file's fingerprint: device, inode, length and modification time.
type Stamp = (u64, u64, u64, i64, i64);

fn failed(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::io(action, path, error)
}

impl Tree {
    /// Reads everything except locks and temporary files.
    ///
    /// # Errors
    /// [`Error::NotPlain`] for an entry that is neither a file nor a folder.
    pub(crate) fn of(root: &Path) -> Result<Self> {
        let mut tree = Self { folders: Vec::new(), files: BTreeMap::new() };
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            let folder = root.join(&below);
            for entry in fs::read_dir(&folder).map_err(failed("list the folder", &folder))? {
                let entry = entry.map_err(failed("list the folder", &folder))?;
                let (name, path) = (entry.file_name(), entry.path());
                if name == LOCK || name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
                    continue;
                }
                let below = below.join(&name);
                let found =
                    fs::symlink_metadata(&path).map_err(failed("look at the file", &path))?;
                if found.is_dir() {
                    tree.folders.push(below.clone());
                    open.push(below);
                } else if found.is_file() {
                    let stamp =
                        (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
                    tree.files.insert(below, stamp);
                } else {
                    return Err(Error::NotPlain { path, found: "not a plain file" });
                }
            }
        }
        tree.folders.sort();
        Ok(tree)
    }

    /// The number of files.
    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// Links or copies everything into a new folder, durably. Returns the number of copied bytes.
    pub(crate) fn mirror(&self, from: &Path, to: &Path) -> Result<u64> {
        make(to)?;
        for below in &self.folders {
            let folder = to.join(below);
            DirBuilder::new()
                .mode(0o700)
                .create(&folder)
                .map_err(failed("make the folder", &folder))?;
        }
        let (mut links, mut copied) = (true, 0);
        for (below, (_, _, length, ..)) in &self.files {
            let (old, new) = (from.join(below), to.join(below));
            // If one file cannot be linked, none can.
            links = links && fs::hard_link(&old, &new).is_ok();
            if !links {
                copy(&old, &new)?;
                copied += length;
            }
        }
        for below in self.folders.iter().rev() {
            sync(&to.join(below))?;
        }
        sync(to)?;
        Ok(copied)
    }
}

/// Copies a file, and verifies the copy.
fn copy(old: &Path, new: &Path) -> Result<()> {
    let writing = failed("write the file", new);
    let mut source = File::open(old).map_err(failed("read the file", old))?;
    let mut options = OpenOptions::new();
    let mut copy = options.write(true).create_new(true).mode(0o600).open(new).map_err(&writing)?;
    io::copy(&mut source, &mut copy).map_err(&writing)?;
    durable(&copy, new)?;
    // The verification must read from the disk, not from the system's cache.
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::fadvise(&copy, 0, None, rustix::fs::Advice::DontNeed);
    match is_same(old, new).map_err(failed("read the file", new))? {
        true => Ok(()),
        false => Err(writing(io::ErrorKind::InvalidData.into())),
    }
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut here, mut there) = (Vec::with_capacity(PIECE), Vec::with_capacity(PIECE));
    loop {
        here.clear();
        there.clear();
        (&mut one).take(PIECE as u64).read_to_end(&mut here)?;
        (&mut other).take(PIECE as u64).read_to_end(&mut there)?;
        if here != there || here.is_empty() {
            return Ok(here == there);
        }
    }
}

/// Creates a folder that only its owner can read, and its missing ancestors, durably.
fn make(folder: &Path) -> Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|level| !level.exists()).collect();
    for level in missing.into_iter().rev() {
        DirBuilder::new().mode(0o700).create(level).map_err(failed("make the folder", level))?;
        level.parent().map_or(Ok(()), sync)?;
    }
    Ok(())
}

/// Renames a folder to a free name, durably.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    let renamed = match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems lack that flag. A rename never replaces a folder with entries.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(from, to),
        renamed => renamed.map_err(io::Error::from),
    };
    renamed.map_err(failed("rename the folder", from))?;
    [from, to].into_iter().filter_map(Path::parent).try_for_each(sync)
}

/// Removes a folder with all its contents. Does nothing if it does not exist.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove the folder", folder, error))
        }
        _ => Ok(()),
    }
}

/// Whether an entry with that name exists.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn sync(folder: &Path) -> Result<()> {
    durable(&File::open(folder).map_err(failed("open the folder", folder))?, folder)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_copy_is_the_same_to_the_byte_and_a_changed_one_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        for bytes in [vec![], vec![7; 3], vec![9; PIECE], vec![9; 2 * PIECE + 1]] {
            fs::write(&old, &bytes).unwrap();
            let _ = fs::remove_file(&new);
            copy(&old, &new).unwrap();
            assert!(is_same(&old, &new).unwrap() && fs::read(&new).unwrap() == bytes);
            fs::write(&new, [&bytes[..], b"x"].concat()).unwrap();
            assert!(!is_same(&old, &new).unwrap());
        }
        assert!(copy(&old, &new).is_err(), "nothing is overwritten");
    }

    #[test]
    fn a_link_in_a_tree_is_refused_and_a_change_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/b"), "one").unwrap();
        fs::write(root.join(LOCK), "1").unwrap();
        let before = Tree::of(root).unwrap();
        assert_eq!((before.files(), &before), (1, &Tree::of(root).unwrap()));
        fs::write(root.join("a/c"), "two").unwrap();
        assert_ne!(before, Tree::of(root).unwrap());
        std::os::unix::fs::symlink("b", root.join("a/d")).unwrap();
        assert!(matches!(Tree::of(root), Err(Error::NotPlain { .. })));
    }
}
