//! The vault's contents: parsing, sealing and writing its line.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::crypto::{Argon2Params, Derivation, EncryptionKey, KeyBytes, Salt, SealingKey, random};
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::store::record::encoding::object;
use crate::store::record::layout::VAULT;

/// The most keys in a vault. A change of keys never leaves that many.
pub(crate) const MOST: usize = 8;

/// The most passphrases in a vault. Trying one may take seconds and up to 1 GiB of memory.
pub(crate) const MOST_PASSPHRASES: usize = 3;

/// One key of a store, whether or not the caller holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kid: String,
    pub(crate) derivation: Derivation,
    salt: Salt,
    /// Proof that key and id belong together, if the salt that gave the id is lost.
    proof: Option<String>,
}

/// The keys that a vault names, and the seal that binds them to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyList {
    pub(crate) entries: Vec<Entry>,
    seal: Option<String>,
}

impl KeyList {
    /// Whether the writing key has sealed exactly these entries.
    pub(crate) fn is_sealed_by(&self, writer: &KeyBytes) -> bool {
        let seal = |seal: &String| seal_of(&self.entries, writer).is_ok_and(|right| right == *seal);
        self.seal.as_ref().is_some_and(seal)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    v: u64,
    keys: Vec<Line>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    kid: String,
    kdf: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    m: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    t: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p: Option<u32>,
    salt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    v: u64,
}

impl Entry {
    /// An entry for a new key, with a salt of its own.
    pub(crate) fn new(key: &EncryptionKey) -> Result<Self> {
        let (derivation, mut salt) = (key.derivation(), Salt::default());
        random(&mut salt)?;
        let bytes = key.make(&salt)?;
        let kid = SealingKey::new(&bytes, &salt).id().to_owned();
        Ok(Self { kid, derivation, salt, proof: None })
    }

    /// An entry that maps a key to the id in existing records, for a store whose salt is lost.
    pub(crate) fn adopted(key: &EncryptionKey, kid: String) -> Result<Self> {
        let mut salt = Salt::default();
        random(&mut salt)?;
        // Without its salt a passphrase opens only what was sealed with the same words as a secret string.
        let derivation = if key.needs_salt() { Derivation::Sha256 } else { key.derivation() };
        let proof = Some(SealingKey::proof(&key.unsalted(), &salt, &kid));
        Ok(Self { kid, derivation, salt, proof })
    }

    /// The key's bytes, if one of the given keys matches.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub(crate) fn find(&self, keys: &[Arc<EncryptionKey>]) -> Result<Option<KeyBytes>> {
        // Try passphrases last: each takes some tenths of a second.
        let (slow, fast): (Vec<_>, Vec<_>) = keys.iter().partition(|key| key.needs_salt());
        for key in fast.into_iter().chain(slow) {
            if let Some(bytes) = self.bytes_of(key)? {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// The key's bytes for this entry, if it is this key.
    pub(crate) fn bytes_of(&self, key: &EncryptionKey) -> Result<Option<KeyBytes>> {
        let is_it = |bytes: &KeyBytes| match &self.proof {
            None => SealingKey::new(bytes, &self.salt).id() == self.kid,
            Some(proof) => SealingKey::proof(bytes, &self.salt, &self.kid) == *proof,
        };
        key.made_as(self.derivation, &self.salt, is_it)
    }

    /// The key as this store uses it.
    pub(crate) fn sealing_key(&self, bytes: &KeyBytes) -> SealingKey {
        SealingKey::under(bytes, self.kid.clone())
    }

    fn parse(line: Line, damaged: &dyn Fn(&'static str) -> Error, path: &Path) -> Result<Self> {
        let Line { kid, kdf, m, t, p, salt, proof } = line;
        if kid.len() != 32 || !kid.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(damaged("a key id is not 32 hexadecimal digits"));
        }
        let derivation = match (kdf.as_str(), m, t, p) {
            ("sha256", None, None, None) => Derivation::Sha256,
            ("file", None, None, None) => Derivation::File,
            ("argon2id", Some(m), Some(t), Some(p)) => Argon2Params::checked(m, t, p)
                .map(Derivation::Argon2id)
                .ok_or_else(|| damaged("its key derivation would cost too little or too much"))?,
            ("sha256" | "file" | "argon2id", ..) => {
                return Err(damaged("a key derivation has other parameters than it takes"));
            }
            _ => {
                let place = format!("{} (key derivation {kdf:?})", path.display());
                return Err(Error::NewerFormat { place, version: 1 });
            }
        };
        let salt = BASE64
            .decode(&salt)
            .ok()
            .and_then(|salt| salt.try_into().ok())
            .ok_or_else(|| damaged("a salt is not 32 bytes of base64"))?;
        Ok(Self { kid, derivation, salt, proof })
    }

    fn line(&self) -> Line {
        let cost = match self.derivation {
            Derivation::Sha256 | Derivation::File => None,
            Derivation::Argon2id(cost) => Some(cost),
        };
        Line {
            kid: self.kid.clone(),
            kdf: self.derivation.as_str().to_owned(),
            m: cost.map(|cost| cost.memory_kib),
            t: cost.map(|cost| cost.passes),
            p: cost.map(|cost| cost.lanes),
            salt: BASE64.encode(self.salt),
            proof: self.proof.clone(),
        }
    }
}

/// The seal that binds the entries to the store. Only the writing key can compute it.
fn seal_of(entries: &[Entry], writer: &KeyBytes) -> Result<String> {
    let lines: Vec<_> = entries.iter().map(Entry::line).collect();
    let keys = serde_json::to_vec(&lines).map_err(|_| unwritable())?;
    let first = entries.first().ok_or_else(unwritable)?;
    Ok(SealingKey::vault_seal(writer, &first.salt, &keys))
}

fn unwritable() -> Error {
    Error::InvalidMessage { reason: "the vault could not be written as JSON" }
}

/// The vault's bytes. Fails if they could not be [parsed](parse) again. `writer` are the bytes of the first entry's
/// key.
pub(crate) fn sealed_bytes(entries: &[Entry], writer: &KeyBytes) -> Result<Vec<u8>> {
    let seal = seal_of(entries, writer)?;
    line(entries, Some(seal))
}

/// The bytes of a vault that names a single key and needs no seal, for copies.
pub(crate) fn copy_bytes(entry: &Entry) -> Result<Vec<u8>> {
    line(std::slice::from_ref(entry), None)
}

fn line(entries: &[Entry], seal: Option<String>) -> Result<Vec<u8>> {
    if !(1..=MOST).contains(&entries.len()) || passphrases(entries) > MOST_PASSPHRASES {
        return Err(Error::InvalidMessage {
            reason: "a vault names one to eight keys, three passphrases at most",
        });
    }
    let file = File { v: 1, keys: entries.iter().map(Entry::line).collect(), seal };
    let mut bytes = serde_json::to_vec(&file).map_err(|_| unwritable())?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// How many of the entries are passphrases.
pub(crate) fn passphrases(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| entry.is_of_passphrase()).count()
}

/// Parses a vault. Checks everything before any key is derived.
pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<KeyList> {
    let place = || path.display().to_string();
    let damaged = |reason| Error::VaultDamaged { path: path.to_owned(), reason };
    let Some(Version { v }) = object(bytes) else {
        return Err(damaged("it is not a vault"));
    };
    if v > 1 {
        return Err(Error::NewerFormat { place: place(), version: v });
    }
    let Some(File { keys, seal, .. }) = object::<File>(bytes).filter(|file| file.v == 1) else {
        return Err(damaged("it is not a vault of version 1"));
    };
    if keys.is_empty() {
        return Err(damaged("it names no key"));
    }
    if keys.len() > MOST {
        return Err(damaged("it names more keys than any store has had"));
    }
    let entries: Result<Vec<_>> =
        keys.into_iter().map(|line| Entry::parse(line, &damaged, path)).collect();
    let entries = entries?;
    if passphrases(&entries) > MOST_PASSPHRASES {
        return Err(damaged("it names more passphrases than any store has had"));
    }
    Ok(KeyList { entries, seal })
}

/// Reads the keys of a root's vault; `None` if there is none.
pub(crate) fn read(root: &dyn Directory) -> Result<Option<KeyList>> {
    let bytes = root.read(VAULT)?;
    bytes.map(|bytes| parse(&bytes, &root.path().join(VAULT))).transpose()
}
