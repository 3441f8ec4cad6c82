//! The salt of a passphrase, kept away from the store too: whoever loses the vault loses no key then.

use std::path::Path;

use crate::blob::{Blobs, fs::FsBlobs};
use crate::crypto::Derivation;
use crate::error::Result;
use crate::store::keyring::line::{Entry, copy_bytes};
use crate::store::record::layout::VAULT;

impl Entry {
    /// The name of its copy.
    pub(crate) fn copy_name(&self) -> String {
        format!("{VAULT}.{}", self.kid)
    }

    pub(crate) fn is_of_passphrase(&self) -> bool {
        matches!(self.derivation, Derivation::Argon2id(_))
    }

    /// Whether a folder holds its copy.
    pub(crate) fn is_copied_in(&self, folder: &Path) -> Result<bool> {
        let expected = copy_bytes(self)?;
        Ok(open(folder)?.read(&self.copy_name())?.is_some_and(|bytes| bytes == expected))
    }
}

/// Copies the entries of passphrases, durably: each a vault of its own, to be put in place of one that is lost.
pub(crate) fn keep(entries: &[Entry], folder: &Path) -> Result<()> {
    for entry in entries.iter().filter(|entry| entry.is_of_passphrase()) {
        let is_copied = entry.is_copied_in(folder)?;
        let folder = open(folder)?;
        if !is_copied {
            folder.replace(&entry.copy_name(), &copy_bytes(entry)?)?;
        }
        // A copy that was found may not be durable yet.
        folder.anchor()?;
    }
    Ok(())
}

fn open(folder: &Path) -> Result<FsBlobs> {
    // People link their configuration folders.
    FsBlobs::new(&folder.canonicalize().unwrap_or_else(|_| folder.to_owned()), &[])
}
