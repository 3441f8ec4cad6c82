//! Files that only their owner may read, written atomically.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use sottovoce::Config;

use crate::exit::Failure;
use crate::session::Session;

/// A file being written. It has a temporary name until it is complete.
#[derive(Debug)]
pub(crate) struct PrivateFile {
    /// The path as given.
    place: PathBuf,
    /// The path without links.
    target: PathBuf,
    temporary: Option<PathBuf>,
    pub(crate) file: File,
    replaces: bool,
}

impl PrivateFile {
    /// Starts a new file. Refuses paths in the store, which holds no plain text.
    pub(crate) fn begin(place: &Path, session: &Session) -> Result<Self, Failure> {
        let target = check(place, session)?;
        let mut new = Self::begin_at(place, &target)?;
        new.replaces = false;
        Ok(new)
    }

    /// Starts a file at a checked path. It replaces what is there.
    pub(crate) fn begin_at(place: &Path, target: &Path) -> Result<Self, Failure> {
        let (file, temporary) = temporary(target).map_err(|error| unwritable(place, &error))?;
        let (place, target) = (place.to_owned(), target.to_owned());
        Ok(Self { place, target, temporary: Some(temporary), file, replaces: true })
    }

    /// Renames it to its final name, durably.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        let wrong = |error: &io::Error| unwritable(&self.place, error);
        self.file.sync_all().map_err(|error| wrong(&error))?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let named = match self.replaces {
            true => fs::rename(temporary, &self.target),
            false => name(temporary, &self.target),
        };
        match named {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(is_there(&self.place));
            }
            named => named.map_err(|error| wrong(&error))?,
        }
        self.temporary = None;
        let folder = self.target.parent().unwrap_or(Path::new("/"));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| unwritable(&self.place, &error))
    }

    /// The error for a file that could not be written.
    pub(crate) fn unwritable(&self, error: &io::Error) -> Failure {
        unwritable(&self.place, error)
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// The target of a new file, if writing there is allowed. Changes nothing.
pub(crate) fn check(place: &Path, session: &Session) -> Result<PathBuf, Failure> {
    let folder = check_outside_store(place, session.config()?)?;
    let Some(name) = place.file_name() else {
        return Err(Failure::input(format!("{} names no file", place.display()), "name a file"));
    };
    let target = folder.join(name);
    match target.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(target),
        Err(error) => Err(unwritable(place, &error)),
        Ok(_) => Err(is_there(place)),
    }
}

/// The folder of a new file without links, unless it belongs to the store.
pub(crate) fn check_outside_store(place: &Path, config: &Config) -> Result<PathBuf, Failure> {
    let folder = match place.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|error| unwritable(place, &error))?;
    if config.storage_root()?.canonicalize().is_ok_and(|root| folder.starts_with(root)) {
        return Err(Failure::input(
            format!("{} is in the store's own folder", place.display()),
            "name a file elsewhere",
        ));
    }
    Ok(folder)
}

/// Renames a file to a free name.
fn name(temporary: &Path, target: &Path) -> io::Result<()> {
    match renameat_with(CWD, temporary, CWD, target, RenameFlags::NOREPLACE) {
        // Not every file system supports that. Most of those that do not have hard links.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::hard_link(temporary, target).and_then(|()| fs::remove_file(temporary))
        }
        renamed => Ok(renamed?),
    }
}

fn temporary(target: &Path) -> io::Result<(File, PathBuf)> {
    for number in 1u32.. {
        let mut name = target.to_owned().into_os_string();
        name.push(format!(".{number}.new"));
        let name = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((opened?, name)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

pub(crate) fn is_there(place: &Path) -> Failure {
    let help = "name a file that does not exist; nothing is overwritten";
    Failure::input(format!("{} already exists", place.display()), help)
}

pub(crate) fn unwritable(place: &Path, error: &io::Error) -> Failure {
    Failure::input(
        format!("{}: {error}", place.display()),
        "name a file in a folder that exists and may be written",
    )
}
