//! The key in a file of its own, readable by its owner alone.

use std::path::Path;

use zeroize::Zeroizing;

use crate::blob::{Blobs, fs::FsBlobs};
use crate::crypto::EncryptionKey;
use crate::error::{Error, Result};

impl EncryptionKey {
    /// Reads a key file; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::KeyFile`] for a file that is not 64 hexadecimal digits and a newline.
    pub fn read_file(path: &Path) -> Result<Option<Self>> {
        let (folder, name) = split(&path.canonicalize().unwrap_or_else(|_| path.to_owned()))?;
        let Some(bytes) = folder.read(&name)?.map(Zeroizing::new) else {
            return Ok(None);
        };
        let key = str::from_utf8(&bytes).ok().and_then(Self::from_hex);
        key.map(Some).ok_or_else(|| Error::KeyFile {
            path: path.into(),
            reason: "it is not 64 hexadecimal digits and a newline",
        })
    }

    /// Makes a key file durable that is there already: who made it may have been killed before it was.
    #[cfg(feature = "config")]
    pub(crate) fn anchor_file(path: &Path) -> Result<()> {
        split(&path.canonicalize().unwrap_or_else(|_| path.to_owned()))?.0.anchor()
    }

    /// Writes a key file for this key, whole and durable or not at all. `false`, and nothing changed, where something
    /// has the name.
    ///
    /// # Errors
    /// [`Error::NoKey`] for a passphrase, which has another key in each store.
    pub fn write_file(&self, path: &Path) -> Result<bool> {
        let (folder, name) = split(path)?;
        let text = self.to_hex().ok_or(Error::NoKey)?;
        let written = folder.create(&name, text.as_bytes())?;
        folder.anchor()?;
        Ok(written)
    }

    /// Puts a key file for this key in place of any that is there, durably. At every moment the one or the other is
    /// there.
    ///
    /// # Errors
    /// [`Error::NoKey`] for a passphrase.
    pub fn replace_file(&self, path: &Path) -> Result<()> {
        let (folder, name) = split(path)?;
        folder.replace(&name, self.to_hex().ok_or(Error::NoKey)?.as_bytes())?;
        folder.sync()
    }

    /// Removes a key file, durably; no error where there is none.
    ///
    /// # Errors
    /// What keeps it from being removed.
    pub fn remove_file(path: &Path) -> Result<()> {
        let (folder, name) = split(path)?;
        folder.remove(&name)?;
        folder.sync()
    }

    /// Makes a new key and its file, whole and durable or not at all. Where the file exists already, or another
    /// process makes it at the same time, the key is the one in the file.
    pub fn read_or_make_file(path: &Path) -> Result<Self> {
        let (folder, name) = split(path)?;
        let text = Self::generate()?.to_hex().unwrap_or_default();
        folder.create(&name, text.as_bytes())?;
        folder.anchor()?;
        Self::read_file(path)?.ok_or_else(|| Error::KeyFile {
            path: path.into(),
            reason: "it vanished while it was being made",
        })
    }
}

fn split(path: &Path) -> Result<(FsBlobs, String)> {
    let refused = |reason| Error::KeyFile { path: path.into(), reason };
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| refused("its name is not text"))?;
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // People link their configuration folders, and systems mount secrets as links.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Ok((FsBlobs::new(&folder, &[])?, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn two_first_runs_agree_on_one_private_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/key");
        assert!(EncryptionKey::read_file(&path).unwrap().is_none());
        let keys: Vec<_> = std::thread::scope(|threads| {
            let made: Vec<_> = (0..8)
                .map(|_| {
                    threads.spawn(|| EncryptionKey::read_or_make_file(&path).unwrap().to_hex())
                })
                .collect();
            made.into_iter().map(|made| made.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn a_file_that_is_no_key_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "not a key").unwrap();
        assert!(matches!(EncryptionKey::read_file(&path), Err(Error::KeyFile { .. })));
        assert!(EncryptionKey::read_or_make_file(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"not a key");
    }
}
