//! The new key of a change of keys, and its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sottovoce::admin::{StoreKey, store_keys};
use sottovoce::config::{ConfiguredKey, read_fd};
use sottovoce::{Config, EncryptionKey, Error};

use crate::cmd::key::wrong;
use crate::cmd::rekey::Args;
use crate::exit::Failure;
use crate::session::{Session, announce_salt, without_line_end};
use crate::{output, private_file, secret};

/// Digits of an id in a file's name.
const SHORT: usize = 8;

pub(super) struct Target {
    pub(super) to: Arc<EncryptionKey>,
    pub(super) from: Vec<Arc<EncryptionKey>>,
    /// The file that holds the new key in the end.
    pub(super) file: Option<PathBuf>,
    plan: Plan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// The new key is in a file of its own that later replaces the key file.
    NewKeyFile,
    GivenKeyFile,
    Passphrase,
}

impl Target {
    /// Makes the new key durable, and keeps the old key file under another name, before anything else.
    pub(super) fn prepare(session: &Session, config: &Config, args: Args) -> Result<Self, Failure> {
        let root = config.storage_root()?;
        let key_file = config.key_file()?;
        let old_file = EncryptionKey::read_file(&key_file)?.map(Arc::new);
        let uses_file = !matches!(config.key, ConfiguredKey::Secret { .. });
        let mut from = session.keys()?;
        let (to, file, plan) = match args.to_key_file {
            Some(file) => {
                private_file::check_outside_store(&file, config)?;
                let file = std::path::absolute(file)?;
                (made(&root, &from, &file)?, Some(file), Plan::GivenKeyFile)
            }
            None if args.to_passphrase => {
                let text = match args.new_passphrase_fd {
                    Some(fd) => Some(without_line_end(&read_fd(fd)?)),
                    None => secret::ask_new()?,
                };
                let text = text.ok_or_else(|| {
                    Failure::input(
                        "there is no terminal to ask for the new passphrase",
                        "give it with --new-passphrase-fd",
                    )
                })?;
                let short = secret::is_short(&text);
                let to = Arc::new(EncryptionKey::from_passphrase(text)?);
                if short {
                    secret::warn_of_short();
                }
                (to, None, Plan::Passphrase)
            }
            None if !uses_file && old_file.is_some() => {
                return Err(Failure::input(
                    format!("there is a key file that is not in use: {}", key_file.display()),
                    "move it away, or name another with --to-key-file",
                ));
            }
            None => {
                let waiting = config.next_key_file()?;
                // An existing file may hold a retired key. It is used only if the store knows it.
                if let Some(stale) = stale(&root, &waiting)? {
                    check(&root, &from)?;
                    put_aside(&stale, &waiting)?;
                    let is_stale = |key: &Arc<EncryptionKey>| key.to_hex() == stale.to_hex();
                    from.retain(|key| !is_stale(key));
                }
                let to = made(&root, &from, &waiting)?;
                (to, Some(key_file.clone()), Plan::NewKeyFile)
            }
        };
        from.extend(old_passphrase(&root, &from, &to)?);
        if let Some(old) = old_file.filter(|_| uses_file) {
            keep(&root, &key_file, &old)?;
        }
        Ok(Self { to, from, file, plan })
    }

    /// Puts the new key into its final file after the old one was retired.
    pub(super) fn settle(&self, config: &Config) -> Result<(), Failure> {
        let key_file = config.key_file()?;
        let uses_file = !matches!(config.key, ConfiguredKey::Secret { .. });
        match self.plan {
            Plan::NewKeyFile => {
                self.to.replace_file(&key_file)?;
                EncryptionKey::remove_file(&config.next_key_file()?)?;
            }
            // Its copy stays.
            Plan::Passphrase if uses_file => EncryptionKey::remove_file(&key_file)?,
            Plan::Passphrase | Plan::GivenKeyFile => {}
        }
        Ok(())
    }

    /// Tells the user what remains to do.
    pub(super) fn tell(&self, config: &Config) {
        let setting = match &config.key {
            ConfiguredKey::Secret { from, .. } => Some(from.as_str()),
            _ => None,
        };
        match (self.plan, &self.file) {
            (Plan::Passphrase, _) => {
                output::note(
                    "commands ask for the passphrase from now on; programs that cannot ask read it from",
                );
                output::note("Context.Passphrase, Context.KeyFd or a systemd credential");
                if let Ok(folder) = config.salt_folder() {
                    announce_salt(&folder);
                }
                if setting.is_none() {
                    output::note(
                        "older backups need the old key: it stays beside its old place as `key.ID.old`",
                    );
                }
            }
            (_, Some(file)) => {
                output::note(&format!("the new key is in {}", file.display()));
                output::note(
                    "back it up somewhere safe: without it nobody can read what is stored",
                );
                let configured = config.key_file().ok().and_then(|of| std::path::absolute(of).ok());
                if configured.as_ref() != Some(file) && self.plan == Plan::GivenKeyFile {
                    output::note(&format!("now set Context.KeyFile to {}", file.display()));
                }
            }
            (_, None) => {}
        }
        if let Some(setting) = setting {
            output::warning(&format!(
                "{setting} still gives the old key, which is refused; remove it"
            ));
        }
    }
}

/// Reads or creates the key in a file. Called after one of the keys is known to be the store's.
fn made(
    root: &Path,
    from: &[Arc<EncryptionKey>],
    file: &Path,
) -> Result<Arc<EncryptionKey>, Failure> {
    let there = EncryptionKey::read_file(file)?.map(Arc::new);
    let known: Vec<_> = from.iter().chain(&there).cloned().collect();
    check(root, &known)?;
    Ok(Arc::new(EncryptionKey::read_or_make_file(file)?))
}

/// Checks that the store can be changed with these keys.
fn check(root: &Path, keys: &[Arc<EncryptionKey>]) -> Result<(), Failure> {
    match store_keys(root, keys)?.first() {
        None => Err(Error::VaultMissing { path: root.to_owned() }.into()),
        Some(first) if !first.is_held() => Err(wrong(root, first)),
        Some(_) => Ok(()),
    }
}

/// The key waiting beside the key file, if the store does not know it.
fn stale(root: &Path, waiting: &Path) -> Result<Option<Arc<EncryptionKey>>, Failure> {
    let Some(key) = EncryptionKey::read_file(waiting)?.map(Arc::new) else {
        return Ok(None);
    };
    let is_known = store_keys(root, std::slice::from_ref(&key))?.iter().any(StoreKey::is_held);
    Ok((!is_known).then_some(key))
}

/// Renames the file of a waiting key, because an older copy of the store may need it.
fn put_aside(key: &EncryptionKey, waiting: &Path) -> Result<(), Failure> {
    for number in 1u32.. {
        let mut kept = waiting.as_os_str().to_owned();
        kept.push(format!(".{number}.old"));
        let kept = PathBuf::from(kept);
        if key.write_file(&kept)? {
            EncryptionKey::remove_file(waiting)?;
            output::note(&format!(
                "{} belongs to no current change of keys; it was renamed to {}",
                waiting.display(),
                kept.display()
            ));
            break;
        }
    }
    Ok(())
}

/// Asks for the old passphrase if it is needed.
fn old_passphrase(
    root: &Path,
    from: &[Arc<EncryptionKey>],
    to: &Arc<EncryptionKey>,
) -> Result<Option<Arc<EncryptionKey>>, Failure> {
    let mut all = from.to_vec();
    all.push(Arc::clone(to));
    let missing =
        store_keys(root, &all)?.into_iter().any(|key| key.is_of_passphrase() && !key.is_held());
    if !missing {
        return Ok(None);
    }
    Ok(match secret::ask_passphrase("Old passphrase")? {
        Some(text) => Some(Arc::new(EncryptionKey::from_passphrase(text)?)),
        None => None,
    })
}

/// Keeps a key file under the name of its id in this store, because backups may need it.
fn keep(root: &Path, key_file: &Path, key: &Arc<EncryptionKey>) -> Result<(), Failure> {
    let named = store_keys(root, std::slice::from_ref(key))?;
    // If the key is retired already, it was kept before.
    let Some(id) = named.iter().find(|named| named.is_held()).map(|named| named.id().to_owned())
    else {
        return Ok(());
    };
    let mut kept = key_file.as_os_str().to_owned();
    kept.push(format!(".{}.old", id.chars().take(SHORT).collect::<String>()));
    let kept = PathBuf::from(kept);
    if !key.write_file(&kept)? {
        let there = EncryptionKey::read_file(&kept)?.and_then(|there| there.to_hex());
        if there != key.to_hex() {
            return Err(Error::KeyFile {
                path: kept,
                reason: "it is another key than the one to keep there",
            }
            .into());
        }
    }
    Ok(())
}
