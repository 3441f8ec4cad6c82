//! Options for opening a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::crypto::EncryptionKey;
use crate::directory::Directory;
use crate::directory::fs::FsDirectory;
use crate::directory::memory::MemoryDirectory;
use crate::error::Result;
use crate::message::redact::Redactor;
use crate::scope::Scope;
use crate::store::file_store::{FileConversationStore, blocking};
use crate::store::folder::Folder;
use crate::store::folder::backup_files::BackupFiles;
use crate::store::read::reader::Reader;
use crate::store::record::encoding::LONGEST_RECORD;
use crate::store::record::retention::Retention;
use crate::store::record::validation::Limits;
use crate::store::write::Writer;
use crate::store::write::compact::Compactor;

/// Options for opening a store.
#[derive(Debug, Clone)]
#[must_use]
pub struct StoreOptions {
    keys: Vec<Arc<EncryptionKey>>,
    key_files: Vec<PathBuf>,
    scope: Scope,
    clock: Arc<dyn Clock>,
    lock_timeout: Duration,
    max_message_bytes: usize,
    redactor: Option<Arc<dyn Redactor>>,
    loose_files: usize,
    threads: Option<usize>,
    retention: Retention,
    backups: Option<PathBuf>,
    witness: Option<PathBuf>,
}

impl StoreOptions {
    /// Options with this key and the defaults: [`Scope::Default`], the system clock, 5 seconds for the lock, 1 MiB
    /// per message.
    pub fn new(key: impl Into<Arc<EncryptionKey>>) -> Self {
        Self {
            keys: vec![key.into()],
            key_files: Vec::new(),
            scope: Scope::Default,
            clock: Arc::new(SystemClock),
            lock_timeout: Duration::from_secs(5),
            max_message_bytes: 1 << 20,
            redactor: None,
            loose_files: 64,
            threads: None,
            retention: Retention::FOREVER,
            backups: None,
            witness: None,
        }
    }

    /// Adds another key, for records that a change of keys has not resealed yet.
    pub fn also_with(mut self, key: impl Into<Arc<EncryptionKey>>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Sets a key file to read again if the store's key has changed while the store is open. The file need not exist.
    pub fn key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key_files.push(path.into());
        self
    }

    /// Sets the conversation's scope.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets how long an append waits for other processes.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets the longest record of a message, as JSON in bytes. At most 11 MiB, so that its file stays readable.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes.min(LONGEST_RECORD);
        self
    }

    /// Sets a redactor, which masks each message's words before they are sealed.
    pub fn redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Sets how many of the newest messages stay loose, in files of their own, unless they were stored in a pack at once.
    /// At least 1; the default is 64. If more than twice as many are loose, the older ones move into a pack. Fewer loose
    /// files make listing faster and packing more frequent.
    pub fn loose_files(mut self, files: usize) -> Self {
        self.loose_files = files.max(1);
        self
    }

    /// Sets the retention limits for conversations whose settings have none. The default keeps everything forever.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Sets how many threads a large read or a check may use, at least 1. The default is one for each processor. The
    /// threads exist only during the read.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Sets the folder with the backups of conversations with a persona, if it is not `backups` in the store's own. What is
    /// forgotten goes from there too.
    pub(crate) fn backups(mut self, folder: impl Into<PathBuf>) -> Self {
        self.backups = Some(folder.into());
        self
    }

    /// Sets a folder outside of the store for copies of the conversations' heads, some 600 bytes each. By them a read
    /// notices that an older copy of the whole store was put back. Programs that use the same store may use different
    /// folders, and a folder that is lost or cannot be written only shows nothing. The default is none.
    pub fn witness(mut self, folder: impl Into<PathBuf>) -> Self {
        self.witness = Some(folder.into());
        self
    }

    /// The clock.
    pub(crate) fn time(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Opens the store in a folder. The folder need not exist yet; the first append creates it.
    ///
    /// # Errors
    /// [`Error::WrongKey`](crate::Error::WrongKey) if the store uses another key, and
    /// [`Error::NotPlain`](crate::Error::NotPlain) if the folder is a symbolic link.
    pub async fn open(self, root: impl AsRef<Path>) -> Result<FileConversationStore> {
        let below = self.scope.folder()?;
        let root_directory: Arc<dyn Directory> = Arc::new(FsDirectory::new(root.as_ref(), &[])?);
        // Two views even of one folder: each caches the file that it reads most.
        let directory = Arc::new(FsDirectory::new(root.as_ref(), &below)?);
        self.open_directory(root_directory, directory).await
    }

    /// Opens a store in memory, which is gone when dropped.
    ///
    /// # Errors
    /// [`Error::InvalidScope`](crate::Error::InvalidScope).
    pub async fn open_in_memory(self) -> Result<FileConversationStore> {
        self.scope.folder()?;
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
        self.open_directory(Arc::clone(&directory), directory).await
    }

    pub(crate) async fn open_directory(
        self,
        root: Arc<dyn Directory>,
        directory: Arc<dyn Directory>,
    ) -> Result<FileConversationStore> {
        let slow = self.keys.iter().any(|key| key.needs_salt());
        let (clock, redactor) = (Arc::clone(&self.clock), self.redactor.clone());
        let (reader, writer) = self.assemble(root, directory)?;
        if slow {
            let reader = Arc::clone(&reader);
            blocking(move || reader.check()).await?;
        } else {
            // Reads two small files. Handing over to another thread would take several times as long.
            reader.check()?;
        }
        Ok(FileConversationStore::new(reader, writer, clock, redactor))
    }

    /// Makes the parts of a store without reading anything.
    pub(crate) fn assemble(
        self,
        root: Arc<dyn Directory>,
        directory: Arc<dyn Directory>,
    ) -> Result<(Arc<Reader>, Writer)> {
        let mut folder = Folder::new(root, directory, self.scope, self.keys)
            .finding_keys_in(self.key_files)
            .read_by(self.threads)
            .keeping(self.retention)
            .witnessed_in(self.witness.as_deref())?;
        if let Some(backups) = self.backups {
            folder.backups = BackupFiles(Arc::new(FsDirectory::new(&backups, &[])?));
        }
        let reader = Arc::new(Reader::new(folder, Arc::clone(&self.clock)));
        let writer = Writer::new(
            Arc::clone(&reader),
            Limits {
                clock: self.clock,
                lock_timeout: self.lock_timeout,
                max_message_bytes: self.max_message_bytes,
                redactor: self.redactor,
            },
            Compactor::keeping(self.loose_files),
        );
        Ok((reader, writer))
    }
}
