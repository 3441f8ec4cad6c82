//! A folder of a source. Names come from listings, and links are not followed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use sottovoce::import::{PassedOver, Refusal, RefusalReason};
use sottovoce::{Error, Result};

use super::file::{Bytes, Refusable, SourceFile};

/// The largest file that is read at once, in bytes.
const LARGEST: u64 = 16 << 20;

/// The type of an entry, as its folder's listing reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    /// A link, pipe or device.
    Other,
}

/// A folder of a source. It is opened for each read.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
    /// How many of the path's last elements must not be links.
    levels: usize,
    /// Its name in reports; empty for the source's own folder.
    place: String,
}

impl Folder {
    /// The folder that the user named, or a folder above their file. Follows links on the way to it, because people
    /// link their folders.
    pub(crate) fn named(path: &Path) -> Result<Self> {
        let whole = path.canonicalize();
        let path = whole.map_err(|error| Error::io("open the folder", path, error))?;
        Ok(Self { path, levels: 1, place: String::new() })
    }

    /// The folder of a file that the user named, and the file's name in it.
    pub(crate) fn of_file(path: &Path) -> Result<(Self, String)> {
        let failed = |error| Error::io("open the file", path, error);
        let absent = || failed(io::ErrorKind::NotFound.into());
        let whole = path.canonicalize().map_err(failed)?;
        let name = whole.file_name().ok_or_else(absent)?.to_str().ok_or_else(|| {
            let reason = "its name is not UTF-8: rename it";
            failed(io::Error::new(io::ErrorKind::InvalidFilename, reason))
        })?;
        Ok((Self::named(whole.parent().ok_or_else(absent)?)?, name.to_owned()))
    }

    /// The folder of that name in this one, whether or not it exists.
    pub(crate) fn below(&self, name: &str) -> Self {
        let (path, levels) = (self.path.join(name), self.levels + 1);
        Self { path, levels, place: self.place(name) }
    }

    /// The source's own folder inside a named one: reports leave its name out.
    pub(crate) fn inside(&self, name: &str) -> Self {
        Self { place: String::new(), ..self.below(name) }
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of an entry in reports.
    pub(crate) fn place(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}/{name}", self.place) }
    }

    /// Refuses an entry.
    pub(crate) fn refusal(&self, name: &[u8], reason: RefusalReason) -> Refusal {
        match self.place.is_empty() {
            true => Refusal::new(name, reason),
            false => Refusal::new([self.place.as_bytes(), b"/", name].concat(), reason),
        }
    }

    /// Its entries, sorted; empty if the folder does not exist.
    pub(crate) fn entries(&self) -> Result<Vec<(Vec<u8>, EntryKind)>> {
        let Some(folder) = self.opened()? else { return Ok(Vec::new()) };
        let failed = |errno: Errno| Error::io("list the folder", &self.path, errno.into());
        let mut entries = Vec::new();
        for entry in retry_on_intr(|| Dir::read_from(&folder)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = match entry.file_type() {
                // Some file systems do not report the type. Opening the entry will show it.
                FileType::RegularFile | FileType::Unknown => EntryKind::File,
                FileType::Directory => EntryKind::Folder,
                _ => EntryKind::Other,
            };
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name => entries.push((name.to_vec(), kind)),
            }
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    /// Its entries, sorted. Refuses a folder that cannot be listed.
    pub(crate) fn list(&self, refused: &mut Vec<Refusal>) -> Result<Vec<(Vec<u8>, EntryKind)>> {
        self.entries().or_else(|error| {
            refused.push(Refusal::new(&self.place, RefusalReason::for_read_error(error)?));
            Ok(Vec::new())
        })
    }

    /// The folders in it. Counts files beside them as passed over.
    pub(crate) fn folders(
        &self,
        refused: &mut Vec<Refusal>,
        passed_over: &mut PassedOver,
    ) -> Result<Vec<String>> {
        let mut folders = Vec::new();
        for (name, kind) in self.list(refused)? {
            match (kind, str::from_utf8(&name)) {
                (EntryKind::Folder, Ok(name)) => folders.push(name.to_owned()),
                (EntryKind::File, _) => passed_over.add("files beside folders", 1),
                (kind, _) => refused.push(self.refusal(&name, misnamed(kind))),
            }
        }
        Ok(folders)
    }

    /// Whether it holds a folder of that name.
    pub(crate) fn has_folder(&self, name: &str) -> Result<bool> {
        let is_it = |(entry, kind): &(Vec<u8>, EntryKind)| {
            *kind == EntryKind::Folder && entry == name.as_bytes()
        };
        Ok(self.entries()?.iter().any(is_it))
    }

    /// The bytes of a file; `None` if it does not exist, for example because the other program has just removed it.
    pub(crate) fn read(&self, name: &str) -> Refusable<Option<Bytes>> {
        let read = || {
            let Some(file) = self.open(name)? else { return Ok(None) };
            let path = self.path.join(name);
            let bytes = file.contents(LARGEST);
            match bytes.map_err(|error| Error::io("read the file", &path, error))? {
                None => Err(Error::NotPlain { path, found: "a file over 16 MiB" }),
                bytes => Ok(bytes),
            }
        };
        read().map(Ok).or_else(|error| RefusalReason::for_read_error(error).map(Err))
    }

    /// Opens a plain file; `None` if it does not exist.
    pub(crate) fn open(&self, name: &str) -> Result<Option<SourceFile>> {
        let path = self.path.join(name);
        let Some(folder) = self.opened()? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| rustix::fs::openat(&folder, name, flags, Mode::empty()));
        let refused = |found| Err(Error::NotPlain { path: path.clone(), found });
        let failed = |error| Error::io("open the file", &path, error);
        let file = match opened {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return refused("a symbolic link"),
            Err(Errno::NXIO | Errno::ISDIR | Errno::NODEV) => return refused("not a plain file"),
            Err(errno) => return Err(failed(errno.into())),
        };
        let kind = file.metadata().map_err(failed)?.file_type();
        match (kind.is_file(), kind.is_dir()) {
            (true, _) => SourceFile::new(file).map(Some).map_err(failed),
            (_, true) => refused("a folder"),
            _ => refused("not a plain file"),
        }
    }

    /// Opens the folder level by level.
    fn opened(&self) -> Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let levels: Vec<&Path> = self.path.ancestors().take(self.levels).collect();
        let mut folder: Option<File> = None;
        for level in levels.into_iter().rev() {
            let opened = retry_on_intr(|| match (&folder, level.file_name()) {
                (Some(above), Some(name)) => rustix::fs::openat(above, name, flags, Mode::empty()),
                _ => rustix::fs::openat(CWD, level, flags, Mode::empty()),
            });
            folder = match opened {
                Ok(opened) => Some(File::from(opened)),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    let found = "not a folder, or a symbolic link to one";
                    return Err(Error::NotPlain { path: level.into(), found });
                }
                Err(errno) => return Err(Error::io("open the folder", level, errno.into())),
            };
        }
        Ok(folder)
    }
}

/// Why an entry with the name of a file, or of a folder, is not one.
pub(crate) fn misnamed(kind: EntryKind) -> RefusalReason {
    match kind {
        EntryKind::Folder => RefusalReason::NotPlain("a folder"),
        EntryKind::Other => RefusalReason::NotPlain("a link, pipe or device"),
        EntryKind::File => RefusalReason::Corrupt("its name is not text"),
    }
}
