//! The encrypted file store, the public facade of this module.

pub(crate) mod artifact_references;
mod backend;
pub(crate) mod known;
pub(crate) mod options;

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use jiff::{Timestamp, Zoned};
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::error::{Error, Result, joined};
use crate::message::ChatMessage;
use crate::message::redact::Redactor;
use crate::scope::Scope;
use crate::store::ConversationStore;
use crate::store::file_store::known::Known;
use crate::store::folder::{document, snapshot_files};
use crate::store::read::location::{RecordLocation, locate};
use crate::store::read::query::RangeQuery;
use crate::store::read::reader::Reader;
use crate::store::read::state::ConversationState;
use crate::store::read::stats::{self, Stats};
use crate::store::record::document::Document;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, Progress};
use crate::store::record::profile::{Profile, ProfileChange};
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::Retention;
use crate::store::record::snapshot::Snapshot;
use crate::store::record::summary::Summary;
use crate::store::record::validation::{TimestampPolicy, latest};
use crate::store::rules::forget_plan::{ForgetPlan, ForgetReport, ForgetRequest};
use crate::store::rules::limits_effect::{CleanupReport, HiddenMessages, LimitsEffect};
use crate::store::rules::restore::{RestoreJob, RestoreThreads};
use crate::store::rules::{ArtifactSource, StorePolicy};
use crate::store::write::Writer;
use crate::store::write::compact::CompactionStep;
use crate::store::write::pack_rewrite::size;

/// The outcome of packing.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PackReport {
    /// How many messages were moved into packs.
    pub moved: usize,
    /// The number of packs before.
    pub packs_before: usize,
    /// The number of packs now.
    pub packs_after: usize,
    /// The size of these packs in bytes.
    pub bytes: u64,
}

/// A conversation in a folder of sealed files. Several processes may read and append at the same time. Clones share
/// the open store. [`StoreOptions`](crate::StoreOptions) opens one.
#[derive(Clone)]
pub struct FileConversationStore {
    reader: Arc<Reader>,
    writer: Arc<tokio::sync::Mutex<Writer>>,
    clock: Arc<dyn Clock>,
    redactor: Option<Arc<dyn Redactor>>,
    policy: StorePolicy,
    artifact_source: Option<Arc<dyn ArtifactSource>>,
    known: Arc<tokio::sync::Mutex<Known>>,
}

impl FileConversationStore {
    pub(crate) fn new(
        reader: Arc<Reader>,
        writer: Writer,
        clock: Arc<dyn Clock>,
        redactor: Option<Arc<dyn Redactor>>,
    ) -> Self {
        let policy = writer.policy();
        let writer = Arc::new(tokio::sync::Mutex::new(writer));
        let known = Arc::default();
        Self { reader, writer, clock, redactor, policy, artifact_source: None, known }
    }

    /// What arrives from elsewhere is compared with this. It is read when the first messages arrive, and then kept.
    pub(crate) fn known(&self) -> &tokio::sync::Mutex<Known> {
        &self.known
    }

    /// Sets a source that is asked for artifacts that this store does not have.
    #[must_use]
    pub fn with_artifact_source(self, source: Arc<dyn ArtifactSource>) -> Self {
        Self { artifact_source: Some(source), ..self }
    }

    /// Whose conversation this is.
    pub fn scope(&self) -> &Arc<Scope> {
        &self.reader.folder.scope
    }

    /// Moves all but the newest messages into packs and merges packs, some thousand messages at a time. Calls
    /// `progress` in between. Appending does the same later by itself. Dropping the future stops after the current
    /// step; nothing is lost.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the head was lost: see [`repair`](Self::repair). Those of appending.
    pub async fn pack(&self, progress: impl Fn(Progress) + Send + Sync) -> Result<PackReport> {
        let mut packed = PackReport::default();
        for step in 0.. {
            let CompactionStep { moved, left, packs_before, packs_after } =
                self.write(Writer::pack).await?;
            if step == 0 {
                packed.packs_before = packs_before.len();
            }
            packed.moved += moved;
            packed.packs_after = packs_after.len();
            progress(Progress { done: packed.moved, total: packed.moved + left });
            if left == 0 {
                let size = self.read_with(move |reader| size(&reader.folder, &packs_after));
                packed.bytes = size.await?;
                break;
            }
        }
        Ok(packed)
    }

    /// Imports messages of another system. Each is ordered by its own time, even if that is before existing messages.
    /// They get the next numbers in the given order, which should be that of their times. Otherwise like
    /// [`append_all`](ConversationStore::append_all).
    ///
    /// # Errors
    /// Those of `append_all`; [`Error::Partial`] says how many were stored.
    pub async fn import(&self, messages: Vec<ChatMessage>) -> Result<Vec<Arc<StoredMessage>>> {
        self.write(|writer| writer.append(messages, TimestampPolicy::Own)).await
    }

    #[cfg(test)]
    pub(crate) async fn import_after(
        &self,
        seen: u64,
        noted: u64,
        messages: Vec<ChatMessage>,
    ) -> Result<Option<Vec<Arc<StoredMessage>>>> {
        let receive = move |writer: &mut Writer| {
            use crate::store::record::validation::ValidMessage;
            let drafts = ValidMessage::all(messages, &writer.limits)?;
            writer.receive(drafts, (seen, noted), true)
        };
        self.write(receive).await
    }

    /// The latest time that a message may have.
    pub(crate) fn latest_time(&self) -> Timestamp {
        latest(self.reader.now())
    }

    /// Like [`read_seqs`](ConversationStore::read_seqs), with hidden messages that are not removed yet.
    pub(crate) async fn read_kept(&self, seqs: RangeInclusive<u64>) -> Result<ReadResult> {
        self.read_with(move |reader| Ok(reader.read_kept(&RangeQuery::Seqs(seqs))?.0)).await
    }

    /// Statistics. Opens only the newest messages.
    ///
    /// # Errors
    /// What prevents reading the whole folder.
    pub async fn stats(&self) -> Result<Stats> {
        self.read_with(stats::stats).await
    }

    /// Finds the file or pack that holds a message, and checks its seal there. Returns `None` if the message is gone.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a message of another conversation, and what prevents reading the folder.
    pub async fn locate(&self, stored: &StoredMessage) -> Result<Option<RecordLocation>> {
        if *stored.scope != **self.scope() {
            return Err(Error::OtherScope);
        }
        let name = stored.name;
        self.read_with(move |reader| locate(&reader.folder, name)).await
    }

    /// The conversation's state.
    pub(crate) async fn conversation_state(&self) -> Result<ConversationState> {
        self.read_with(ConversationState::of).await
    }

    /// Removes the conversation and its files, unless something was stored after the number `seen` or the settings
    /// have another revision than `rev`. Returns whether it did.
    pub(crate) async fn remove(&self, seen: u64, rev: u64) -> Result<bool> {
        self.write(move |writer| writer.remove(seen, rev)).await
    }

    /// Removes the folder of a conversation that was forgotten completely, settings included. Keeps the default
    /// conversation's folder, a persona conversation's, and one with anything else, such as tombstones of imported
    /// messages. The default conversation's settings record that it was forgotten, so that no backup brings it back
    /// into this store. Returns whether it removed the folder. Others who have the conversation open must open it
    /// again.
    ///
    /// # Errors
    /// What prevents reading or writing the store.
    pub async fn remove_forgotten(self) -> Result<bool> {
        self.write(Writer::remove_forgotten).await
    }

    /// The names of the daily backups of this conversation that the store has made.
    ///
    /// # Errors
    /// What prevents listing their folder.
    pub async fn daily_backups(&self) -> Result<Vec<String>> {
        self.read_with(|reader| reader.folder.backups.daily_of(&reader.folder.scope)).await
    }

    /// The reader, for blocking work.
    pub(crate) fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// The writer, for blocking work.
    pub(crate) fn writer(&self) -> &Arc<tokio::sync::Mutex<Writer>> {
        &self.writer
    }

    /// Changes the conversation on a blocking thread, which does not wait there for another writer.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        blocking(move || work(&mut writer)).await
    }

    /// Reads on a blocking thread.
    pub(crate) async fn read_with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reader) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let reader = Arc::clone(&self.reader);
        blocking(move || work(&reader)).await
    }

    async fn read_if(&self, wanted: RangeQuery) -> Result<ReadResult> {
        self.read_with(move |reader| reader.read_if(&wanted)).await
    }
}

#[async_trait]
impl ConversationStore for FileConversationStore {
    async fn append_all(&self, messages: Vec<ChatMessage>) -> Result<Vec<Arc<StoredMessage>>> {
        self.write(|writer| writer.append(messages, TimestampPolicy::Newest)).await
    }

    async fn append_answers(
        &self,
        answers: Vec<ChatMessage>,
        answered: &StoredMessage,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        if *answered.scope != *self.reader.folder.scope {
            return Err(Error::OtherScope);
        }
        let answered = answered.name;
        let append = move |writer: &mut Writer| writer.append_answers(answers, answered, None);
        Ok(self.write(append).await?.0)
    }

    async fn append_answers_with_document(
        &self,
        answers: Vec<ChatMessage>,
        answered: &StoredMessage,
        document: Document,
        plaintext: &[u8],
    ) -> Result<(Vec<Arc<StoredMessage>>, Result<()>)> {
        if *answered.scope != *self.reader.folder.scope {
            return Err(Error::OtherScope);
        }
        let (answered, plaintext) = (answered.name, Zeroizing::new(plaintext.to_vec()));
        self.write(move |writer| {
            writer.append_answers(answers, answered, Some((document, &plaintext)))
        })
        .await
    }

    async fn read_tail(&self, n: usize) -> Result<ReadResult> {
        // Check memory on the caller's thread: that takes two system calls, much less than handing over to another
        // thread.
        if let Some(reading) = self.reader.remembered(n)? {
            return Ok(reading);
        }
        self.read_with(move |reader| reader.read_tail(n)).await
    }

    async fn read_thread(&self, thread: Option<&str>, n: usize) -> Result<ReadResult> {
        if let Some(reading) = self.reader.remembered(n)?
            && let Some(reading) = reading.of_thread(thread, n, n)
        {
            return Ok(reading);
        }
        let thread = Zeroizing::new(thread.map(str::to_owned));
        let read = self.read_with(move |reader| reader.read_thread(thread.as_deref(), n));
        let (reading, unsaved) = read.await?;
        if let Some(tails) = unsaved
            && let Err(error) = self.write(move |writer| writer.save_threads(tails)).await
        {
            tracing::debug!(%error, "could not save which messages are the newest of each thread");
        }
        Ok(reading)
    }

    async fn read_seqs(&self, seqs: RangeInclusive<u64>) -> Result<ReadResult> {
        self.read_if(RangeQuery::Seqs(seqs)).await
    }

    async fn read_times(&self, times: Range<Timestamp>) -> Result<ReadResult> {
        self.read_if(RangeQuery::Times(times)).await
    }

    async fn plan_forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetPlan> {
        let asked = ForgetRequest::Numbers(seqs.to_vec());
        self.write(move |writer| writer.plan_forget(&asked)).await
    }

    async fn plan_forget_exchanges(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetPlan> {
        let asked = ForgetRequest::Exchanges(seqs.to_vec());
        self.write(move |writer| writer.plan_forget(&asked)).await
    }

    async fn plan_forget_all(&self) -> Result<ForgetPlan> {
        self.write(|writer| writer.plan_forget(&ForgetRequest::All)).await
    }

    async fn forget_planned(&self, plan: &ForgetPlan) -> Result<ForgetReport> {
        let plan = plan.clone();
        self.write(move |writer| writer.forget(&plan.asked(), Some(&plan))).await
    }

    async fn forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetReport> {
        let asked = ForgetRequest::Numbers(seqs.to_vec());
        self.write(move |writer| writer.forget(&asked, None)).await
    }

    async fn forget_all(&self) -> Result<ForgetReport> {
        self.write(|writer| writer.forget(&ForgetRequest::All, None)).await
    }

    async fn read_document(&self, document: Document) -> Result<Option<Zeroizing<Vec<u8>>>> {
        self.read_with(move |reader| document::read(&reader.folder, document)).await
    }

    async fn write_document(&self, document: Document, plaintext: &[u8]) -> Result<()> {
        let plaintext = Zeroizing::new(plaintext.to_vec());
        self.write(move |writer| writer.write_document(document, &plaintext)).await
    }

    async fn profile(&self) -> Result<Arc<Profile>> {
        self.read_with(Reader::shown_settings).await
    }

    async fn change_profile(&self, change: ProfileChange) -> Result<Profile> {
        self.write(move |writer| writer.change_profile(change)).await
    }

    async fn limits_effect(&self, retention: Option<Retention>) -> Result<LimitsEffect> {
        self.write(move |writer| writer.limits_effect(retention)).await
    }

    async fn change_limits(
        &self,
        retention: Option<Retention>,
        hidden: HiddenMessages,
        announced: &LimitsEffect,
    ) -> Result<Profile> {
        let announced = announced.clone();
        self.write(move |writer| writer.change_limits(retention, hidden, &announced)).await
    }

    async fn clear(&self) -> Result<Profile> {
        self.write(Writer::clear).await
    }

    async fn cleanup(&self) -> Result<CleanupReport> {
        self.write(Writer::cleanup).await
    }

    async fn snapshots(&self) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
        self.read_with(move |reader| snapshot_files::list(&reader.folder, &*reader.settings()?))
            .await
    }

    async fn read_snapshot(&self, id: &str) -> Result<Option<Snapshot>> {
        let id = id.to_owned();
        self.read_with(move |reader| {
            snapshot_files::read(&reader.folder, &*reader.settings()?, &id)
        })
        .await
    }

    async fn save_snapshot(&self, snapshot: Snapshot) -> Result<()> {
        self.write(move |writer| writer.save_snapshot(snapshot)).await
    }

    async fn delete_snapshot(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write(move |writer| writer.delete_snapshot(&id)).await
    }

    async fn install_summary(
        &self,
        summary: Summary,
        before: Option<Summary>,
        continues: bool,
    ) -> Result<bool> {
        self.write(move |writer| writer.install_summary(summary, before.as_ref(), continues)).await
    }

    async fn remove_summary(&self, thread: Option<String>) -> Result<bool> {
        self.write(move |writer| writer.remove_summary(thread.as_deref())).await
    }

    async fn restore(
        &self,
        id: &str,
        since: Timestamp,
        threads: RestoreThreads,
        now: Zoned,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let restoring = RestoreJob { id: id.to_owned(), since, now, threads };
        self.write(move |writer| writer.restore(&restoring)).await
    }
}

debug_shows!(FileConversationStore as it:
    folder = it.reader.folder.directory.path(), scope = it.reader.folder.scope
);

/// Runs blocking file work to its end, even if the caller stops waiting.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    joined(tokio::task::spawn_blocking(work).await)
}

/// The outcome of an asynchronous call, for a thread of its own that has entered the runtime.
pub(crate) fn wait<T>(call: impl Future<Output = T>) -> T {
    tokio::runtime::Handle::current().block_on(call)
}

/// Asks long work to stop when the caller stops waiting.
#[derive(Default)]
pub(crate) struct CancelOnDrop(Arc<AtomicBool>);

impl CancelOnDrop {
    /// The flag that the work has to check.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
