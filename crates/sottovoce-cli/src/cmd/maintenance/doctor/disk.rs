//! Checks what is left of the disk, and how old the newest backup of contexts is.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use jiff::{SignedDuration, Timestamp};
use sottovoce::Config;

use crate::cmd::maintenance::doctor::{Fix, Report};
use crate::cmd::memory::stats::{bytes, duration};

/// With less than this, writing may soon fail.
const LITTLE: u64 = 256 << 20;
/// Backups are made daily while something runs. An older one is worth a word.
const OLD: SignedDuration = SignedDuration::from_hours(24 * 7);

pub(super) fn room(report: &mut Report, root: &Path) {
    let Some(there) = root.ancestors().find(|folder| folder.is_dir()) else { return };
    let Ok(disk) = rustix::fs::statvfs(there) else { return };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let what = format!("{} are free where the store is", bytes(free));
    match free < LITTLE {
        true => report.warn("disk", what, "make room", Fix::by_hand("only you know what may go")),
        false => report.good("disk", what),
    }
}

/// Says nothing if there are no contexts to back up.
pub(super) fn backups(report: &mut Report, config: &Config, root: &Path, now: Timestamp) {
    let folder = config.personas.backup_folder.clone().unwrap_or_else(|| root.join("backups"));
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let made = files.filter_map(|file| file.metadata().ok()?.modified().ok());
    let Some(newest) = made.max().and_then(|newest| newest.duration_since(UNIX_EPOCH).ok()) else {
        return;
    };
    let age =
        Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0)).saturating_sub(newest);
    let what = format!(
        "the newest of contexts is {} old, in {}",
        duration(age.as_secs()),
        folder.display()
    );
    match SignedDuration::try_from(age).is_ok_and(|age| age > OLD) {
        true => report.warn(
            "backup",
            what,
            "sottovoce cleanup contexts",
            Fix::by_hand("it is made by what runs every day"),
        ),
        false => report.good("backup", what),
    }
}
