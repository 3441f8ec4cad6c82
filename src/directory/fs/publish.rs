//! Publishes a file: its bytes are complete and durable before it gets its name.

use std::fs::File;
use std::io::Write;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};

use super::file_id::kind;
use super::open_files::OpenFolder;
use super::{FsDirectory, lock};
use crate::directory::{Directory, TEMPORARY};
use crate::error::{Error, Result};

/// What is missing where a store cannot be.
pub(super) const NEEDS_RENAME: &str = "publish the file: this file system can neither rename without replacing nor make \
     hard links, and a store needs one of them; put the store on another one";

/// Renames a file, or a folder with entries, and replaces nothing. File systems that cannot do that can still link without
/// replacing; the new name is durable then before the old one goes.
///
/// # Errors
/// [`Errno::NOTSUP`] if the file system can do neither.
pub(super) fn rename_anew(from: (&File, &[u8]), to: (&File, &[u8])) -> rustix::io::Result<()> {
    let ((from, old), (to, new)) = (from, to);
    let flags = RenameFlags::NOREPLACE;
    match retry_on_intr(|| rustix::fs::renameat_with(from, old, to, new, flags)) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            match retry_on_intr(|| rustix::fs::linkat(from, old, to, new, AtFlags::empty())) {
                // No folder can be linked, and no rename replaces one that has entries.
                Err(Errno::PERM | Errno::NOSYS | Errno::NOTSUP)
                    if kind(from, old) == Some(FileType::Directory) =>
                {
                    return retry_on_intr(|| rustix::fs::renameat(from, old, to, new));
                }
                Err(Errno::PERM | Errno::NOSYS | Errno::NOTSUP) => return Err(Errno::NOTSUP),
                linked => linked?,
            }
            to.sync_all().map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
            retry_on_intr(|| rustix::fs::unlinkat(from, old, AtFlags::empty()))
        }
        renamed => renamed,
    }
}

/// Like [`rename_anew`], also where that is not possible: takes the name with an empty file, which stays if the system
/// crashes in between.
pub(super) fn rename_or_claim(from: (&File, &[u8]), to: (&File, &[u8])) -> rustix::io::Result<()> {
    match rename_anew(from, to) {
        Err(Errno::NOTSUP) => {
            let ((from, old), (to, new)) = (from, to);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            retry_on_intr(|| rustix::fs::openat(to, new, flags, Mode::RUSR | Mode::WUSR))?;
            retry_on_intr(|| rustix::fs::renameat(from, old, to, new)).inspect_err(|_| {
                let _ = rustix::fs::unlinkat(to, new, AtFlags::empty());
            })
        }
        renamed => renamed,
    }
}

impl FsDirectory {
    /// Renames a temporary file to its final name; `false` if that is taken.
    pub(super) fn publish(&self, folder: &OpenFolder, temporary: &str, name: &str) -> Result<bool> {
        match rename_anew((&folder.fd, temporary.as_bytes()), (&folder.fd, name.as_bytes())) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(Errno::NOTSUP) => Err(self.error(NEEDS_RENAME, name, Errno::NOTSUP)),
            Err(errno) => Err(self.error("publish the file", name, errno)),
        }
    }

    /// Renames a temporary file over an existing one.
    pub(super) fn rename_over(
        &self,
        folder: &OpenFolder,
        temporary: &str,
        name: &str,
    ) -> Result<bool> {
        retry_on_intr(|| rustix::fs::renameat(&folder.fd, temporary, &folder.fd, name))
            .map_err(|errno| self.error("publish the file", name, errno))?;
        Ok(true)
    }

    /// Creates a temporary file that nobody removes while it is open: its lock says that somebody is writing it.
    fn create_temporary(&self, folder: &OpenFolder, name: &str) -> Result<(String, File)> {
        let failed = |e: Errno| self.error("create a file", name, e);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let random = getrandom::u64().map_err(|_| Error::NoRandomness)?;
            let temporary = format!("{TEMPORARY}{random:016x}");
            let opened = retry_on_intr(|| {
                rustix::fs::openat(&folder.fd, &*temporary, flags, Mode::RUSR | Mode::WUSR)
            });
            let file = opened.map(File::from).map_err(failed)?;
            retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))
                .map_err(|e| lock::failed(self.path.join(&temporary), e))?;
            // Somebody may have removed it before it was locked.
            if retry_on_intr(|| rustix::fs::fstat(&file)).map_err(failed)?.st_nlink > 0 {
                return Ok((temporary, file));
            }
        }
    }

    /// Removes a temporary file, unless somebody is writing it.
    pub(super) fn remove_temporary(&self, name: &str) -> Result<()> {
        let Some(folder) = self.opened()? else { return Ok(()) };
        // A link or a folder of that name is no file of a writer's.
        if let Ok(Some((file, _))) = self.open_file(&folder, name, OFlags::RDONLY) {
            let tried = FlockOperation::NonBlockingLockExclusive;
            if retry_on_intr(|| rustix::fs::flock(&file, tried)) == Err(Errno::WOULDBLOCK) {
                return Ok(());
            }
            return self.remove(name);
        }
        self.remove(name)
    }

    /// Writes a temporary file durably and renames it with `publish`. Removes it if either fails.
    pub(super) fn stage(
        &self,
        folder: &OpenFolder,
        name: &str,
        bytes: &[u8],
        publish: impl FnOnce(&str) -> Result<bool>,
    ) -> Result<bool> {
        let write = |file: &mut File| {
            file.write_all(bytes).map_err(|e| self.error("write the file", name, e))
        };
        self.stage_with(folder, name, write, |temporary, ()| publish(temporary))
    }

    /// [`stage`](Self::stage) for bytes that arrive in pieces, with a name that is known after the last.
    pub(super) fn stage_with<T>(
        &self,
        folder: &OpenFolder,
        name: &str,
        write: impl FnOnce(&mut File) -> Result<T>,
        publish: impl FnOnce(&str, T) -> Result<bool>,
    ) -> Result<bool> {
        let (temporary, mut file) = self.create_temporary(folder, name)?;
        let published = write(&mut file).and_then(|written| {
            // A full disk is temporary: nothing was published, and the temporary file is removed.
            file.sync_all().map_err(|source| match Errno::from_io_error(&source) {
                Some(Errno::NOSPC | Errno::DQUOT) => self.error("write the file", name, source),
                _ => Error::NotDurable { path: self.path.join(name), source },
            })?;
            publish(&temporary, written)
        });
        if !matches!(published, Ok(true)) {
            // If this fails too, the next holder of the lock removes the file.
            let _ = rustix::fs::unlinkat(&folder.fd, &*temporary, AtFlags::empty());
        }
        published
    }
}
