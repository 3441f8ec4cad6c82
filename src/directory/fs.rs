//! A directory on disk. Only this module touches data files.
//!
//! Everything goes through the open directory and follows no symbolic link. Publishing a file takes four steps: temporary
//! file, fsync, rename without replacing, fsync of the directory. With fewer, a power cut loses acknowledged bytes.

mod ancestors;
mod change_stamp;
mod file_id;
mod lock;
mod move_into;
pub(crate) mod new_file;
mod open_files;
mod open_folder;
mod publish;
pub(crate) mod relocate;
mod source;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use self::open_files::{CachedFile, OpenFiles, OpenFolder};
use self::source::FsSource;
use super::{
    Check, Directory, EntryKind, Fill, Lock, READ_LIMIT, Refill, Source, Streamed, TEMPORARY,
};
use crate::error::{Error, Result};
use file_id::{id, kind};

#[derive(Debug)]
pub(crate) struct FsDirectory {
    path: PathBuf,
    /// How many of the path's last elements belong to the store. A symbolic link among them is refused.
    own_levels: usize,
    open: Arc<OpenFiles>,
}

impl FsDirectory {
    /// The folder `below` a root that the user chose. Neither is created before the first write.
    pub(crate) fn new(root: &Path, below: &[String]) -> Result<Self> {
        let mut path =
            std::path::absolute(root).map_err(|e| Error::io("resolve the path", root, e))?;
        path.extend(below);
        Ok(Self::at(path, below.len() + 1))
    }

    fn at(path: PathBuf, own_levels: usize) -> Self {
        Self { path, own_levels, open: Arc::default() }
    }

    fn error(&self, action: &'static str, name: &str, errno: impl Into<io::Error>) -> Error {
        Error::io(action, self.path.join(name), errno.into())
    }

    /// Opens an existing plain file. Never blocks and never follows a link.
    fn open_file(
        &self,
        folder: &OpenFolder,
        name: &str,
        access: OFlags,
    ) -> Result<Option<(File, Stat)>> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let refused = |found| Err(Error::NotPlain { path: self.path.join(name), found });
        let opened = retry_on_intr(|| rustix::fs::openat(&folder.fd, name, flags, Mode::empty()));
        let file = match opened {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return refused("a symbolic link"),
            Err(Errno::NXIO | Errno::ISDIR | Errno::NODEV) => return refused("not a plain file"),
            Err(errno) => return Err(self.error("open the file", name, errno)),
        };
        let stat = retry_on_intr(|| rustix::fs::fstat(&file))
            .map_err(|e| self.error("look at the file", name, e))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Some((file, stat))),
            FileType::Directory => refused("a folder"),
            _ => refused("not a plain file"),
        }
    }

    fn read_whole(&self, name: &str, file: &File, stat: &Stat) -> Result<Vec<u8>> {
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        let too_large =
            || Error::NotPlain { path: self.path.join(name), found: "a file over 16 MiB" };
        if size > READ_LIMIT {
            return Err(too_large());
        }
        let failed = |e| self.error("read the file", name, e);
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0) + 1];
        let first = retry_on_intr(|| rustix::io::read(file, &mut *bytes))
            .map_err(|errno| failed(errno.into()))?;
        bytes.truncate(first);
        // If the first read returned the file's size and no more, that is all of it. Otherwise read on to the end.
        if first as u64 != size {
            file.take(READ_LIMIT + 1 - first as u64).read_to_end(&mut bytes).map_err(failed)?;
        }
        // The file may have grown since its size was read.
        if bytes.len() as u64 > READ_LIMIT {
            return Err(too_large());
        }
        Ok(bytes)
    }
}

/// Makes a published file's bytes, or a folder's names, durable. The standard library knows the platforms on which
/// fsync alone is not enough. After one failure, even for lack of space, a second call may report success without
/// durability.
fn durable(file: &File, path: &Path) -> Result<()> {
    file.sync_all().map_err(|source| Error::NotDurable { path: path.into(), source })
}

/// Makes the names in a folder above the store durable. Some file systems cannot do that for a folder, and need not: it
/// changes only when the store is made.
fn durable_above(folder: &File, path: &Path) -> Result<()> {
    match folder.sync_all() {
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS)
            ) =>
        {
            Ok(())
        }
        synced => synced.map_err(|source| Error::NotDurable { path: path.into(), source }),
    }
}

impl Directory for FsDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self, visit: &mut dyn FnMut(&[u8], EntryKind)) -> Result<()> {
        let Some(folder) = self.opened()? else {
            return Ok(());
        };
        let failed = |errno: Errno| self.error("list the folder", "", errno);
        for entry in retry_on_intr(|| Dir::read_from(&folder.fd)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            // Some file systems do not report the type.
            let reported = Some(entry.file_type()).filter(|kind| *kind != FileType::Unknown);
            let kind = reported.or_else(|| kind(&folder.fd, entry.file_name()));
            visit(
                name,
                match kind.unwrap_or(FileType::Unknown) {
                    // Opening the entry will show it.
                    FileType::RegularFile | FileType::Unknown => EntryKind::File,
                    FileType::Directory => EntryKind::Folder,
                    _ => EntryKind::Other,
                },
            );
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(folder) = self.held()? else {
            return Ok(None);
        };
        self.open_file(&folder, name, OFlags::RDONLY)?
            .map(|(file, stat)| self.read_whole(name, &file, &stat))
            .transpose()
    }

    fn read_cached(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let mut cached = self.open.cached();
        if let Some(known) = cached.as_ref().filter(|known| known.name == name) {
            // If the path still leads to the open file, both the folder and the file are the same.
            let there =
                retry_on_intr(|| rustix::fs::statat(CWD, &known.path, AtFlags::SYMLINK_NOFOLLOW));
            if let Ok(stat) = there
                && id(&stat) == known.id
            {
                let mut bytes = vec![0; usize::try_from(stat.st_size.min(4096)).unwrap_or(0)];
                known
                    .file
                    .read_exact_at(&mut bytes, 0)
                    .map_err(|e| self.error("read the file", name, e))?;
                return Ok(Some(bytes));
            }
        }
        *cached = None;
        let Some(folder) = self.opened()? else {
            return Ok(None);
        };
        let Some((file, stat)) = self.open_file(&folder, name, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let bytes = self.read_whole(name, &file, &stat)?;
        *cached = Some(CachedFile {
            name: name.to_owned(),
            path: self.path.join(name),
            id: id(&stat),
            file,
        });
        Ok(Some(bytes))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let folder = self.opened_or_made()?;
        self.stage(&folder, name, bytes, |temporary| self.publish(&folder, temporary, name))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let folder = self.opened_or_made()?;
        self.stage(&folder, name, bytes, |temporary| self.rename_over(&folder, temporary, name))?;
        Ok(())
    }

    fn replace_verified(
        &self,
        name: &str,
        fill: &mut Refill<'_>,
        check: &mut Check<'_>,
    ) -> Result<bool> {
        let folder = self.opened_or_made()?;
        let write = |file: &mut File| {
            let failed = |e| self.error("write the file", name, e);
            let mut writer = BufWriter::with_capacity(1 << 18, file);
            fill(&mut |bytes| writer.write_all(bytes).map_err(failed))?;
            writer.flush().map_err(failed)
        };
        self.stage_with(&folder, name, write, |temporary, ()| {
            let Some((file, stat)) = self.open_file(&folder, temporary, OFlags::RDONLY)? else {
                return Ok(false);
            };
            // Reads must come from the disk, not from the system's cache.
            #[cfg(target_os = "linux")]
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            let written = Box::new(FsSource::new(file, &stat));
            Ok(check(written)? && self.rename_over(&folder, temporary, name)?)
        })
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let folder = self.opened_or_made()?;
        match self.open_file(&folder, name, OFlags::WRONLY)? {
            // Writing in place would also change the file under its other names.
            Some((file, stat)) if stat.st_nlink == 1 => file
                .write_all_at(bytes, 0)
                .and_then(|()| {
                    let same = u64::try_from(stat.st_size).is_ok_and(|s| s == bytes.len() as u64);
                    if same { Ok(()) } else { file.set_len(bytes.len() as u64) }
                })
                .map_err(|e| self.error("write the file", name, e)),
            _ => self.replace(name, bytes),
        }
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Source>>> {
        let Some(folder) = self.held()? else {
            return Ok(None);
        };
        let opened = self.open_file(&folder, name, OFlags::RDONLY)?;
        Ok(opened.map(|(file, stat)| Box::new(FsSource::new(file, &stat)) as Box<dyn Source>))
    }

    fn stream(&self, fill: &mut Fill<'_>) -> Result<Streamed> {
        let folder = self.opened_or_made()?;
        let mut outcome = Streamed::Abandoned;
        let write = |file: &mut File| {
            let failed = |e| self.error("write the file", "", e);
            let mut writer = BufWriter::with_capacity(1 << 18, file);
            let name = fill(&mut |bytes| writer.write_all(bytes).map_err(failed))?;
            writer.flush().map_err(failed)?;
            Ok(name)
        };
        self.stage_with(&folder, "", write, |temporary, name| {
            let Some(name) = name else {
                return Ok(false);
            };
            let published = self.publish(&folder, temporary, &name)?;
            let streamed = if published { Streamed::Published } else { Streamed::Taken };
            outcome = streamed(name);
            Ok(published)
        })?;
        Ok(outcome)
    }

    fn flush(&self, name: &str) -> Result<()> {
        let Some(folder) = self.opened()? else {
            return Ok(());
        };
        match self.open_file(&folder, name, OFlags::RDONLY)? {
            Some((file, _)) => durable(&file, &self.path.join(name)),
            None => Ok(()),
        }
    }

    fn folder(&self, name: &str) -> Arc<dyn Directory> {
        Arc::new(Self::at(self.path.join(name), self.own_levels + 1))
    }

    fn link_count(&self, name: &str) -> Result<u64> {
        let Some(folder) = self.held()? else {
            return Ok(0);
        };
        match retry_on_intr(|| rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW)) {
            #[allow(clippy::useless_conversion, reason = "narrower on other machines")]
            Ok(stat) => Ok(stat.st_nlink.into()),
            Err(Errno::NOENT) => Ok(0),
            Err(errno) => Err(self.error("look at the file", name, errno)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        let Some(folder) = self.opened()? else {
            return Ok(());
        };
        match retry_on_intr(|| rustix::fs::unlinkat(&folder.fd, name, AtFlags::empty())) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.error("remove the file", name, errno)),
        }
    }

    fn remove_folder(&self, name: &str) -> Result<()> {
        let Some(folder) = self.opened()? else {
            return Ok(());
        };
        match retry_on_intr(|| rustix::fs::unlinkat(&folder.fd, name, AtFlags::REMOVEDIR)) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(self.error("remove the folder", name, errno)),
        }
    }

    fn move_into(&self, name: &[u8], folder: &str) -> Result<bool> {
        self.move_to(name, &Self::at(self.path.join(folder), self.own_levels + 1))
    }

    fn sync(&self) -> Result<()> {
        durable(&self.opened_or_made()?.fd, &self.path)
    }

    fn sync_ancestors(&self) -> Result<()> {
        self.make_durable()
    }

    fn change_stamp(&self) -> Result<Option<u64>> {
        self.held()?.map_or(Ok(None), |folder| change_stamp::get(&folder.fd, &self.path))
    }

    fn renew_change_stamp(&self) -> Result<Option<u64>> {
        self.held()?.map_or(Ok(None), |folder| change_stamp::renew(&folder.fd, &self.path))
    }

    fn lock(&self, timeout: Duration) -> Result<Box<dyn Lock>> {
        let folder = self.opened_or_made()?;
        Ok(Box::new(lock::take(&folder.fd, &self.path, timeout)?))
    }

    fn remove_temp_files(&self) -> Result<()> {
        let mut stale = Vec::new();
        self.list(&mut |name, kind| {
            if name.starts_with(TEMPORARY.as_bytes()) && kind != EntryKind::Folder {
                stale.extend(str::from_utf8(name).map(str::to_owned));
            }
        })?;
        stale.iter().try_for_each(|name| self.remove_temporary(name))
    }
}
