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
use crate::kill::{Mortal, for_steps};
use crate::simulation::action::{Action, Random};
use crate::simulation::contents::{contents, scope, search, text_of};

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
    /// With the secret of its key.
    backup: Option<(TempDir, &'static str)>,
}

pub(crate) struct World {
    machines: Vec<Machine>,
    remote: Shared,
    faults: Faults,
    copy: Option<BTreeMap<String, Bytes>>,
    random: Arc<Mutex<Random>>,
    said: usize,
    /// How many devices there have ever been.
    added: usize,
    /// Whether some clock was wrong by more than a week. Then the order may differ.
    was_far_off: bool,
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

/// When a device begins. No two say anything in the same millisecond by themselves.
fn start(added: usize) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_millis(17 * added as i64)
}

impl World {
    pub(crate) async fn new(seed: u64) -> Self {
        let remote = Arc::new(Faulty::new(Arc::new(MemoryRemote::new()), seed, Faults::default()));
        let random = Arc::new(Mutex::new(Random::new(seed ^ 0xface)));
        let mut world = Self {
            machines: Vec::new(),
            remote,
            faults: Faults::default(),
            copy: None,
            random,
            said: 0,
            added: 0,
            was_far_off: false,
        };
        world.add(new_folder());
        let first = &world.machines[0];
        first.syncer.init(ADDRESS, options(&first.name)).await.unwrap();
        first.syncer.sync(|_| {}).await.unwrap();
        world.join().await.unwrap();
        world
    }

    fn add(&mut self, folder: TempDir) {
        let clock = Arc::new(ManualClock::at_utc(start(self.added)));
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
                let at = self.machine(device);
                let message = self.next_message(at);
                let store = self.machines[at].home.store(&scope(number)).await;
                store.append_message(message).await.map_err(text_of)?;
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
                let home = &self.machines[self.machine(device)].home;
                forget_all(home, number, u64::MAX).await?;
            }
            Action::DieForgetting { device, scope: number, after } => {
                let home = &self.machines[self.machine(device)].home;
                forget_all(home, number, after).await?;
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
                self.add_artifact(self.machine(device), number).await?;
            }
            Action::ForgetArriving { device, other, scope: number } => {
                let (at, other) = (self.machine(device), self.machine(other));
                self.add_artifact(at, number).await?;
                self.sync(at, true, None).await?;
                self.remote.set_faults(Faults { lost_replies: 300, ..Faults::default() });
                self.sync(other, true, None).await?;
                self.remote.set_faults(self.faults);
                forget_all(&self.machines[other].home, number, u64::MAX).await?;
            }
            Action::Search { device, scope: number } => {
                let store = self.machines[self.machine(device)].home.store(&scope(number)).await;
                search(store).await?;
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
            Action::DieBetween { device, after } => {
                let at = self.machine(device);
                match for_steps(after, self.sync(at, true, None)).await {
                    Some(outcome) => outcome?,
                    None => count(&DIED, 1),
                }
            }
            Action::Backup { device } => {
                let at = self.machine(device);
                let backup = new_folder();
                copy(&self.machines[at].home.folder, &backup.path().join("store"));
                self.machines[at].backup = Some((backup, self.machines[at].home.secret()));
            }
            Action::Restore { device } => {
                let machine = &self.machines[self.machine(device)];
                if let Some((backup, secret)) = &machine.backup {
                    machine.home.close();
                    copy(&backup.path().join("store"), &machine.home.folder);
                    *machine.home.secret.lock().unwrap() = secret;
                }
            }
            Action::RestoreScope { device, scope: number } => {
                let machine = &self.machines[self.machine(device)];
                let below: PathBuf = scope(number).folder().unwrap().iter().collect();
                let backup = machine.backup.as_ref();
                let backup = backup.filter(|(_, secret)| *secret == machine.home.secret());
                if let (Some((backup, _)), false) = (backup, below.as_os_str().is_empty()) {
                    let from = backup.path().join("store").join(&below);
                    let to = machine.home.folder.join(&below);
                    if from.is_dir() && to.is_dir() {
                        machine.home.close();
                        copy(&from, &to);
                    }
                }
            }
            Action::Clone { device } => {
                if self.machines.len() < MOST {
                    let folder = new_folder();
                    let at = self.machine(device);
                    copy(&self.machines[at].home.folder, &folder.path().join("store"));
                    self.add(folder);
                    let secret = self.machines[at].home.secret();
                    let clone = &self.machines[self.machines.len() - 1];
                    *clone.home.secret.lock().unwrap() = secret;
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
                self.faults = Faults::all(thousandths as u16);
                self.remote.set_faults(self.faults);
            }
            Action::Clock { device, hours } => {
                let at = self.machine(device);
                self.was_far_off |= hours.abs() > 72;
                let machine = &self.machines[at];
                let added = machine.name.trim_start_matches("device-").parse().unwrap();
                let now = start(added) + SignedDuration::from_secs(3600 * hours + self.said as i64);
                machine.home.clock.set(now.to_zoned(jiff::tz::TimeZone::UTC));
            }
            Action::Rekey { device } => self.machines[self.machine(device)].home.rekey().await,
            Action::Pack { device, scope: number } => {
                let store = self.machines[self.machine(device)].home.store(&scope(number)).await;
                store.pack(|_| {}).await.map_err(text_of)?;
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
                let message = self.next_message(one);
                let home = &self.machines[one].home;
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

    /// What a person says next to a device, some seconds after the last time.
    fn next_message(&mut self, at: usize) -> ChatMessage {
        self.said += 1;
        count(&SAID, 1);
        let clock = &self.machines[at].home.clock;
        clock.advance(SignedDuration::from_millis(20_000 + (self.said as i64 * 371) % 1000));
        let text = format!("word-{:06}", self.said);
        ChatMessage::at(ChatRole::User, text, clock.now().timestamp())
    }

    async fn add_artifact(&mut self, at: usize, number: u64) -> Result<(), String> {
        self.said += 1;
        let store = self.machines[at].home.store(&scope(number)).await;
        let new = NewArtifact::new(ArtifactKind::File, format!("file-{}", self.said));
        let contents = Box::new(Cursor::new(format!("contents-{:06}", self.said).into_bytes()));
        store.add_artifact(new, contents).await.map(drop).map_err(text_of)
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
            for number in 0..3 {
                search(machine.home.store(&scope(number)).await).await?;
            }
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
            if !self.was_far_off && contents.places != all[0].places {
                return Err(format!(
                    "device {at} has another order than device 0: {:?} and {:?}",
                    contents.places, all[0].places
                ));
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

/// Forgets a conversation in so many steps, or dies.
async fn forget_all(home: &Home, number: u64, steps: u64) -> Result<(), String> {
    let store = home.store(&scope(number)).await;
    let forgetting = async {
        let forgotten = store.forget_all().await?;
        count(&FORGOTTEN, forgotten.removed.len());
        store.remove_forgotten().await
    };
    match for_steps(steps, forgetting).await {
        Some(Err(error)) => Err(error.to_string()),
        _ => Ok(()),
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
