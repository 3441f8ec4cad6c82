//! The encrypted store: one sealed file a message.

use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use crate::blob::{Blobs, fs::FsBlobs, memory::MemoryBlobs};
use crate::clock::{Clock, SystemClock};
use crate::crypto::{EncryptionKey, SealingKey};
use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::redact::{Redactor, redact_message};
use crate::scope::Scope;
use crate::store::folder::{Folder, HeadState, Opened};
use crate::store::forget::{Forgotten, remove_erased};
use crate::store::head::{self, Head};
use crate::store::name::{NameTime, RecordKind, RecordName};
use crate::store::record::{StoredMessage, encode};
use crate::store::tail::Tail;
use crate::store::verify::{Progress, Report, verify};
use crate::store::{ConversationStore, Reading};

/// How far ahead of the clock a message's time may lie.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// How to open a store.
#[derive(Debug)]
pub struct StoreOptions {
    keys: Vec<EncryptionKey>,
    scope: Scope,
    clock: Arc<dyn Clock>,
    lock_timeout: Duration,
    max_message_bytes: usize,
    redactor: Option<Arc<dyn Redactor>>,
}

impl StoreOptions {
    /// Opens with this key: [`Scope::Default`], the system's clock, 5 seconds for the lock, 1 MiB a message.
    pub fn new(key: EncryptionKey) -> Self {
        Self {
            keys: vec![key],
            scope: Scope::Default,
            clock: Arc::new(SystemClock),
            lock_timeout: Duration::from_secs(5),
            max_message_bytes: 1 << 20,
            redactor: None,
        }
    }

    /// Another key that the store was written under, for records that a change of keys has not reached yet.
    #[must_use]
    pub fn also_with(mut self, key: EncryptionKey) -> Self {
        self.keys.push(key);
        self
    }

    /// Whose conversation to open.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How long an append waits for other processes.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// The most bytes that a message's record may take, as JSON; at most 11 MiB, so that its file stays readable.
    #[must_use]
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes.min(11 << 20);
        self
    }

    /// Masks every message's words before they are sealed.
    #[must_use]
    pub fn redactor(mut self, redactor: Arc<dyn Redactor>) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Opens the store below a folder, which need not exist yet and is not made before the first append.
    ///
    /// # Errors
    /// [`Error::WrongKey`] where the store was written under another key, and [`Error::NotPlain`] where the folder is
    /// a symbolic link.
    pub async fn open(self, root: impl AsRef<Path>) -> Result<FileConversationStore> {
        let below = self.scope.folder()?;
        let root_blobs: Arc<dyn Blobs> = Arc::new(FsBlobs::new(root.as_ref(), &[])?);
        let blobs = match below.as_slice() {
            [] => Arc::clone(&root_blobs),
            below => Arc::new(FsBlobs::new(root.as_ref(), below)?),
        };
        self.open_blobs(root_blobs, blobs).await
    }

    /// The same store over a folder in memory, gone when dropped.
    ///
    /// # Errors
    /// [`Error::InvalidScope`].
    pub async fn open_in_memory(self) -> Result<FileConversationStore> {
        self.scope.folder()?;
        let blobs: Arc<dyn Blobs> = Arc::new(MemoryBlobs::default());
        self.open_blobs(Arc::clone(&blobs), blobs).await
    }

    pub(crate) async fn open_blobs(
        self,
        root: Arc<dyn Blobs>,
        blobs: Arc<dyn Blobs>,
    ) -> Result<FileConversationStore> {
        let store = Shared {
            folder: Folder::new(root, blobs, self.scope, self.keys),
            clock: self.clock,
            lock_timeout: self.lock_timeout,
            max_message_bytes: self.max_message_bytes,
            redactor: self.redactor,
            cache: Mutex::default(),
        };
        blocking(move || {
            store.folder.vault()?;
            store.folder.head()?;
            Ok(FileConversationStore { shared: Arc::new(store), writer: Arc::default() })
        })
        .await
    }
}

/// A conversation in a folder of sealed files. Several processes may read and append at once; cloning shares the
/// open store.
#[derive(Clone)]
pub struct FileConversationStore {
    shared: Arc<Shared>,
    writer: Arc<tokio::sync::Mutex<Writer>>,
}

struct Shared {
    folder: Folder,
    clock: Arc<dyn Clock>,
    lock_timeout: Duration,
    max_message_bytes: usize,
    redactor: Option<Arc<dyn Redactor>>,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    tail: Option<Tail>,
    /// Counts installations, so that a slow reader does not put back what it read before someone else's.
    version: u64,
}

#[derive(Default)]
struct Writer {
    poisoned: bool,
    swept: bool,
}

/// Runs file work to its end on a blocking thread, whether or not the caller still waits.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::ShuttingDown)?
}

impl FileConversationStore {
    /// Checks every file, calling `progress` as it goes, and reports all that is not as it should be. Changes
    /// nothing.
    ///
    /// # Errors
    /// Only what keeps the whole folder from being read.
    pub async fn verify(&self, progress: impl Fn(Progress) + Send + 'static) -> Result<Report> {
        let shared = Arc::clone(&self.shared);
        blocking(move || verify(&shared.folder, &progress)).await
    }

    /// Writes a new head from the records that are there, where it was lost; does nothing where it is sound. What the
    /// old one said is gone then, so look at [`verify`](Self::verify) first.
    pub async fn rebuild_head(&self) -> Result<()> {
        self.write(|shared, writer| {
            shared.locked(writer, |key, tail| {
                if !matches!(tail.head, HeadState::Known(_)) {
                    shared.make_head(key, tail)?;
                }
                Ok(())
            })
        })
        .await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared, &mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        blocking(move || {
            let outcome = work(&shared, &mut writer);
            writer.poisoned |= outcome.as_ref().is_err_and(not_durable);
            outcome
        })
        .await
    }

    async fn read_if(
        &self,
        wanted: impl Fn(RecordName) -> bool + Send + 'static,
    ) -> Result<Reading> {
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.read_if(&wanted)).await
    }
}

fn not_durable(error: &Error) -> bool {
    match error {
        Error::NotDurable { .. } => true,
        Error::Partial { source, .. } => not_durable(source),
        _ => false,
    }
}

impl Shared {
    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn install(&self, tail: Option<Tail>) {
        let mut cache = self.cache();
        cache.version += 1;
        cache.tail = tail;
    }

    /// The newest `n` from memory, if memory is current.
    fn remembered(&self, n: usize) -> Result<Option<Reading>> {
        let cache = self.cache();
        Ok(match &cache.tail {
            Some(tail) if tail.is_current(&self.folder)? => tail.newest(n),
            _ => None,
        })
    }

    fn read_tail(&self, n: usize) -> Result<Reading> {
        let (known, version) = {
            let cache = self.cache();
            (cache.tail.clone(), cache.version)
        };
        let tail = Tail::load(&self.folder, n, known.as_ref(), false)?;
        let reading = tail.newest(n).unwrap_or_default();
        tracing::debug!(messages = reading.messages.len(), "read the newest end");
        for finding in &reading.skipped {
            tracing::warn!(kind = finding.kind.code(), file = finding.file, "passed over");
        }
        let mut cache = self.cache();
        // Of two readers at once, one may have seen a message that the head does not tell of yet: what the other
        // remembers must not hide it again.
        let is_newer = cache.tail.as_ref().is_some_and(|known| known.last_seq < tail.last_seq);
        if cache.version == version || is_newer {
            cache.version += 1;
            cache.tail = Some(tail);
        }
        Ok(reading)
    }

    fn read_if(&self, wanted: &dyn Fn(RecordName) -> bool) -> Result<Reading> {
        loop {
            let tail = Tail::load(&self.folder, 0, None, false)?;
            let mut reading = tail.newest(0).unwrap_or_default();
            let mut names = self.folder.list()?.names;
            names.retain(|&name| {
                !name.is_forget()
                    && name.seq <= tail.whole_up_to
                    && !tail.erased.contains(name.seq)
                    && wanted(name)
            });
            names.sort_unstable();
            let mut moved = false;
            for name in names {
                match self.folder.open(name)? {
                    Opened::Message(message) => reading.messages.push(message),
                    Opened::Skipped(kind) => {
                        let finding = kind.in_file(name.to_string());
                        if !reading.skipped.contains(&finding) {
                            reading.skipped.push(finding);
                        }
                    }
                    Opened::Forget(_) => {}
                    Opened::Gone => moved = true,
                }
            }
            if !moved {
                return Ok(reading);
            }
        }
    }

    /// Runs `work` as the folder's only writer, with the tail as it is now.
    fn locked<T>(
        &self,
        writer: &mut Writer,
        work: impl FnOnce(&SealingKey, &mut Tail) -> Result<T>,
    ) -> Result<T> {
        if writer.poisoned {
            return Err(Error::Poisoned { path: self.folder.blobs.path().into() });
        }
        // The vault comes before anything else, so that whatever stands without one has lost it.
        let key = self.folder.writing_key(self.lock_timeout)?;
        let lock = self.folder.blobs.lock(self.lock_timeout)?;
        if lock.abandoned() {
            tracing::warn!("the writer before was interrupted; looking at the folder itself");
        }
        if lock.abandoned() || !writer.swept {
            self.folder.blobs.sweep()?;
            writer.swept = true;
            self.install(None);
        }
        let known = self.cache().tail.clone();
        let mut tail = match known {
            Some(tail) if tail.is_current(&self.folder)? => tail,
            known => Tail::load(&self.folder, 0, known.as_ref(), true)?,
        };
        if tail.is_fresh() {
            self.make_head(key, &mut tail)?;
        }
        if !tail.returned.is_empty() {
            remove_erased(&self.folder, &std::mem::take(&mut tail.returned))?;
        }
        let outcome = work(key, &mut tail);
        // After a failure memory may be behind the disk: the next one looks at the folder itself.
        self.install(outcome.is_ok().then_some(tail));
        if outcome.is_ok() {
            lock.finish();
        }
        outcome
    }

    fn make_head(&self, key: &SealingKey, tail: &mut Tail) -> Result<()> {
        let head = Head::default().with_seq(tail.last_seq);
        let line = self.folder.seal_head(key, head)?;
        self.folder.blobs.replace(head::NAME, &line)?;
        self.folder.blobs.sync()?;
        tail.head = HeadState::Known(head);
        tail.head_bytes = Some(line);
        Ok(())
    }

    /// Makes what was published durable and tells other processes. A lost head stays lost until it is rebuilt on
    /// request, so that its loss is reported until someone has seen it.
    fn acknowledge(&self, key: &SealingKey, tail: &mut Tail) -> Result<()> {
        self.folder.blobs.sync()?;
        let Some(head) = tail.head_after() else {
            return Ok(());
        };
        let line = self.folder.seal_head(key, head)?;
        self.folder.blobs.overwrite(head::NAME, &line)?;
        tail.head = HeadState::Known(head);
        tail.head_bytes = Some(line);
        Ok(())
    }

    fn next_name(&self, tail: &Tail, time: NameTime, kind: RecordKind) -> Result<RecordName> {
        let seq = tail
            .last_seq
            .checked_add(1)
            .ok_or(Error::InvalidMessage { reason: "the conversation's numbers are used up" })?;
        let time = time.max(tail.newest);
        Ok(RecordName { time, seq, kind })
    }

    fn append(
        &self,
        writer: &mut Writer,
        mut messages: Vec<ChatMessage>,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        if let Some(redactor) = &self.redactor {
            for message in &mut messages {
                redact_message(&**redactor, message);
            }
        }
        let latest = self.clock.now().timestamp().checked_add(AHEAD);
        for message in &messages {
            NameTime::try_from(message.timestamp)?;
            if latest.as_ref().is_ok_and(|latest| message.timestamp > *latest) {
                return Err(Error::FromTheFuture);
            }
            encode(message, self.max_message_bytes)?;
        }
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        self.locked(writer, |key, tail| {
            let total = messages.len();
            let mut stored = Vec::with_capacity(total);
            let mut failed = None;
            for message in messages {
                match self.publish(key, tail, message) {
                    Ok(message) => stored.push(message),
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            match failed {
                None => self.acknowledge(key, tail).map(|()| stored),
                Some(error) if stored.is_empty() => Err(error),
                Some(error) => {
                    self.acknowledge(key, tail)?;
                    Err(Error::Partial { stored: stored.len(), total, source: Box::new(error) })
                }
            }
        })
    }

    fn publish(
        &self,
        key: &SealingKey,
        tail: &mut Tail,
        message: ChatMessage,
    ) -> Result<Arc<StoredMessage>> {
        let time = NameTime::try_from(message.timestamp)?;
        let name = self.next_name(tail, time, message.role.into())?;
        let plaintext = encode(&message, self.max_message_bytes)?;
        let name = self.folder.publish(key, name, &plaintext)?;
        let stored = Arc::new(StoredMessage::new(&self.folder.scope, name, message));
        tracing::debug!(seq = stored.seq, bytes = plaintext.len(), "sealed");
        tail.push(Arc::clone(&stored));
        Ok(stored)
    }

    fn forget(&self, writer: &mut Writer, seqs: &[RangeInclusive<u64>]) -> Result<Forgotten> {
        self.locked(writer, |key, tail| {
            let mut erased = tail.erased.clone();
            let last = tail.last_seq;
            erased.extend(seqs.iter().map(|range| *range.start()..=(*range.end()).min(last)));
            if erased == tail.erased {
                return Ok(Forgotten::default());
            }
            // The new record speaks for the earlier ones, which go with what they erased.
            erased.extend(tail.forgets.iter().map(|name| name.seq..=name.seq));
            let now = NameTime::try_from(self.clock.now().timestamp())?;
            let name = self.next_name(tail, now, RecordKind::Forget)?;
            let plaintext = serde_json::to_vec(&erased).map_err(|_| Error::InvalidMessage {
                reason: "the forgotten numbers cannot be written as JSON",
            })?;
            let name = self.folder.publish(key, name, &plaintext)?;
            tail.last_seq = name.seq;
            self.acknowledge(key, tail)?;

            let names = self.folder.list()?.names;
            let gone: Vec<_> = names.into_iter().filter(|name| erased.contains(name.seq)).collect();
            let forgotten = remove_erased(&self.folder, &gone)?;
            *tail = Tail::load(&self.folder, 0, None, true)?;
            tracing::info!(removed = forgotten.removed.len(), "forgot");
            Ok(forgotten)
        })
    }
}

#[async_trait]
impl ConversationStore for FileConversationStore {
    fn scope(&self) -> &Arc<Scope> {
        &self.shared.folder.scope
    }

    async fn append_message(&self, message: ChatMessage) -> Result<Arc<StoredMessage>> {
        let stored = self.append_all(vec![message]).await?;
        stored.into_iter().next().ok_or(Error::ShuttingDown)
    }

    async fn append_all(&self, messages: Vec<ChatMessage>) -> Result<Vec<Arc<StoredMessage>>> {
        self.write(|shared, writer| shared.append(writer, messages)).await
    }

    async fn read_tail(&self, n: usize) -> Result<Reading> {
        // Memory is asked on the caller's thread: it takes two system calls, a crossing to another thread far more.
        if let Some(reading) = self.shared.remembered(n)? {
            return Ok(reading);
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.read_tail(n)).await
    }

    async fn read_seqs(&self, seqs: RangeInclusive<u64>) -> Result<Reading> {
        self.read_if(move |name| seqs.contains(&name.seq)).await
    }

    async fn read_times(&self, times: Range<Timestamp>) -> Result<Reading> {
        self.read_if(move |name| name.time.timestamp().is_some_and(|t| times.contains(&t))).await
    }

    async fn forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<Forgotten> {
        let seqs = seqs.to_vec();
        self.write(move |shared, writer| shared.forget(writer, &seqs)).await
    }
}

impl fmt::Debug for FileConversationStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileConversationStore")
            .field("folder", &self.shared.folder.blobs.path())
            .field("scope", &self.shared.folder.scope)
            .finish_non_exhaustive()
    }
}
