//! A file's identity: device and inode.

use rustix::fs::Stat;

/// Device and inode.
pub(super) type FileId = (u64, u64);

pub(super) fn id(stat: &Stat) -> FileId {
    #[allow(clippy::unnecessary_cast, reason = "other systems have other widths")]
    (stat.st_dev as u64, stat.st_ino as u64)
}
