//! A file's identity: device and inode, its stamp and its type.

use std::fs::File;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::retry_on_intr;
use rustix::path::Arg;

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

/// What an entry is; `None` if the system cannot tell.
pub(super) fn kind(folder: &File, name: impl Arg + Copy) -> Option<FileType> {
    let looked = retry_on_intr(|| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW));
    looked.ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}
