//! Creates a new folder of files that only their owner can read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use sottovoce::{Error, Result};

/// The name of a file while it is written.
const TEMPORARY: &str = ".sottovoce-new";

/// A folder that is empty, or is created with the first file.
#[derive(Debug)]
pub(crate) struct NewFolder {
    path: PathBuf,
}

impl NewFolder {
    /// # Errors
    /// [`Error::NotPlain`] for a folder that is not empty.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let folder = Self { path: path.to_owned() };
        match std::fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                None => Ok(folder),
                Some(_) => Err(Error::NotPlain {
                    path: path.into(),
                    found: "a folder that holds something",
                }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(folder),
            Err(error) => Err(Error::io("list the folder", path, error)),
        }
    }

    /// Writes a file completely. Its bytes are durable, its name only after [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`Error::NotPlain`] if the name is taken.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (path, temporary) = (self.path.join(name), self.path.join(TEMPORARY));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let failed = |error| Error::io("write the file", &path, error);
        let mut file = match options.open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make()?;
                options.open(&temporary)
            }
            opened => opened,
        }
        .map_err(failed)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let named = written.and_then(|()| rename(&temporary, &path));
        if named.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        match named {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::NotPlain { path, found: "a file already" })
            }
            named => named.map_err(failed),
        }
    }

    /// Makes the names of the files durable.
    pub(crate) fn sync(&self) -> Result<()> {
        sync(&self.path)
    }

    /// Creates the folder and its missing ancestors, each durable in its parent.
    fn make(&self) -> Result<()> {
        let missing: Vec<&Path> =
            self.path.ancestors().take_while(|level| !level.exists()).collect();
        for level in missing.into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(level) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("make the folder", level, error));
                }
                _ => {}
            }
            match level.parent() {
                Some(parent) if parent.as_os_str().is_empty() => sync(Path::new("."))?,
                Some(parent) => sync(parent)?,
                None => {}
            }
        }
        Ok(())
    }
}

/// Renames a file. Never replaces another one.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // File systems without that flag can still link without replacing.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        renamed => Ok(renamed?),
    }
}

fn sync(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| Error::NotDurable { path: folder.into(), source })
}
