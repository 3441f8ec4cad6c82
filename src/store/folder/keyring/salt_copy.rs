//! Copies of passphrase salts outside the store, so that losing the vault does not lose the key.

use std::path::Path;

use crate::crypto::Derivation;
use crate::directory::Directory;
use crate::directory::fs::FsDirectory;
use crate::error::Result;
use crate::store::folder::keyring::key_list::{Entry, copy_bytes};
use crate::store::record::layout::VAULT;

impl Entry {
    /// The copy's file name.
    pub(crate) fn copy_name(&self) -> String {
        format!("{VAULT}.{}", self.kid)
    }

    pub(crate) fn is_of_passphrase(&self) -> bool {
        matches!(self.derivation, Derivation::Argon2id(_))
    }

    /// Whether a folder has the copy.
    pub(crate) fn is_copied_in(&self, folder: &Path) -> Result<bool> {
        let expected = copy_bytes(self)?;
        Ok(open(folder)?.read(&self.copy_name())?.is_some_and(|bytes| bytes == expected))
    }
}

/// Copies the entries of passphrases, durably. Each copy is a vault of its own, which can replace a lost one.
pub(crate) fn keep(entries: &[Entry], folder: &Path) -> Result<()> {
    for entry in entries.iter().filter(|entry| entry.is_of_passphrase()) {
        let is_copied = entry.is_copied_in(folder)?;
        let folder = open(folder)?;
        if !is_copied {
            folder.replace(&entry.copy_name(), &copy_bytes(entry)?)?;
        }
        // An existing copy may not be durable yet.
        folder.sync_ancestors()?;
    }
    Ok(())
}

fn open(folder: &Path) -> Result<FsDirectory> {
    // The configuration folder may be a link.
    FsDirectory::new(&folder.canonicalize().unwrap_or_else(|_| folder.to_owned()), &[])
}
