//! The directory's lock: an flock on a file that is never deleted, and a byte that says whether work is unfinished.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::file_id::id;
use crate::directory::{LOCK as NAME, Lock};
use crate::error::{Error, Result};

/// A locked file whose one byte says whether its holder has unfinished work. The byte outlives a holder that is killed
/// and tells the next one to recover.
pub(super) struct FsLock {
    file: File,
    dirty: bool,
}

const BUSY: &[u8] = b"1";
const IDLE: &[u8] = b"0";

/// Locks a folder, waiting for others at most as long as `timeout`.
pub(super) fn take(folder: &File, path: &Path, timeout: Duration) -> Result<FsLock> {
    let path = path.join(NAME);
    let started = Instant::now();
    loop {
        let (file, stat) = open(folder, &path)?;
        loop {
            let tried = retry_on_intr(|| {
                rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            });
            match tried {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if started.elapsed() < timeout => pause(started),
                Err(Errno::WOULDBLOCK) => {
                    let waited_ms = timeout.as_millis().try_into().unwrap_or(u64::MAX);
                    return Err(Error::LockTimeout { path, waited_ms });
                }
                Err(errno) => return Err(failed(path, errno)),
            }
        }
        // A lock on a file that has lost its name protects nothing.
        let named = retry_on_intr(|| rustix::fs::statat(folder, NAME, AtFlags::SYMLINK_NOFOLLOW));
        if named.is_ok_and(|named| id(&named) == id(&stat)) {
            return FsLock::begin(file).map_err(|error| Error::io("mark the lock", path, error));
        }
    }
}

/// What it means that a file could not be locked.
pub(super) fn failed(path: PathBuf, errno: Errno) -> Error {
    let action = match errno {
        Errno::NOLCK | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL => {
            "take the lock: this file system has no locks (flock), and a store needs them; mount it with locks, or \
             put the store on another one"
        }
        _ => "take the lock",
    };
    Error::io(action, path, errno.into())
}

fn open(folder: &File, path: &Path) -> Result<(File, Stat)> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let refused = || Error::NotPlain { path: path.into(), found: "not a plain file" };
    let opened = retry_on_intr(|| rustix::fs::openat(folder, NAME, flags, Mode::RUSR | Mode::WUSR));
    let file = opened.map(File::from).map_err(|errno| match errno {
        Errno::LOOP | Errno::NXIO | Errno::ISDIR => refused(),
        // The folder was removed while this process waited for its lock, so no file can be created in it.
        Errno::NOENT => Error::FolderReplaced { path: path.with_file_name("") },
        _ => Error::io("open the lock", path, errno.into()),
    })?;
    let stat = retry_on_intr(|| rustix::fs::fstat(&file))
        .map_err(|errno| Error::io("look at the lock", path, errno.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((file, stat)),
        _ => Err(refused()),
    }
}

/// Sleeps longer the longer the wait has lasted, with a random part so that waiters do not run in step.
fn pause(started: Instant) {
    let longest =
        u64::try_from(started.elapsed().as_micros() / 4).unwrap_or(u64::MAX).clamp(200, 20_000);
    let jitter = getrandom::u64().unwrap_or(0) % longest;
    std::thread::sleep(Duration::from_micros(longest / 2 + jitter / 2));
}

impl FsLock {
    fn begin(file: File) -> io::Result<Self> {
        let mut mark = [0];
        let length = retry_on_intr(|| rustix::io::pread(&file, &mut mark, 0))?;
        let dirty = length == 1 && mark == BUSY;
        file.write_all_at(BUSY, 0)?;
        Ok(Self { file, dirty })
    }
}

impl Lock for FsLock {
    fn was_dirty(&self) -> bool {
        self.dirty
    }

    fn release_clean(self: Box<Self>) {
        // If this fails, the next holder runs a recovery that finds nothing.
        let _ = self.file.write_all_at(IDLE, 0);
    }
}
