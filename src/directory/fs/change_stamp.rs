//! A directory's change stamp. It differs once a name in the directory has changed.
//!
//! It consists of the directory's modification and change times. The modification time is set to a random fraction of a
//! second, because the system's own times repeat within a tick of its clock. Copying an old folder over a newer one may
//! restore the modification time but not the change time, which the system sets.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::retry_on_intr;

use crate::error::{Error, Result};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Nanoseconds since 1970; `None` before then.
#[allow(clippy::useless_conversion, reason = "other systems have other widths")]
fn nanoseconds(seconds: impl TryInto<u64>, rest: impl TryInto<u64>) -> Option<u64> {
    seconds.try_into().ok()?.checked_mul(SECOND)?.checked_add(rest.try_into().ok()?)
}

fn modified(stat: &Stat) -> Option<u64> {
    nanoseconds(stat.st_mtime, stat.st_mtime_nsec)
}

fn of(stat: &Stat) -> Option<u64> {
    let changed = nanoseconds(stat.st_ctime, stat.st_ctime_nsec)?;
    Some(modified(stat)? ^ changed.rotate_left(32))
}

fn look(folder: &File, path: &Path) -> Result<Stat> {
    retry_on_intr(|| rustix::fs::fstat(folder))
        .map_err(|errno| Error::io("look at the folder", path, errno.into()))
}

/// The current stamp. `None` if the directory's times are out of range.
pub(super) fn get(folder: &File, path: &Path) -> Result<Option<u64>> {
    Ok(of(&look(folder, path)?))
}

/// Sets a new stamp. `None` if that is not possible.
pub(super) fn renew(folder: &File, path: &Path) -> Result<Option<u64>> {
    let random = getrandom::u64().map_err(|_| Error::NoRandomness)? % SECOND;
    let Some(now) = modified(&look(folder, path)?) else {
        return Ok(None);
    };
    let time = now - now % SECOND + random;
    let (Ok(tv_sec), Ok(tv_nsec)) = ((now / SECOND).try_into(), random.try_into()) else {
        return Ok(None);
    };
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec, tv_nsec },
    };
    // Only the directory's owner may set its times, and some file systems round them.
    if retry_on_intr(|| rustix::fs::futimens(folder, &times)).is_err() {
        return Ok(None);
    }
    let stat = look(folder, path)?;
    Ok(of(&stat).filter(|_| modified(&stat) == Some(time)))
}
