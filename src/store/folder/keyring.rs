//! The keyring: which keys a store uses, from its only unencrypted file, `vault`.

pub(crate) mod cache;
pub(crate) mod key_list;
pub(crate) mod salt_copy;
pub(crate) mod store_keys;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::crypto::{EncryptionKey, Envelope, KeyBytes, Malformed, SealingKey};
use crate::directory::fs::FsDirectory;
use crate::directory::{Directory, EntryKind};
use crate::error::{Error, Result};
use crate::scope::SCOPE_FOLDERS;
use crate::store::folder::keyring::key_list::{Entry, KeyList};
use crate::store::record::document::Document;
use crate::store::record::layout::{CATALOG, HEAD, PACKS, QUARANTINE, VAULT};
use crate::store::record::name::RecordName;

/// The keys of an existing store that the caller holds. The first one seals.
#[derive(Debug)]
pub(crate) struct Keyring {
    bytes: Vec<u8>,
    list: KeyList,
    writer: SealingKey,
    writer_bytes: KeyBytes,
    others: Vec<ReadOnlyKey>,
    /// Whether the writing key has sealed the list. Otherwise the keys after the first may not be this store's.
    is_sealed: bool,
    keys: Vec<Arc<EncryptionKey>>,
}

/// A key that only opens, during a change of keys.
struct ReadOnlyKey {
    entry: Entry,
    /// Derived when the first file names the key. Deriving a passphrase may take seconds, and this entry may not be
    /// the store's.
    key: OnceLock<Option<SealingKey>>,
}

debug_shows!(ReadOnlyKey as it: id = it.entry.kid);

/// The outcome of looking up a key by its id.
#[derive(Debug)]
pub(crate) enum KeyLookup<'a> {
    Key(&'a SealingKey),
    /// The vault names the key, but it is not bound to this store.
    Unbound,
    /// The vault does not name the key, or the caller does not hold it.
    Unknown,
}

impl Keyring {
    /// Reads the vault; `None` if there is none yet.
    ///
    /// # Errors
    /// [`Error::WrongKey`] unless the caller holds the store's writing key.
    pub(crate) fn read(root: &dyn Directory, keys: &[Arc<EncryptionKey>]) -> Result<Option<Self>> {
        root.read(VAULT)?.map(|bytes| Self::parse(bytes, root, keys)).transpose()
    }

    fn parse(bytes: Vec<u8>, root: &dyn Directory, keys: &[Arc<EncryptionKey>]) -> Result<Self> {
        let path = root.path().join(VAULT);
        let list = key_list::parse(&bytes, &path)?;
        let (first, others) = list.entries.split_first().ok_or(Error::NoKey)?;
        let Some(writer_bytes) = first.find(keys)? else {
            let found = first.kid.clone();
            return Err(Error::WrongKey { place: path.display().to_string(), found });
        };
        let other = |entry: &Entry| ReadOnlyKey { entry: entry.clone(), key: OnceLock::new() };
        Ok(Self {
            writer: first.sealing_key(&writer_bytes),
            others: others.iter().map(other).collect(),
            is_sealed: list.is_sealed_by(&writer_bytes),
            writer_bytes,
            keys: keys.to_vec(),
            list,
            bytes,
        })
    }

    /// Reads the vault, or creates one for an empty store. Two processes that do this at once get the same vault.
    pub(crate) fn read_or_create(
        root: &dyn Directory,
        keys: &[Arc<EncryptionKey>],
        timeout: Duration,
    ) -> Result<Self> {
        if let Some(vault) = Self::read(root, keys)? {
            return Ok(vault);
        }
        if holds_records(root)? {
            // Another process may have created both in the meantime.
            let missing = || Error::VaultMissing { path: root.path().into() };
            return Self::read(root, keys)?.ok_or_else(missing);
        }
        Self::make(root, keys.first().ok_or(Error::NoKey)?, timeout)?;
        Self::read(root, keys)?.ok_or_else(|| Error::FolderReplaced { path: root.path().into() })
    }

    /// Creates the vault of an empty store, unless another process has.
    pub(crate) fn make(root: &dyn Directory, key: &EncryptionKey, timeout: Duration) -> Result<()> {
        let entry = Entry::new(key)?;
        let bytes = entry.bytes_of(key)?.ok_or(Error::NoKey)?;
        Self::publish(root, std::slice::from_ref(&entry), &bytes, timeout)
    }

    /// Writes a vault if there is none. `writer` are the bytes of the first entry's key.
    pub(crate) fn publish(
        root: &dyn Directory,
        entries: &[Entry],
        writer: &KeyBytes,
        timeout: Duration,
    ) -> Result<()> {
        let bytes = key_list::sealed_bytes(entries, writer)?;
        // Publishing needs the lock: a lock holder may remove temporary files.
        let lock = root.lock(timeout)?;
        root.create(VAULT, &bytes)?;
        root.sync()?;
        lock.release_as_found();
        Ok(())
    }

    /// Replaces the vault's entries, sealed by the first entry's key. Durable on return. Returns `false` if another
    /// process has changed the vault; nothing is replaced then.
    pub(crate) fn replace(
        &self,
        root: &dyn Directory,
        entries: &[Entry],
        writer: &KeyBytes,
        timeout: Duration,
    ) -> Result<bool> {
        let bytes = key_list::sealed_bytes(entries, writer)?;
        let lock = root.lock(timeout)?;
        let replaced = match root.read(VAULT) {
            Ok(now) if now.as_ref() == Some(&self.bytes) => {
                root.replace(VAULT, &bytes).and_then(|()| root.sync()).map(|()| true)
            }
            now => now.map(|_| false),
        };
        lock.release_as_found();
        replaced
    }

    /// Removes from the vault the keys that are not bound to the store, and keeps a copy of the old vault in the
    /// quarantine folder.
    pub(crate) fn remove_unbound(&self, root: &dyn Directory, timeout: Duration) -> Result<()> {
        if self.is_sealed {
            return Ok(());
        }
        let aside = root.folder(QUARANTINE);
        let mut is_copied = false;
        for name in (1..1000).map(|n| format!("{VAULT}.{n}")) {
            is_copied = aside.create(&name, &self.bytes)?;
            if is_copied {
                break;
            }
        }
        if !is_copied {
            let reason = "it has no room for another copy of the list of keys, so the list stays as it is; move the \
                          copies elsewhere and repair again";
            return Err(Error::damaged(aside.path(), reason));
        }
        aside.sync()?;
        aside.sync_ancestors()?;
        let entries: Vec<_> = self.list.entries.iter().take(1).cloned().collect();
        self.replace(root, &entries, &self.writer_bytes, timeout).map(drop)
    }

    /// The key that seals.
    pub(crate) fn writer(&self) -> &SealingKey {
        &self.writer
    }

    /// All entries of the vault.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.list.entries
    }

    /// Whether the writing key has sealed the list.
    pub(crate) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// The bound keys that the caller holds, the writing key first. Each is derived when the iterator reaches it.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Result<&SealingKey>> {
        let others = self.others.iter().filter_map(|other| self.key_of(other).transpose());
        std::iter::once(Ok(&self.writer)).chain(others)
    }

    /// Looks up the key with this id.
    pub(crate) fn find(&self, id: &str) -> Result<KeyLookup<'_>> {
        if self.writer.id() == id {
            return Ok(KeyLookup::Key(&self.writer));
        }
        let Some(other) = self.others.iter().find(|other| other.entry.kid == id) else {
            return Ok(KeyLookup::Unknown);
        };
        Ok(match self.key_of(other)? {
            Some(key) => KeyLookup::Key(key),
            None if self.is_sealed => KeyLookup::Unknown,
            None => KeyLookup::Unbound,
        })
    }

    /// The key, if the caller holds it and it is bound to the store.
    fn key_of<'a>(&'a self, other: &'a ReadOnlyKey) -> Result<Option<&'a SealingKey>> {
        if !self.is_sealed {
            return Ok(None);
        }
        if other.key.get().is_none() {
            let held = other.entry.find(&self.keys)?;
            let held = held.map(|bytes| other.entry.sealing_key(&bytes));
            // If another thread has set it already, the value is the same.
            let _ = other.key.set(held);
        }
        Ok(other.key.get().and_then(Option::as_ref))
    }

    /// The ids of keys that the vault names although they are not bound to the store.
    pub(crate) fn unbound(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().filter(|_| !self.is_sealed);
        others.map(|other| other.entry.kid.as_str())
    }

    /// Fails if the vault may name a key that is not the store's.
    pub(crate) fn check_bound(&self, root: &dyn Directory) -> Result<()> {
        let path = root.path().join(VAULT);
        let reason = "it names a key that is not bound to this store";
        match self.is_sealed || self.others.is_empty() {
            true => Ok(()),
            false => Err(Error::VaultDamaged { path, reason }),
        }
    }
}

/// Creates the vault of an empty store whose key is a passphrase, and copies its salt to another folder: without the
/// salt the passphrase opens nothing. Deriving the key takes some tenths of a second. Keeps an existing vault.
///
/// # Errors
/// [`Error::VaultMissing`] if there are records without a vault.
pub fn create_vault(root: &Path, key: &EncryptionKey, copies: &Path) -> Result<()> {
    let root = FsDirectory::new(root, &[])?;
    if key_list::read(&root)?.is_none() {
        if holds_records(&root)? {
            return Err(Error::VaultMissing { path: root.path().into() });
        }
        let entry = Entry::new(key)?;
        salt_copy::keep(std::slice::from_ref(&entry), copies)?;
        let bytes = entry.bytes_of(key)?.ok_or(Error::NoKey)?;
        Keyring::publish(&root, &[entry], &bytes, LOCK_TIMEOUT)?;
    }
    // Another process may have created the vault.
    salt_copy::keep(&key_list::read(&root)?.map(|list| list.entries).unwrap_or_default(), copies)
}

/// How long creating a vault waits for the lock.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a folder contains a store, under any key.
///
/// # Errors
/// What prevents reading the folder.
pub fn store_exists(root: &Path) -> Result<bool> {
    let root = FsDirectory::new(root, &[])?;
    Ok(root.link_count(VAULT)? > 0 || holds_records(&root)?)
}

/// Whether a root contains anything sealed. If so, a missing vault means loss and not an empty store.
pub(crate) fn holds_records(root: &dyn Directory) -> Result<bool> {
    let (mut folders, mut sealed) = (Vec::<&str>::new(), Vec::<String>::new());
    root.list(&mut |name, kind| {
        let Ok(name) = str::from_utf8(name) else { return };
        if kind == EntryKind::Folder {
            let others = SCOPE_FOLDERS.iter().chain(&[PACKS, CATALOG]);
            folders.extend(others.copied().find(|other| *other == name));
        } else if name == HEAD
            || Document::is_name(name.as_bytes())
            || name.parse::<RecordName>().is_ok()
        {
            sealed.push(name.to_owned());
        }
    })?;
    // Other programs use the same names, so the contents decide.
    for folder in folders {
        let mut empty = true;
        root.folder(folder).list(&mut |_, _| empty = false)?;
        if !empty {
            return Ok(true);
        }
    }
    for name in sealed {
        let bytes = match root.read(&name) {
            Err(Error::NotPlain { .. }) => None,
            read => read?,
        };
        let parsed = bytes.as_deref().map(Envelope::parse);
        if matches!(parsed, Some(Ok(_) | Err(Malformed::Newer(_)))) {
            return Ok(true);
        }
    }
    Ok(false)
}
