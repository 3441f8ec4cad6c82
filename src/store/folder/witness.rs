//! The witness: a copy of a conversation's head in a folder outside of the store. It shows that the store was put back.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::directory::Directory;
use crate::directory::fs::FsDirectory;
use crate::error::Result;

/// Where the copy of one conversation's head is. Nothing depends on it: a copy that cannot be read or written shows nothing.
#[derive(Debug, Clone)]
pub(crate) struct Witness {
    folder: Arc<dyn Directory>,
    /// Stands for the conversation's folder, so that a store elsewhere has copies of its own.
    name: String,
}

impl Witness {
    /// The witness of the conversation in this folder.
    pub(crate) fn of(conversation: &dyn Directory, folder: &Path) -> Result<Self> {
        let path = conversation.path();
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let name = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { folder: Arc::new(FsDirectory::new(folder, &[])?), name })
    }

    pub(crate) fn remove(&self) {
        if let Err(error) = self.folder.remove(&self.name) {
            tracing::debug!(%error, "the witness of a removed conversation is left");
        }
    }

    /// The head's bytes as they were written last.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        self.folder.read_cached(&self.name).unwrap_or_else(|error| {
            tracing::debug!(%error, "there is no witness of the store");
            None
        })
    }

    /// Keeps a head's bytes, without making them durable: after a power cut an older witness shows less, and nothing wrong.
    pub(crate) fn write(&self, head: &[u8]) {
        if let Err(error) = self.folder.overwrite(&self.name, head) {
            tracing::debug!(%error, "the witness of the store could not be written");
        }
    }
}
