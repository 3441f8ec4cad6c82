//! Changes a store's key while the store is in use.
//!
//! First the vault names both keys, the new one as the writing key; every writer reads the vault under its
//! conversation's lock. Then each file is resealed, a few at a time under that lock. When nothing is sealed under the
//! old key, the vault names only the new one. An interrupted change can be continued from any point.

pub(crate) mod artifact;
pub(crate) mod conversation;
pub(crate) mod pack;
pub(crate) mod reseal;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::crypto::EncryptionKey;
use crate::directory::Directory;
use crate::directory::fs::FsDirectory;
use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::file_store::blocking;
use crate::store::file_store::options::StoreOptions;
use crate::store::folder::conversation_folders::{self, ConversationFolder};
use crate::store::folder::keyring::key_list::{self, Entry};
use crate::store::folder::keyring::{Keyring, LOCK_TIMEOUT, holds_records, salt_copy};
use crate::store::record::finding::{Finding, Progress};
use crate::store::record::layout::VAULT;
use conversation::Conversation;

/// How many rounds through all conversations to try before giving up.
const ROUNDS: usize = 20;

/// How long to release a conversation's lock between two slices: slightly longer than waiting writers sleep.
const PAUSE: Duration = Duration::from_millis(25);

/// A change of a store's key, in all its conversations.
///
/// During the change, programs with both keys read and write as usual ([`StoreOptions::also_with`]). A program that
/// has only the old key gets [`Error::WrongKey`] when it writes, and stores nothing. An interruption loses nothing,
/// and the next run with the same keys continues.
#[derive(Debug)]
#[must_use]
pub struct Rekey {
    to: Arc<EncryptionKey>,
    from: Vec<Arc<EncryptionKey>>,
    lock_timeout: Duration,
    copies: Option<PathBuf>,
    leave_unreadable: bool,
}

/// The outcome of a change of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RekeyReport {
    /// The id of the writing key.
    pub id: String,
    /// The number of files that were resealed. A pack counts as one.
    pub files: usize,
    /// The number of records examined.
    pub records: usize,
    /// The ids of the keys that the store no longer accepts.
    pub retired: Vec<String>,
    /// The ids of other keys that the store still accepts: the run was stopped, or files that open under no key would
    /// be lost without them.
    pub kept: Vec<String>,
    /// Files that do not open and were left unchanged, with their paths below the root.
    pub left: Vec<Finding>,
}

impl Rekey {
    /// A change from one key to another.
    pub fn new(from: impl Into<Arc<EncryptionKey>>, to: impl Into<Arc<EncryptionKey>>) -> Self {
        Self {
            to: to.into(),
            from: vec![from.into()],
            lock_timeout: LOCK_TIMEOUT,
            copies: None,
            leave_unreadable: false,
        }
    }

    /// Adds another key under which the store may be sealed.
    pub fn also_from(mut self, key: impl Into<Arc<EncryptionKey>>) -> Self {
        self.from.push(key.into());
        self
    }

    /// How long to wait for a conversation's lock. The default is 5 seconds.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Copies a passphrase's salt to this folder before anything is sealed under the passphrase.
    pub fn copy_salt_to(mut self, folder: impl Into<PathBuf>) -> Self {
        self.copies = Some(folder.into());
        self
    }

    /// Retires the old key even if some files could not be resealed. They then open only under the old key, and only
    /// if the old vault is put back.
    pub fn leave_unreadable(mut self, leave: bool) -> Self {
        self.leave_unreadable = leave;
        self
    }

    /// Changes the key of the store in a folder. Calls `progress` after each slice of files, and stops if it returns
    /// `false`. Does nothing if the folder has no store.
    ///
    /// # Errors
    /// [`Error::WrongKey`] if none of the old keys is the store's; nothing is changed then. [`Error::LockTimeout`]
    /// and whatever else prevents writing a conversation; nothing is lost then either.
    pub async fn run(
        self,
        root: impl AsRef<Path>,
        progress: impl FnMut(Progress) -> ControlFlow<()> + Send + 'static,
    ) -> Result<RekeyReport> {
        let root: Arc<dyn Directory> = Arc::new(FsDirectory::new(root.as_ref(), &[])?);
        blocking(move || self.run_on(&root, progress)).await
    }

    pub(crate) fn run_on(
        self,
        root: &Arc<dyn Directory>,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<RekeyReport> {
        let Some(entries) = self.begin(&**root)? else {
            return Ok(RekeyReport::default());
        };
        let mut ids = entries.into_iter().map(|entry| entry.kid);
        let mut rekeyed =
            RekeyReport { id: ids.next().unwrap_or_default(), ..RekeyReport::default() };
        rekeyed.kept = ids.collect();
        for _ in 0..ROUNDS {
            let Some(changed) = self.reseal_all(root, &mut rekeyed, &mut progress)? else {
                return Ok(rekeyed);
            };
            // A round without any file under an old key proves that none is left.
            if changed == 0 {
                if rekeyed.left.is_empty() || self.leave_unreadable {
                    self.retire(&**root)?;
                    rekeyed.retired = std::mem::take(&mut rekeyed.kept);
                }
                return Ok(rekeyed);
            }
        }
        Err(Error::damaged(root.path(), "files under the old key keep appearing"))
    }

    fn keys(&self) -> impl Iterator<Item = &Arc<EncryptionKey>> {
        std::iter::once(&self.to).chain(&self.from)
    }

    /// Makes the new key the writing key in the vault, durably. `None` if there is no store.
    fn begin(&self, root: &dyn Directory) -> Result<Option<Vec<Entry>>> {
        // Deriving keys takes long, so do it before taking the lock.
        let keys: Vec<_> = self.keys().cloned().collect();
        let Some(vault) = Keyring::read(root, &keys)? else {
            return match holds_records(root)? {
                true => Err(Error::VaultMissing { path: root.path().into() }),
                false => Ok(None),
            };
        };
        // An interrupted run may have left a vault that is not durable. Nothing may be sealed under its keys before
        // it is.
        root.sync_ancestors()?;
        vault.check_bound(root)?;
        let entries = vault.entries();
        if let Some(copies) = &self.copies {
            salt_copy::keep(entries, copies)?;
        }
        let to = std::slice::from_ref(&self.to);
        let mut known = None;
        for entry in entries {
            if entry.find(to)?.is_some() {
                known = Some(entry.clone());
            }
        }
        if vault.is_sealed() && known.as_ref() == entries.first() {
            return Ok(Some(entries.to_vec()));
        }
        let adds_passphrase = known.is_none() && self.to.needs_salt();
        if known.is_none() && entries.len() >= key_list::MOST
            || adds_passphrase && key_list::passphrases(entries) >= key_list::MOST_PASSPHRASES
        {
            return Err(Error::TooManyKeys { path: root.path().join(VAULT), keys: entries.len() });
        }
        let new = known.map_or_else(|| Entry::new(&self.to), Ok)?;
        if let Some(copies) = &self.copies {
            salt_copy::keep(std::slice::from_ref(&new), copies)?;
        }
        let mut begun = vec![new.clone()];
        begun.extend(entries.iter().filter(|entry| **entry != new).cloned());
        self.replace(root, &vault, &begun)?;
        Ok(Some(begun))
    }

    /// Reseals all files once, one conversation at a time. Returns how many; `None` if the run was stopped.
    fn reseal_all(
        &self,
        root: &Arc<dyn Directory>,
        rekeyed: &mut RekeyReport,
        progress: &mut impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Option<usize>> {
        let mut left = Vec::new();
        let (mut conversations, mut total) = (Vec::new(), 0usize);
        for place in conversation_folders::conversation_folders(root, &mut left)? {
            let (reader, writer) = self
                .options(place.scope.clone())
                .assemble(Arc::clone(root), Arc::clone(&place.directory))?;
            if let Some(size) = conversation::size(&reader.folder)? {
                total = total.saturating_add(size);
                conversations.push((place, Conversation::new(reader, writer)));
            }
        }
        let (mut files, mut records) = (0, 0);
        for (ConversationFolder { below, .. }, mut conversation) in conversations {
            loop {
                let more = conversation.resume()?;
                let done = records + conversation.tally.records;
                if progress(Progress { done, total: total.max(done) }).is_break() {
                    rekeyed.files += files + conversation.tally.files;
                    return Ok(None);
                }
                if !more {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
            for id in conversation.contents()? {
                conversation.reseal_contents(&id, self.lock_timeout)?;
                let done = records + conversation.tally.records;
                if progress(Progress { done, total: total.max(done) }).is_break() {
                    rekeyed.files += files + conversation.tally.files;
                    return Ok(None);
                }
            }
            files += conversation.tally.files;
            records += conversation.tally.records;
            left.extend(conversation.tally.left.into_iter().map(|mut finding| {
                finding.file = finding.file.map(|file| format!("{below}{file}"));
                finding
            }));
        }
        rekeyed.files += files;
        rekeyed.records = records;
        rekeyed.left = left;
        Ok(Some(files))
    }

    fn options(&self, scope: Scope) -> StoreOptions {
        let options = StoreOptions::new(Arc::clone(&self.to));
        let options = self.from.iter().cloned().fold(options, StoreOptions::also_with);
        options.scope(scope).lock_timeout(self.lock_timeout)
    }

    /// Removes the old keys from the vault.
    fn retire(&self, root: &dyn Directory) -> Result<()> {
        let keys: Vec<_> = self.keys().cloned().collect();
        let Some(vault) = Keyring::read(root, &keys)? else { return Ok(()) };
        match vault.entries() {
            [_] | [] => Ok(()),
            [first, ..] => self.replace(root, &vault, std::slice::from_ref(first)),
        }
    }

    /// Replaces the vault that was read, durably.
    fn replace(&self, root: &dyn Directory, before: &Keyring, after: &[Entry]) -> Result<()> {
        let to = std::slice::from_ref(&self.to);
        let writer = after.first().map(|entry| entry.find(to)).transpose()?.flatten();
        let is_done = match writer {
            Some(writer) => before.replace(root, after, &writer, self.lock_timeout)?,
            None => false,
        };
        match is_done {
            true => Ok(()),
            false => {
                let reason = "another change of keys is running; wait for its end and try again";
                Err(Error::damaged(root.path().join(VAULT), reason))
            }
        }
    }
}
