//! Checks a passphrase's salt, and unfinished changes of keys.

use std::path::Path;

use sottovoce::Config;
use sottovoce::admin::{StoreKey, store_keys};
use sottovoce::config::ConfiguredKey;

use crate::cmd::maintenance::doctor::folder::quoted;
use crate::cmd::maintenance::doctor::{Fix, Report};

/// Whether the store's key comes from a passphrase.
pub(super) fn asks(root: &Path) -> bool {
    store_keys(root, &[]).is_ok_and(|keys| keys.first().is_some_and(StoreKey::is_of_passphrase))
}

/// Reports an unfinished change of keys, and salts that have no copy outside the store or are missing in it.
pub(super) fn changes(report: &mut Report, config: &Config, root: &Path) {
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
