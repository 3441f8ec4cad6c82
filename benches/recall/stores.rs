//! What an index costs a store: building it, its size on the disk, and a process that starts, loads it and answers.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sottovoce::ConversationStore;
use sottovoce::context::recall::{Recall, RecallQuery, Recalled};

use super::Settings;
use super::rows::{Goal, Row, grouped};
use super::support::options;
use super::talk::Talk;

/// The variables that tell a child process the folder of its store, and its question.
const FOLDER: &str = "RECALL_BENCH_FOLDER";
const QUESTION: &str = "RECALL_BENCH_QUESTION";
const MEGABYTE: f64 = 1e6;

pub(crate) fn is_child() -> bool {
    std::env::var_os(FOLDER).is_some()
}

/// Opens the store, loads its index, answers one question, and prints how much memory the index took.
pub(crate) fn answer_once() -> Result<(), Box<dyn Error>> {
    let folder = std::env::var(FOLDER)?;
    let question = std::env::var(QUESTION)?;
    runtime().block_on(async {
        let store: Arc<dyn ConversationStore> = Arc::new(options().open(folder).await?);
        store.read_tail(6).await?;
        let before = resident();
        let found = ask(&Recall::new(store), &question).await?;
        let after = resident();
        assert!(!found.hits.is_empty() && found.skipped.is_empty());
        println!("{}", after - before);
        Ok(())
    })
}

pub(crate) fn measure(settings: &Settings, rows: &mut Vec<Row>) -> Result<(), Box<dyn Error>> {
    for &messages in &settings.messages {
        let talk = Talk::new(messages, 1);
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let built = build(&talk, folder.path(), settings.rounds.min(3))?;
        let (mut cold, mut memory) = (Duration::MAX, 0.);
        for _ in 0..settings.rounds {
            let begun = Instant::now();
            let told = Command::new(std::env::current_exe()?)
                .env(FOLDER, folder.path())
                .env(QUESTION, &talk.questions[0])
                .output()?;
            cold = cold.min(begun.elapsed());
            assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
            memory = String::from_utf8(told.stdout)?.trim().parse::<f64>()?;
        }
        let figure = |figure: &str| format!("{} messages: {figure}", grouped(messages));
        let is = |count| messages == count;
        let goal = |is: bool, most| if is { Goal::AtMost(most) } else { Goal::None };
        let cold_goal = match messages {
            10_000 => Goal::AtMost(150.),
            100_000 => Goal::AtMost(300.),
            _ => Goal::None,
        };
        rows.extend([
            Row::new(
                figure("building the index from nothing"),
                built.as_secs_f64(),
                "s",
                goal(is(100_000), 4.),
            ),
            Row::new(
                figure("a process starts, loads index and encoder, and answers"),
                cold.as_secs_f64() * 1e3,
                "ms",
                cold_goal,
            ),
            Row::new(
                figure("index on the disk"),
                size(&folder.path().join("recall"))? / MEGABYTE,
                "MB",
                goal(is(10_000), 4.),
            ),
            Row::new(
                figure("index and encoder in memory"),
                memory / MEGABYTE,
                "MB",
                goal(is(10_000), 60.),
            ),
        ]);
    }
    Ok(())
}

/// Fills a store, and returns the least time that its first question takes without an index, which it then saves.
fn build(talk: &Talk, folder: &Path, rounds: usize) -> Result<Duration, Box<dyn Error>> {
    runtime().block_on(async {
        options().open(folder).await?.append_all(talk.messages()).await?;
        let mut least = Duration::MAX;
        for _ in 0..rounds {
            let store: Arc<dyn ConversationStore> = Arc::new(options().open(folder).await?);
            let recall = Recall::new(store);
            let begun = Instant::now();
            ask(&recall, &talk.questions[0]).await?;
            least = least.min(begun.elapsed());
        }
        let store: Arc<dyn ConversationStore> = Arc::new(options().open(folder).await?);
        let recall = Recall::new(store);
        ask(&recall, &talk.questions[0]).await?;
        recall.save().await?;
        Ok(least)
    })
}

async fn ask(recall: &Recall, question: &str) -> sottovoce::Result<Recalled> {
    let now = recall.store().clock().now();
    recall.find_in(&RecallQuery::new(question, now, 5), None).await
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The bytes of a folder's files.
fn size(folder: &Path) -> Result<f64, Box<dyn Error>> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes as f64)
}

/// The bytes of memory of this process alone: without the program's file, of which the weights are a part.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.
}
