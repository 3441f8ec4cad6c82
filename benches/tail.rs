//! Benchmark of tails and appends against the algorithm that this store descends from.
//!
//! `cargo bench --bench tail`; `SOTTOVOCE_BENCH_MAX=10000` skips the largest conversation.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, missing_docs)]

#[path = "support/ancestor.rs"]
mod ancestor;
mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ancestor::{LegacyFormat, durable_floor};
use sottovoce::store::ReadResult;
use sottovoce::{ChatMessage, ConversationStore, FileConversationStore};
use support::{Samples, is_trial, message, options, print_table, shown, timed};
use tempfile::TempDir;

const TAILS: [usize; 2] = [6, 50];
/// Each round appends three messages, so the smaller a conversation, the sooner it is created again.
const PLANS: [Plan; 4] = [
    Plan { messages: 100, sittings: 20, rounds: 3 },
    Plan { messages: 1_000, sittings: 4, rounds: 15 },
    Plan { messages: 10_000, sittings: 1, rounds: 40 },
    Plan { messages: 100_000, sittings: 1, rounds: 20 },
];

struct Plan {
    messages: usize,
    sittings: usize,
    rounds: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Figure {
    Warm,
    OwnAppend,
    OtherAppend,
    NewlyOpened,
    AppendToFloor,
    AppendToPlainWrite,
    AppendAfterOther,
    WitnessedAppend,
}

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Self::Warm => "tail, nothing changed",
            Self::OwnAppend => "tail after an append of its own",
            Self::OtherAppend => "tail after another store's append",
            Self::NewlyOpened => "open and first tail",
            Self::AppendToFloor => "durable append / the disk's floor",
            Self::AppendToPlainWrite => "durable append / plain write",
            Self::AppendAfterOther => "durable append after another's / plain write",
            Self::WitnessedAppend => "durable append with a witness / without",
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // In the target folder, because the system's folder for temporary files is often in memory.
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if is_trial() {
        measure(&Plan { messages: 60, sittings: 1, rounds: 1 }, disk).await;
        return;
    }
    let largest = std::env::var("SOTTOVOCE_BENCH_MAX").ok().map(|max| max.parse().unwrap());
    let mut rows = Vec::new();
    for plan in PLANS.iter().filter(|plan| plan.messages <= largest.unwrap_or(usize::MAX)) {
        rows.extend(measure(plan, disk).await);
    }
    println!(
        "\nMedian ± half the distance between the quartiles, every figure on {} with its files in the page cache.\n\
         The rivals take turns within each round and return the same words. The ancestor has no lock, no fsync and no\n\
         memory; the floor is a temporary file, fsync, rename and the folder's fsync for as many bytes.\n",
        disk.display()
    );
    let head = ["figure", "messages", "n", "sottovoce", "±", "rival", "±", "rival / sottovoce"];
    print_table(&head, &rows);
}

async fn measure(plan: &Plan, disk: &Path) -> Vec<Vec<String>> {
    let started = Instant::now();
    let seed = Seed::grow(plan.messages).await;
    let grown = started.elapsed();
    let mut duels = Duels::default();
    for _ in 0..plan.sittings {
        let mut bout = Bout::lay_out(&seed, disk).await;
        for _ in 0..plan.rounds {
            bout.round(&mut duels).await;
        }
    }
    let rounds = plan.sittings * plan.rounds;
    println!(
        "{} messages: {rounds} rounds in {:.0?} after {grown:.0?} of writing them {}",
        plan.messages,
        started.elapsed() - grown,
        seed.place
    );
    let rows = duels.samples.iter_mut().map(|((figure, n), (ours, rival))| {
        let ratio = rival.median().as_secs_f64() / ours.median().as_secs_f64();
        vec![
            figure.name().to_owned(),
            plan.messages.to_string(),
            n.map_or_else(String::new, |n| n.to_string()),
            shown(ours.median()),
            shown(ours.spread()),
            shown(rival.median()),
            shown(rival.spread()),
            if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") },
        ]
    });
    rows.collect()
}

/// A conversation in both formats, to be copied to the disk.
struct Seed {
    folder: TempDir,
    place: &'static str,
    messages: usize,
}

impl Seed {
    /// Written through the public API. An fsync in memory costs nothing, so 100,000 of them are bearable. The bytes
    /// are the same.
    async fn grow(messages: usize) -> Self {
        let (folder, place) = match TempDir::new_in("/dev/shm") {
            Ok(folder) => (folder, "in memory"),
            Err(_) => (TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), "on disk"),
        };
        let seed = Self { folder, place, messages };
        let store = options().open(seed.ours()).await.unwrap();
        let mut ancestor = LegacyFormat::new(&seed.rival());
        let all: Vec<usize> = (0..messages).collect();
        for batch in all.chunks(1_000) {
            let batch: Vec<_> = batch.iter().map(|&at| message(at)).collect();
            for message in &batch {
                ancestor.append(message);
            }
            store.append_all(batch).await.unwrap();
        }
        seed
    }

    fn ours(&self) -> PathBuf {
        self.folder.path().join("ours")
    }

    fn rival(&self) -> PathBuf {
        self.folder.path().join("rival")
    }
}

/// The rivals on one disk, each in its own folder with the same conversation.
struct Bout {
    folder: TempDir,
    host: FileConversationStore,
    other: FileConversationStore,
    /// A copy of the host's conversation that has a witness outside of it.
    witnessed: FileConversationStore,
    ancestor: LegacyFormat,
    next: usize,
}

impl Bout {
    async fn lay_out(seed: &Seed, disk: &Path) -> Self {
        let folder = TempDir::new_in(disk).unwrap();
        let (ours, rival) = (folder.path().join("ours"), folder.path().join("rival"));
        copy(&seed.ours(), &ours);
        copy(&seed.rival(), &rival);
        copy(&seed.ours(), &folder.path().join("witnessed"));
        fs::create_dir(folder.path().join("floor")).unwrap();
        // Otherwise the first appends would write out the copies' data.
        rustix::fs::syncfs(File::open(&ours).unwrap()).unwrap();
        let host = options().open(&ours).await.unwrap();
        let other = options().open(&ours).await.unwrap();
        let witnessed = options().witness(folder.path().join("witness"));
        let witnessed = witnessed.open(folder.path().join("witnessed")).await.unwrap();
        witnessed.append_message(message(0)).await.unwrap();
        let ancestor = LegacyFormat::resume(&rival, seed.messages);
        let mut bout = Self { folder, host, other, witnessed, ancestor, next: seed.messages };
        // A store's first append also checks for the rest of a killed one.
        for store in [bout.host.clone(), bout.other.clone()] {
            let message = bout.next_message();
            bout.append_rival(&message);
            store.append_message(message).await.unwrap();
            store.read_tail(TAILS[1]).await.unwrap();
        }
        bout.host.read_tail(TAILS[1]).await.unwrap();
        bout
    }

    async fn round(&mut self, duels: &mut Duels) {
        duels.round += 1;
        self.own_append(duels).await;
        self.witnessed_append(duels).await;
        for n in TAILS {
            self.read(duels, Figure::OwnAppend, n).await;
        }
        for n in TAILS {
            self.read(duels, Figure::Warm, n).await;
        }
        for (at, n) in TAILS.into_iter().enumerate() {
            let message = self.next_message();
            let plain = self.append_rival(&message);
            let started = Instant::now();
            self.other.append_message(message).await.unwrap();
            // From the second read on, the other store's cache is current.
            if at == 0 {
                duels.note(Figure::AppendAfterOther, None, started.elapsed(), plain);
            }
            self.read(duels, Figure::OtherAppend, n).await;
        }
        let root = self.folder.path().join("ours");
        for n in TAILS {
            let opened = async {
                let store = options().open(&root).await.unwrap();
                let reading = store.read_tail(n).await.unwrap();
                (store, reading)
            };
            let rival = || self.ancestor.read_tail(n);
            let ((_, (_, ours)), (_, rival)) =
                duels.duel(Figure::NewlyOpened, Some(n), opened, rival).await;
            assert_same_words(&ours, &rival, n);
        }
    }

    async fn read(&self, duels: &mut Duels, figure: Figure, n: usize) {
        let ours = self.host.read_tail(n);
        let rival = || self.ancestor.read_tail(n);
        let ((_, ours), (_, rival)) = duels.duel(figure, Some(n), ours, rival).await;
        assert_same_words(&ours.unwrap(), &rival, n);
    }

    async fn own_append(&mut self, duels: &mut Duels) {
        let message = self.next_message();
        let plain = self.append_rival(&message);
        let newest = self.host.read_tail(1).await.unwrap().messages[0].file_name();
        let line = fs::read(self.folder.path().join("ours").join(newest)).unwrap();
        let floor_folder = self.folder.path().join("floor");
        let at = self.next;
        let floor = || durable_floor(&floor_folder, at, &line).unwrap();
        let ours = self.host.append_message(message);
        let ((ours, appended), _) = duels.duel(Figure::AppendToFloor, None, ours, floor).await;
        appended.unwrap();
        duels.note(Figure::AppendToPlainWrite, None, ours, plain);
    }

    async fn witnessed_append(&mut self, duels: &mut Duels) {
        let message = self.next_message();
        self.append_rival(&message);
        let timed = async |store: &FileConversationStore| {
            let started = Instant::now();
            store.append_message(message.clone()).await.unwrap();
            started.elapsed()
        };
        let (with, without) = if duels.round.is_multiple_of(2) {
            let with = timed(&self.witnessed).await;
            (with, timed(&self.host).await)
        } else {
            let without = timed(&self.host).await;
            (timed(&self.witnessed).await, without)
        };
        duels.note(Figure::WitnessedAppend, None, with, without);
    }

    /// The time of a plain write. It is synced afterwards, so that no rival's fsync has to write it.
    fn append_rival(&mut self, message: &ChatMessage) -> Duration {
        let (plain, path) = timed(|| self.ancestor.append(message));
        File::open(path).unwrap().sync_all().unwrap();
        plain
    }

    fn next_message(&mut self) -> ChatMessage {
        self.next += 1;
        message(self.next - 1)
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

fn assert_same_words(ours: &ReadResult, rival: &[ChatMessage], n: usize) {
    assert!(ours.skipped.is_empty());
    assert_eq!(ours.messages.len(), n);
    assert!(ours.messages.iter().map(|stored| &stored.message).eq(rival));
}

/// Pairs of samples, ours first.
#[derive(Default)]
struct Duels {
    round: usize,
    samples: BTreeMap<(Figure, Option<usize>), (Samples, Samples)>,
}

impl Duels {
    /// Measures both, in alternating order.
    async fn duel<A, B>(
        &mut self,
        figure: Figure,
        n: Option<usize>,
        ours: impl Future<Output = A>,
        rival: impl FnOnce() -> B,
    ) -> ((Duration, A), (Duration, B)) {
        let ours = async {
            let started = Instant::now();
            let outcome = std::hint::black_box(ours.await);
            (started.elapsed(), outcome)
        };
        let (ours, rival) = if self.round.is_multiple_of(2) {
            let ours = ours.await;
            (ours, timed(rival))
        } else {
            let rival = timed(rival);
            (ours.await, rival)
        };
        self.note(figure, n, ours.0, rival.0);
        (ours, rival)
    }

    fn note(&mut self, figure: Figure, n: Option<usize>, ours: Duration, rival: Duration) {
        let (our_samples, rival_samples) = self.samples.entry((figure, n)).or_default();
        our_samples.push(ours);
        rival_samples.push(rival);
    }
}
