//! A file's identity: device and inode, and its stamp.

use rustix::fs::Stat;

use crate::directory::FileStamp;

/// Device and inode.
pub(super) type FileId = (u64, u64);

pub(super) fn id(stat: &Stat) -> FileId {
    #[allow(clippy::unnecessary_cast, reason = "other systems have other widths")]
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Inode, size and time of the last change in nanoseconds. The device is left out: its number may differ after a reboot.
pub(super) fn stamp(stat: &Stat) -> FileStamp {
    #[allow(clippy::unnecessary_cast, reason = "other systems have other widths")]
    let (seconds, nanos) = (stat.st_mtime as u64, stat.st_mtime_nsec as u64);
    let changed = seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos);
    #[allow(clippy::unnecessary_cast, reason = "other systems have other widths")]
    [stat.st_ino as u64, stat.st_size as u64, changed]
}
