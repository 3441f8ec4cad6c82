//! Caches the keyring in a running program and refreshes it after a change of keys.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::crypto::EncryptionKey;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::store::folder::keyring::Keyring;
use crate::store::record::layout::VAULT;

/// Each keyring that was read. Earlier ones stay because callers may hold references to their keys. There are as many
/// as changes of keys since the program started.
#[derive(Debug)]
pub(crate) struct KeyringCache {
    keys: Vec<Arc<EncryptionKey>>,
    /// Key files to read again when none of the keys is the store's.
    files: Vec<PathBuf>,
    first: OnceLock<CachedKeyring>,
}

#[derive(Debug)]
struct CachedKeyring {
    vault: Keyring,
    next: OnceLock<Box<CachedKeyring>>,
}

impl CachedKeyring {
    fn new(vault: Keyring) -> Self {
        Self { vault, next: OnceLock::new() }
    }
}

impl KeyringCache {
    pub(crate) fn new(keys: Vec<Arc<EncryptionKey>>) -> Self {
        Self { keys, files: Vec::new(), first: OnceLock::new() }
    }

    /// Sets key files in which to look for new keys.
    pub(crate) fn finding_keys_in(&self, files: Vec<PathBuf>) -> Self {
        Self { files, ..Self::new(self.keys.clone()) }
    }

    /// Opens a vault with the keys at hand, or else with what the key files contain now.
    fn open<T>(&self, open: impl Fn(&[Arc<EncryptionKey>]) -> Result<T>) -> Result<T> {
        let refused = match open(&self.keys) {
            Err(error @ Error::WrongKey { .. }) => error,
            opened => return opened,
        };
        let mut keys = self.keys.clone();
        for file in &self.files {
            // A missing file gives no key. The first error explains enough.
            if let Ok(Some(key)) = EncryptionKey::read_file(file) {
                keys.push(Arc::new(key));
            }
        }
        if keys.len() == self.keys.len() { Err(refused) } else { open(&keys) }
    }

    pub(crate) fn keys(&self) -> &[Arc<EncryptionKey>] {
        &self.keys
    }

    fn newest(&self) -> Option<&CachedKeyring> {
        let mut newest = self.first.get()?;
        while let Some(next) = newest.next.get() {
            newest = next;
        }
        Some(newest)
    }

    /// The keyring as it was last read; reads it the first time. `None` if there is no vault.
    pub(crate) fn get(&self, root: &dyn Directory) -> Result<Option<&Keyring>> {
        if self.newest().is_none()
            && let Some(vault) = self.open(|keys| Keyring::read(root, keys))?
        {
            self.put(vault);
        }
        Ok(self.newest().map(|seen| &seen.vault))
    }

    /// The current keyring. Costs one small read if nothing has changed.
    ///
    /// # Errors
    /// [`Error::KeyChanged`] if the store now seals under a key that the caller does not hold.
    pub(crate) fn refresh(&self, root: &dyn Directory) -> Result<Option<&Keyring>> {
        let Some(seen) = self.newest() else {
            return self.get(root);
        };
        if let Some(bytes) = root.read_cached(VAULT)?.filter(|bytes| *bytes != seen.vault.bytes) {
            let vault = self.open(|keys| Keyring::parse(bytes.clone(), root, keys));
            let vault = vault.map_err(|error| match error {
                Error::WrongKey { place, .. } => Error::KeyChanged { place },
                error => error,
            })?;
            // Seal nothing under a key before the vault that names it is durable.
            root.sync()?;
            self.put(vault);
        }
        Ok(self.newest().map(|seen| &seen.vault))
    }

    pub(crate) fn put(&self, vault: Keyring) {
        let end = self.newest().map(|seen| &seen.next);
        // If another thread has added one in the meantime, it is at least as new.
        let _ = match end {
            None => self.first.set(CachedKeyring::new(vault)).is_ok(),
            Some(end) => end.set(Box::new(CachedKeyring::new(vault))).is_ok(),
        };
    }
}
