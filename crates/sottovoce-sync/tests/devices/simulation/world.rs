//! The devices, the remote, and what everybody knows

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use sottovoce::exchange::{Exchange, Origin};
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact, SavedMessage, Snapshot};
use sottovoce::{ChatMessage, ChatRole, Clock, ConversationStore, ManualClock, Scope};
use sottovoce_remote::Remote;
use sottovoce_remote::testing::{Faults, Faulty, MemoryRemote};
use sottovoce_sync::testing::{live_texts, published};
use sottovoce_sync::{DeviceOptions, Problem, Selection, SyncError, Syncer};
use tempfile::TempDir;

use crate::home::{Home, copy, new_folder};
use crate::kill::Mortal;
use crate::simulation::action::{Action, Random};

const ADDRESS: &str = "memory:";
/// The most devices of a world.
const MOST: usize = 5;

type Shared = Arc<Faulty<Arc<MemoryRemote>>>;

struct Machine {
    /// Deleted with the world.
    _folder: TempDir,
    home: Arc<Home>,
    remote: Mortal<Shared>,
    syncer: Syncer,
    name: String,
    backup: Option<TempDir>,
}

pub(crate) struct World {
    machines: Vec<Machine>,
    remote: Shared,
    copy: Option<BTreeMap<String, Bytes>>,
    random: Arc<Mutex<Random>>,
    said: usize,
    /// How many devices there have ever been.
    added: usize,
}

static SYNCS: AtomicUsize = AtomicUsize::new(0);
static FAILED: AtomicUsize = AtomicUsize::new(0);
static DIED: AtomicUsize = AtomicUsize::new(0);
static BEGAN_AGAIN: AtomicUsize = AtomicUsize::new(0);
static SAID: AtomicUsize = AtomicUsize::new(0);
static FORGOTTEN: AtomicUsize = AtomicUsize::new(0);

/// How often things happened, over all seeds.
pub(crate) fn counts() -> String {
    let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    format!(
        "{} syncs, of which {} failed and {} were killed; {} new streams; {} messages said, {} forgotten",
        read(&SYNCS),
        read(&FAILED),
        read(&DIED),
        read(&BEGAN_AGAIN),
        read(&SAID),
        read(&FORGOTTEN)
    )
}

fn count(counter: &AtomicUsize, by: usize) {
    counter.fetch_add(by, Ordering::Relaxed);
}

fn scope(number: u64) -> Scope {
    match number % 3 {
        0 => Scope::Default,
        1 => Scope::Named { id: "kitchen".to_owned() },
        _ => Scope::Dm { user: "42".to_owned() },
    }
}

/// What a store has: the texts of each conversation by origin, and what was forgotten there.
#[derive(Debug, Default, PartialEq)]
struct Contents {
    messages: BTreeMap<(Scope, Origin), String>,
    doubled: Vec<String>,
    forgotten: BTreeSet<Origin>,
    settings: BTreeMap<String, String>,
}

impl World {
    pub(crate) async fn new(seed: u64) -> Self {
        let remote = Arc::new(Faulty::new(Arc::new(MemoryRemote::new()), seed, Faults::default()));
        let random = Arc::new(Mutex::new(Random::new(seed ^ 0xface)));
        let mut world =
            Self { machines: Vec::new(), remote, copy: None, random, said: 0, added: 0 };
        world.add(new_folder());
        let first = &world.machines[0];
        first.syncer.init(ADDRESS, options(&first.name)).await.unwrap();
        first.syncer.sync(|_| {}).await.unwrap();
        world.join().await.unwrap();
        world
    }

    fn add(&mut self, folder: TempDir) {
        let clock =
            Arc::new(ManualClock::at_utc("2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap()));
        let home = Arc::new(Home::new(folder.path().join("store"), clock));
        let remote = Mortal::new(Arc::clone(&self.remote));
        let syncer = self.syncer(&home, &remote);
        let name = format!("device-{}", self.added);
        self.added += 1;
        self.machines.push(Machine { _folder: folder, home, remote, syncer, name, backup: None });
    }

    fn syncer(&self, home: &Arc<Home>, remote: &Mortal<Shared>) -> Syncer {
        let (remote, random) = (remote.clone(), Arc::clone(&self.random));
        let open = move |_: &str| Ok(Arc::new(remote.clone()) as Arc<dyn Remote>);
        let next = move || {
            let mut random = random.lock().unwrap();
            Some(u128::from(random.next()) << 64 | u128::from(random.next()))
        };
        let (conversations, clock) = (Arc::clone(home) as _, Arc::clone(&home.clock) as _);
        Syncer::new(conversations, clock, Box::new(open)).with_random(Arc::new(next))
    }

    async fn join(&mut self) -> Result<(), SyncError> {
        if self.machines.len() >= MOST {
            return Ok(());
        }
        let invitation = self.machines[0].syncer.invitation().await?;
        self.add(new_folder());
        let new = &self.machines[self.machines.len() - 1];
        let joined = new.syncer.join(&invitation, options(&new.name)).await;
        if joined.is_err() {
            // The remote did not answer, or is empty; the person tries again some other time.
            self.machines.pop();
        }
        Ok(())
    }

    fn machine(&self, device: u64) -> usize {
        (device % self.machines.len() as u64) as usize
    }

    pub(crate) async fn act(&mut self, action: &Action) -> Result<(), String> {
        match *action {
            Action::Say { device, scope: number } => {
                self.said += 1;
                count(&SAID, 1);
                let home = &self.machines[self.machine(device)].home;
                home.clock.advance(SignedDuration::from_secs(20));
                let text = format!("word-{:06}", self.said);
                let message = ChatMessage::at(ChatRole::User, text, home.clock.now().timestamp());
                home.store(&scope(number)).await.append_message(message).await.map_err(text_of)?;
            }
            Action::Forget { device, scope: number, which } => {
                let store = self.machines[self.machine(device)].home.store(&scope(number)).await;
                let read = Exchange::new(store.clone()).messages(0).await.map_err(text_of)?;
                if !read.messages.is_empty() {
                    let seq = read.messages[(which % read.messages.len() as u64) as usize].seq;
                    store.forget(&[seq..=seq]).await.map_err(text_of)?;
                    count(&FORGOTTEN, 1);
                }
            }
            Action::ForgetAll { device, scope: number } => {
                let store = self.machines[self.machine(device)].home.store(&scope(number)).await;
                let forgotten = store.forget_all().await.map_err(text_of)?;
                count(&FORGOTTEN, forgotten.removed.len());
                store.remove_forgotten().await.map_err(text_of)?;
            }
            Action::Title { device, scope: number, title } => {
                let store = self.machines[self.machine(device)].home.store(&scope(number)).await;
                let title = title.map(|title| format!("title-{title}"));
                let change =
                    move |profile: &mut sottovoce::store::Profile| profile.title.clone_from(&title);
                store.change_profile(Box::new(change)).await.map_err(text_of)?;
            }
            Action::Clear { device, scope: number } => {
                let store = self.machines[self.machine(device)].home.store(&scope(number)).await;
                store.clear().await.map_err(text_of)?;
            }
            Action::AddArtifact { device, scope: number } => {
                self.said += 1;
                let store = self.machines[self.machine(device)].home.store(&scope(number)).await;
                let new = NewArtifact::new(ArtifactKind::File, format!("file-{}", self.said));
                let contents = format!("contents-{:06}", self.said).into_bytes();
                let contents = Box::new(Cursor::new(contents));
                store.add_artifact(new, contents).await.map_err(text_of)?;
            }
            Action::DeleteArtifact { device, scope: number } => {
                let store = self.machines[self.machine(device)].home.store(&scope(number)).await;
                let (artifacts, _) = store.artifacts().await.map_err(text_of)?;
                if let Some(artifact) = artifacts.first() {
                    store
                        .delete_artifacts(std::slice::from_ref(&artifact.id))
                        .await
                        .map_err(text_of)?;
                }
            }
            Action::Snapshot { device, scope: number } => {
                let home = &self.machines[self.machine(device)].home;
                let store = home.store(&scope(number)).await;
                let tail = store.read_tail(3).await.map_err(text_of)?;
                let saved =
                    tail.messages.iter().map(|m| SavedMessage::new(m.seq, m.message.clone()));
                let now = home.clock.now().timestamp();
                let snapshot = Snapshot::new(now, (now, now), saved.collect()).map_err(text_of)?;
                store.save_snapshot(snapshot).await.map_err(text_of)?;
            }
            Action::Sync { device } => self.sync(self.machine(device), true, None).await?,
            Action::Poll { device } => self.sync(self.machine(device), false, None).await?,
            Action::Die { device, after } => {
                self.sync(self.machine(device), true, Some(after as i64)).await?;
            }
            Action::Backup { device } => {
                let at = self.machine(device);
                let backup = new_folder();
                copy(&self.machines[at].home.folder, &backup.path().join("store"));
                self.machines[at].backup = Some(backup);
            }
            Action::Restore { device } => {
                let machine = &self.machines[self.machine(device)];
                if let Some(backup) = &machine.backup {
                    copy(&backup.path().join("store"), &machine.home.folder);
                }
            }
            Action::RestoreScope { device, scope: number } => {
                let machine = &self.machines[self.machine(device)];
                let below: PathBuf = scope(number).folder().unwrap().iter().collect();
                if let (Some(backup), false) = (&machine.backup, below.as_os_str().is_empty()) {
                    let from = backup.path().join("store").join(&below);
                    let to = machine.home.folder.join(&below);
                    if from.is_dir() && to.is_dir() {
                        copy(&from, &to);
                    }
                }
            }
            Action::Clone { device } => {
                if self.machines.len() < MOST {
                    let folder = new_folder();
                    let from = self.machines[self.machine(device)].home.folder.clone();
                    copy(&from, &folder.path().join("store"));
                    self.add(folder);
                }
            }
            Action::Join => self.join().await.map_err(text_of)?,
            Action::CopyRemote => self.copy = Some(self.remote.inner().objects()),
            Action::RollBackRemote => {
                if let Some(copy) = &self.copy {
                    self.remote.inner().restore(copy.clone());
                }
            }
            Action::WipeRemote => self.remote.inner().restore(BTreeMap::new()),
            Action::Faults { thousandths } => {
                self.remote.set_faults(Faults::all(thousandths as u16));
            }
            Action::Clock { device, hours } => {
                let machine = &self.machines[self.machine(device)];
                let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
                let now = start + SignedDuration::from_secs(3600 * hours + self.said as i64);
                machine.home.clock.set(now.to_zoned(jiff::tz::TimeZone::UTC));
            }
            Action::Mend { device } => {
                let at = self.machine(device);
                let outcome = self.machines[at].syncer.mend(|_| {}).await;
                outcome.map(drop).or_else(excused)?;
            }
            Action::Select { device, which } => {
                let outcome = self.machines[self.machine(device)].syncer.select(selection(which));
                outcome.await.or_else(excused)?;
            }
            Action::JoinAgain { device } => {
                let at = self.machine(device);
                if at > 0 {
                    self.machines[at].syncer.stop().await.or_else(excused)?;
                    self.join_again(at).await;
                }
            }
            Action::Remove { device } => {
                let at = self.machine(device);
                if at > 0 && self.machines.len() > 2 {
                    let name = &self.machines[at].name;
                    match self.machines[0].syncer.remove_device(name, |_| {}).await {
                        Ok(_) => drop(self.machines.remove(at)),
                        Err(error) => excused(error)?,
                    }
                }
            }
            Action::Together { device, other, scope: number } => {
                let (one, other) = (self.machine(device), self.machine(other));
                self.said += 1;
                let home = &self.machines[one].home;
                home.clock.advance(SignedDuration::from_secs(20));
                let text = format!("word-{:06}", self.said);
                let message = ChatMessage::at(ChatRole::User, text, home.clock.now().timestamp());
                let store = home.store(&scope(number)).await;
                let saying = async {
                    for _ in 0..number * 3 {
                        tokio::task::yield_now().await;
                    }
                    store.append_message(message).await
                };
                let (first, second, said) = tokio::join!(
                    self.machines[one].syncer.sync(|_| {}),
                    self.machines[other].syncer.sync(|_| {}),
                    saying
                );
                said.map_err(text_of)?;
                for outcome in [first, second] {
                    outcome.map(drop).or_else(excused)?;
                }
            }
        }
        Ok(())
    }

    /// Joins the space that the first device is in now, as a device that was told to. If the remote does not answer, the
    /// person tries again some other time.
    async fn join_again(&self, at: usize) {
        let Ok(invitation) = self.machines[0].syncer.invitation().await else { return };
        let machine = &self.machines[at];
        let _ = machine.syncer.join(&invitation, options(&machine.name)).await;
    }

    /// Syncs one device. Errors of the remote are part of life; others are not.
    async fn sync(&self, at: usize, is_full: bool, dies: Option<i64>) -> Result<(), String> {
        let machine = &self.machines[at];
        count(&SYNCS, 1);
        machine.remote.die_after(dies.unwrap_or(i64::MAX));
        let syncing = async {
            match is_full {
                true => machine.syncer.sync(|_| {}).await,
                false => machine.syncer.poll().await,
            }
        };
        let outcome = tokio::select! {
            outcome = syncing => Some(outcome),
            () = machine.remote.died() => None,
        };
        machine.remote.die_after(i64::MAX);
        match outcome {
            None => count(&DIED, 1),
            Some(Ok(report)) => count(&BEGAN_AGAIN, usize::from(report.began_again)),
            Some(Err(SyncError::NotSetUp | SyncError::Closed)) => self.join_again(at).await,
            Some(Err(error)) => {
                count(&FAILED, 1);
                excused(error)?;
            }
        }
        Ok(())
    }

    /// All faults end and every device syncs. Then everything must be right.
    pub(crate) async fn settle(&mut self) -> Result<(), String> {
        self.remote.set_faults(Faults::default());
        self.remote.settle().await.map_err(text_of)?;
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let invitation = self.machines[0].syncer.invitation().await.map_err(text_of)?;
        let there = published(Arc::clone(self.remote.inner()) as _, &invitation).await;
        let there = there.map_err(text_of)?;
        let (mut held, mut forgotten) = (there.said, there.gone);
        for machine in &self.machines {
            machine.home.clock.set(now.to_zoned(jiff::tz::TimeZone::UTC));
            let contents = contents(&machine.home).await?;
            held.extend(contents.messages);
            forgotten.extend(contents.forgotten);
            machine.syncer.select(selection(0)).await.or_else(excused)?;
        }
        let mut rounds = 0;
        loop {
            let before = self.remote.inner().objects();
            let mut has_joined = false;
            for at in 0..self.machines.len() {
                let outcome = self.machines[at].syncer.sync(|_| {}).await;
                match outcome {
                    Ok(report) if rounds > 3 && report.problems.iter().all(is_missing) => {
                        // As the report tells the person to.
                        if !report.problems.is_empty() {
                            self.machines[at].syncer.mend(|_| {}).await.map_err(text_of)?;
                        }
                    }
                    Ok(report) if rounds > 3 => {
                        return Err(format!(
                            "device {at} still has problems: {:?}",
                            report.problems
                        ));
                    }
                    Ok(_) => {}
                    Err(SyncError::NotSetUp | SyncError::Closed) if rounds < 4 && at > 0 => {
                        self.join_again(at).await;
                        has_joined = true;
                    }
                    // As the error tells the person to.
                    Err(SyncError::Absent { .. }) if rounds < 4 => {
                        self.machines[at].syncer.mend(|_| {}).await.map_err(text_of)?;
                    }
                    Err(error) => return Err(format!("device {at} cannot sync: {error}")),
                }
            }
            if self.remote.inner().objects() == before && !has_joined {
                break;
            }
            rounds += 1;
            if rounds > 12 {
                return Err("the devices never come to rest".to_owned());
            }
        }
        self.check(&held, &forgotten).await
    }

    async fn check(
        &self,
        held: &BTreeMap<(Scope, Origin), String>,
        forgotten: &BTreeSet<Origin>,
    ) -> Result<(), String> {
        let mut all = Vec::new();
        for machine in &self.machines {
            all.push(contents(&machine.home).await?);
        }
        let mut gone = forgotten.clone();
        gone.extend(all.iter().flat_map(|contents| contents.forgotten.iter().copied()));
        for (at, contents) in all.iter().enumerate() {
            if !contents.doubled.is_empty() {
                return Err(format!("device {at} has twice: {:?}", contents.doubled));
            }
            for ((scope, origin), text) in held {
                let is_there = contents.messages.contains_key(&(scope.clone(), *origin));
                if !is_there && !gone.contains(origin) {
                    return Err(format!("device {at} lacks {text} of {scope}"));
                }
            }
            for ((scope, origin), text) in &contents.messages {
                if gone.contains(origin) {
                    return Err(format!(
                        "device {at} still has {text} of {scope}, which was forgotten"
                    ));
                }
            }
            if contents.messages != all[0].messages {
                return Err(format!("device {at} has other messages than device 0"));
            }
            if contents.settings != all[0].settings {
                return Err(format!(
                    "device {at} has {:?}, device 0 {:?}",
                    contents.settings, all[0].settings
                ));
            }
        }
        let words: BTreeSet<&String> = all[0].messages.values().collect();
        let invitation = self.machines[0].syncer.invitation().await.map_err(text_of)?;
        // A stream that a restored store no longer knows stays until it is removed.
        let mut devices = Vec::new();
        for machine in &self.machines {
            devices.push(machine.syncer.status().await.map_err(text_of)?.device);
        }
        let remote = Arc::clone(self.remote.inner()) as _;
        let live = live_texts(remote, &invitation, &devices).await.map_err(text_of)?;
        for text in live {
            let text = String::from_utf8_lossy(&text).into_owned();
            for (at, _) in text.match_indices("word-") {
                let word = text.get(at..at + 11).unwrap();
                if !words.iter().any(|known| known.as_str() == word) {
                    return Err(format!(
                        "the remote still has {word}, which no device has: {text}"
                    ));
                }
            }
        }
        for (name, bytes) in self.remote.inner().objects() {
            let raw = String::from_utf8_lossy(&bytes);
            if raw.contains("word-") || raw.contains("title-") || name.contains("kitchen") {
                return Err(format!("the remote can read {name}"));
            }
        }
        Ok(())
    }
}

fn options(name: &str) -> DeviceOptions {
    DeviceOptions { name: name.to_owned(), selection: selection(0) }
}

/// What a person may choose; first everything.
fn selection(which: u64) -> Selection {
    let all = Selection { all: true, ..Selection::default() };
    match which % 4 {
        0 => all,
        1 => Selection { only: vec!["named/kitchen".to_owned()], ..Selection::default() },
        2 => Selection { except: vec!["default".to_owned()], ..all },
        _ => Selection::default(),
    }
}

fn is_missing(problem: &Problem) -> bool {
    matches!(problem, Problem::Missing { .. })
}

/// Errors that a person meets and that pass.
fn excused(error: SyncError) -> Result<(), String> {
    match error {
        SyncError::Remote(_) | SyncError::Contested | SyncError::Object { .. } => Ok(()),
        SyncError::NotSetUp | SyncError::Closed | SyncError::Busy => Ok(()),
        SyncError::NoSuchDevice { .. } | SyncError::Absent { .. } => Ok(()),
        other => Err(format!("a sync failed: {other}: {other:?}")),
    }
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

async fn contents(home: &Home) -> Result<Contents, String> {
    use sottovoce_sync::Conversations as _;
    let mut contents = Contents::default();
    let root = Exchange::new(home.store(&Scope::Default).await);
    for number in 0..3 {
        let forgotten = root.forgotten_with(&scope(number)).await.map_err(text_of)?;
        contents.forgotten.extend(forgotten);
    }
    for scope in home.scopes().await.map_err(text_of)? {
        let exchange = Exchange::new(home.store(&scope).await);
        let mut after = 0;
        let mut texts = BTreeSet::new();
        loop {
            let read = exchange.messages(after).await.map_err(text_of)?;
            for found in read.messages {
                let text = found.message.message.content.clone();
                if !texts.insert(text.clone()) {
                    contents.doubled.push(text.clone());
                }
                contents.messages.insert((scope.clone(), found.message.origin), text);
            }
            after = read.read_to;
            if read.read_to >= read.last_seq {
                break;
            }
        }
        contents.forgotten.extend(exchange.forgotten().await.map_err(text_of)?);
        for (name, value) in exchange.settings().await.map_err(text_of)? {
            // A clear applies up to the time of each device's own clock.
            let value = if name == "cleared" { String::new() } else { value.to_string() };
            contents.settings.insert(format!("{scope} {name}"), value);
        }
        for (id, snapshot) in exchange.snapshots().await.map_err(text_of)? {
            let text = serde_json::to_string(&snapshot).unwrap();
            contents.settings.insert(format!("{scope} snapshot {id}"), text);
        }
        for (id, artifact) in exchange.artifacts().await.map_err(text_of)? {
            if let Some(artifact) = artifact {
                contents.settings.insert(format!("{scope} artifact {id}"), artifact.name.clone());
            }
        }
    }
    Ok(contents)
}
