//! Makes the names of a folder and of its ancestors durable, and remembers which of them are.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::file_id::{FileId, id};
use super::{FsDirectory, durable, durable_above};
use crate::error::{Error, Result};

/// How far apart two changes of a folder are at most that get the same time of change. File systems count in steps, the
/// coarsest in two seconds.
const STEP: Duration = Duration::from_secs(3);

/// The most folders that are remembered.
const MOST: usize = 1024;

/// The folders above those of conversations, as they were when this process synced them last.
static SYNCED: Mutex<Option<HashMap<PathBuf, Synced>>> = Mutex::new(None);

struct Synced {
    state: State,
    first_seen: Instant,
    /// Whether it was synced again once no change could get the same time any more.
    is_settled: bool,
}

/// Which folder it is, and when a name in it changed last. No program can set that time.
type State = (FileId, i128);

impl FsDirectory {
    /// Makes durable what an interrupted [`make`](Self::make) may have left: each level in its parent, and the names. A
    /// folder above the conversation's is synced again only if a name in it may have changed since.
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
            // The lowest two are the conversation's own. They change with each message.
            let sync = if height < self.own_levels { durable } else { durable_above };
            if height < 2 {
                sync(&folder, level)?;
            } else if let Some(synced) = unless_settled(level.to_owned(), state(&stat)) {
                sync(&folder, level)?;
                remember(synced);
            }
        }
        Ok(())
    }
}

/// What to remember of a folder once it is synced; `None` if nothing in it can have changed since it was.
fn unless_settled(path: PathBuf, state: State) -> Option<(PathBuf, Synced)> {
    let synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = synced.as_ref().and_then(|synced| synced.get(&path));
    let known = known.filter(|known| known.state == state);
    if known.is_some_and(|known| known.is_settled) {
        return None;
    }
    let first_seen = known.map_or_else(Instant::now, |known| known.first_seen);
    let is_settled = first_seen.elapsed() > STEP;
    Some((path, Synced { state, first_seen, is_settled }))
}

fn remember((path, folder): (PathBuf, Synced)) {
    let mut synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
    let synced = synced.get_or_insert_default();
    if synced.len() >= MOST {
        synced.clear();
    }
    synced.insert(path, folder);
}

fn state(stat: &Stat) -> State {
    #[allow(clippy::unnecessary_cast, reason = "other systems have other widths")]
    let (seconds, nanos) = (stat.st_ctime as i128, stat.st_ctime_nsec as i128);
    (id(stat), seconds * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_left_alone_only_while_no_change_of_it_can_be_unseen() {
        let folder = tempfile::tempdir().unwrap();
        let sync = |state| {
            let synced = unless_settled(folder.path().to_owned(), state);
            synced.map(|(path, synced)| {
                let is_settled = synced.is_settled;
                remember((path, synced));
                is_settled
            })
        };
        let later = || {
            let mut synced = SYNCED.lock().unwrap();
            let known = synced.as_mut().unwrap().get_mut(folder.path()).unwrap();
            known.first_seen = known.first_seen.checked_sub(STEP * 2).unwrap();
        };
        let (before, after, other) = (((1, 1), 7), ((1, 1), 8), ((1, 2), 8));
        for state in [before, after, other] {
            assert_eq!(sync(state), Some(false));
            // A name may have changed since, at the same time as the file system counts.
            assert_eq!(sync(state), Some(false));
            later();
            assert_eq!(sync(state), Some(true));
            assert_eq!(sync(state), None);
        }
        assert_eq!(sync(before), Some(false));
    }
}
