//! Moves an entry of any type into another directory without replacing anything.

use rustix::fs::AtFlags;
use rustix::io::{Errno, retry_on_intr};

use super::publish::rename_anew;
use super::{FsDirectory, durable};
use crate::error::{Error, Result};

/// The highest number that is appended to a taken name.
const NAMESAKES: usize = 1000;

impl FsDirectory {
    /// Moves an entry to another folder, durably. Moves a link itself, not its target. Returns `false` if there is no
    /// such entry.
    pub(super) fn move_to(&self, name: &[u8], other: &Self) -> Result<bool> {
        let shown = String::from_utf8_lossy(name);
        let failed = |errno: Errno| self.error("move the file aside", &shown, errno);
        let Some(from) = self.opened()? else {
            return Ok(false);
        };
        // Check first, so that no folder is created for nothing.
        let looked =
            retry_on_intr(|| rustix::fs::statat(&from.fd, name, AtFlags::SYMLINK_NOFOLLOW));
        match looked {
            Err(Errno::NOENT) => return Ok(false),
            looked => looked.map_err(failed)?,
        };
        let to = other.opened_or_made()?;
        for number in 1..=NAMESAKES {
            let suffix = if number == 1 { String::new() } else { format!(".{number}") };
            let target = [name, suffix.as_bytes()].concat();
            match rename_anew((&from.fd, name), (&to.fd, &target)) {
                Ok(()) => {
                    durable(&to.fd, &other.path)?;
                    durable(&from.fd, &self.path)?;
                    return Ok(true);
                }
                // A folder may meet a file, and a file a folder.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => {}
                Err(Errno::NOENT) => return Ok(false),
                Err(errno) => return Err(failed(errno)),
            }
        }
        Err(Error::damaged(&other.path, "it holds a thousand files of one name already"))
    }
}
