//! What syncing costs, beside what a store costs by itself. By hand:
//! `SYNC_MESSAGES=1000000 cargo test --release -p sottovoce-sync --test simulation -- figures --ignored --nocapture`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::Backup;
use sottovoce::{ChatMessage, ChatRole, ConversationStore, ManualClock, Scope};
use sottovoce_sync::testing::MemoryRemote;
use sottovoce_sync::{DeviceOptions, Remote, RemoteError, Syncer};

use crate::home::Home;

/// Counts the requests.
#[derive(Debug, Default)]
struct Counted {
    remote: MemoryRemote,
    puts: AtomicUsize,
    gets: AtomicUsize,
    lists: AtomicUsize,
}

impl Counted {
    fn take(&self) -> String {
        let [puts, gets, lists] =
            [&self.puts, &self.gets, &self.lists].map(|count| count.swap(0, Ordering::Relaxed));
        format!("{puts} PUT, {gets} GET, {lists} LIST")
    }

    fn bytes(&self) -> usize {
        self.remote.objects().values().map(Bytes::len).sum()
    }
}

#[async_trait]
impl Remote for Counted {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), RemoteError> {
        self.puts.fetch_add(1, Ordering::Relaxed);
        self.remote.put(name, bytes).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>, RemoteError> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.remote.get(name).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, RemoteError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.remote.list(folder).await
    }

    async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        self.remote.delete(name).await
    }
}

fn home(folder: &Path) -> Arc<Home> {
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let clock = Arc::new(ManualClock::at_utc(now));
    Arc::new(Home { folder: folder.join("store"), clock })
}

fn syncer(home: &Arc<Home>, remote: &Arc<Counted>) -> Syncer {
    let remote = Arc::clone(remote);
    let open = move |_: &str| Ok(Arc::clone(&remote) as Arc<dyn Remote>);
    Syncer::new(Arc::clone(home) as _, Arc::clone(&home.clock) as _, Box::new(open))
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let size = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => size(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    entries.map(size).sum()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and is of use in a release build alone"]
async fn figures_of_a_long_conversation() {
    let count = crate::number("SYNC_MESSAGES").unwrap_or(100_000);
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [first, second, third] = [0, 1, 2].map(|number: usize| home(folders[number].path()));
    let start: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
    let messages = (0..count).map(|number| {
        let text = format!(
            "This is what somebody said at the kitchen table, number {number}, about the garden."
        );
        let at = start + SignedDuration::from_secs(100 * number as i64);
        ChatMessage::at(ChatRole::User, text, at)
    });
    first.store(&Scope::Default).await.import(messages.collect()).await.unwrap();
    println!("{count} messages; the store has {} bytes", size(&first.folder));

    let remote = Arc::new(Counted::default());
    let one = syncer(&first, &remote);
    one.init("memory:", DeviceOptions::default()).await.unwrap();
    let begin = Instant::now();
    one.sync(|_| {}).await.unwrap();
    println!("first publish: {:.1?}, {}, {} bytes", begin.elapsed(), remote.take(), remote.bytes());

    let two = syncer(&second, &remote);
    two.join(&one.invitation().await.unwrap(), DeviceOptions::default()).await.unwrap();
    remote.take();
    let begin = Instant::now();
    let report = two.sync(|_| {}).await.unwrap();
    println!("bootstrap: {:.1?}, {}, {} messages", begin.elapsed(), remote.take(), report.received);
    one.sync(|_| {}).await.unwrap();

    let path = folders[2].path().join("export.json");
    let store = first.store(&Scope::Default).await;
    let begin = Instant::now();
    let mut exporter = Exporter::to_file(ExportForm::Json, &path).unwrap();
    exporter.add(&store, ExportRange::default(), |_| {}).await.unwrap();
    exporter.finish().await.unwrap();
    println!("export: {:.1?}", begin.elapsed());
    let begin = Instant::now();
    let target = Arc::clone(&third);
    let open = Box::new(move |scope: Scope| {
        let target = Arc::clone(&target);
        Box::pin(async move { Ok(target.store(&scope).await) }) as _
    });
    Backup::new(&path).import(open, |_| {}, |_| {}).await.unwrap();
    println!("import of that export: {:.1?}", begin.elapsed());

    for (what, full) in [("nothing new, poll", false), ("nothing new, sync", true)] {
        remote.take();
        let begin = Instant::now();
        match full {
            true => one.sync(|_| {}).await.unwrap(),
            false => one.poll().await.unwrap(),
        };
        println!("{what}: {:.1?}, {}", begin.elapsed(), remote.take());
    }
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let message = ChatMessage::at(ChatRole::User, "What is new?", now);
    let stored = store.append_message(message).await.unwrap();
    let begin = Instant::now();
    one.poll().await.unwrap();
    println!("publish of one message: {:.1?}, {}", begin.elapsed(), remote.take());
    let begin = Instant::now();
    two.poll().await.unwrap();
    println!("its arrival: {:.1?}, {}", begin.elapsed(), remote.take());
    store.forget(&[1..=1, stored.seq..=stored.seq]).await.unwrap();
    let begin = Instant::now();
    one.poll().await.unwrap();
    println!("publish of forgetting two: {:.1?}, {}", begin.elapsed(), remote.take());
    let begin = Instant::now();
    let report = two.poll().await.unwrap();
    println!("its arrival: {:.1?}, {}, {} removed", begin.elapsed(), remote.take(), report.removed);
}
