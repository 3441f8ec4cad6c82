//! One conversation's sealed files: listing, opening and sealing them. Remembers only the vault.

pub(crate) mod decoder;
pub(crate) mod document;
pub(crate) mod listing;
pub(crate) mod quarantine;
pub(crate) mod scopes;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::blob::{Blobs, EntryKind, LOCK};
use crate::crypto::{EncryptionKey, Envelope, Malformed, Place, Scratch, SealingKey};
use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::keyring::cache::KeyringCache;
use crate::store::keyring::{KeyLookup, Keyring, holds_records};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::head::Head;
use crate::store::record::layout::{ARTIFACTS, HEAD, PACKS, SNAPSHOTS, VAULT};
use crate::store::record::name::RecordName;
use crate::store::record::pack_name::PackName;
use crate::store::record::retention::Retention;
use crate::store::record::seq_set::SeqSet;

/// How long a reading waits for a writer to finish what looks half done.
const SETTLING: Duration = Duration::from_secs(1);

/// How long a head may stay half overwritten.
const TEARING: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) packs: Arc<dyn Blobs>,
    pub(crate) snapshots: Arc<dyn Blobs>,
    pub(crate) artifacts: Arc<dyn Blobs>,
    pub(crate) root: Arc<dyn Blobs>,
    pub(crate) scope: Arc<Scope>,
    vault: Arc<KeyringCache>,
    /// How much is kept of a conversation whose settings do not say it.
    pub(crate) retention: Retention,
    /// How many threads may read packs, if not as many as there are processors.
    threads: Option<usize>,
}

/// What is in the folder of packs, in no order.
#[derive(Debug, Default)]
pub(crate) struct Packs {
    pub(crate) names: Vec<PackName>,
    foreign: Vec<Finding>,
    leftovers: Vec<Finding>,
}

/// The names in a folder, not yet opened, in no order.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) names: Vec<RecordName>,
    /// Sorted.
    pub(crate) packs: Vec<PackName>,
    /// What is no record of this store.
    pub(crate) foreign: Vec<Finding>,
    pub(crate) leftovers: Vec<Finding>,
}

/// What a file turned out to be.
#[derive(Debug, Clone)]
pub(crate) enum Opened {
    Message(Arc<StoredMessage>),
    Forget(SeqSet),
    Skipped(FindingKind),
    /// It was there when the folder was listed.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadState {
    Absent,
    Damaged,
    Known(Head),
}

impl HeadState {
    /// The highest number that it acknowledges.
    pub(crate) fn seq(self) -> u64 {
        match self {
            Self::Known(head) => head.seq,
            Self::Absent | Self::Damaged => 0,
        }
    }

    /// The revision of the settings that it tells of; 0 where there are none.
    pub(crate) fn profile(self) -> u64 {
        match self {
            Self::Known(head) => head.profile(),
            Self::Absent | Self::Damaged => 0,
        }
    }
}

impl Folder {
    pub(crate) fn new(
        root: Arc<dyn Blobs>,
        blobs: Arc<dyn Blobs>,
        scope: Scope,
        keys: Vec<Arc<EncryptionKey>>,
    ) -> Self {
        let [packs, snapshots, artifacts] =
            [PACKS, SNAPSHOTS, ARTIFACTS].map(|name| blobs.folder(name));
        let (vault, scope) = (Arc::new(KeyringCache::new(keys)), Arc::new(scope));
        let retention = Retention::FOREVER;
        Self { blobs, packs, snapshots, artifacts, root, scope, vault, retention, threads: None }
    }

    /// The default conversation's folder, under the same keys.
    pub(crate) fn of_root(&self) -> Self {
        let root = Arc::clone(&self.root);
        let folder = Self::new(Arc::clone(&root), root, Scope::Default, Vec::new());
        let vault = Arc::clone(&self.vault);
        Self { vault, retention: self.retention, threads: self.threads, ..folder }
    }

    /// The same, keeping so much where its settings do not say it.
    pub(crate) fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// The same, looking for a changed key in these files.
    pub(crate) fn finding_keys_in(self, files: Vec<PathBuf>) -> Self {
        Self { vault: Arc::new(self.vault.finding_keys_in(files)), ..self }
    }

    /// The same, read by so many threads.
    pub(crate) fn read_by(self, threads: Option<usize>) -> Self {
        Self { threads, ..self }
    }

    /// How many threads may read packs. To ask the system takes longer than opening a store.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get))
    }

    /// The vault as it was last seen; `None` while there is none.
    pub(crate) fn vault(&self) -> Result<Option<&Keyring>> {
        self.vault.get(&*self.root)
    }

    /// Whether there are records, in whatever conversation, and no vault.
    pub(crate) fn lacks_vault(&self) -> Result<bool> {
        Ok(self.vault()?.is_none() && holds_records(&*self.root)? && self.vault()?.is_none())
    }

    /// The keys at hand that the vault names now, and that are bound to the store.
    pub(crate) fn sealing_keys(&self) -> Result<impl Iterator<Item = Result<&SealingKey>>> {
        let vault = match self.vault.refresh(&*self.root) {
            // What the others sealed can be read still.
            Err(Error::KeyChanged { .. }) => self.vault()?,
            vault => vault?,
        };
        Ok(vault.into_iter().flat_map(Keyring::keys))
    }

    /// The keys that the vault names although nothing binds them to the store.
    pub(crate) fn unbound_keys(&self) -> Result<Vec<Finding>> {
        let unbound = self.vault.refresh(&*self.root)?.into_iter().flat_map(Keyring::unbound);
        let kind = |id: &str| FindingKind::UnboundKey { found: id.to_owned() };
        Ok(unbound.map(|id| kind(id).in_file(VAULT)).collect())
    }

    /// Takes them out of the vault.
    pub(crate) fn remove_unbound_keys(&self, timeout: Duration) -> Result<()> {
        let vault = self.vault.refresh(&*self.root)?;
        vault.map_or(Ok(()), |vault| vault.remove_unbound(&*self.root, timeout))
    }

    /// The keys at hand, whether or not the vault names them.
    pub(crate) fn keys(&self) -> &[Arc<EncryptionKey>] {
        self.vault.keys()
    }

    /// Whether the folder can be read with the keys at hand.
    pub(crate) fn check(&self) -> Result<()> {
        // A vault of another key is an error before anything else is looked at.
        if self.vault()?.is_none()
            && self.vault.keys().iter().all(|key| key.needs_salt())
            && self.lacks_vault()?
        {
            return Err(Error::VaultMissing { path: self.root.path().into() });
        }
        self.head().map(drop)
    }

    /// Makes the vault of an empty store.
    ///
    /// # Errors
    /// [`Error::VaultMissing`] where the vault is missing beside records, before anything is touched.
    pub(crate) fn create_vault(&self, timeout: Duration) -> Result<()> {
        let Some(vault) = self.vault()? else {
            self.vault.put(Keyring::read_or_create(&*self.root, self.vault.keys(), timeout)?);
            return Ok(());
        };
        // Whether the seal is there now or the next time, the keys are the same.
        if let Err(error) = vault.bind_older(&*self.root) {
            tracing::warn!(%error, "could not seal the vault");
        }
        Ok(())
    }

    /// The key that seals. A change of keys takes every conversation's lock once after it has replaced the vault, so
    /// that what the lock's holder seals under this key is not overlooked.
    ///
    /// # Errors
    /// [`Error::KeyChanged`] where the store's key was changed to one that is not at hand.
    pub(crate) fn writing_key(&self) -> Result<&SealingKey> {
        self.vault.refresh(&*self.root)?.map(Keyring::writer).ok_or(Error::NoKey)
    }

    /// Runs `work` while nobody writes; `None` where writers do not stop. Where this process may not lock, it can at
    /// least read.
    pub(crate) fn settled<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let lock = match self.blobs.links(LOCK).map(|links| links > 0) {
            Ok(true) => self.blobs.lock(SETTLING).map(Some),
            // Whoever writes makes the lock first.
            _ => Ok(None),
        };
        let lock = match lock {
            Ok(lock) => lock,
            Err(Error::LockTimeout { .. }) => return Ok(None),
            Err(_) => None,
        };
        let done = work();
        if let Some(lock) = lock {
            lock.pass_on();
        }
        done.map(Some)
    }

    /// Whether a file's bytes open under another name than its own.
    pub(crate) fn belongs_to(&self, name: RecordName, bytes: &[u8]) -> Result<bool> {
        let place = name.to_string();
        Ok(self.unseal(&Place::record(&self.scope.parts(), &place), bytes)?.is_ok())
    }

    pub(crate) fn unseal(
        &self,
        place: &Place<'_>,
        bytes: &[u8],
    ) -> Result<Result<Zeroizing<Vec<u8>>, FindingKind>> {
        let mut scratch = Scratch::default();
        Ok(self.unseal_in(&mut scratch, place, bytes)?.map(std::mem::take))
    }

    /// [`unseal`](Self::unseal) without asking for memory each time.
    pub(crate) fn unseal_in<'s>(
        &self,
        scratch: &'s mut Scratch,
        place: &Place<'_>,
        bytes: &[u8],
    ) -> Result<Result<&'s mut Zeroizing<Vec<u8>>, FindingKind>> {
        let envelope = match Envelope::parse(bytes) {
            Ok(envelope) => envelope,
            Err(Malformed::Newer(version)) => return Ok(Err(FindingKind::NewerFormat(version))),
            Err(Malformed::LegacyFormat) => return Ok(Err(FindingKind::LegacyFormat)),
            Err(Malformed::Not(reason)) => return Ok(Err(FindingKind::Damaged(reason))),
        };
        let id = envelope.key_id;
        let key = match self.vault()? {
            Some(vault) => match vault.find(id)? {
                KeyLookup::Key(key) => key,
                // The keys may have been changed since the vault was read.
                _ => match self
                    .vault
                    .refresh(&*self.root)?
                    .map(|vault| vault.find(id))
                    .transpose()?
                {
                    Some(KeyLookup::Key(key)) => key,
                    Some(KeyLookup::Unbound) => {
                        return Ok(Err(FindingKind::UnboundKey { found: id.into() }));
                    }
                    Some(KeyLookup::Unknown) | None => {
                        return Ok(Err(FindingKind::WrongKey { found: id.into() }));
                    }
                },
            },
            // Without the salt a key's id cannot be told, but whether it opens a record can.
            None => {
                let opens = |key: &SealingKey| {
                    key.open(place, &envelope, &mut Scratch::default()).is_some()
                };
                let keys = self.vault.keys().iter();
                match keys.map(|key| SealingKey::under_id(key, id.into())).find(opens) {
                    Some(key) => &{ key },
                    None => return Ok(Err(FindingKind::Unopenable)),
                }
            }
        };
        Ok(key.open(place, &envelope, scratch).ok_or(FindingKind::Unopenable))
    }

    /// Seals a record's bytes and publishes them as a new file, moving its time by a millisecond where a file that is
    /// not the store's has taken the name. Durable once the folder is synced.
    pub(crate) fn publish(
        &self,
        key: &SealingKey,
        mut name: RecordName,
        plaintext: &[u8],
    ) -> Result<RecordName> {
        for _ in 0..1000 {
            let text = name.to_string();
            let line = key.seal(&Place::record(&self.scope.parts(), &text), plaintext)?;
            if self.blobs.create(&text, &line)? {
                return Ok(name);
            }
            name.time = name.time.next();
        }
        Err(Error::Damaged {
            place: self.blobs.path().display().to_string(),
            reason: "a thousand files that are not records hold the next records' names",
        })
    }

    pub(crate) fn head_bytes(&self) -> Result<Option<Vec<u8>>> {
        match self.blobs.peek(HEAD) {
            // What is no file is no head; the folder's own troubles are errors.
            Err(Error::NotPlain { path, .. }) if path == self.blobs.path().join(HEAD) => {
                Ok(Some(Vec::new()))
            }
            other => other,
        }
    }

    /// Reads the head, and once more where it was being overwritten meanwhile.
    pub(crate) fn head(&self) -> Result<(Option<Vec<u8>>, HeadState)> {
        let mut seen = None;
        loop {
            let bytes = self.head_bytes()?;
            let Some(line) = &bytes else {
                return Ok((None, HeadState::Absent));
            };
            if let Ok(plaintext) = self.unseal(&Place::head(&self.scope.parts()), line)?
                && let Some(head) = Head::parse(&plaintext)
            {
                return Ok((bytes, HeadState::Known(head)));
            }
            if seen == bytes {
                return Ok((bytes, HeadState::Damaged));
            }
            seen = bytes;
            // Whoever overwrites it may have been made to wait half-way.
            std::thread::sleep(TEARING);
        }
    }

    /// Whether no name in the folder has changed since the head was written: it tells then of all that there is.
    pub(crate) fn matches_stamps(&self, head: &Head) -> Result<bool> {
        // A folder of packs that cannot be looked at is a matter for the listing.
        let packs_are = |mark| matches!(self.packs.mark(), Ok(now) if now == mark);
        Ok(head.mark.is_some() && self.blobs.mark()? == head.mark && packs_are(head.packs))
    }

    pub(crate) fn seal_head(&self, key: &SealingKey, head: Head) -> Result<Vec<u8>> {
        key.seal(&Place::head(&self.scope.parts()), &head.to_plaintext())
    }
}

/// How often a reading starts again because files were moved under it.
pub(crate) const ATTEMPTS: usize = 20;

pub(crate) fn unstable_folder(folder: &Folder) -> Error {
    Error::Damaged {
        place: folder.blobs.path().display().to_string(),
        reason: "its files keep vanishing while they are read",
    }
}

fn no_file(kind: EntryKind) -> FindingKind {
    FindingKind::NotPlain(match kind {
        EntryKind::Folder => "a folder",
        _ => "a link, pipe or device",
    })
}

/// Turns what concerns one file alone into a finding; the rest would concern every file.
pub(crate) fn unreadable(error: Error) -> Result<FindingKind> {
    match error {
        Error::NotPlain { found, .. } => Ok(FindingKind::NotPlain(found)),
        Error::Io { source, .. } => Ok(FindingKind::Unreadable(source.kind())),
        other => Err(other),
    }
}
