//! Failing storage: what happens to a conversation when a call fails at the worst moment.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tempfile::TempDir;

use crate::directory::{
    Check, Directory, EntryKind, Fill, Lock, Refill, Sink, Source, Streamed, fs::FsDirectory,
    memory::MemoryDirectory,
};
use crate::store::folder::Folder;
use crate::store::folder::keyring::Keyring;
use crate::store::folder::keyring::key_list;
use crate::store::folder::keyring::key_list::Entry;
use crate::store::record::head::Head;
use crate::store::{ConversationStore, Document, FileConversationStore, FindingKind, StoreOptions};
use crate::{ChatMessage, ChatRole, EncryptionKey, Error, Result};

/// The calls that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    List,
    Read,
    Create,
    Replace,
    ReplaceVerified,
    Overwrite,
    Sync,
    Lock,
    Stream,
    Flush,
    Remove,
    MoveInto,
    ReadCached,
    LinkCount,
    /// Any call that may need room on the disk.
    Write,
    /// Any call.
    Any,
}

#[derive(Debug)]
struct Plan {
    call: Call,
    /// How many calls of that kind succeed first.
    after: usize,
    /// How many calls fail then.
    times: usize,
    error: fn(&Path) -> Error,
    /// How many calls have failed.
    failed: usize,
}

/// A directory that counts its calls and fails as planned, without passing failed calls on.
pub(super) struct FaultyDirectory {
    inner: Arc<dyn Directory>,
    plan: Arc<Mutex<Option<Plan>>>,
    meddler: InterferenceHook,
    calls: Arc<AtomicUsize>,
    listed: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
}

/// A file whose bytes are counted as they are read.
#[derive(Debug)]
struct CountedSource(Box<dyn Source>, Arc<AtomicUsize>);

impl Source for CountedSource {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(offset, into)?;
        self.1.fetch_add(read, Relaxed);
        Ok(read)
    }
}

/// What another process does right before a call of some kind, after a number of such calls.
type InterferenceHook = Arc<Mutex<Option<(Call, usize, Box<dyn FnOnce() + Send>)>>>;

impl std::fmt::Debug for FaultyDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyDirectory").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl FaultyDirectory {
    pub(super) fn over(inner: Arc<dyn Directory>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            plan: Arc::default(),
            meddler: Arc::default(),
            calls: Arc::default(),
            listed: Arc::default(),
            bytes: Arc::default(),
            written: Arc::default(),
        })
    }

    /// The number of bytes that were read.
    pub(super) fn bytes_read(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// The number of bytes that were written, without the contents of artifacts.
    pub(super) fn bytes_written(&self) -> usize {
        self.written.load(Relaxed)
    }

    /// The number of calls, and the number of names that they listed.
    pub(super) fn counted(&self) -> (usize, usize) {
        (self.calls.load(Relaxed), self.listed.load(Relaxed))
    }

    pub(super) fn fail(&self, call: Call, after: usize, times: usize, error: fn(&Path) -> Error) {
        *self.plan.lock().unwrap() = Some(Plan { call, after, times, error, failed: 0 });
    }

    /// Plans what another process does right before a call, on its own thread.
    pub(super) fn interfere(&self, call: Call, after: usize, what: impl FnOnce() + Send + 'static) {
        *self.meddler.lock().unwrap() = Some((call, after, Box::new(what)));
    }

    /// Whether the planned interference has run.
    pub(super) fn has_interfered(&self) -> bool {
        self.meddler.lock().unwrap().is_none()
    }

    fn pass(&self, call: Call) -> Result<()> {
        self.calls.fetch_add(1, Relaxed);
        let mut meddler = self.meddler.lock().unwrap();
        match &mut *meddler {
            Some((at, 0, _)) if *at == call => {
                let (_, _, what) = meddler.take().unwrap();
                drop(meddler);
                std::thread::spawn(what).join().unwrap();
            }
            Some((at, after, _)) if *at == call => *after -= 1,
            _ => {}
        }
        let mut plan = self.plan.lock().unwrap();
        let Some(plan) = plan.as_mut().filter(|plan| {
            let writes = matches!(
                call,
                Call::Create
                    | Call::Replace
                    | Call::ReplaceVerified
                    | Call::Overwrite
                    | Call::Stream
                    | Call::Lock
            );
            (plan.call == call || plan.call == Call::Any || plan.call == Call::Write && writes)
                && plan.times > 0
        }) else {
            return Ok(());
        };
        if plan.after > 0 {
            plan.after -= 1;
            return Ok(());
        }
        plan.times -= 1;
        plan.failed += 1;
        Err((plan.error)(self.inner.path()))
    }

    /// Whether any planned failure has happened.
    pub(super) fn was_reached(&self) -> bool {
        self.plan.lock().unwrap().as_ref().is_some_and(|plan| plan.failed > 0)
    }

    /// Whether all planned failures have happened.
    pub(super) fn is_spent(&self) -> bool {
        self.plan.lock().unwrap().as_ref().is_none_or(|plan| plan.times == 0)
    }
}

impl Directory for FaultyDirectory {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn list(&self, visit: &mut dyn FnMut(&[u8], EntryKind)) -> Result<()> {
        self.pass(Call::List)?;
        self.inner.list(&mut |name, kind| {
            self.listed.fetch_add(1, Relaxed);
            visit(name, kind);
        })
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.pass(Call::Read)?;
        let bytes = self.inner.read(name)?;
        self.bytes.fetch_add(bytes.as_ref().map_or(0, Vec::len), Relaxed);
        Ok(bytes)
    }

    fn read_cached(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.pass(Call::ReadCached)?;
        self.inner.read_cached(name)
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        self.pass(Call::Create)?;
        self.written.fetch_add(bytes.len(), Relaxed);
        self.inner.create(name, bytes)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.pass(Call::Replace)?;
        self.written.fetch_add(bytes.len(), Relaxed);
        self.inner.replace(name, bytes)
    }

    fn replace_verified(
        &self,
        name: &str,
        fill: &mut Refill<'_>,
        check: &mut Check<'_>,
    ) -> Result<bool> {
        self.pass(Call::ReplaceVerified)?;
        let mut counted = |sink: &mut Sink<'_>| {
            fill(&mut |bytes| {
                self.written.fetch_add(bytes.len(), Relaxed);
                sink(bytes)
            })
        };
        self.inner.replace_verified(name, &mut counted, check)
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.pass(Call::Overwrite)?;
        self.written.fetch_add(bytes.len(), Relaxed);
        self.inner.overwrite(name, bytes)
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Source>>> {
        self.pass(Call::Read)?;
        let counted = |source| -> Box<dyn Source> {
            Box::new(CountedSource(source, Arc::clone(&self.bytes)))
        };
        Ok(self.inner.open(name)?.map(counted))
    }

    fn stream(&self, fill: &mut Fill<'_>) -> Result<Streamed> {
        self.pass(Call::Stream)?;
        self.inner.stream(fill)
    }

    fn flush(&self, name: &str) -> Result<()> {
        self.pass(Call::Flush)?;
        self.inner.flush(name)
    }

    fn folder(&self, name: &str) -> Arc<dyn Directory> {
        Arc::new(Self {
            inner: self.inner.folder(name),
            plan: Arc::clone(&self.plan),
            meddler: Arc::clone(&self.meddler),
            calls: Arc::clone(&self.calls),
            listed: Arc::clone(&self.listed),
            bytes: Arc::clone(&self.bytes),
            written: Arc::clone(&self.written),
        })
    }

    fn link_count(&self, name: &str) -> Result<u64> {
        self.pass(Call::LinkCount)?;
        self.inner.link_count(name)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.pass(Call::Remove)?;
        self.inner.remove(name)
    }

    fn remove_folder(&self, name: &str) -> Result<()> {
        self.pass(Call::Remove)?;
        self.inner.remove_folder(name)
    }

    fn move_into(&self, name: &[u8], folder: &str) -> Result<bool> {
        self.pass(Call::MoveInto)?;
        self.inner.move_into(name, folder)
    }

    fn sync(&self) -> Result<()> {
        self.pass(Call::Sync)?;
        self.inner.sync()
    }

    fn sync_ancestors(&self) -> Result<()> {
        self.pass(Call::Sync)?;
        self.inner.sync_ancestors()
    }

    fn change_stamp(&self) -> Result<Option<u64>> {
        self.inner.change_stamp()
    }

    fn renew_change_stamp(&self) -> Result<Option<u64>> {
        self.inner.renew_change_stamp()
    }

    fn is_on_disk(&self) -> bool {
        self.inner.is_on_disk()
    }

    fn lock(&self, timeout: Duration) -> Result<Box<dyn Lock>> {
        self.pass(Call::Lock)?;
        self.inner.lock(timeout)
    }

    fn remove_temp_files(&self) -> Result<()> {
        self.pass(Call::Remove)?;
        self.inner.remove_temp_files()
    }
}

pub(super) fn not_durable(path: &Path) -> Error {
    Error::NotDurable { path: path.into(), source: io::Error::other("the disk is gone") }
}

pub(super) fn no_space(path: &Path) -> Error {
    Error::io("write the file", path, rustix::io::Errno::NOSPC.into())
}

fn no_quota(path: &Path) -> Error {
    Error::io("write the file", path, rustix::io::Errno::DQUOT.into())
}

pub(super) fn no_files(path: &Path) -> Error {
    Error::io("open the file", path, rustix::io::Errno::MFILE.into())
}

pub(super) fn broken(path: &Path) -> Error {
    Error::io("write the file", path, rustix::io::Errno::IO.into())
}

/// A faulty directory, and its folder if it is on disk.
struct Setting {
    faulty: Arc<FaultyDirectory>,
    _folder: Option<TempDir>,
}

fn settings() -> [Setting; 2] {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = Arc::new(FsDirectory::new(&folder.path().join("root"), &[]).unwrap());
    [
        Setting {
            faulty: FaultyDirectory::over(Arc::new(MemoryDirectory::default())),
            _folder: None,
        },
        Setting { faulty: FaultyDirectory::over(on_disk), _folder: Some(folder) },
    ]
}

fn secret(text: &str) -> EncryptionKey {
    EncryptionKey::from_secret(text).unwrap()
}

async fn open(directory: &Arc<impl Directory + 'static>) -> FileConversationStore {
    open_with(StoreOptions::new(secret("the fault tests' secret")), directory.clone()).await
}

async fn open_with(options: StoreOptions, directory: Arc<dyn Directory>) -> FileConversationStore {
    options.open_directory(directory.clone(), directory).await.unwrap()
}

/// A store without faults on the same storage, as another process would open it.
async fn open_sound(setting: &Setting) -> FileConversationStore {
    let options = StoreOptions::new(secret("the fault tests' secret"));
    open_with(options, setting.faulty.inner.clone()).await
}

pub(super) fn said(text: impl ToString) -> ChatMessage {
    let at = "2025-08-24T16:36:25.123Z".parse().unwrap();
    ChatMessage::at(ChatRole::User, text.to_string(), at)
}

async fn texts(store: &FileConversationStore) -> Vec<String> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    assert!(
        reading.messages.iter().zip(1..).all(|(stored, seq)| stored.seq == seq),
        "numbers have a gap"
    );
    reading.messages.iter().map(|stored| stored.message.content.clone()).collect()
}

async fn assert_sound(store: &FileConversationStore) {
    let report = store.verify(|_| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[tokio::test]
async fn a_file_that_cannot_be_made_durable_is_not_acknowledged_and_stops_the_writer() {
    for setting in settings() {
        let store = open(&setting.faulty).await;
        store.append_message(said(1)).await.unwrap();
        setting.faulty.fail(Call::Create, 0, 1, not_durable);
        let failed = store.append_message(said("lost")).await;
        assert!(matches!(failed, Err(Error::NotDurable { .. })));
        for _ in 0..2 {
            let refused = store.append_message(said("refused")).await;
            assert!(matches!(refused, Err(Error::Poisoned { .. })));
        }
        assert!(matches!(store.forget(&[1..=1]).await, Err(Error::Poisoned { .. })));
        let written = store.write_document(Document::Calibration, b"x").await;
        assert!(matches!(written, Err(Error::Poisoned { .. })));
        assert_eq!(texts(&store).await, ["1"], "reading still works");

        let reopened = open(&setting.faulty).await;
        assert_eq!(texts(&reopened).await, ["1"]);
        assert_eq!(reopened.append_message(said(2)).await.unwrap().seq, 2);
        assert_sound(&reopened).await;
    }
}

#[tokio::test]
async fn making_the_vault_leaves_the_mark_of_an_interrupted_writer_for_the_next_one_to_find() {
    for Setting { faulty, _folder } in settings() {
        drop(faulty.lock(Duration::ZERO).unwrap());
        Keyring::make(&*faulty, &secret("the fault tests' secret"), Duration::ZERO).unwrap();
        assert!(faulty.lock(Duration::ZERO).unwrap().was_dirty());
    }
}

#[tokio::test]
async fn a_first_use_that_cannot_be_made_durable_stops_the_writer_as_any_later_one_does() {
    for setting in settings() {
        for store in [open(&setting.faulty).await, open(&setting.faulty).await] {
            // First the root with its new key list is synced, then its contents.
            setting.faulty.fail(Call::Sync, 0, 1, not_durable);
            let failed = store.append_message(said("lost")).await;
            assert!(matches!(failed, Err(Error::NotDurable { .. })), "{failed:?}");
            let refused = store.append_message(said("refused")).await;
            assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_durable_leaves_at_most_the_one_message_and_no_gap() {
    for setting in settings() {
        let store = open(&setting.faulty).await;
        store.append_message(said(1)).await.unwrap();
        setting.faulty.fail(Call::Sync, 0, 1, not_durable);
        let failed = store.append_message(said("unacknowledged")).await;
        assert!(matches!(failed, Err(Error::NotDurable { .. })));
        let refused = store.append_message(said("refused")).await;
        assert!(matches!(refused, Err(Error::Poisoned { .. })));

        let reopened = open(&setting.faulty).await;
        let kept = texts(&reopened).await;
        assert!(kept == ["1"] || kept == ["1", "unacknowledged"], "{kept:?}");
        let next = reopened.append_message(said("next")).await.unwrap().seq;
        assert_eq!(next, kept.len() as u64 + 1);
        assert_eq!(texts(&reopened).await.len(), kept.len() + 1);
        assert_sound(&reopened).await;
    }
}

#[tokio::test]
async fn a_sync_that_fails_at_any_step_of_the_first_appends_is_never_acknowledged() {
    for step in 0.. {
        let mut was_reached = false;
        for setting in settings() {
            setting.faulty.fail(Call::Sync, step, 1, not_durable);
            let store = open(&setting.faulty).await;
            let mut acknowledged = Vec::new();
            for n in 1..=2 {
                match store.append_message(said(n)).await {
                    Ok(stored) => acknowledged.push(stored.message.content.clone()),
                    Err(Error::NotDurable { .. } | Error::Poisoned { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            was_reached |= setting.faulty.is_spent();
            assert_eq!(acknowledged.len() < 2, setting.faulty.is_spent());
            let reopened = open_sound(&setting).await;
            let kept = texts(&reopened).await;
            assert!(kept.starts_with(&acknowledged) && kept.len() <= acknowledged.len() + 1);
            reopened.append_message(said("next")).await.unwrap();
            assert_sound(&reopened).await;
        }
        if !was_reached {
            assert!(step >= 4, "vault, head and two records are each synced, not {step} times");
            return;
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_a_typed_error_and_writing_goes_on_once_there_is_space() {
    for full in [no_space, no_quota] {
        // A failed sync of a folder is always `NotDurable`: names may be lost, and systems report that only once.
        for call in [Call::Create, Call::Overwrite] {
            for setting in settings() {
                let store = open(&setting.faulty).await;
                store.append_message(said(1)).await.unwrap();
                setting.faulty.fail(call, 0, 2, full);
                for _ in 0..2 {
                    let failed = store.append_message(said("too much")).await;
                    assert!(matches!(failed, Err(Error::NoSpace { .. })), "{failed:?}");
                }
                store.append_message(said("fits")).await.unwrap();
                let kept = texts(&store).await;
                assert_eq!((kept[0].as_str(), kept.last().unwrap().as_str()), ("1", "fits"));
                assert_sound(&open_sound(&setting).await).await;
            }
        }
    }
}

#[tokio::test]
async fn running_out_of_open_files_is_an_error_and_passes() {
    for call in [Call::Lock, Call::Create, Call::List, Call::Read] {
        for setting in settings() {
            let store = open(&setting.faulty).await;
            store.append_all((1..=3).map(said).collect()).await.unwrap();
            // A store with an empty cache must list the folder for every step.
            let store = open(&setting.faulty).await.clone();
            setting.faulty.fail(call, 0, 1, no_files);
            let failed = store.append_message(said("refused")).await;
            assert!(matches!(failed, Err(Error::Exhausted { .. })), "{call:?}: {failed:?}");
            setting.faulty.fail(call, 0, 1, no_files);
            if matches!(call, Call::List | Call::Read) {
                let failed = store.read_seqs(1..=9).await;
                assert!(matches!(failed, Err(Error::Exhausted { .. })), "{call:?}: {failed:?}");
            }
            setting.faulty.fail(call, 0, 0, no_files);
            assert_eq!(store.append_message(said(4)).await.unwrap().seq, 4);
            assert_eq!(texts(&store).await, ["1", "2", "3", "4"]);
            assert_sound(&store).await;
        }
    }
}

#[tokio::test]
async fn a_record_that_could_not_be_read_for_a_moment_is_read_again() {
    for setting in settings() {
        let writer = open(&setting.faulty).await;
        writer.append_all((1..=3).map(said).collect()).await.unwrap();
        for after in 0..4 {
            let store = open(&setting.faulty).await;
            setting.faulty.fail(Call::Read, after, 1, broken);
            if let Ok(reading) = store.read_tail(3).await {
                assert!(reading.messages.len() == 3 || !reading.skipped.is_empty());
            }
            setting.faulty.fail(Call::Any, 0, 0, broken);
            assert_eq!(store.read_tail(3).await.unwrap().messages.len(), 3, "read {after}");
        }
    }
}

#[tokio::test]
async fn forgetting_more_than_a_readable_record_holds_is_refused_and_changes_nothing() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
    let options = || StoreOptions::new(secret("the fault tests' secret"));
    let store = open_with(options(), directory.clone()).await;
    store.append_message(said(1)).await.unwrap();
    // As if there were this many messages.
    let scope = crate::Scope::Default;
    let key = Arc::new(secret("the fault tests' secret"));
    let folder = Folder::new(directory.clone(), directory.clone(), scope, vec![key]);
    let head = Head::default().after(3_000_000, (None, None), std::iter::empty());
    let key = folder.writing_key().unwrap();
    directory.replace("head", &folder.seal_head(key, head).unwrap()).unwrap();
    let numbers: Vec<_> = (1..1_000_000).map(|number| number * 2..=number * 2).collect();
    let store = open_with(options(), directory.clone()).await;
    let refused = store.forget(&numbers).await;
    assert!(matches!(refused, Err(Error::InvalidMessage { .. })), "{refused:?}");
    assert_eq!(store.read_tail(1).await.unwrap().last_seq, 3_000_000);
    assert_eq!(store.forget(&numbers[..300_000]).await.unwrap().numbers, 300_000);
    assert_eq!(store.verify(|_| {}).await.unwrap().forgotten, 300_000);
}

#[tokio::test]
async fn writing_a_document_makes_nobody_list_the_folder_again() {
    for setting in settings() {
        let store = open(&setting.faulty).await;
        store.append_all((1..=9).map(said).collect()).await.unwrap();
        let reader = open(&setting.faulty).await;
        assert_eq!(texts(&store).await, texts(&reader).await);
        setting.faulty.fail(Call::List, 0, 1, broken);
        for text in ["one", "another"] {
            store.write_document(Document::Calibration, text.as_bytes()).await.unwrap();
            for store in [&store, &reader] {
                assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 9);
                let found = store.read_document(Document::Calibration).await.unwrap();
                assert_eq!(*found.unwrap(), text.as_bytes());
            }
        }
        store.append_message(said(10)).await.unwrap();
        assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 9);
        assert!(!setting.faulty.is_spent());
    }
}

#[tokio::test]
async fn a_document_that_fails_at_any_step_leaves_the_old_one_or_the_new_one_and_no_false_promise()
{
    for (call, error) in [
        (Call::Replace, not_durable as fn(&Path) -> Error),
        (Call::Replace, no_space),
        (Call::Sync, not_durable),
        (Call::Lock, no_files),
    ] {
        for setting in settings() {
            let store = open(&setting.faulty).await;
            store.append_message(said(1)).await.unwrap();
            store.write_document(Document::Calibration, b"old").await.unwrap();
            setting.faulty.fail(call, 0, 1, error);
            let failed = store.write_document(Document::Calibration, b"new").await.unwrap_err();
            assert!(setting.faulty.is_spent());
            let poisons = matches!(failed, Error::NotDurable { .. });
            let other = open_sound(&setting).await;
            let found = other.read_document(Document::Calibration).await.unwrap().unwrap();
            assert!(*found == b"old" || call == Call::Sync && *found == b"new", "{call:?}");
            let again = store.write_document(Document::Calibration, b"again").await;
            assert_eq!(matches!(again, Err(Error::Poisoned { .. })), poisons, "{again:?}");
            assert_eq!(again.is_ok(), !poisons, "{again:?}");
            assert_eq!(other.append_message(said(2)).await.unwrap().seq, 2);
            assert_eq!(texts(&other).await, ["1", "2"]);
            assert_sound(&other).await;
        }
    }
}

#[tokio::test]
async fn an_answer_and_a_document_fail_together_only_where_bytes_may_not_be_durable() {
    for (call, error, is_kept) in [
        (Call::Replace, not_durable as fn(&Path) -> Error, false),
        (Call::Replace, no_space, true),
        (Call::Create, no_space, false),
        (Call::Sync, not_durable, false),
        (Call::Lock, no_files, false),
    ] {
        for setting in settings() {
            let store = open(&setting.faulty).await;
            let utterance = store.append_message(said(1)).await.unwrap();
            store.write_document(Document::Calibration, b"old").await.unwrap();
            setting.faulty.fail(call, 0, 1, error);
            let answers = || vec![said(2)];
            let document = Document::Calibration;
            let kept =
                store.append_answers_with_document(answers(), &utterance, document, b"new").await;
            assert!(setting.faulty.is_spent());
            assert_eq!(kept.is_ok(), is_kept, "{call:?} {kept:?}");
            let poisons = matches!(kept, Err(Error::NotDurable { .. }));
            if let Ok((stored, written)) = kept {
                assert!(stored.len() == 1 && written.is_err());
            }
            let other = open_sound(&setting).await;
            let found = other.read_document(Document::Calibration).await.unwrap().unwrap();
            assert!(*found == b"old" || !is_kept && *found == b"new", "{call:?}");
            let again =
                store.append_answers_with_document(answers(), &utterance, document, b"again").await;
            assert_eq!(matches!(again, Err(Error::Poisoned { .. })), poisons, "{again:?}");
            assert_sound(&other).await;
        }
    }
}

#[tokio::test]
async fn a_batch_that_fails_midway_says_how_many_are_durable() {
    for error in [no_space, no_files, broken] {
        for setting in settings() {
            let store = open(&setting.faulty).await;
            store.append_message(said(1)).await.unwrap();
            setting.faulty.fail(Call::Create, 3, 1, error);
            let failed = store.append_all((2..=9).map(said).collect()).await;
            assert!(
                matches!(failed, Err(Error::Partial { stored: 3, total: 8, .. })),
                "{failed:?}"
            );
            // They were acknowledged: the head names them, so their loss would be noticed.
            let report = open_sound(&setting).await.verify(|_| {}).await.unwrap();
            assert_eq!((report.last_seq, report.messages), (4, 4));
            for store in [&store, &open_sound(&setting).await] {
                assert_eq!(texts(store).await, ["1", "2", "3", "4"]);
            }
            store.append_all((5..=6).map(said).collect()).await.unwrap();
            assert_eq!(texts(&store).await, ["1", "2", "3", "4", "5", "6"]);
            assert_sound(&store).await;
        }
    }
}

#[tokio::test]
async fn a_batch_that_cannot_be_made_durable_midway_poisons_the_writer() {
    for setting in settings() {
        let store = open(&setting.faulty).await;
        store.append_message(said(0)).await.unwrap();
        setting.faulty.fail(Call::Create, 3, 1, not_durable);
        let failed = store.append_all((1..=8).map(said).collect()).await;
        assert!(matches!(failed, Err(Error::Partial { stored: 3, total: 8, .. })), "{failed:?}");
        let refused = store.append_message(said("refused")).await;
        assert!(matches!(refused, Err(Error::Poisoned { .. })));
        assert_eq!(texts(&open_sound(&setting).await).await, ["0", "1", "2", "3"]);
    }
}

#[tokio::test]
async fn a_batch_whose_kept_part_cannot_be_made_durable_acknowledges_nothing() {
    for setting in settings() {
        let store = open(&setting.faulty).await;
        store.append_message(said(1)).await.unwrap();
        setting.faulty.fail(Call::Sync, 0, 1, not_durable);
        let failed = store.append_all((2..=4).map(said).collect()).await;
        assert!(matches!(failed, Err(Error::NotDurable { .. })), "{failed:?}");
        let refused = store.append_message(said("refused")).await;
        assert!(matches!(refused, Err(Error::Poisoned { .. })));
    }
}

#[tokio::test]
async fn a_holder_that_dies_after_publishing_does_not_get_its_number_given_twice() {
    for setting in settings() {
        // This process has cached the folder, and the head will say that nothing has changed.
        let survivor = open_sound(&setting).await;
        survivor.append_all((1..=2).map(said).collect()).await.unwrap();
        assert_eq!(texts(&survivor).await, ["1", "2"]);

        // The other process publishes and stops there: the head stays, and the lock is never released clean.
        let dying = open(&setting.faulty).await;
        setting.faulty.fail(Call::Overwrite, 0, 1, broken);
        assert!(dying.append_message(said("half done")).await.is_err());
        drop(dying);

        assert_eq!(survivor.append_message(said("next")).await.unwrap().seq, 4);
        for store in [&survivor, &open_sound(&setting).await] {
            assert_eq!(texts(store).await, ["1", "2", "half done", "next"]);
            assert_sound(store).await;
        }
    }
}

#[tokio::test]
async fn a_holder_that_dies_while_forgetting_does_not_bring_anything_back() {
    for setting in settings() {
        let survivor = open_sound(&setting).await;
        survivor.append_all((1..=3).map(said).collect()).await.unwrap();
        let dying = open(&setting.faulty).await;
        // The deletion is recorded, but the files still exist and the head does not name it. It was written before, for the
        // list of forgotten messages.
        setting.faulty.fail(Call::Overwrite, 1, 1, broken);
        assert!(dying.forget(&[2..=2]).await.is_err());
        drop(dying);

        let seqs = async |store: &FileConversationStore| {
            let reading = store.read_tail(9).await.unwrap();
            assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
            reading.messages.iter().map(|stored| stored.seq).collect::<Vec<_>>()
        };
        let other = open_sound(&setting).await;
        assert_eq!(seqs(&other).await, [1, 3]);
        let report = other.verify(|_| {}).await.unwrap();
        assert!(report.findings.iter().all(|finding| finding.kind == FindingKind::Resurrected));
        assert_eq!(report.findings.len(), 1);
        // The next append finishes the interrupted work.
        assert_eq!(survivor.append_message(said("next")).await.unwrap().seq, 5);
        assert_eq!(seqs(&survivor).await, [1, 3, 5]);
        assert_sound(&survivor).await;
    }
}

#[tokio::test]
async fn a_forgotten_file_that_a_backup_brings_back_is_never_returned_and_goes_again() {
    for setting in settings() {
        let store = open(&setting.faulty).await;
        let stored = store.append_message(said("secret")).await.unwrap();
        store.append_message(said("rest")).await.unwrap();
        let name = stored.file_name();
        let backup = setting.faulty.read(&name).unwrap().unwrap();
        store.forget(&[1..=1]).await.unwrap();
        assert!(setting.faulty.create(&name, &backup).unwrap());

        let reopened = open(&setting.faulty).await;
        for reading in
            [reopened.read_tail(9).await.unwrap(), reopened.read_seqs(0..=9).await.unwrap()]
        {
            assert_eq!(reading.messages.iter().map(|m| m.seq).collect::<Vec<_>>(), [2]);
        }
        let report = reopened.verify(|_| {}).await.unwrap();
        assert_eq!(report.findings.len(), 1);
        assert_eq!(report.findings[0].kind, FindingKind::Resurrected);
        assert_eq!(report.findings[0].file.as_deref(), Some(name.as_str()));
        assert!(report.is_sound());
        reopened.append_message(said("next")).await.unwrap();
        assert_eq!(setting.faulty.read(&name).unwrap(), None);
        assert_sound(&reopened).await;
    }
}

#[tokio::test]
async fn an_append_that_is_cancelled_leaves_a_whole_record_and_a_free_lock() {
    for setting in settings() {
        let store = open(&setting.faulty).await;
        store.append_message(said(1)).await.unwrap();
        let held = setting.faulty.inner.lock(Duration::from_secs(9)).unwrap();
        let mut append = store.append_message(said("cancelled"));
        let begun = std::future::poll_fn(|cx| Poll::Ready(append.as_mut().poll(cx))).await;
        assert!(begun.is_pending());
        drop(append);
        held.release_clean();
        // Another process gets the lock, and this one gets the next number.
        open_sound(&setting).await.append_message(said("other")).await.unwrap();
        store.append_message(said("last")).await.unwrap();
        let kept = texts(&store).await;
        assert_eq!((kept.len(), kept[0].as_str(), kept[3].as_str()), (4, "1", "last"));
        assert!(kept.contains(&"cancelled".to_owned()), "an append that has begun is finished");
        assert_sound(&store).await;
    }
}

#[tokio::test]
async fn an_append_that_is_cancelled_while_it_waits_leaves_nothing() {
    for setting in settings() {
        let store = open(&setting.faulty).await;
        let held = setting.faulty.inner.lock(Duration::from_secs(9)).unwrap();
        let mut first = store.append_message(said(1));
        let mut waiting = store.append_message(said("never"));
        for append in [&mut first, &mut waiting] {
            let begun = std::future::poll_fn(|cx| Poll::Ready(append.as_mut().poll(cx))).await;
            assert!(begun.is_pending());
        }
        drop(waiting);
        held.release_clean();
        first.await.unwrap();
        store.append_message(said(2)).await.unwrap();
        assert_eq!(texts(&store).await, ["1", "2"]);
    }
}

#[tokio::test]
async fn a_runtime_that_goes_away_during_an_append_leaves_a_whole_record_or_none() {
    for setting in settings() {
        let faulty = setting.faulty.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let store = runtime.block_on(open(&faulty));
            runtime.spawn(async move { store.append_message(said(1)).await });
            runtime.block_on(tokio::task::yield_now());
        })
        .join()
        .unwrap();
        let store = open_sound(&setting).await;
        let kept = texts(&store).await;
        assert!(kept.is_empty() || kept == ["1"]);
        store.append_message(said("next")).await.unwrap();
        assert_sound(&store).await;
    }
}

#[tokio::test]
async fn during_a_change_of_keys_each_record_opens_under_its_own() {
    for setting in settings() {
        let directory: Arc<dyn Directory> = setting.faulty.clone();
        let open_under = async |first: &str, second: Option<&str>| {
            let mut options = StoreOptions::new(secret(first));
            if let Some(second) = second {
                options = options.also_with(secret(second));
            }
            options.open_directory(directory.clone(), directory.clone()).await
        };
        let old = open_under("the old key", None).await.unwrap();
        old.append_all((1..=2).map(said).collect()).await.unwrap();

        // The key list of a store during a change of keys: the new key writes, the old one still reads.
        let mut entries = key_list::read(&*directory).unwrap().unwrap().entries;
        let key = secret("the new key");
        entries.insert(0, Entry::new(&key).unwrap());
        let new_id = entries[0].kid.clone();
        directory
            .replace("vault", &key_list::sealed_bytes(&entries, &key.unsalted()).unwrap())
            .unwrap();

        assert!(matches!(open_under("the old key", None).await, Err(Error::WrongKey { .. })));
        let both = open_under("the new key", Some("the old key")).await.unwrap();
        assert_eq!(both.append_message(said(3)).await.unwrap().seq, 3);
        assert_eq!(texts(&both).await, ["1", "2", "3"]);
        assert_sound(&both).await;
        let reading = both.read_tail(9).await.unwrap();
        let key_of = |at: usize| {
            let bytes = directory.read(&reading.messages[at].file_name()).unwrap().unwrap();
            String::from_utf8(bytes).unwrap().contains(&new_id)
        };
        assert_eq!((key_of(0), key_of(1), key_of(2)), (false, false, true));

        // With the new key alone, old records are reported, not returned.
        let alone = open_under("the new key", None).await.unwrap();
        let reading = alone.read_tail(9).await.unwrap();
        assert_eq!(reading.messages.iter().map(|m| m.seq).collect::<Vec<_>>(), [3]);
        let old_keys =
            reading.skipped.iter().filter(|f| matches!(f.kind, FindingKind::WrongKey { .. }));
        assert_eq!(old_keys.count(), 2, "{:?}", reading.skipped);
    }
}

/// Ten messages, the head of that moment, and ten more. After a power cut, a head may be that old.
async fn with_an_old_head(setting: &Setting) -> (FileConversationStore, Vec<u8>) {
    let store = open_sound(setting).await;
    let mut head = None;
    for number in 1..=20 {
        store.append_message(said(number)).await.unwrap();
        if number == 10 {
            head = setting.faulty.inner.read("head").unwrap();
        }
    }
    (store, head.unwrap())
}

async fn seqs_and_findings(setting: &Setting) -> (Vec<u64>, Vec<FindingKind>) {
    let store = open_sound(setting).await;
    let reading = store.read_tail(100).await.unwrap();
    let ranged = store.read_seqs(1..=100).await.unwrap();
    assert_eq!(reading.messages, ranged.messages);
    let seqs = reading.messages.iter().map(|message| message.seq).collect();
    (seqs, reading.skipped.into_iter().map(|finding| finding.kind).collect())
}

#[tokio::test]
async fn a_record_lost_beyond_an_old_head_hides_none_of_those_after_it() {
    for setting in settings() {
        let (store, head) = with_an_old_head(&setting).await;
        let lost = store.read_seqs(15..=15).await.unwrap().messages[0].file_name();
        setting.faulty.inner.remove(&lost).unwrap();
        setting.faulty.inner.replace("head", &head).unwrap();
        let (seqs, _) = seqs_and_findings(&setting).await;
        assert_eq!(seqs, (1..=20).filter(|seq| *seq != 15).collect::<Vec<u64>>());
        let report = open_sound(&setting).await.verify(|_| {}).await.unwrap();
        assert_eq!(report.findings, [FindingKind::Missing.at(15, 15)]);
        let next = open_sound(&setting).await.append_message(said("next")).await.unwrap();
        assert_eq!(next.seq, 21);
    }
}

#[tokio::test]
async fn what_was_forgotten_beyond_an_old_head_stays_away_and_hides_nothing() {
    for setting in settings() {
        let (store, head) = with_an_old_head(&setting).await;
        let eleventh = store.read_seqs(11..=11).await.unwrap().messages[0].file_name();
        let bytes = setting.faulty.inner.read(&eleventh).unwrap().unwrap();
        store.forget(&[11..=20]).await.unwrap();
        store.append_all((22..=24).map(said).collect()).await.unwrap();
        setting.faulty.inner.replace("head", &head).unwrap();
        let expected: Vec<u64> = (1..=10).chain(22..=24).collect();
        assert_eq!(seqs_and_findings(&setting).await, (expected.clone(), vec![]));
        // A backup restores one of them.
        setting.faulty.inner.create(&eleventh, &bytes).unwrap();
        assert_eq!(seqs_and_findings(&setting).await, (expected, vec![]));
        let report = open_sound(&setting).await.verify(|_| {}).await.unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

#[tokio::test]
async fn after_a_repair_that_lost_the_settings_only_the_first_forgetting_looks_at_all_messages() {
    let memory = Arc::new(MemoryDirectory::default());
    let faulty = FaultyDirectory::over(memory.clone());
    let directory: Arc<dyn Directory> = faulty.clone();
    let key = EncryptionKey::from_secret("a secret of the house").unwrap();
    let options = StoreOptions::new(key).loose_files(10_000);
    let store = options.open_directory(directory.clone(), directory).await.unwrap();
    for n in 1..=600 {
        store.append_message(said(n)).await.unwrap();
    }
    store.change_profile(Box::new(|p| p.rename(Some("x".to_owned())))).await.unwrap();
    memory.replace("profile", b"lost").unwrap();
    store.repair(crate::admin::RepairOptions::default(), |_| {}).await.unwrap();
    let calls = async |seq| {
        let before = faulty.counted().0;
        assert_eq!(store.forget(&[seq..=seq]).await.unwrap().removed, [seq]);
        faulty.counted().0 - before
    };
    let (first, second) = (calls(600).await, calls(599).await);
    assert!(first > 600, "each message may be a copy: {first}");
    assert!(second < first - 550, "no message is looked at twice: {second} after {first}");
}
