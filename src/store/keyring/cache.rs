//! The vault as a running program knows it, looked at again when a change of keys may have gone over it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::blob::Blobs;
use crate::crypto::EncryptionKey;
use crate::error::{Error, Result};
use crate::store::keyring::Keyring;
use crate::store::record::layout::VAULT;

/// Each vault that was seen. Those before the newest stay, for who is still using their keys; there are as many as
/// changes of keys since the program started.
#[derive(Debug)]
pub(crate) struct KeyringCache {
    keys: Vec<Arc<EncryptionKey>>,
    /// Key files that are read anew once the store's key is none of these.
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

    /// The same, which looks for new keys in these files.
    pub(crate) fn finding_keys_in(&self, files: Vec<PathBuf>) -> Self {
        Self { files, ..Self::new(self.keys.clone()) }
    }

    /// Opens a vault with the keys at hand, or else with those that the key files hold by now.
    fn open<T>(&self, open: impl Fn(&[Arc<EncryptionKey>]) -> Result<T>) -> Result<T> {
        let refused = match open(&self.keys) {
            Err(error @ Error::WrongKey { .. }) => error,
            opened => return opened,
        };
        let mut keys = self.keys.clone();
        for file in &self.files {
            // One that is gone or is being replaced gives no key, and the first error says enough.
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

    /// The vault as it was last seen, read where it never was; `None` while there is none.
    pub(crate) fn get(&self, root: &dyn Blobs) -> Result<Option<&Keyring>> {
        if self.newest().is_none()
            && let Some(vault) = self.open(|keys| Keyring::read(root, keys))?
        {
            self.put(vault);
        }
        Ok(self.newest().map(|seen| &seen.vault))
    }

    /// The vault as it is now. One small read where it has not changed.
    ///
    /// # Errors
    /// [`Error::KeyChanged`] where another key writes now, which is not at hand.
    pub(crate) fn refresh(&self, root: &dyn Blobs) -> Result<Option<&Keyring>> {
        let Some(seen) = self.newest() else {
            return self.get(root);
        };
        if let Some(bytes) = root.peek(VAULT)?.filter(|bytes| *bytes != seen.vault.bytes) {
            let vault = self.open(|keys| Keyring::parse(bytes.clone(), root, keys));
            let vault = vault.map_err(|error| match error {
                Error::WrongKey { place, .. } => Error::KeyChanged { place },
                error => error,
            })?;
            // Nothing may be sealed under a key that a power cut could still take out of the vault.
            root.sync()?;
            self.put(vault);
        }
        Ok(self.newest().map(|seen| &seen.vault))
    }

    pub(crate) fn put(&self, vault: Keyring) {
        let end = self.newest().map(|seen| &seen.next);
        // Should another thread have put one there meanwhile, it has seen no less.
        let _ = match end {
            None => self.first.set(CachedKeyring::new(vault)).is_ok(),
            Some(end) => end.set(Box::new(CachedKeyring::new(vault))).is_ok(),
        };
    }
}
