//! A folder's mark, which every change of a name in it changes.
//!
//! It is made of the folder's two times. Its time of modification is set to a random part of a second, since the
//! system's own times repeat within a tick of its clock. Who copies an old folder over a newer one may set that time
//! back, but not the time of change, which the system gives.

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

/// `None` where the folder's times are none that could mark it.
pub(super) fn get(folder: &File, path: &Path) -> Result<Option<u64>> {
    Ok(of(&look(folder, path)?))
}

/// A new one; `None` where it cannot be set.
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
    // Who does not own the folder may not; a file system may keep less of a time than it is given.
    if retry_on_intr(|| rustix::fs::futimens(folder, &times)).is_err() {
        return Ok(None);
    }
    let stat = look(folder, path)?;
    Ok(of(&stat).filter(|_| modified(&stat) == Some(time)))
}
