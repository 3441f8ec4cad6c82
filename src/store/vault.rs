//! The one plain file of a store: which keys it was written under.

pub(crate) mod copy;
pub(crate) mod entry;
pub(crate) mod held;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::blob::{Blobs, EntryKind, fs::FsBlobs};
use crate::crypto::{EncryptionKey, Envelope, Malformed, SealingKey};
use crate::error::{Error, Result};
use crate::scope::SCOPE_FOLDERS;
use crate::store::document::Document;
use crate::store::head;
use crate::store::name::RecordName;
use crate::store::pack;
use crate::store::vault::entry::Entry;

pub(crate) const NAME: &str = "vault";

/// The keys of an existing store that the caller holds, the one that writes first.
#[derive(Debug)]
pub(crate) struct Vault {
    bytes: Vec<u8>,
    keys: Vec<SealingKey>,
}

impl Vault {
    /// Reads the vault; `None` where there is none yet.
    ///
    /// # Errors
    /// [`Error::WrongKey`] unless one of the keys given is the one that the store is written under.
    pub(crate) fn read(root: &dyn Blobs, keys: &[Arc<EncryptionKey>]) -> Result<Option<Self>> {
        root.read(NAME)?.map(|bytes| Self::parse(bytes, root, keys)).transpose()
    }

    fn parse(bytes: Vec<u8>, root: &dyn Blobs, keys: &[Arc<EncryptionKey>]) -> Result<Self> {
        let path = root.path().join(NAME);
        let entries = entry::parse(&bytes, &path)?;
        let mut vault = Self { bytes, keys: Vec::with_capacity(entries.len()) };
        for (position, entry) in entries.into_iter().enumerate() {
            match entry.find(keys)? {
                Some(bytes) => vault.keys.push(entry.sealing_key(&bytes)),
                None if position == 0 => {
                    return Err(Error::WrongKey {
                        place: path.display().to_string(),
                        found: entry.kid,
                    });
                }
                None => {}
            }
        }
        Ok(vault)
    }

    /// Reads the vault, or makes one for an empty store. Of two that do so at once, both get the same.
    pub(crate) fn read_or_make(
        root: &dyn Blobs,
        keys: &[Arc<EncryptionKey>],
        timeout: Duration,
    ) -> Result<Self> {
        if let Some(vault) = Self::read(root, keys)? {
            return Ok(vault);
        }
        if holds_records(root)? {
            // Another process may have made both since.
            let missing = || Error::VaultMissing { path: root.path().into() };
            return Self::read(root, keys)?.ok_or_else(missing);
        }
        Self::publish(root, &[Entry::new(keys.first().ok_or(Error::NoKey)?)?], timeout)?;
        Self::read(root, keys)?.ok_or_else(|| Error::FolderReplaced { path: root.path().into() })
    }

    /// Writes a vault where there is none, unless another process has.
    pub(crate) fn publish(root: &dyn Blobs, entries: &[Entry], timeout: Duration) -> Result<()> {
        let bytes = entry::to_bytes(entries)?;
        // Whoever holds the lock may sweep up what is being published without it.
        let lock = root.lock(timeout)?;
        root.create(NAME, &bytes)?;
        root.sync()?;
        lock.pass_on();
        Ok(())
    }

    /// The key that seals.
    pub(crate) fn writer(&self) -> Option<&SealingKey> {
        self.keys.first()
    }

    /// Those at hand, the one that seals first.
    pub(crate) fn keys(&self) -> &[SealingKey] {
        &self.keys
    }

    /// The key of that id.
    pub(crate) fn find(&self, id: &str) -> Option<&SealingKey> {
        self.keys.iter().find(|key| key.id() == id)
    }
}

/// Makes the vault of an empty store whose key is a passphrase, with a copy in another folder: without the salt in it
/// the passphrase opens nothing. Derives the key, some tenths of a second. Where there is a vault already, it stays.
///
/// # Errors
/// [`Error::VaultMissing`] where there are records without their vault.
pub fn make_vault(root: &Path, key: &EncryptionKey, copies: &Path) -> Result<()> {
    let root = FsBlobs::new(root, &[])?;
    if entry::read(&root)?.is_none() {
        if holds_records(&root)? {
            return Err(Error::VaultMissing { path: root.path().into() });
        }
        let entry = Entry::new(key)?;
        copy::keep(std::slice::from_ref(&entry), copies)?;
        Vault::publish(&root, &[entry], LOCK_TIMEOUT)?;
    }
    // It may be another process's.
    copy::keep(&entry::read(&root)?.unwrap_or_default(), copies)
}

/// How long making a vault waits for others.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether there is a store below a folder, whatever its key.
///
/// # Errors
/// What keeps the folder from being looked at.
pub fn store_exists(root: &Path) -> Result<bool> {
    let root = FsBlobs::new(root, &[])?;
    Ok(root.links(NAME)? > 0 || holds_records(&root)?)
}

/// Whether a root holds anything that a store sealed, so that its missing vault is a loss and not a beginning.
pub(crate) fn holds_records(root: &dyn Blobs) -> Result<bool> {
    let (mut folders, mut sealed) = (Vec::<&str>::new(), Vec::<String>::new());
    root.list(&mut |name, kind| {
        let Ok(name) = str::from_utf8(name) else { return };
        if kind == EntryKind::Folder {
            let others = SCOPE_FOLDERS.iter().chain(&[pack::FOLDER]);
            folders.extend(others.copied().find(|other| *other == name));
        } else if name == head::NAME
            || Document::is_name(name.as_bytes())
            || name.parse::<RecordName>().is_ok()
        {
            sealed.push(name.to_owned());
        }
    })?;
    // Others use the same names: what is inside decides.
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
