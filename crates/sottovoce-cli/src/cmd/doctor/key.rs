//! Checks the key, a passphrase's salt, and unfinished changes of keys.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sottovoce::admin::{StoreKey, store_exists, store_keys};
use sottovoce::config::ConfiguredKey;
use sottovoce::{Config, EncryptionKey};

use crate::cmd::doctor::folder::quoted;
use crate::cmd::doctor::{Fix, Report};

pub(super) fn key(report: &mut Report, config: &Config, file: &Path, root: &Path) {
    let path = file.display();
    match &config.key {
        ConfiguredKey::Secret { short: true, from, .. } => report.warn(
            "key",
            format!("{from} is so short that it may be guessed from a stolen disk"),
            "sottovoce rekey",
            Fix::by_hand("only you can choose a longer one"),
        ),
        ConfiguredKey::Secret { from, .. } => report.good("key", format!("given by {from}")),
        _ => match EncryptionKey::read_file(file) {
            Ok(Some(_)) => match mode(file) {
                Some(mode) if mode & 0o077 != 0 => report.bad(
                    "key",
                    format!("other users may read the key file {path} (mode {mode:03o})"),
                    format!("chmod 600 {}", quoted(file)),
                    Fix::Mode(file.to_owned(), 0o600),
                ),
                _ => {
                    let beside = match is_on_one_disk(file, root) {
                        true => {
                            "; it lies on the disk of the store, so whoever takes that disk reads everything, \
                                 unless you change to a passphrase: `sottovoce rekey --to-passphrase`"
                        }
                        false => "",
                    };
                    let what = format!("{path}; keep a copy away from this machine{beside}");
                    report.good("key", what);
                }
            },
            Ok(None) if of_passphrase(root) => {
                report.good("key", "a passphrase, which is asked for")
            }
            // The line about the store says more.
            Ok(None) if store_keys(root, &[]).is_err() => report.warn(
                "key",
                format!("no key file {path}; the vault does not say whether it takes one"),
                "sottovoce doctor",
                Fix::by_hand("fix the line about the store first"),
            ),
            Ok(None) if store_exists(root).unwrap_or(true) => report.bad(
                "key",
                format!("the store in {} has lost its key file {path}", root.display()),
                format!("install -D -m 600 YOUR-BACKUP {}", quoted(file)),
                Fix::by_hand("only you know where its backup is"),
            ),
            Ok(None) => {
                report.warn("key", "there is none yet", "sottovoce init", Fix::MakeKey);
            }
            Err(error) => report.error("key", &error),
        },
    }
}

/// Whether whoever takes the disk of the store has the key file too.
pub(crate) fn is_on_one_disk(file: &Path, root: &Path) -> bool {
    let disk = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
    disk(file).is_some_and(|of| disk(root) == Some(of))
}

/// The permissions of a file; `None` if it cannot be looked at.
pub(crate) fn mode(file: &Path) -> Option<u32> {
    Some(std::fs::metadata(file).ok()?.permissions().mode() & 0o777)
}

/// Whether the store's key comes from a passphrase.
fn of_passphrase(root: &Path) -> bool {
    store_keys(root, &[]).is_ok_and(|keys| keys.first().is_some_and(StoreKey::is_of_passphrase))
}

/// Reports an unfinished change of keys, and salts that have no copy outside the store or are missing in it.
pub(super) fn key_changes(report: &mut Report, config: &Config, root: &Path) {
    // If the key list cannot be read, the line about the store reports it.
    let (Ok(keys), Ok(folder)) = (store_keys(root, &[]), config.salt_folder()) else {
        return;
    };
    if keys.len() > 1 {
        let fix = Fix::by_hand("it may ask for a passphrase and take a while");
        report.warn("key", "a change of keys is not finished", "sottovoce rekey", fix);
    }
    for key in keys.iter().filter(|key| key.is_of_passphrase()) {
        let copy = folder.join(key.copy_name());
        match key.has_copy_in(&folder) {
            Ok(true) => {
                report.good("salt", format!("{}; keep a copy of that too", copy.display()));
            }
            Ok(false) => report.bad(
                "salt",
                format!(
                    "the passphrase's salt has no copy outside the store: {} is missing or differs",
                    copy.display()
                ),
                "sottovoce tail",
                Fix::CopySalt,
            ),
            Err(error) => report.error("salt", &error),
        }
    }
    if keys.is_empty()
        && sottovoce::admin::store_exists(root).unwrap_or(false)
        && let Some(copy) = any_copy(&folder)
    {
        report.bad(
            "salt",
            format!("the store in {} has lost its vault; here is a copy", root.display()),
            format!("cp -n {} {}", quoted(&copy), quoted(&root.join("vault"))),
            Fix::CopyVault { from: copy, to: root.join("vault") },
        );
    }
}

/// The commands that replace a damaged key list by its copy.
pub(super) fn vault_mend(config: &Config, root: &Path) -> Option<String> {
    let (vault, folder) = (root.join("vault"), config.salt_folder().ok()?);
    let is_given = matches!(config.key, ConfiguredKey::Secret { .. });
    let next = match any_copy(&folder) {
        _ if config.key_file().is_ok_and(|file| file.exists()) => "sottovoce repair".to_owned(),
        Some(copy) => format!("cp {} {}", quoted(&copy), quoted(&vault)),
        None if is_given => "sottovoce repair".to_owned(),
        None => return None,
    };
    Some(format!("mv -n {} {}\n{next}", quoted(&vault), quoted(&folder.join("vault.damaged"))))
}

/// The copy of a key list of a passphrase; none if there are several, because only one can be right.
fn any_copy(folder: &Path) -> Option<std::path::PathBuf> {
    let is_copy = |name: &str| name.strip_prefix("vault.").is_some_and(|id| id.len() == 32);
    let mut copies = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_copy));
    let first = copies.next()?;
    copies.next().is_none().then_some(first)
}
