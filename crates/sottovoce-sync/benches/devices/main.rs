//! What sharing a long conversation costs, beside what rclone, restic and an import cost with the same store in the same run.
//!
//! `cargo bench -p sottovoce-sync -- [MESSAGES…]`, 1,000,000 messages unless given. rclone and restic are programs of the system's
//! packages; without them their rows are left out, and it says so.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a measurement"
)]

mod counted;
#[path = "../../tests/devices/home.rs"]
#[allow(dead_code, reason = "a part of what the simulation uses")]
mod home;
mod peers;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::Backup;
use sottovoce::{ChatMessage, ChatRole, ConversationStore, ManualClock, Scope};
use sottovoce_remote::Remote;
use sottovoce_sync::{Background, DeviceOptions, Syncer};

use counted::Counted;
use home::Home;

/// How long each request takes where round trips are counted by the clock.
const ROUND_TRIP: Duration = Duration::from_millis(50);
const NOW: &str = "2026-06-01T00:00:00Z";

fn main() {
    let arguments = std::env::args().skip(1);
    let sizes: Vec<u64> = arguments.filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000_000] } else { sizes };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for messages in sizes {
        runtime.block_on(measure(messages));
    }
}

fn row(what: &str, measured: impl std::fmt::Display, goal: &str) {
    println!("| {what} | {measured} | {goal} |");
}

fn home(folder: &Path) -> Arc<Home> {
    let clock = Arc::new(ManualClock::at_utc(NOW.parse::<Timestamp>().unwrap()));
    Arc::new(Home::new(folder.join("store"), clock))
}

fn syncer(home: &Arc<Home>, remote: &Arc<Counted>) -> Syncer {
    let remote = Arc::clone(remote);
    let open = move |_: &str| Ok(Arc::clone(&remote) as Arc<dyn Remote>);
    Syncer::new(Arc::clone(home) as _, Arc::clone(&home.clock) as _, Box::new(open))
}

fn message(number: u64) -> ChatMessage {
    let start: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
    let text = format!(
        "This is what somebody said at the kitchen table, number {number}, about the garden."
    );
    let at = start + SignedDuration::from_secs(100 * number.cast_signed());
    ChatMessage::at(ChatRole::User, text, at)
}

async fn measure(count: u64) {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let [first, second, third, plain] =
        [0, 1, 2, 3].map(|number: usize| home(folders[number].path()));
    let store = first.store(&Scope::Default).await;
    store.import((0..count).map(message).collect()).await.unwrap();
    println!("\n{count} messages\n\n| figure | measured | goal |\n|---|---|---|");

    let remote = Arc::new(Counted::default());
    let one = syncer(&first, &remote);
    one.init("memory:", DeviceOptions::default()).await.unwrap();
    let began = Instant::now();
    one.sync(|_| {}).await.unwrap();
    row("first publish", format!("{:.2?}, {}", began.elapsed(), remote.take()), "");
    let published = remote.bytes();
    row("bytes at the remote", published, "");
    peers::compare(&first.folder, published);

    let two = syncer(&second, &remote);
    two.join(&one.invitation().await.unwrap(), DeviceOptions::default()).await.unwrap();
    remote.take();
    let began = Instant::now();
    let report = two.sync(|_| {}).await.unwrap();
    let joined = began.elapsed();
    assert_eq!(report.received as u64, count);
    row("a new device reads everything", format!("{joined:.2?}, {}", remote.take()), "60 GET");
    let imported = import(&first, &third, folders[2].path()).await;
    row("`import backup` of the same", format!("{imported:.2?}"), "");
    let ratio = joined.as_secs_f64() / imported.as_secs_f64();
    row("the former over the latter", format!("{ratio:.2}"), "1.5");
    one.sync(|_| {}).await.unwrap();

    nothing_new(&one, &remote).await;
    one_message(&first, [&one, &two], &remote).await;
    appends([&first, &plain], one).await;
}

/// Exports a store and imports the export elsewhere. Returns how long the import took.
async fn import(from: &Arc<Home>, to: &Arc<Home>, folder: &Path) -> Duration {
    let path = folder.join("export.json");
    let store = from.store(&Scope::Default).await;
    let mut exporter = Exporter::to_file(ExportForm::Json, &path).unwrap();
    exporter.add(&store, ExportRange::default(), |_| {}).await.unwrap();
    exporter.finish().await.unwrap();
    let target = Arc::clone(to);
    let open = Box::new(move |scope: Scope| {
        let target = Arc::clone(&target);
        Box::pin(async move { Ok(target.store(&scope).await) }) as _
    });
    let began = Instant::now();
    Backup::new(&path).import(open, |_| {}, |_| {}).await.unwrap();
    began.elapsed()
}

async fn nothing_new(one: &Syncer, remote: &Counted) {
    for (what, full) in [("nothing new, as often as it asks", false), ("nothing new, sync", true)] {
        let mut least = Duration::MAX;
        for _ in 0..5 {
            remote.take();
            let began = Instant::now();
            match full {
                true => one.sync(|_| {}).await.unwrap(),
                false => one.poll().await.unwrap(),
            };
            least = least.min(began.elapsed());
        }
        row(what, format!("{least:.2?}, {}", remote.take()), "50 ms");
    }
}

async fn one_message(first: &Arc<Home>, [one, two]: [&Syncer; 2], remote: &Counted) {
    let store = first.store(&Scope::Default).await;
    let now: Timestamp = NOW.parse().unwrap();
    let mut stored = Vec::new();
    for text in ["What is new?", "What else is new?"] {
        let message = ChatMessage::at(ChatRole::User, text, now);
        stored.push(store.append_message(message).await.unwrap().seq);
        remote.take();
        let began = Instant::now();
        one.poll().await.unwrap();
        let took = began.elapsed();
        row("publish of one message", format!("{took:.2?}, {}", remote.take()), "2 PUT, 2 GET");
        let began = Instant::now();
        two.poll().await.unwrap();
        row("its arrival", format!("{:.2?}, {}", began.elapsed(), remote.take()), "");
    }
    let message = ChatMessage::at(ChatRole::User, "And now?", now);
    store.append_message(message).await.unwrap();
    one.poll().await.unwrap();
    remote.delay(ROUND_TRIP);
    let began = Instant::now();
    two.poll().await.unwrap();
    let trips = began.elapsed().as_secs_f64() / ROUND_TRIP.as_secs_f64();
    let what = format!("arrival where a request takes {} ms", ROUND_TRIP.as_millis());
    row(&what, format!("{trips:.1} round trips"), "2");
    remote.delay(Duration::ZERO);

    let middle = stored[0] / 2;
    store.forget(&[1..=1, middle..=middle, stored[0]..=stored[0]]).await.unwrap();
    remote.take();
    let began = Instant::now();
    one.poll().await.unwrap();
    let took = began.elapsed();
    row("publish of forgetting three", format!("{took:.2?}, {}", remote.take()), "");
    let began = Instant::now();
    let report = two.poll().await.unwrap();
    assert_eq!(report.removed, 3);
    row("its arrival", format!("{:.2?}, {}", began.elapsed(), remote.take()), "");
}

/// Appends to a store that syncs by itself and to one that does not, in turns.
async fn appends([shared, plain]: [&Arc<Home>; 2], one: Syncer) {
    let syncing = tokio::spawn(async move {
        Background::new(Arc::new(one), Duration::from_secs(60)).run(|_| {}).await;
    });
    let stores = [shared.store(&Scope::Default).await, plain.store(&Scope::Default).await];
    let count = stores[0].read_tail(1).await.unwrap().messages[0].seq;
    stores[1].import((0..count).map(message).collect()).await.unwrap();
    let mut took = [Vec::new(), Vec::new()];
    for number in 0..4000 {
        for at in [number % 2, 1 - number % 2] {
            let began = Instant::now();
            let message = ChatMessage::at(
                ChatRole::User,
                "Turn the light on",
                NOW.parse::<Timestamp>().unwrap(),
            );
            stores[at].append_message(message).await.unwrap();
            took[at].push(began.elapsed());
        }
    }
    syncing.abort();
    let [shared, plain] = took.map(|mut took| {
        took.sort();
        took[took.len() / 2]
    });
    let ratio = shared.as_secs_f64() / plain.as_secs_f64();
    let text = format!("{ratio:.3} ({shared:.1?} over {plain:.1?})");
    row("an append while it syncs by itself, over one in a store that does not sync", text, "1.02");
}
