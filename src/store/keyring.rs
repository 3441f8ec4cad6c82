//! The one plain file of a store: which keys it was written under.

pub(crate) mod cache;
pub(crate) mod ids;
pub(crate) mod line;
pub(crate) mod salt_copy;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::blob::{Blobs, EntryKind, fs::FsBlobs};
use crate::crypto::{EncryptionKey, Envelope, KeyBytes, Malformed, SealingKey};
use crate::error::{Error, Result};
use crate::scope::SCOPE_FOLDERS;
use crate::store::keyring::line::{Entry, KeyList};
use crate::store::record::document::Document;
use crate::store::record::layout::{CATALOG, HEAD, PACKS, QUARANTINE, VAULT};
use crate::store::record::name::RecordName;

/// The keys of an existing store that the caller holds, the one that writes first.
#[derive(Debug)]
pub(crate) struct Keyring {
    bytes: Vec<u8>,
    list: KeyList,
    writer: SealingKey,
    writer_bytes: KeyBytes,
    others: Vec<ReadOnlyKey>,
    binding: Binding,
    keys: Vec<Arc<EncryptionKey>>,
}

/// A key that only reads, while the store's key is being changed.
struct ReadOnlyKey {
    entry: Entry,
    /// Derived for the first file that names it: a passphrase may cost seconds, and this may not be the store's.
    key: OnceLock<Option<SealingKey>>,
}

impl fmt::Debug for ReadOnlyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOnlyKey").field("id", &self.entry.kid).finish_non_exhaustive()
    }
}

/// What says that the keys after the first one are this store's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    /// The seal of the key that writes.
    Sealed,
    /// Nothing, as in a store that was made before vaults had seals. A change of keys may have been begun then; no
    /// change leaves two entries of one key, which that of the writing key tells by its position among those given.
    Older(usize),
    /// Nothing. Such a store's vault would have a seal.
    Broken,
}

/// What came of looking for a key by its id.
#[derive(Debug)]
pub(crate) enum KeyLookup<'a> {
    Key(&'a SealingKey),
    /// The vault names it, but nothing binds it to this store.
    Unbound,
    /// It is not named, or not at hand.
    Unknown,
}

impl Keyring {
    /// Reads the vault; `None` where there is none yet.
    ///
    /// # Errors
    /// [`Error::WrongKey`] unless one of the keys given is the one that the store is written under.
    pub(crate) fn read(root: &dyn Blobs, keys: &[Arc<EncryptionKey>]) -> Result<Option<Self>> {
        root.read(VAULT)?.map(|bytes| Self::parse(bytes, root, keys)).transpose()
    }

    fn parse(bytes: Vec<u8>, root: &dyn Blobs, keys: &[Arc<EncryptionKey>]) -> Result<Self> {
        let path = root.path().join(VAULT);
        let list = line::parse(&bytes, &path)?;
        let (first, others) = list.entries.split_first().ok_or(Error::NoKey)?;
        let Some((position, writer_bytes)) = first.find_with(keys)? else {
            let found = first.kid.clone();
            return Err(Error::WrongKey { place: path.display().to_string(), found });
        };
        let binding = match list.is_sealed_by(&writer_bytes) {
            Some(true) => Binding::Sealed,
            None if !first.is_bound_kind(&writer_bytes) => Binding::Older(position),
            _ => Binding::Broken,
        };
        let other = |entry: &Entry| ReadOnlyKey { entry: entry.clone(), key: OnceLock::new() };
        Ok(Self {
            writer: first.sealing_key(&writer_bytes),
            others: others.iter().map(other).collect(),
            binding,
            writer_bytes,
            keys: keys.to_vec(),
            list,
            bytes,
        })
    }

    /// Reads the vault, or makes one for an empty store. Of two that do so at once, both get the same.
    pub(crate) fn read_or_create(
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
        Self::make(root, keys.first().ok_or(Error::NoKey)?, timeout)?;
        Self::read(root, keys)?.ok_or_else(|| Error::FolderReplaced { path: root.path().into() })
    }

    /// Makes the vault of an empty store, unless another process has.
    pub(crate) fn make(root: &dyn Blobs, key: &EncryptionKey, timeout: Duration) -> Result<()> {
        let entry = Entry::new(key)?;
        let bytes = entry.bytes_of(key)?.ok_or(Error::NoKey)?;
        Self::publish(root, std::slice::from_ref(&entry), &bytes, timeout)
    }

    /// Writes a vault where there is none, unless another process has. `writer` are those of the first entry's key.
    pub(crate) fn publish(
        root: &dyn Blobs,
        entries: &[Entry],
        writer: &KeyBytes,
        timeout: Duration,
    ) -> Result<()> {
        let bytes = line::sealed_bytes(entries, writer)?;
        // Whoever holds the lock may sweep up what is being published without it.
        let lock = root.lock(timeout)?;
        root.create(VAULT, &bytes)?;
        root.sync()?;
        lock.pass_on();
        Ok(())
    }

    /// Puts these entries in its place, durably and under the seal of the first one's key, unless another process has
    /// changed it. Whether it did.
    pub(crate) fn replace(
        &self,
        root: &dyn Blobs,
        entries: &[Entry],
        writer: &KeyBytes,
        timeout: Duration,
    ) -> Result<bool> {
        let bytes = line::sealed_bytes(entries, writer)?;
        let lock = root.lock(timeout)?;
        let replaced = match root.read(VAULT) {
            Ok(now) if now.as_ref() == Some(&self.bytes) => {
                root.replace(VAULT, &bytes).and_then(|()| root.sync()).map(|()| true)
            }
            now => now.map(|_| false),
        };
        lock.pass_on();
        replaced
    }

    /// Seals a vault that was made before vaults had seals and names one key alone.
    pub(crate) fn bind_older(&self, root: &dyn Blobs) -> Result<()> {
        if matches!(self.binding, Binding::Older(_)) && self.others.is_empty() {
            // The next one does if others are at work.
            self.replace(root, &self.list.entries, &self.writer_bytes, Duration::ZERO)?;
        }
        Ok(())
    }

    /// Puts a vault in its place that names no key but those that are bound to the store, and keeps a copy of it in
    /// the quarantine folder. Leaves alone what may be a change of keys that an earlier version has begun.
    pub(crate) fn remove_unbound(&self, root: &dyn Blobs, timeout: Duration) -> Result<()> {
        if self.binding != Binding::Broken && self.same_key_twice()?.is_none() {
            return Ok(());
        }
        let aside = root.folder(QUARANTINE);
        let free = (1..1000).map(|n| format!("{VAULT}.{n}"));
        for name in free {
            if aside.create(&name, &self.bytes)? {
                break;
            }
        }
        aside.sync()?;
        aside.anchor()?;
        let entries: Vec<_> = self.list.entries.iter().take(1).cloned().collect();
        self.replace(root, &entries, &self.writer_bytes, timeout).map(drop)
    }

    /// The key that seals.
    pub(crate) fn writer(&self) -> &SealingKey {
        &self.writer
    }

    /// All that it names.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.list.entries
    }

    /// Whether the key that writes has sealed the list.
    pub(crate) fn is_sealed(&self) -> bool {
        self.binding == Binding::Sealed
    }

    /// Those at hand that are bound to the store, the one that seals first. Each is derived when it is asked for.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Result<&SealingKey>> {
        let others = self.others.iter().filter_map(|other| self.key_of(other).transpose());
        std::iter::once(Ok(&self.writer)).chain(others)
    }

    /// The key of that id.
    pub(crate) fn find(&self, id: &str) -> Result<KeyLookup<'_>> {
        if self.writer.id() == id {
            return Ok(KeyLookup::Key(&self.writer));
        }
        let Some(other) = self.others.iter().find(|other| other.entry.kid == id) else {
            return Ok(KeyLookup::Unknown);
        };
        Ok(match self.key_of(other)? {
            Some(key) => KeyLookup::Key(key),
            None if self.binding == Binding::Sealed => KeyLookup::Unknown,
            None if self.binding == Binding::Broken || self.is_of_writer(other)? => {
                KeyLookup::Unbound
            }
            None => KeyLookup::Unknown,
        })
    }

    /// The key, if it is at hand and bound to the store.
    fn key_of<'a>(&'a self, other: &'a ReadOnlyKey) -> Result<Option<&'a SealingKey>> {
        if self.binding == Binding::Broken {
            return Ok(None);
        }
        if other.key.get().is_none() {
            let held = match other.entry.find_with(&self.keys)? {
                Some((position, _)) if self.binding == Binding::Older(position) => None,
                found => found.map(|(_, bytes)| other.entry.sealing_key(&bytes)),
            };
            // Another thread may have found the same.
            let _ = other.key.set(held);
        }
        Ok(other.key.get().and_then(Option::as_ref))
    }

    /// Whether the key that writes is that of another entry too, which no change of keys leaves behind.
    fn is_of_writer(&self, other: &ReadOnlyKey) -> Result<bool> {
        let Binding::Older(writer) = self.binding else { return Ok(false) };
        Ok(other.entry.find_with(&self.keys)?.is_some_and(|(position, _)| position == writer))
    }

    /// The id of an entry that is of the key that writes as well, where nothing binds it to the store.
    fn same_key_twice(&self) -> Result<Option<&str>> {
        for other in &self.others {
            if self.is_of_writer(other)? {
                return Ok(Some(&other.entry.kid));
            }
        }
        Ok(None)
    }

    /// The ids that it names although nothing binds them to the store.
    pub(crate) fn unbound(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().filter(|_| self.binding != Binding::Sealed);
        others.map(|other| other.entry.kid.as_str())
    }

    /// Refuses where an entry that is not the store's may be named.
    pub(crate) fn check_bound(&self, root: &dyn Blobs) -> Result<()> {
        let is_sound = match self.binding {
            Binding::Sealed => true,
            Binding::Older(_) => self.same_key_twice()?.is_none(),
            Binding::Broken => self.others.is_empty(),
        };
        let path = root.path().join(VAULT);
        let reason = "it names a key that nothing binds to this store";
        if is_sound { Ok(()) } else { Err(Error::VaultDamaged { path, reason }) }
    }
}

/// Makes the vault of an empty store whose key is a passphrase, with a copy in another folder: without the salt in it
/// the passphrase opens nothing. Derives the key, some tenths of a second. Where there is a vault already, it stays.
///
/// # Errors
/// [`Error::VaultMissing`] where there are records without their vault.
pub fn create_vault(root: &Path, key: &EncryptionKey, copies: &Path) -> Result<()> {
    let root = FsBlobs::new(root, &[])?;
    if line::read(&root)?.is_none() {
        if holds_records(&root)? {
            return Err(Error::VaultMissing { path: root.path().into() });
        }
        let entry = Entry::new(key)?;
        salt_copy::keep(std::slice::from_ref(&entry), copies)?;
        let bytes = entry.bytes_of(key)?.ok_or(Error::NoKey)?;
        Keyring::publish(&root, &[entry], &bytes, LOCK_TIMEOUT)?;
    }
    // It may be another process's.
    salt_copy::keep(&line::read(&root)?.map(|list| list.entries).unwrap_or_default(), copies)
}

/// How long making a vault waits for others.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether there is a store below a folder, whatever its key.
///
/// # Errors
/// What keeps the folder from being looked at.
pub fn store_exists(root: &Path) -> Result<bool> {
    let root = FsBlobs::new(root, &[])?;
    Ok(root.links(VAULT)? > 0 || holds_records(&root)?)
}

/// Whether a root holds anything that a store sealed, so that its missing vault is a loss and not a beginning.
pub(crate) fn holds_records(root: &dyn Blobs) -> Result<bool> {
    let (mut folders, mut sealed) = (Vec::<&str>::new(), Vec::<String>::new());
    root.list(&mut |name, kind| {
        let Ok(name) = str::from_utf8(name) else { return };
        if kind == EntryKind::Folder {
            let others = SCOPE_FOLDERS.iter().chain(&[PACKS, CATALOG]);
            folders.extend(others.copied().find(|other| *other == name));
        } else if name == HEAD
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
