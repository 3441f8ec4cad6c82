//! The one plain file of a store: which keys it was written under.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::blob::{Blobs, EntryKind, fs::FsBlobs};
use crate::crypto::{EncryptionKey, Envelope, Malformed, SealingKey, random};
use crate::error::{Error, Result};
use crate::scope::SCOPE_FOLDERS;
use crate::store::document::Document;
use crate::store::head;
use crate::store::name::RecordName;
use crate::store::pack;
use crate::store::record::object;

const NAME: &str = "vault";

/// The keys of an existing store that the caller holds, the one that writes first.
#[derive(Debug)]
pub(crate) struct Vault {
    keys: Vec<SealingKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    v: u64,
    keys: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    kid: String,
    kdf: String,
    salt: String,
}

#[derive(Deserialize)]
struct Version {
    v: u64,
}

impl Vault {
    /// Reads the vault; `None` where there is none yet.
    ///
    /// # Errors
    /// [`Error::WrongKey`] unless one of the keys given is the one that the store is written under.
    pub(crate) fn read(root: &dyn Blobs, keys: &[Arc<EncryptionKey>]) -> Result<Option<Self>> {
        let Some(bytes) = root.read(NAME)? else {
            return Ok(None);
        };
        let place = || root.path().join(NAME).display().to_string();
        let damaged = |reason| Error::Damaged { place: place(), reason };
        let Some(Version { v }) = object(&bytes) else {
            return Err(damaged("it is not a vault"));
        };
        if v > 1 {
            return Err(Error::NewerFormat { place: place(), version: v });
        }
        let Some(file) = object::<File>(&bytes) else {
            return Err(damaged("it is not a vault of version 1"));
        };
        let mut vault = Self { keys: Vec::new() };
        for (position, entry) in file.keys.iter().enumerate() {
            if entry.kid.len() != 32 || !entry.kid.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(damaged("a key id is not 32 hexadecimal digits"));
            }
            if !matches!(entry.kdf.as_str(), "sha256" | "file") {
                return Err(Error::NewerFormat {
                    place: format!("{} (key derivation {:?})", place(), entry.kdf),
                    version: v,
                });
            }
            let salt: [u8; 32] = BASE64
                .decode(&entry.salt)
                .ok()
                .and_then(|salt| salt.try_into().ok())
                .ok_or_else(|| damaged("a salt is not 32 bytes of base64"))?;
            let matching = keys
                .iter()
                .map(|key| SealingKey::new(key, &salt))
                .find(|key| key.id() == entry.kid);
            match matching {
                Some(key) => vault.keys.push(key),
                None if position == 0 => {
                    return Err(Error::WrongKey { place: place(), found: entry.kid.clone() });
                }
                None => {}
            }
        }
        if vault.keys.is_empty() {
            return Err(damaged("it names no key"));
        }
        Ok(Some(vault))
    }

    /// Reads the vault, or makes one for an empty store. Of two that do so at once, both get the same.
    pub(crate) fn read_or_make(
        root: &dyn Blobs,
        keys: &[Arc<EncryptionKey>],
        timeout: Duration,
    ) -> Result<Self> {
        if let Some(vault) = Self::read(root, keys)? {
            return Ok(vault);
        }
        if holds_records(root)? {
            // Another process may have made both since.
            let missing = || Error::VaultMissing { path: root.path().into() };
            return Self::read(root, keys)?.ok_or_else(missing);
        }
        let key = keys.first().ok_or(Error::NoKey)?;
        let mut salt = [0; 32];
        random(&mut salt)?;
        let file = File {
            v: 1,
            keys: vec![Entry {
                kid: SealingKey::new(key, &salt).id().to_owned(),
                kdf: key.derivation().to_owned(),
                salt: BASE64.encode(salt),
            }],
        };
        let unwritable =
            |_| Error::InvalidMessage { reason: "the vault could not be written as JSON" };
        let line = serde_json::to_string(&file).map_err(unwritable)? + "\n";
        // Whoever holds the lock may sweep up what is being published without it.
        let lock = root.lock(timeout)?;
        root.create(NAME, line.as_bytes())?;
        root.sync()?;
        lock.finish();
        Self::read(root, keys)?.ok_or_else(|| Error::FolderReplaced { path: root.path().into() })
    }

    /// The key that seals.
    pub(crate) fn writer(&self) -> Option<&SealingKey> {
        self.keys.first()
    }

    /// The key of that id.
    pub(crate) fn find(&self, id: &str) -> Option<&SealingKey> {
        self.keys.iter().find(|key| key.id() == id)
    }
}

/// Whether there is a store below a folder, whatever its key.
///
/// # Errors
/// What keeps the folder from being looked at.
pub fn store_exists(root: &Path) -> Result<bool> {
    let root = FsBlobs::new(root, &[])?;
    Ok(root.links(NAME)? > 0 || holds_records(&root)?)
}

/// Whether a root holds anything that a store sealed, so that its missing vault is a loss and not a beginning.
fn holds_records(root: &dyn Blobs) -> Result<bool> {
    let (mut folders, mut sealed) = (Vec::<&str>::new(), Vec::<String>::new());
    root.list(&mut |name, kind| {
        let Ok(name) = str::from_utf8(name) else { return };
        if kind == EntryKind::Folder {
            let others = SCOPE_FOLDERS.iter().chain(&[pack::FOLDER]);
            folders.extend(others.copied().find(|other| *other == name));
        } else if name == head::NAME
            || Document::is_name(name.as_bytes())
            || name.parse::<RecordName>().is_ok()
        {
            sealed.push(name.to_owned());
        }
    })?;
    // Others use the same names: what is inside decides.
    for folder in folders {
        let mut empty = true;
        root.folder(folder).list(&mut |_, _| empty = false)?;
        if !empty {
            return Ok(true);
        }
    }
    for name in sealed {
        let bytes = match root.read(&name) {
            Err(Error::NotPlain { .. }) => None,
            read => read?,
        };
        let parsed = bytes.as_deref().map(Envelope::parse);
        if matches!(parsed, Some(Ok(_) | Err(Malformed::Newer(_)))) {
            return Ok(true);
        }
    }
    Ok(false)
}
