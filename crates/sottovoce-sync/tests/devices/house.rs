//! A few devices and a remote whose requests a test decides about

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use sottovoce::{ChatMessage, ChatRole, Clock, ConversationStore, ManualClock, Scope};
use sottovoce_remote::testing::MemoryRemote;
use sottovoce_remote::{Action, ErrorKind, Remote, RemoteError};
use sottovoce_sync::{DeviceOptions, Problem, SyncReport, SyncResult, Syncer};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::home::{Home, copy, new_folder};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    /// It does not arrive.
    Lose,
    /// It is carried out, and the answer does not arrive.
    LoseAnswer,
    /// Half of the bytes arrive, and no answer.
    Truncate,
    /// It is carried out when the test says so, and no answer comes before.
    Delay,
    /// It is carried out, and again when the test says so.
    Double,
    /// The process dies before it, or right after it was carried out.
    Die,
    DieAfter,
}

/// Decides about a request, by what it asks and the name that it asks it of.
type Decide = Box<dyn FnMut(Action, &str) -> Fate + Send>;

/// The remote. All devices share its objects.
#[derive(Clone)]
pub(crate) struct Fated {
    pub(crate) objects: Arc<MemoryRemote>,
    decide: Arc<Mutex<Decide>>,
    delayed: Arc<Mutex<Vec<(String, Bytes)>>>,
    died: Arc<Notify>,
}

impl Fated {
    fn new(objects: Arc<MemoryRemote>) -> Self {
        let decide: Decide = Box::new(|_, _| Fate::Pass);
        let (delayed, died) = Default::default();
        Self { objects, decide: Arc::new(Mutex::new(decide)), delayed, died }
    }

    /// Decides about the requests from now on.
    pub(crate) fn decide(&self, decide: impl FnMut(Action, &str) -> Fate + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }

    /// The first request of this kind whose name has this part meets a fate; all others pass.
    pub(crate) fn once(&self, action: Action, part: &'static str, fate: Fate) {
        let mut is_over = false;
        self.decide(move |asked, name| {
            let is_it = !is_over && asked == action && name.contains(part);
            is_over |= is_it;
            if is_it { fate } else { Fate::Pass }
        });
    }

    /// What was delayed arrives, the last one first.
    pub(crate) async fn arrive(&self) {
        let delayed = std::mem::take(&mut *self.delayed.lock().unwrap());
        for (name, bytes) in delayed.into_iter().rev() {
            self.objects.put(&name, bytes).await.unwrap();
        }
    }

    async fn fate(&self, action: Action, name: &str) -> Result<Fate, RemoteError> {
        let fate = (self.decide.lock().unwrap())(action, name);
        match fate {
            Fate::Die => self.die().await,
            Fate::Lose => Err(lost(action)),
            fate => Ok(fate),
        }
    }

    async fn die<T>(&self) -> T {
        self.died.notify_one();
        std::future::pending().await
    }
}

impl std::fmt::Debug for Fated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fated").finish_non_exhaustive()
    }
}

fn lost(action: Action) -> RemoteError {
    RemoteError::new(ErrorKind::Unreachable, action, "memory:", "no answer came")
}

#[async_trait]
impl Remote for Fated {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), RemoteError> {
        let fate = self.fate(Action::Put, name).await?;
        let half = bytes.slice(..bytes.len() / 2);
        match fate {
            Fate::Delay => self.delayed.lock().unwrap().push((name.to_owned(), bytes)),
            Fate::Truncate => self.objects.put(name, half).await?,
            Fate::Double => {
                self.delayed.lock().unwrap().push((name.to_owned(), bytes.clone()));
                self.objects.put(name, bytes).await?;
            }
            _ => self.objects.put(name, bytes).await?,
        }
        match fate {
            Fate::DieAfter => self.die().await,
            Fate::Delay | Fate::Truncate | Fate::LoseAnswer => Err(lost(Action::Put)),
            _ => Ok(()),
        }
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>, RemoteError> {
        let fate = self.fate(Action::Get, name).await?;
        let found = self.objects.get(name).await?;
        match fate {
            Fate::Truncate => Ok(found.map(|bytes| bytes.slice(..bytes.len() / 2))),
            Fate::LoseAnswer | Fate::Delay => Err(lost(Action::Get)),
            _ => Ok(found),
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, RemoteError> {
        self.fate(Action::List, folder).await?;
        self.objects.list(folder).await
    }

    async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        match self.fate(Action::Delete, name).await? {
            Fate::LoseAnswer | Fate::Delay => Err(lost(Action::Delete)),
            _ => self.objects.delete(name).await,
        }
    }
}

/// A device.
pub(crate) struct Machine {
    folder: TempDir,
    pub(crate) home: Arc<Home>,
    pub(crate) remote: Fated,
    pub(crate) syncer: Arc<Syncer>,
}

impl Machine {
    pub(crate) fn new(objects: &Arc<MemoryRemote>) -> Self {
        let folder = new_folder();
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Arc::new(ManualClock::at_utc(now));
        let home = Arc::new(Home::new(folder.path().join("store"), clock));
        let remote = Fated::new(Arc::clone(objects));
        let syncer = Arc::new(syncer(&home, &remote));
        Self { folder, home, remote, syncer }
    }

    /// Another process of the same device.
    pub(crate) fn second_process(&self) -> Syncer {
        syncer(&self.home, &self.remote)
    }

    /// Another device with a copy of this one's store.
    pub(crate) fn copied(&self) -> Self {
        let copied = Self::new(&self.remote.objects);
        copy(&self.home.folder, &copied.home.folder);
        copied
    }

    /// Copies this device's store somewhere else.
    pub(crate) fn back_up(&self) -> TempDir {
        let backup = new_folder();
        copy(&self.home.folder, backup.path());
        backup
    }

    /// Puts a copy back.
    pub(crate) fn restore(&self, backup: &TempDir) {
        self.home.close();
        copy(backup.path(), &self.home.folder);
    }

    /// Puts one conversation of a copy back.
    pub(crate) fn restore_scope(&self, backup: &TempDir, scope: &Scope) {
        let below: PathBuf = scope.folder().unwrap().iter().collect();
        self.home.close();
        copy(&backup.path().join(&below), &self.home.folder.join(&below));
    }

    pub(crate) async fn say(&self, text: &str) {
        self.say_in(&Scope::Default, text).await;
    }

    pub(crate) async fn say_in(&self, scope: &Scope, text: &str) -> u64 {
        self.home.clock.advance(SignedDuration::from_secs(1));
        let now = self.home.clock.now().timestamp();
        let message = ChatMessage::at(ChatRole::User, text, now);
        self.home.store(scope).await.append_message(message).await.unwrap().seq
    }

    /// Forgets the message with a text.
    pub(crate) async fn forget(&self, text: &str) {
        let store = self.home.store(&Scope::Default).await;
        let read = store.read_tail(1000).await.unwrap();
        let seq = read.messages.iter().find(|stored| stored.message.content == text).unwrap().seq;
        store.forget(&[seq..=seq]).await.unwrap();
    }

    /// Forgets a whole conversation.
    pub(crate) async fn forget_all(&self, scope: &Scope) {
        let store = self.home.store(scope).await;
        store.forget_all().await.unwrap();
        store.remove_forgotten().await.unwrap();
    }

    /// What the device has in the default conversation, in its order.
    pub(crate) async fn words(&self) -> Vec<String> {
        self.words_in(&Scope::Default).await
    }

    pub(crate) async fn words_in(&self, scope: &Scope) -> Vec<String> {
        let read = self.home.store(scope).await.read_tail(100_000).await.unwrap();
        assert!(read.skipped.is_empty(), "{:?}", read.skipped);
        read.messages.iter().map(|stored| stored.message.content.clone()).collect()
    }

    pub(crate) async fn sync(&self) -> SyncReport {
        self.try_sync().await.unwrap()
    }

    pub(crate) async fn try_sync(&self) -> SyncResult<SyncReport> {
        self.syncer.sync(|_| {}).await
    }

    /// Syncs until the fate of a request ends the process, and then starts another one.
    pub(crate) async fn die(&mut self) {
        let syncing = Arc::clone(&self.syncer);
        self.die_in(syncing.sync(|_| {})).await;
    }

    /// Works until the fate of a request ends the process, and then starts another one.
    pub(crate) async fn die_in<T: std::fmt::Debug>(&mut self, work: impl Future<Output = T>) {
        tokio::select! {
            outcome = work => panic!("it did not die: {outcome:?}"),
            () = self.remote.died.notified() => {}
        }
        self.remote.decide(|_, _| Fate::Pass);
        self.syncer = Arc::new(self.second_process());
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn syncer(home: &Arc<Home>, remote: &Fated) -> Syncer {
    let remote = remote.clone();
    let open = move |_: &str| Ok(Arc::new(remote.clone()) as Arc<dyn Remote>);
    Syncer::new(Arc::clone(home) as _, Arc::clone(&home.clock) as _, Box::new(open))
}

fn options(name: &str) -> DeviceOptions {
    DeviceOptions { name: name.to_owned(), ..DeviceOptions::default() }
}

/// Devices that share a memory and have synced once.
pub(crate) async fn devices<const N: usize>() -> [Machine; N] {
    let objects = Arc::new(MemoryRemote::new());
    let machines: [Machine; N] = std::array::from_fn(|number| {
        let machine = Machine::new(&objects);
        // What two devices say at the same moment may be in another order on each.
        machine.home.clock.advance(SignedDuration::from_millis(10 * number as i64));
        machine
    });
    machines[0].syncer.init("memory:", options("device 0")).await.unwrap();
    machines[0].sync().await;
    let invitation = machines[0].syncer.invitation().await.unwrap();
    for (number, machine) in machines.iter().enumerate().skip(1) {
        machine.syncer.join(&invitation, options(&format!("device {number}"))).await.unwrap();
        machine.sync().await;
    }
    machines
}

/// Syncs all of them until nothing changes at the remote, and checks that all have these messages in this order.
pub(crate) async fn all_have(machines: &[&Machine], expected: &[&str]) {
    for round in 0.. {
        let before = machines[0].remote.objects.objects();
        for machine in machines {
            machine.sync().await;
        }
        if machines[0].remote.objects.objects() == before {
            break;
        }
        assert!(round < 8, "they never come to rest");
    }
    for (at, machine) in machines.iter().enumerate() {
        assert_eq!(machine.words().await, expected, "device {at}");
    }
}

/// What a report says that could not be used.
pub(crate) fn problems(report: &SyncReport) -> Vec<&'static str> {
    let kind = |problem: &Problem| match problem {
        Problem::TooManyDevices => "too many devices",
        Problem::Unusable { .. } => "unusable",
        Problem::Incomplete { .. } => "incomplete",
        Problem::Missing { .. } => "missing",
        Problem::RolledBack { .. } => "rolled back",
        Problem::Withheld { .. } => "withheld",
        Problem::Artifact { .. } => "artifact",
        Problem::Differs { .. } => "differs",
        _ => "other",
    };
    report.problems.iter().map(kind).collect()
}

/// The names of the objects at the remote that have this part.
pub(crate) fn named(objects: &MemoryRemote, part: &str) -> Vec<String> {
    let all: BTreeMap<String, Bytes> = objects.objects();
    all.into_keys().filter(|name| name.contains(part)).collect()
}
