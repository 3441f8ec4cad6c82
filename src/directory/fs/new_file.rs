//! A new file outside the store, for exports: readable by its owner alone, and either complete or absent.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::publish::rename_or_claim;
use super::{durable, durable_above};
use crate::directory::TEMPORARY;
use crate::error::{Error, Result};

/// A file that gets its name when it is [kept](Self::keep), and disappears if it is dropped before.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: BufWriter<File>,
    folder: File,
    path: PathBuf,
    /// Its temporary name, on systems without unnamed files.
    temporary: Option<String>,
}

impl NewFile {
    /// Creates a file in an existing folder.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|e| Error::io("resolve the path", path, e))?;
        let parent = path.parent().unwrap_or(&path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = retry_on_intr(|| rustix::fs::openat(CWD, parent, flags, Mode::empty()))
            .map_err(|e| Error::io("open the folder", parent, e.into()))?;
        let folder = File::from(folder);
        let failed = |e: Errno| Error::io("create the file", &path, e.into());
        if rustix::fs::statat(&folder, name(&path), AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(exists(&path));
        }
        let mode = Mode::RUSR | Mode::WUSR;
        #[cfg(target_os = "linux")]
        {
            let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
            // An unnamed file disappears with its process.
            match retry_on_intr(|| rustix::fs::openat(&folder, ".", flags, mode)) {
                Ok(file) => {
                    let file = BufWriter::with_capacity(1 << 18, File::from(file));
                    return Ok(Self { file, folder, path, temporary: None });
                }
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        let random = getrandom::u64().map_err(|_| Error::NoRandomness)?;
        let temporary = format!("{TEMPORARY}{random:016x}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = retry_on_intr(|| rustix::fs::openat(&folder, &*temporary, flags, mode))
            .map_err(failed)?;
        let file = BufWriter::with_capacity(1 << 18, File::from(file));
        Ok(Self { file, folder, path, temporary: Some(temporary) })
    }

    /// Names the file, durably. Never replaces another file.
    pub(crate) fn keep(mut self) -> Result<()> {
        let failed = |e| Error::io("write the file", &self.path, e);
        self.file.flush().map_err(failed)?;
        durable(self.file.get_ref(), &self.path)?;
        let named = match &self.temporary {
            None => {
                let open = format!("/proc/self/fd/{}", self.file.get_ref().as_raw_fd());
                retry_on_intr(|| {
                    let flags = AtFlags::SYMLINK_FOLLOW;
                    rustix::fs::linkat(CWD, &*open, &self.folder, name(&self.path), flags)
                })
            }
            Some(temporary) => {
                let name = name(&self.path).as_os_str().as_bytes();
                rename_or_claim((&self.folder, temporary.as_bytes()), (&self.folder, name))
            }
        };
        match named {
            Ok(()) => {
                self.temporary = None;
                durable_above(&self.folder, &self.path)
            }
            Err(Errno::EXIST) => Err(exists(&self.path)),
            Err(errno) => Err(Error::io("publish the file", &self.path, errno.into())),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = rustix::fs::unlinkat(&self.folder, &**temporary, AtFlags::empty());
        }
    }
}

fn name(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

fn exists(path: &Path) -> Error {
    Error::Io {
        action: "create a new file: there is one already",
        path: path.into(),
        source: io::ErrorKind::AlreadyExists.into(),
    }
}
