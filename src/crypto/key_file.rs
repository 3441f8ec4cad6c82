//! Key files: a key in a file that only its owner can read.

use std::path::Path;

use zeroize::Zeroizing;

use crate::crypto::EncryptionKey;
use crate::directory::{Directory, fs::FsDirectory};
use crate::error::{Error, Result};

impl EncryptionKey {
    /// Reads a key file; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::KeyFile`] unless the file is 64 hexadecimal digits and a newline.
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

    /// Makes an existing key file durable: the program that wrote it may have been interrupted before that.
    #[cfg(feature = "config")]
    pub(crate) fn anchor_file(path: &Path) -> Result<()> {
        split(&path.canonicalize().unwrap_or_else(|_| path.to_owned()))?.0.sync_ancestors()
    }

    /// Writes a key file for this key, durably and atomically. Returns `false` and changes nothing if the name is
    /// taken.
    ///
    /// # Errors
    /// [`Error::NoKey`] for a passphrase, which gives another key in each store.
    pub fn write_file(&self, path: &Path) -> Result<bool> {
        let (folder, name) = split(path)?;
        let text = self.to_hex().ok_or(Error::NoKey)?;
        let written = folder.create(&name, text.as_bytes())?;
        folder.sync_ancestors()?;
        Ok(written)
    }

    /// Writes or replaces a key file with this key, durably and atomically.
    ///
    /// # Errors
    /// [`Error::NoKey`] for a passphrase.
    pub fn replace_file(&self, path: &Path) -> Result<()> {
        let (folder, name) = split(path)?;
        folder.replace(&name, self.to_hex().ok_or(Error::NoKey)?.as_bytes())?;
        folder.sync()
    }

    /// Removes a key file, durably. Does nothing if there is none.
    ///
    /// # Errors
    /// What prevents removing it.
    pub fn remove_file(path: &Path) -> Result<()> {
        let (folder, name) = split(path)?;
        folder.remove(&name)?;
        folder.sync()
    }

    /// Reads a key file, or makes a new key and its file, durably and atomically. If another process makes the file
    /// at the same time, returns the key in that file.
    pub fn read_or_make_file(path: &Path) -> Result<Self> {
        let (folder, name) = split(path)?;
        let text = Self::generate()?.to_hex().unwrap_or_default();
        folder.create(&name, text.as_bytes())?;
        folder.sync_ancestors()?;
        Self::read_file(path)?.ok_or_else(|| Error::KeyFile {
            path: path.into(),
            reason: "it vanished while it was being made",
        })
    }
}

fn split(path: &Path) -> Result<(FsDirectory, String)> {
    let refused = |reason| Error::KeyFile { path: path.into(), reason };
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| refused("its name is not text"))?;
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // The configuration folder may be a link, and systems mount secrets as links.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Ok((FsDirectory::new(&folder, &[])?, name.to_owned()))
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
