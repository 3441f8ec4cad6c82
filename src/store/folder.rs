//! The folder of one conversation: lists, opens and seals its files. Caches only the keyring.

pub(crate) mod artifact_contents;
pub(crate) mod artifact_files;
pub(crate) mod artifact_measure;
pub(crate) mod backup_files;
pub(crate) mod conversation_folders;
pub(crate) mod decoder;
pub(crate) mod document;
pub(crate) mod keyring;
pub(crate) mod listing;
pub(crate) mod pack;
pub(crate) mod quarantine;
pub(crate) mod sealed_files;
pub(crate) mod segments;
pub(crate) mod settings;
pub(crate) mod snapshot_files;
pub(crate) mod witness;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::crypto::{AssociatedData, EncryptionKey, Envelope, Malformed, Scratch, SealingKey};
use crate::directory::{Directory, EntryKind, LOCK};
use crate::error::{Error, Result};
use crate::scope::{BACKUPS, Scope};
use crate::store::folder::backup_files::BackupFiles;
use crate::store::folder::keyring::cache::KeyringCache;
use crate::store::folder::keyring::{KeyLookup, Keyring, holds_records};
use crate::store::folder::witness::Witness;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::head::Head;
use crate::store::record::layout::{ARTIFACTS, HEAD, PACKS, RECALL, SNAPSHOTS, VAULT};
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::retention::Retention;
use crate::store::record::seq_set::forget_record::ForgetRecord;

/// How long a read waits for a writer before it decides that the folder is incomplete.
const SETTLING: Duration = Duration::from_secs(1);

/// How long to wait before reading a head again that a writer may be overwriting.
const TEARING: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) packs: Arc<dyn Directory>,
    pub(crate) snapshots: Arc<dyn Directory>,
    pub(crate) artifacts: Arc<dyn Directory>,
    /// Segments of the search index.
    pub(crate) recall: Arc<dyn Directory>,
    pub(crate) root: Arc<dyn Directory>,
    pub(crate) backups: BackupFiles,
    pub(crate) scope: Arc<Scope>,
    vault: Arc<KeyringCache>,
    /// The retention limits if the settings have none.
    pub(crate) retention: Retention,
    /// How many threads may read packs. `None` means one for each processor.
    threads: Option<usize>,
    witness: Option<Witness>,
}

/// The contents of the folder of packs, in no order.
#[derive(Debug, Default)]
pub(crate) struct Packs {
    pub(crate) names: Vec<PackName>,
    foreign: Vec<Finding>,
    leftovers: Vec<Finding>,
}

/// The names in a folder, unopened and in no order.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) names: Vec<RecordName>,
    /// Sorted.
    pub(crate) packs: Vec<PackName>,
    /// Files that are no records of this store.
    pub(crate) foreign: Vec<Finding>,
    pub(crate) leftovers: Vec<Finding>,
}

/// The outcome of opening a file.
#[derive(Debug, Clone)]
pub(crate) enum Opened {
    Message(Arc<StoredMessage>),
    Forget(ForgetRecord),
    Skipped(FindingKind),
    /// The file was listed but has vanished since.
    Gone,
}

impl Opened {
    /// The message, if it is one that opened.
    pub(crate) fn message(&self) -> Option<&Arc<StoredMessage>> {
        match self {
            Self::Message(message) => Some(message),
            Self::Forget(_) | Self::Skipped(_) | Self::Gone => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each conversation")]
pub(crate) enum HeadState {
    Absent,
    Damaged,
    Known(Head),
}

impl HeadState {
    /// What it means that there are fewer records than the head tells of.
    pub(crate) fn loss(self) -> FindingKind {
        match self {
            Self::Known(head) => head.loss(),
            Self::Absent | Self::Damaged => FindingKind::TailTruncated,
        }
    }

    /// The highest number that the head records; 0 without a head.
    pub(crate) fn seq(self) -> u64 {
        match self {
            Self::Known(head) => head.seq,
            Self::Absent | Self::Damaged => 0,
        }
    }

    /// The revision of the settings that the head records; 0 if there are none.
    pub(crate) fn profile(self) -> u64 {
        match self {
            Self::Known(head) => head.profile(),
            Self::Absent | Self::Damaged => 0,
        }
    }
}

impl Folder {
    pub(crate) fn new(
        root: Arc<dyn Directory>,
        directory: Arc<dyn Directory>,
        scope: Scope,
        keys: Vec<Arc<EncryptionKey>>,
    ) -> Self {
        let [packs, snapshots, artifacts, recall] =
            [PACKS, SNAPSHOTS, ARTIFACTS, RECALL].map(|name| directory.folder(name));
        let (vault, scope) = (Arc::new(KeyringCache::new(keys)), Arc::new(scope));
        let retention = Retention::FOREVER;
        let backups = BackupFiles(root.folder(BACKUPS));
        Self {
            directory,
            packs,
            snapshots,
            artifacts,
            recall,
            root,
            backups,
            scope,
            vault,
            retention,
            threads: None,
            witness: None,
        }
    }

    /// Keeps a witness of the head in a folder outside of the store.
    pub(crate) fn witnessed_in(mut self, folder: Option<&Path>) -> Result<Self> {
        self.witness = folder.map(|folder| Witness::of(&*self.directory, folder)).transpose()?;
        Ok(self)
    }

    /// The default conversation's folder, with the same keys.
    pub(crate) fn of_root(&self) -> Self {
        let root = Arc::clone(&self.root);
        let folder = Self::new(Arc::clone(&root), root, Scope::Default, Vec::new());
        let vault = Arc::clone(&self.vault);
        Self { vault, retention: self.retention, threads: self.threads, ..folder }
    }

    /// Sets the retention limits for conversations whose settings have none.
    pub(crate) fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Sets key files in which to look for a new key after a change.
    pub(crate) fn finding_keys_in(self, files: Vec<PathBuf>) -> Self {
        Self { vault: Arc::new(self.vault.finding_keys_in(files)), ..self }
    }

    /// Sets the number of threads that read packs.
    pub(crate) fn read_by(self, threads: Option<usize>) -> Self {
        Self { threads, ..self }
    }

    /// How many threads may read packs. Determined only when needed, because asking the system takes longer than
    /// opening a store.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get))
    }

    /// The keyring as it was last read; `None` if there is no vault yet.
    pub(crate) fn vault(&self) -> Result<Option<&Keyring>> {
        self.vault.get(&*self.root)
    }

    /// Whether some conversation has records although there is no vault.
    pub(crate) fn lacks_vault(&self) -> Result<bool> {
        Ok(self.vault()?.is_none() && holds_records(&*self.root)? && self.vault()?.is_none())
    }

    /// The keys that the vault names, that are bound to the store and that the caller holds.
    pub(crate) fn sealing_keys(&self) -> Result<impl Iterator<Item = Result<&SealingKey>>> {
        let vault = match self.vault.refresh(&*self.root) {
            // The other keys still open what they sealed.
            Err(Error::KeyChanged { .. }) => self.vault()?,
            vault => vault?,
        };
        Ok(vault.into_iter().flat_map(Keyring::keys))
    }

    /// The keys that the vault names although they are not bound to the store.
    pub(crate) fn unbound_keys(&self) -> Result<Vec<Finding>> {
        let unbound = self.vault.refresh(&*self.root)?.into_iter().flat_map(Keyring::unbound);
        let kind = |id: &str| FindingKind::UnboundKey { found: id.to_owned() };
        Ok(unbound.map(|id| kind(id).in_file(VAULT)).collect())
    }

    /// Removes these keys from the vault.
    pub(crate) fn remove_unbound_keys(&self, timeout: Duration) -> Result<()> {
        let vault = self.vault.refresh(&*self.root)?;
        vault.map_or(Ok(()), |vault| vault.remove_unbound(&*self.root, timeout))
    }

    /// The keys that the caller holds, whether or not the vault names them.
    pub(crate) fn keys(&self) -> &[Arc<EncryptionKey>] {
        self.vault.keys()
    }

    /// Checks that the folder can be read with the keys at hand.
    pub(crate) fn check(&self) -> Result<()> {
        // If the vault belongs to another key, fail before anything else is read.
        if self.vault()?.is_none()
            && self.vault.keys().iter().all(|key| key.needs_salt())
            && self.lacks_vault()?
        {
            return Err(Error::VaultMissing { path: self.root.path().into() });
        }
        self.head().map(drop)
    }

    /// Creates the vault of an empty store.
    ///
    /// # Errors
    /// [`Error::VaultMissing`] if there are records without a vault. Nothing is changed then.
    pub(crate) fn create_vault(&self, timeout: Duration) -> Result<()> {
        if self.vault()?.is_none() {
            self.vault.put(Keyring::read_or_create(&*self.root, self.vault.keys(), timeout)?);
        }
        Ok(())
    }

    /// The key that seals. Requires the lock: after replacing the vault, a change of keys takes each conversation's
    /// lock once, so it finds everything that a lock holder sealed under this key.
    ///
    /// # Errors
    /// [`Error::KeyChanged`] if the store now uses a key that the caller does not hold.
    pub(crate) fn writing_key(&self) -> Result<&SealingKey> {
        self.vault.refresh(&*self.root)?.map(Keyring::writer).ok_or(Error::NoKey)
    }

    /// Runs `work` while no writer is active. Returns `None` if writers stay active. If this process cannot lock the
    /// folder, runs `work` without the lock.
    pub(crate) fn settled<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let lock = match self.directory.link_count(LOCK).map(|links| links > 0) {
            Ok(true) => self.directory.lock(SETTLING).map(Some),
            // Without a lock file there is no writer: a writer creates the file first.
            _ => Ok(None),
        };
        let lock = match lock {
            Ok(lock) => lock,
            Err(Error::LockTimeout { .. }) => return Ok(None),
            Err(_) => None,
        };
        let done = work();
        if let Some(lock) = lock {
            lock.release_as_found();
        }
        done.map(Some)
    }

    pub(crate) fn unseal(
        &self,
        associated: &AssociatedData<'_>,
        bytes: &[u8],
    ) -> Result<Result<Zeroizing<Vec<u8>>, FindingKind>> {
        let mut scratch = Scratch::default();
        Ok(self.unseal_in(&mut scratch, associated, bytes)?.map(std::mem::take))
    }

    /// [`unseal`](Self::unseal) with a reused buffer.
    pub(crate) fn unseal_in<'s>(
        &self,
        scratch: &'s mut Scratch,
        associated: &AssociatedData<'_>,
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
                // The keys may have changed since the vault was read.
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
            // Without the salt the key's id is unknown, but the key can still be tried on a record.
            None => {
                let opens = |key: &SealingKey| {
                    key.open(associated, &envelope, &mut Scratch::default()).is_some()
                };
                let keys = self.vault.keys().iter();
                match keys.map(|key| SealingKey::under_id(key, id.into())).find(opens) {
                    Some(key) => &{ key },
                    None => return Ok(Err(FindingKind::Unopenable)),
                }
            }
        };
        Ok(key.open(associated, &envelope, scratch).ok_or(FindingKind::Unopenable))
    }

    /// Seals a record and publishes it as a new file. If a foreign file has the name, the record's time moves by a
    /// millisecond. Durable once the folder is synced.
    pub(crate) fn publish(
        &self,
        key: &SealingKey,
        mut name: RecordName,
        plaintext: &[u8],
    ) -> Result<RecordName> {
        for _ in 0..1000 {
            let text = name.to_string();
            let line = key.seal(&AssociatedData::record(&self.scope.parts(), &text), plaintext)?;
            if self.directory.create(&text, &line)? {
                return Ok(name);
            }
            name.time = name.time.later(1);
        }
        let reason = "a thousand other files have the names that the next records would get";
        Err(Error::damaged(self.directory.path(), reason))
    }

    pub(crate) fn head_bytes(&self) -> Result<Option<Vec<u8>>> {
        match self.directory.read_cached(HEAD) {
            // A head that is no regular file is a damaged head. Trouble with the folder itself is an error.
            Err(Error::NotPlain { path, .. }) if path == self.directory.path().join(HEAD) => {
                Ok(Some(Vec::new()))
            }
            other => other,
        }
    }

    /// Reads the head. It records at least what its witness does.
    pub(crate) fn head(&self) -> Result<(Option<Vec<u8>>, HeadState)> {
        // Writers write the head first, so that the witness is never ahead of a head that is read after it.
        let witness = self.witness.as_ref().and_then(Witness::read);
        let (bytes, head) = self.stored_head()?;
        let HeadState::Known(stored) = head else { return Ok((bytes, head)) };
        let witness = witness.filter(|witness| Some(witness) != bytes.as_ref());
        let scope = self.scope.parts();
        let opened = witness.map(|line| self.unseal(&AssociatedData::head(&scope), &line));
        let opened = opened.transpose()?;
        // Another store may have been here, under another key.
        let witness = opened.and_then(Result::ok).and_then(|plaintext| Head::parse(&plaintext));
        let may_be_new = *self.scope != Scope::Default;
        let head = witness.map_or(stored, |witness| stored.not_before(&witness, may_be_new));
        Ok((bytes, HeadState::Known(head)))
    }

    /// Overwrites the head, and its witness.
    pub(crate) fn overwrite_head(&self, line: &[u8]) -> Result<()> {
        self.directory.overwrite(HEAD, line)?;
        self.bear_witness(line);
        Ok(())
    }

    /// Keeps a head that was written as its witness.
    pub(crate) fn bear_witness(&self, line: &[u8]) {
        if let Some(witness) = &self.witness {
            witness.write(line);
        }
    }

    /// Deletes the witness of a conversation that is removed: its name would tell that there was one.
    pub(crate) fn drop_witness(&self) {
        if let Some(witness) = &self.witness {
            witness.remove();
        }
    }

    /// Reads the head's file, and once more if it does not open: a writer may be overwriting it.
    fn stored_head(&self) -> Result<(Option<Vec<u8>>, HeadState)> {
        let mut seen = None;
        loop {
            let bytes = self.head_bytes()?;
            let Some(line) = &bytes else {
                return Ok((None, HeadState::Absent));
            };
            if let Ok(plaintext) = self.unseal(&AssociatedData::head(&self.scope.parts()), line)?
                && let Some(head) = Head::parse(&plaintext)
            {
                return Ok((bytes, HeadState::Known(head)));
            }
            if seen == bytes {
                return Ok((bytes, HeadState::Damaged));
            }
            seen = bytes;
            // The writer may have been suspended half-way.
            std::thread::sleep(TEARING);
        }
    }

    /// Whether no name in the folder has changed since the head was written. The head then describes all that there
    /// is.
    pub(crate) fn matches_stamps(&self, head: &Head) -> Result<bool> {
        // If the folder of packs cannot be read, the listing reports it.
        let packs_are = |mark| matches!(self.packs.change_stamp(), Ok(now) if now == mark);
        Ok(head.stamp.is_some()
            && self.directory.change_stamp()? == head.stamp
            && packs_are(head.packs))
    }

    pub(crate) fn seal_head(&self, key: &SealingKey, head: Head) -> Result<Vec<u8>> {
        key.seal(&AssociatedData::head(&self.scope.parts()), &head.to_plaintext())
    }
}

/// How often a read starts again because files were moved while it ran.
pub(crate) const ATTEMPTS: usize = 20;

pub(crate) fn unstable_folder(folder: &Folder) -> Error {
    Error::damaged(folder.directory.path(), "its files keep vanishing while they are read")
}

fn no_file(kind: EntryKind) -> FindingKind {
    FindingKind::NotPlain(match kind {
        EntryKind::Folder => "a folder",
        _ => "a link, pipe or device",
    })
}

/// Turns an error about one file into a finding. Returns errors that would affect every file.
pub(crate) fn unreadable(error: Error) -> Result<FindingKind> {
    match error {
        Error::NotPlain { found, .. } => Ok(FindingKind::NotPlain(found)),
        Error::Io { source, .. } => Ok(FindingKind::Unreadable(source.kind())),
        other => Err(other),
    }
}
