//! Benchmark of a store on a disk that is slow to flush, such as a memory card: what waits for the disk, and how long.
//!
//! `cargo bench --bench slow_disk [-- --flush MILLISECONDS]` needs `strace`, which lets each fsync take that much longer, 20 ms unless
//! told otherwise, and counts them. Everything is measured without that too.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use sottovoce::context::LastNContextProvider;
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::{Backup, OpenStore};
use sottovoce::model::{ModelLimits, Reply, ReplyPart, Usage};
use sottovoce::prompt::Prompt;
use sottovoce::store::{RestoreThreads, SavedMessage, Snapshot};
use sottovoce::{
    Clock, Conversation, ConversationStore, EncryptionKey, FileConversationStore, LanguageModel,
    Result, SystemClock,
};
use support::{SECRET, Samples, is_trial, message, options, print_table, shown};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The child's first argument.
const CHILD: &str = "--child";
/// The beginning of a path in a missing folder: trying to create it does nothing but appear in the trace.
const MARKER: &str = "/nonexistent/";
const TURNS: usize = 30;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == CHILD) {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(measure(Path::new(&arguments[1])));
        return;
    }
    if is_trial() {
        return;
    }
    let flush = arguments.iter().position(|argument| argument == "--flush");
    let flush: u64 = flush.map_or(20, |at| arguments[at + 1].parse().unwrap());
    let (fast, slow) = (run(0), run(flush));
    let rows: Vec<Vec<String>> = fast
        .iter()
        .zip(&slow)
        .map(|((what, time, fsyncs), (_, slowly, _))| {
            vec![what.clone(), fsyncs.to_string(), shown(*time), shown(*slowly)]
        })
        .collect();
    print_table(&["", "fsyncs", "as it is", &format!("+{flush} ms each")], &rows);
}

/// Runs everything in a child whose fsyncs take so many milliseconds longer. Returns what was done, its time, and its fsyncs.
fn run(flush: u64) -> Vec<(String, Duration, usize)> {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let trace = folder.path().join("trace");
    let mut command = Command::new("strace");
    // Until a thread's first traced call, strace 6.1 stops it at every call. Each thread begins with the last one.
    let calls = "trace=fsync,fdatasync,mkdir,set_robust_list";
    command.args(["-f", "--seccomp-bpf", "-qq", "-e", calls]);
    if flush > 0 {
        command.args(["-e", &format!("inject=fsync,fdatasync:delay_exit={flush}ms")]);
    }
    let child = command
        .arg("-o")
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .arg(CHILD)
        .arg(folder.path().join("work"))
        .output()
        .unwrap_or_else(|error| panic!("strace: {error}"));
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let trace = fs::read_to_string(trace).unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    let measured = said.lines().map(|line| {
        let (what, micros) = line.rsplit_once('\t').unwrap();
        (what.to_owned(), Duration::from_micros(micros.parse().unwrap()), fsyncs(&trace, what))
    });
    measured.collect()
}

/// The fsyncs of one time that something was done, from the markers around it: the median.
fn fsyncs(trace: &str, what: &str) -> usize {
    let mark = |edge: &str| format!("{MARKER}{edge} {what}\"");
    let mut counts = Vec::new();
    let mut count = None;
    for line in trace.lines() {
        if line.contains(&mark("begin")) {
            count = Some(0);
        } else if line.contains(&mark("end")) {
            counts.extend(count.take());
        } else if line.contains("sync(") && !line.contains("resumed") {
            count = count.map(|count| count + 1);
        }
    }
    counts.sort_unstable();
    counts[counts.len() / 2]
}

fn mark(edge: &str, what: &str) {
    let _ = fs::create_dir(format!("{MARKER}{edge} {what}"));
}

fn tell(what: &str, time: Duration) {
    println!("{what}\t{}", time.as_micros());
}

/// Does something once. Prints how long that took.
async fn once<T>(what: &str, work: impl Future<Output = T>) -> T {
    mark("begin", what);
    let started = Instant::now();
    let outcome = work.await;
    let time = started.elapsed();
    mark("end", what);
    tell(what, time);
    outcome
}

async fn measure(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let store = options().open(&folder.join("store")).await.unwrap();
    store.append_all((0..100).map(message).collect()).await.unwrap();
    turns(&store).await;
    for many in [10, 100, 1_000, 100_000] {
        let messages = (0..many).map(message).collect();
        once(&format!("append_all of {many}"), store.append_all(messages)).await.unwrap();
    }
    let newest = store.read_tail(50).await.unwrap().messages;
    let saved = newest.iter().map(|stored| SavedMessage::new(stored.seq, stored.message.clone()));
    let now = SystemClock.now();
    let span = (now.timestamp(), now.timestamp());
    let snapshot = Snapshot::new(now.timestamp(), span, saved.collect()).unwrap();
    let id = snapshot.id.clone();
    once("save a snapshot of 50", store.save_snapshot(snapshot)).await.unwrap();
    store.clear().await.unwrap();
    let threads = RestoreThreads::default();
    once("restore it", store.restore(&id, Timestamp::MIN, threads, now)).await.unwrap();
    once("forget one message", store.forget(&[50..=50])).await.unwrap();
    once("verify", store.verify(|_| {})).await.unwrap();
    let file = folder.join("backup.json");
    let mut exporter = Exporter::to_file(ExportForm::Json, &file).unwrap();
    exporter.add(&store, ExportRange::default(), |_| {}).await.unwrap();
    exporter.finish().await.unwrap();
    let root = folder.join("imported");
    let open: OpenStore = Box::new(move |scope| {
        let root = root.clone();
        Box::pin(async move { options().scope(scope).open(root).await })
    });
    let backup = Backup::new(&file).key(EncryptionKey::from_secret(SECRET).unwrap());
    once("import a backup of 101,000", backup.import(open, |_| {}, |_| {})).await.unwrap();
}

/// Holds a conversation. A turn begins with what is said; its prompt is there once the model gets it.
async fn turns(store: &FileConversationStore) {
    let (asked, mut prompts) = unbounded_channel();
    let store: Arc<dyn ConversationStore> = Arc::new(store.clone());
    let conversation = Conversation::builder(store)
        .system("You are the voice assistant of a household.")
        .history(LastNContextProvider::in_blocks())
        .model(Silent(asked))
        .build();
    let (mut to_prompt, mut whole) = (Samples::default(), Samples::default());
    for turn in 0..TURNS {
        mark("begin", "a turn until the prompt");
        mark("begin", "a whole turn");
        let started = Instant::now();
        let said = message(2 * turn).content.clone();
        let answer = conversation.ask(said).await.unwrap();
        to_prompt.push(prompts.recv().await.unwrap() - started);
        answer.whole().await.unwrap();
        whole.push(started.elapsed());
        mark("end", "a whole turn");
    }
    tell("a turn until the prompt", to_prompt.median());
    tell("a whole turn", whole.median());
}

/// A model that answers at once, and tells when it was asked.
struct Silent(UnboundedSender<Instant>);

/// The rest of a reply, last part first.
struct Said(Vec<ReplyPart>);

#[async_trait]
impl LanguageModel for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    async fn limits(&self) -> Result<ModelLimits> {
        Ok(ModelLimits::window(4096))
    }

    async fn reply(&self, _: &Prompt) -> Result<Box<dyn Reply>> {
        mark("end", "a turn until the prompt");
        self.0.send(Instant::now()).unwrap();
        let said = ReplyPart::Text(message(1).content.clone());
        Ok(Box::new(Said(vec![ReplyPart::Done(Usage::default()), said])))
    }
}

#[async_trait]
impl Reply for Said {
    async fn next(&mut self) -> Result<ReplyPart> {
        Ok(self.0.pop().unwrap())
    }
}
