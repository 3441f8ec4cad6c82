//! Opens a directory level by level, and creates missing levels.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::file_id::id;
use super::open_files::OpenFolder;
use super::{FsDirectory, durable, durable_above};
use crate::error::{Error, Result};

impl FsDirectory {
    /// Returns the open folder and opens it if it is not; `None` while it does not exist.
    pub(super) fn opened(&self) -> Result<Option<Arc<OpenFolder>>> {
        let mut opened = self.open.folder();
        if let Some(folder) = &opened.folder {
            let there =
                retry_on_intr(|| rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW));
            return match there {
                Ok(stat) if id(&stat) == folder.id => Ok(Some(Arc::clone(folder))),
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Err(self.replaced()),
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
                Err(Errno::NOENT | Errno::NOTDIR) if opened.identity.is_some() => {
                    return Err(self.replaced());
                }
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
        let identity = (id, fd.metadata().and_then(|about| about.created()).ok());
        if *opened.identity.get_or_insert(identity) != identity {
            return Err(self.replaced());
        }
        let folder = Arc::new(OpenFolder { fd, id });
        opened.folder = Some(Arc::clone(&folder));
        self.open.count();
        Ok(Some(folder))
    }

    /// Returns the open folder without checking that its path still leads to it. For single files, which are read
    /// only after the head or a listing.
    pub(super) fn held(&self) -> Result<Option<Arc<OpenFolder>>> {
        let held = self.open.folder().folder.clone();
        held.map_or_else(|| self.opened(), |folder| Ok(Some(folder)))
    }

    pub(super) fn opened_or_made(&self) -> Result<Arc<OpenFolder>> {
        if let Some(folder) = self.opened()? {
            return Ok(folder);
        }
        self.make()?;
        self.opened()?.ok_or_else(|| self.replaced())
    }

    fn replaced(&self) -> Error {
        Error::FolderReplaced { path: self.path.clone() }
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
}

fn open_folder(at: impl std::os::fd::AsFd, path: &Path) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(&at, path, flags, Mode::empty())).map(File::from)
}
