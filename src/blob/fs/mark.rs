//! A folder's mark: its time of modification, which every change of a name moves on.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};
use rustix::io::retry_on_intr;

use crate::error::{Error, Result};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// In nanoseconds since 1970; `None` before then.
#[allow(clippy::useless_conversion, reason = "other systems have other widths")]
pub(super) fn get(folder: &File, path: &Path) -> Result<Option<u64>> {
    let stat = retry_on_intr(|| rustix::fs::fstat(folder))
        .map_err(|errno| Error::io("look at the folder", path, errno.into()))?;
    let seconds = u64::try_from(stat.st_mtime).ok().and_then(|s| s.checked_mul(SECOND));
    let rest = u64::try_from(stat.st_mtime_nsec).ok();
    Ok(seconds.zip(rest).and_then(|(seconds, rest)| seconds.checked_add(rest)))
}

/// Sets this mark, or a new one; `None` where that cannot be.
pub(super) fn set(folder: &File, path: &Path, mark: Option<u64>) -> Result<Option<u64>> {
    let mark = match mark {
        Some(mark) => mark,
        None => {
            // The system's own times repeat within a tick of its clock; a random part does not.
            let random = getrandom::u64().map_err(|_| Error::NoRandomness)? % SECOND;
            let Some(now) = get(folder, path)? else {
                return Ok(None);
            };
            now - now % SECOND + random
        }
    };
    let (Ok(tv_sec), Ok(tv_nsec)) = ((mark / SECOND).try_into(), (mark % SECOND).try_into()) else {
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
    Ok(get(folder, path)?.filter(|set| *set == mark))
}
