//! Checks the store's folder: whether it is usable and permanent, what is left of its disk, and how old the newest backup is.

use std::fs::Metadata;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use jiff::{SignedDuration, Timestamp};

use rustix::fs::{Access, access};
use sottovoce::admin::store_exists;
use sottovoce::{Config, config};

use crate::cmd::doctor::{Fix, Report};
use crate::output::{byte_size, duration};

const STORAGE_ROOT: &str = "Context.StorageRoot";

/// Quotes a path for a shell.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Checks that this user can write to the folder, and that nobody else can read it.
pub(super) fn usable(report: &mut Report, root: &Path) {
    let (path, command) = (root.display(), quoted(root));
    match std::fs::symlink_metadata(root) {
        Err(error) => match nearest(root).filter(|_| may_be_missing(&error)) {
            Some((folder, found)) if found.is_file() => report.bad(
                "folder",
                format!("{path} cannot be created: {} is not a folder", folder.display()),
                "point Context.StorageRoot somewhere else",
                Fix::by_hand("only you can choose the place"),
            ),
            Some((folder, found)) => match refusal(&folder, &found, 0o3) {
                Some((why, advice, fix)) => report.bad(
                    "folder",
                    format!("{path} cannot be created: {} {why}", folder.display()),
                    advice,
                    fix,
                ),
                None => {
                    report.good("folder", format!("{path} will be created with the first message"))
                }
            },
            None => {
                let fix = Fix::by_hand("that command only shows more");
                report.bad("folder", format!("{path}: {error}"), format!("ls -ld {command}"), fix);
            }
        },
        Ok(found) if !found.is_dir() => report.bad(
            "folder",
            format!("{path} is not a folder, or a link to one"),
            format!("ls -ld {command}, then point Context.StorageRoot at the folder itself"),
            Fix::by_hand("only you can check where it leads"),
        ),
        Ok(found) => {
            if is_mine(&found) == Some(false) {
                report.warn(
                    "folder",
                    format!("{path} belongs to another user"),
                    format!("chown -R \"$USER\" {command}"),
                    Fix::by_hand("only the superuser may do that"),
                );
            }
            let mode = found.permissions().mode() & 0o777;
            if let Some((why, advice, fix)) = refusal(root, &found, 0o7) {
                report.bad("folder", format!("{path} {why}"), advice, fix);
            } else if mode & 0o077 != 0 {
                report.bad(
                    "folder",
                    format!("other users may look into {path} (mode {mode:03o})"),
                    format!("chmod 700 {command}"),
                    Fix::Mode(root.to_owned(), 0o700),
                );
            } else {
                report.good("folder", path.to_string());
            }
        }
    }
}

/// Whether the path seems not to exist, as far as this user can see.
fn may_be_missing(error: &Error) -> bool {
    use ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

/// The existing folder in which the first missing one would be created.
fn nearest(root: &Path) -> Option<(PathBuf, Metadata)> {
    let root = std::path::absolute(root).ok()?;
    root.ancestors()
        .skip(1)
        .find_map(|folder| Some((folder.to_owned(), std::fs::symlink_metadata(folder).ok()?)))
}

/// Why this user lacks one of the rights (4 to read, 2 to write, 1 to enter) in the folder, and how to fix that.
fn refusal(folder: &Path, found: &Metadata, rights: u8) -> Option<(String, String, Fix)> {
    let command = quoted(folder);
    let mode = found.permissions().mode() & 0o777;
    let mine = is_mine(found) == Some(true);
    let own = u32::from(rights) << 6;
    // The superuser may enter any folder, but a folder that excludes its own user is a mistake.
    if mine && found.is_dir() && mode & own != own {
        let why = format!("shuts out its own user (mode {mode:03o})");
        let (change, mode) = if rights == 0o7 { ("700", 0o700) } else { ("u+rwx", mode | 0o700) };
        let fix = Fix::Mode(folder.to_owned(), mode);
        return Some((why, format!("chmod {change} {command}"), fix));
    }
    let error = Error::from(access(folder, Access::from_bits_truncate(rights.into())).err()?);
    let advice = if error.kind() == ErrorKind::PermissionDenied && !mine {
        "point Context.StorageRoot at a folder of your own".to_owned()
    } else {
        format!("ls -ld {command}")
    };
    let fix = Fix::by_hand("only you can choose another place");
    Some((format!("cannot be written by this user ({error})"), advice, fix))
}

fn is_mine(found: &Metadata) -> Option<bool> {
    let me = std::fs::metadata("/proc/self").ok()?;
    Some(me.uid() == found.uid())
}

/// Warns of a cache folder.
pub(super) fn lasting(report: &mut Report, config: &Config, root: &Path) {
    leftovers(report, root);
    let in_cache = root.components().any(|part| part.as_os_str() == ".cache");
    if config.context.storage_root.is_some() && !in_cache {
        return;
    }
    let mut advice = Vec::new();
    let stored = store_exists(root).unwrap_or(false);
    let there = lasting_place().exists();
    if stored && !there {
        advice.push(format!(
            "mkdir -p ~/.local/share/sottovoce && mv -T {} ~/.local/share/sottovoce/Conversation",
            quoted(root)
        ));
    } else if stored {
        advice
            .push("# another store is in ~/.local/share/sottovoce/Conversation already".to_owned());
    }
    advice.push(setting(config));
    let what = if stored {
        "the store lies in a cache folder, which clean-up programs may empty"
    } else {
        "messages would be kept in a cache folder, which clean-up programs may empty"
    };
    let place = lasting_place();
    let fix = match Fix::set(config, STORAGE_ROOT, place.display().to_string()) {
        Fix::Set(..) if stored && there => Fix::by_hand("only you can choose one of the two"),
        Fix::Set(..) if stored => Fix::MoveStore(place),
        fix => fix,
    };
    report.warn("cache", what, advice.join("\n"), fix);
}

/// Checks the cache folder for the rest of a store that was moved out of it.
fn leftovers(report: &mut Report, root: &Path) {
    let Ok(usual) = config::usual_storage_root() else { return };
    let mut moved = usual.clone().into_os_string();
    moved.push(".moved");
    let moved = PathBuf::from(moved);
    if moved.is_dir() {
        report.warn(
            "cache",
            format!("{} is left of a store that was moved", moved.display()),
            format!("rm -r {}", quoted(&moved)),
            Fix::Remove(moved),
        );
    }
    let is_other = usual.canonicalize().ok() != root.canonicalize().ok();
    if is_other && store_exists(root).unwrap_or(false) && store_exists(&usual).unwrap_or(false) {
        report.warn(
            "cache",
            format!("a store that is not used is in {} too", usual.display()),
            format!("SOTTOVOCE__CONTEXT__STORAGEROOT={} sottovoce tail", quoted(&usual)),
            Fix::by_hand("it may hold what the other one does not; look before you delete it"),
        );
    }
}

/// How to set the permanent folder, as a shell comment, because users may paste it with the command before.
fn setting(configured: &Config) -> String {
    let place = serde_json::Value::from(lasting_place().display().to_string());
    let file = configured.own_file().unwrap_or_default();
    match &configured.file {
        Some(_) => {
            format!("# in {}, section \"Context\": \"StorageRoot\": {place}", file.display())
        }
        None => {
            format!("# in a new {}: {{\"Context\": {{\"StorageRoot\": {place}}}}}", file.display())
        }
    }
}

/// A permanent place for a store: the user's data folder.
fn lasting_place() -> PathBuf {
    let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/home/YOU"));
    home.join(".local/share/sottovoce/Conversation")
}

/// With less than this, writing may soon fail.
const LITTLE: u64 = 256 << 20;
/// Backups are made daily while something runs. An older one is worth a word.
const OLD: SignedDuration = SignedDuration::from_hours(24 * 7);

pub(super) fn disk_room(report: &mut Report, root: &Path) {
    let Some(there) = root.ancestors().find(|folder| folder.is_dir()) else { return };
    let Ok(disk) = rustix::fs::statvfs(there) else { return };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let what = format!("{} are free where the store is", byte_size(free));
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
            "sottovoce cleanup",
            Fix::by_hand("it is made by what runs every day"),
        ),
        false => report.good("backup", what),
    }
}
