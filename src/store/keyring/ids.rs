//! Which keys a store is written under.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::blob::fs::FsBlobs;
use crate::crypto::{EncryptionKey, KeyBytes, hex_line};
use crate::error::{Error, Result};
use crate::store::keyring::line;
use crate::store::keyring::line::Entry;
use crate::store::keyring::{KeyLookup, Keyring, salt_copy};

/// A key that a store's vault names.
pub struct StoreKey {
    entry: Entry,
    held: Option<KeyBytes>,
}

/// The keys of the store below a folder, the one that writes first and those of an unfinished change after it; none
/// where there is no store. Tries which of them are among those given, a passphrase for some tenths of a second each.
///
/// # Errors
/// What keeps the vault from being read.
pub fn store_keys(root: &Path, keys: &[Arc<EncryptionKey>]) -> Result<Vec<StoreKey>> {
    let root = FsBlobs::new(root, &[])?;
    let vault = match Keyring::read(&root, keys) {
        // What is bound to the store, only the key that writes can tell.
        Err(Error::WrongKey { .. }) => None,
        vault => vault?,
    };
    let entries = line::read(&root)?.map(|list| list.entries).unwrap_or_default();
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

/// Keeps copies of the salts of a store's passphrases in another folder, durably. Each is a vault of its own,
/// `vault.{id}`, to be put in place of one that is lost.
///
/// # Errors
/// What keeps the vault from being read or the copies from being written.
pub fn copy_salt(root: &Path, folder: &Path) -> Result<()> {
    let list = line::read(&FsBlobs::new(root, &[])?)?;
    salt_copy::keep(&list.map(|list| list.entries).unwrap_or_default(), folder)
}

impl StoreKey {
    /// Its id: 32 hexadecimal digits that name both the key and the store.
    pub fn id(&self) -> &str {
        &self.entry.kid
    }

    /// How it is made, as the vault says it: `file`, `sha256` or `argon2id`.
    pub fn derivation(&self) -> &'static str {
        self.entry.derivation.as_str()
    }

    /// Whether it is made of a passphrase.
    pub fn is_of_passphrase(&self) -> bool {
        self.entry.is_of_passphrase()
    }

    /// Whether it is among the keys given.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// The text of a key file that opens the store as the key given does, a passphrase's too; `None` where none does.
    pub fn export(&self) -> Option<Zeroizing<String>> {
        self.held.as_ref().map(hex_line)
    }

    /// Whether a folder holds the [copy](copy_salt) of its salt.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub fn has_copy_in(&self, folder: &Path) -> Result<bool> {
        self.entry.is_copied_in(folder)
    }

    /// The name of that copy.
    pub fn copy_name(&self) -> String {
        self.entry.copy_name()
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StoreKey");
        shown.field("id", &self.entry.kid).field("is_held", &self.is_held()).finish_non_exhaustive()
    }
}
