//! Opens a directory once, level by level, and creates missing levels.

use std::fs::File;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::file_id::{FileId, id};
use super::{FsDirectory, durable, durable_above};
use crate::error::{Error, Result};

/// The open folder.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub(super) fd: File,
    id: FileId,
}

impl FsDirectory {
    /// Returns the open folder and opens it once; `None` while it does not exist.
    pub(super) fn opened(&self) -> Result<Option<&OpenFolder>> {
        if let Some(folder) = self.folder.get() {
            let there =
                retry_on_intr(|| rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW));
            return match there {
                Ok(stat) if id(&stat) == folder.id => Ok(Some(folder)),
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {
                    Err(Error::FolderReplaced { path: self.path.clone() })
                }
                Err(errno) => Err(self.error("look at the folder", "", errno)),
            };
        }
        let levels: Vec<&Path> = self.path.ancestors().take(self.own_levels).collect();
        let mut fd: Option<File> = None;
        for level in levels.into_iter().rev() {
            let next = match (&fd, level.file_name()) {
                (Some(parent), Some(name)) => open_folder(parent, Path::new(name)),
                _ => open_folder(CWD, level),
            };
            fd = match next {
                Ok(next) => Some(next),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    return Err(Error::NotPlain {
                        path: level.into(),
                        found: "not a folder, or a symbolic link to one",
                    });
                }
                Err(errno) => return Err(Error::io("open the folder", level, errno.into())),
            };
        }
        let Some(fd) = fd else { return Ok(None) };
        let stat = retry_on_intr(|| rustix::fs::fstat(&fd))
            .map_err(|e| self.error("look at the folder", "", e))?;
        let id = id(&stat);
        Ok(Some(self.folder.get_or_init(|| OpenFolder { fd, id })))
    }

    /// Returns the open folder without checking that its path still leads to it. For single files, which are read
    /// only after the head or a listing.
    pub(super) fn held(&self) -> Result<Option<&OpenFolder>> {
        self.folder.get().map_or_else(|| self.opened(), |folder| Ok(Some(folder)))
    }

    pub(super) fn opened_or_made(&self) -> Result<&OpenFolder> {
        if let Some(folder) = self.opened()? {
            return Ok(folder);
        }
        self.make()?;
        self.opened()?.ok_or_else(|| Error::FolderReplaced { path: self.path.clone() })
    }

    /// Creates the folder and its missing ancestors, private to the user, each durable in its parent.
    fn make(&self) -> Result<()> {
        let missing: Vec<&Path> =
            self.path.ancestors().take_while(|level| !level.exists()).collect();
        let own: Vec<&Path> = self.path.ancestors().take(self.own_levels).collect();
        for level in missing.into_iter().rev() {
            let failed = |errno: Errno| Error::io("make the folder", level, errno.into());
            match retry_on_intr(|| rustix::fs::mkdirat(CWD, level, Mode::RWXU)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            if let Some(parent) = level.parent() {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let parent_fd =
                    retry_on_intr(|| rustix::fs::openat(CWD, parent, flags, Mode::empty()))
                        .map_err(failed)?;
                let sync = if own.contains(&parent) { durable } else { durable_above };
                sync(&File::from(parent_fd), parent)?;
            }
        }
        Ok(())
    }

    /// Makes durable what an interrupted [`make`](Self::make) may have left: each level in its parent, and the names.
    pub(super) fn make_durable(&self) -> Result<()> {
        let mut below = None;
        for (height, level) in self.path.ancestors().enumerate() {
            let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            if height < self.own_levels {
                flags |= OFlags::NOFOLLOW;
            }
            let opened = retry_on_intr(|| rustix::fs::openat(CWD, level, flags, Mode::empty()));
            let folder = match opened {
                Ok(fd) => File::from(fd),
                // A non-folder holds no names, and an unreadable folder was not created by this program.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => {
                    continue;
                }
                Err(errno) => return Err(Error::io("open the folder", level, errno.into())),
            };
            let stat = retry_on_intr(|| rustix::fs::fstat(&folder))
                .map_err(|errno| Error::io("look at the folder", level, errno.into()))?;
            let (device, _) = id(&stat);
            // A mount point has no name in its parent that could be lost.
            if below.replace(device).is_some_and(|below| below != device) {
                break;
            }
            let sync = if height < self.own_levels { durable } else { durable_above };
            sync(&folder, level)?;
        }
        Ok(())
    }
}

fn open_folder(at: impl std::os::fd::AsFd, path: &Path) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(&at, path, flags, Mode::empty())).map(File::from)
}
