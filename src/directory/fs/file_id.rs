//! A file's identity: device and inode, and its type.

use std::fs::File;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::retry_on_intr;
use rustix::path::Arg;

/// Device and inode.
pub(super) type FileId = (u64, u64);

pub(super) fn id(stat: &Stat) -> FileId {
    #[allow(clippy::unnecessary_cast, reason = "other systems have other widths")]
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// What an entry is; `None` if the system cannot tell.
pub(super) fn kind(folder: &File, name: impl Arg + Copy) -> Option<FileType> {
    let looked = retry_on_intr(|| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW));
    looked.ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}
