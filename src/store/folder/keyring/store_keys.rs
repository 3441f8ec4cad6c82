//! Lists which keys a store uses.

use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::crypto::{EncryptionKey, KeyBytes, hex_line};
use crate::directory::fs::FsDirectory;
use crate::error::{Error, Result};
use crate::store::folder::keyring::key_list::{self, Entry};
use crate::store::folder::keyring::{KeyLookup, Keyring, salt_copy};

/// A key that a store's vault names.
pub struct StoreKey {
    entry: Entry,
    held: Option<KeyBytes>,
}

/// The keys of the store in a folder: the writing key first, then those of an unfinished change of keys. Empty if
/// there is no store. Tries the given keys; each passphrase takes some tenths of a second.
///
/// # Errors
/// What prevents reading the vault.
pub fn store_keys(root: &Path, keys: &[Arc<EncryptionKey>]) -> Result<Vec<StoreKey>> {
    let root = FsDirectory::new(root, &[])?;
    let vault = match Keyring::read(&root, keys) {
        // Only the writing key can tell which keys are bound to the store.
        Err(Error::WrongKey { .. }) => None,
        vault => vault?,
    };
    let entries = key_list::read(&root)?.map(|list| list.entries).unwrap_or_default();
    let with = |entry: Entry| {
        let is_stranger = match &vault {
            Some(vault) => !matches!(vault.find(&entry.kid)?, KeyLookup::Key(_)),
            None => false,
        };
        let held = if is_stranger { None } else { entry.find(keys)? };
        Ok(StoreKey { held, entry })
    };
    entries.into_iter().map(with).collect()
}

/// Copies the salts of a store's passphrases to another folder, durably. Each copy is a vault of its own,
/// `vault.{id}`, which can replace a lost one.
///
/// # Errors
/// What prevents reading the vault or writing the copies.
pub fn copy_salt(root: &Path, folder: &Path) -> Result<()> {
    let list = key_list::read(&FsDirectory::new(root, &[])?)?;
    salt_copy::keep(&list.map(|list| list.entries).unwrap_or_default(), folder)
}

impl StoreKey {
    /// The id: 32 hexadecimal digits that identify both the key and the store.
    pub fn id(&self) -> &str {
        &self.entry.kid
    }

    /// How the key is derived, in the vault's terms: `file`, `sha256` or `argon2id`.
    pub fn derivation(&self) -> &'static str {
        self.entry.derivation.as_str()
    }

    /// Whether the key is derived from a passphrase.
    pub fn is_of_passphrase(&self) -> bool {
        self.entry.is_of_passphrase()
    }

    /// Whether the caller provided this key.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// The text of a key file that opens the store like this key, even if this one is a passphrase. `None` if no key
    /// file can.
    pub fn export(&self) -> Option<Zeroizing<String>> {
        self.held.as_ref().map(hex_line)
    }

    /// Whether a folder has the [copy](copy_salt) of the key's salt.
    ///
    /// # Errors
    /// What prevents reading it.
    pub fn has_copy_in(&self, folder: &Path) -> Result<bool> {
        self.entry.is_copied_in(folder)
    }

    /// The file name of that copy.
    pub fn copy_name(&self) -> String {
        self.entry.copy_name()
    }
}

debug_shows!(StoreKey as it: id = it.entry.kid, is_held = it.is_held());
