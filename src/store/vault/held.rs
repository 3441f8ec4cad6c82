//! The vault as a running program knows it, looked at again when a change of keys may have gone over it.

use std::sync::{Arc, OnceLock};

use crate::blob::Blobs;
use crate::crypto::EncryptionKey;
use crate::error::Result;
use crate::store::vault::{NAME, Vault};

/// Each vault that was seen. Those before the newest stay, for who is still using their keys; there are as many as
/// changes of keys since the program started.
#[derive(Debug)]
pub(crate) struct HeldVault {
    keys: Vec<Arc<EncryptionKey>>,
    first: OnceLock<Seen>,
}

#[derive(Debug)]
struct Seen {
    vault: Vault,
    next: OnceLock<Box<Seen>>,
}

impl Seen {
    fn new(vault: Vault) -> Self {
        Self { vault, next: OnceLock::new() }
    }
}

impl HeldVault {
    pub(crate) fn new(keys: Vec<Arc<EncryptionKey>>) -> Self {
        Self { keys, first: OnceLock::new() }
    }

    pub(crate) fn keys(&self) -> &[Arc<EncryptionKey>] {
        &self.keys
    }

    fn newest(&self) -> Option<&Seen> {
        let mut newest = self.first.get()?;
        while let Some(next) = newest.next.get() {
            newest = next;
        }
        Some(newest)
    }

    /// The vault as it was last seen, read where it never was; `None` while there is none.
    pub(crate) fn get(&self, root: &dyn Blobs) -> Result<Option<&Vault>> {
        if self.newest().is_none()
            && let Some(vault) = Vault::read(root, &self.keys)?
        {
            self.put(vault);
        }
        Ok(self.newest().map(|seen| &seen.vault))
    }

    /// The vault as it is now. One small read where it has not changed.
    ///
    /// # Errors
    /// [`Error::WrongKey`](crate::Error::WrongKey) where another key writes now, which is not at hand.
    pub(crate) fn look(&self, root: &dyn Blobs) -> Result<Option<&Vault>> {
        let Some(seen) = self.newest() else {
            return self.get(root);
        };
        if let Some(bytes) = root.peek(NAME)?.filter(|bytes| *bytes != seen.vault.bytes) {
            let vault = Vault::parse(bytes, root, &self.keys)?;
            // Nothing may be sealed under a key that a power cut could still take out of the vault.
            root.sync()?;
            self.put(vault);
        }
        Ok(self.newest().map(|seen| &seen.vault))
    }

    pub(crate) fn put(&self, vault: Vault) {
        let end = self.newest().map(|seen| &seen.next);
        // Should another thread have put one there meanwhile, it has seen no less.
        let _ = match end {
            None => self.first.set(Seen::new(vault)).is_ok(),
            Some(end) => end.set(Box::new(Seen::new(vault))).is_ok(),
        };
    }
}
