//! Publishes a file: its bytes are complete and durable before it gets its name.

use std::fs::File;
use std::io::Write;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};

use super::FsDirectory;
use super::open_files::OpenFolder;
use crate::directory::TEMPORARY;
use crate::error::{Error, Result};

impl FsDirectory {
    /// Renames a temporary file to its final name; `false` if that is taken.
    pub(super) fn publish(&self, folder: &OpenFolder, temporary: &str, name: &str) -> Result<bool> {
        let fd = &folder.fd;
        let renamed = retry_on_intr(|| {
            rustix::fs::renameat_with(fd, temporary, fd, name, RenameFlags::NOREPLACE)
        });
        // File systems without that flag can still link without replacing.
        let published = match renamed {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                retry_on_intr(|| rustix::fs::linkat(fd, temporary, fd, name, AtFlags::empty()))
                    .and_then(|()| rustix::fs::unlinkat(fd, temporary, AtFlags::empty()))
            }
            other => other,
        };
        match published {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
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
        let random = getrandom::u64().map_err(|_| Error::NoRandomness)?;
        let temporary = format!("{TEMPORARY}{random:016x}");
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = retry_on_intr(|| {
            rustix::fs::openat(&folder.fd, &*temporary, flags, Mode::RUSR | Mode::WUSR)
        })
        .map_err(|e| self.error("create a file", name, e))?;
        let mut file = File::from(fd);
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
