//! Benchmark of fsyncs and locks per turn: utterance, answer and calibration.
//!
//! `cargo bench --bench syncs` needs `strace`. It counts system calls, so the profile and the machine do not matter.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use sottovoce::context::LastNContextProvider;
use sottovoce::model::{ModelLimits, OllamaChatRenderer, PromptRenderer, Reply, ReplyPart, Usage};
use sottovoce::prompt::Prompt;
use sottovoce::{
    Conversation, ConversationStore, LanguageModel, ManualClock, ModelOptions, Result,
};
use support::{is_trial, message, options, print_table};

const TURNS: usize = 100;
/// The child's first argument.
const CHILD: &str = "--child";
/// A path in a missing folder: trying to create it does nothing but appear in the trace.
const MARKER: &str = "/nonexistent/a turn begins";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == CHILD) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(converse(Path::new(&arguments[1])));
        return;
    }
    if is_trial() {
        return;
    }
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let trace = folder.path().join("trace");
    let traced = Command::new("strace")
        .args(["-f", "-e", "trace=fsync,fdatasync,sync_file_range,syncfs,flock,mkdir", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .arg(CHILD)
        .arg(folder.path().join("store"))
        .status();
    match traced {
        Ok(status) if status.success() => count(&fs::read_to_string(trace).unwrap()),
        traced => println!("SKIPPED: nothing was counted: strace: {traced:?}"),
    }
}

/// Holds a conversation whose model counts the tokens of its prompts.
async fn converse(folder: &Path) {
    let clock = Arc::new(ManualClock::at(
        message(0).timestamp.to_zoned(jiff::tz::Offset::constant(1).to_time_zone()),
    ));
    let store = options().clock(clock.clone()).open(folder).await.unwrap();
    // The first turn creates the store.
    store.append_all((0..4).map(message).collect()).await.unwrap();
    let store: Arc<dyn ConversationStore> = Arc::new(store);
    let conversation = Conversation::builder(store)
        .system("You are the voice assistant of a household.")
        .history(LastNContextProvider::in_blocks())
        .last_n(6)
        .model(Counting)
        .build();
    for turn in 2..TURNS + 2 {
        let _ = fs::create_dir(MARKER);
        let said = message(2 * turn).content.clone();
        conversation.ask(said).await.unwrap().whole().await.unwrap();
    }
}

/// A model that reports a token count in proportion to the bytes.
struct Counting;

/// The rest of a reply, last part first.
struct Counted(Vec<ReplyPart>);

#[async_trait]
impl LanguageModel for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    async fn limits(&self) -> Result<ModelLimits> {
        Ok(ModelLimits::window(4096))
    }

    async fn reply(&self, prompt: &Prompt) -> Result<Box<dyn Reply>> {
        let request = OllamaChatRenderer::new(ModelOptions::new("counting")).render(prompt);
        let mut usage = Usage::default();
        usage.prompt_tokens = Some(request.body.len() as u64 * 2 / 5);
        let said = ReplyPart::Text(message(request.body.len() * 2 + 1).content.clone());
        Ok(Box::new(Counted(vec![ReplyPart::Done(usage), said])))
    }
}

#[async_trait]
impl Reply for Counted {
    async fn next(&mut self) -> Result<ReplyPart> {
        Ok(self.0.pop().unwrap())
    }
}

/// Prints how many turns took how many calls.
fn count(trace: &str) {
    let mut turns: Vec<(usize, usize)> = Vec::new();
    for line in trace.lines() {
        let has = |call: &str| line.contains(&format!(" {call}("));
        match turns.last_mut() {
            _ if line.contains(MARKER) => turns.push((0, 0)),
            Some((fsyncs, _)) if has("fsync") || has("fdatasync") => *fsyncs += 1,
            Some((_, locks)) if has("flock") => *locks += 1,
            _ => assert!(!has("syncfs") && !has("sync_file_range"), "{line}"),
        }
    }
    let mut kinds: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    turns.iter().for_each(|turn| *kinds.entry(*turn).or_default() += 1);
    let row = |((fsyncs, locks), turns): (&(usize, usize), &usize)| {
        vec![turns.to_string(), fsyncs.to_string(), locks.to_string()]
    };
    print_table(&["turns", "fsyncs", "locks"], &kinds.iter().map(row).collect::<Vec<_>>());
    let mean = turns.iter().map(|(fsyncs, _)| *fsyncs as f64).sum::<f64>() / turns.len() as f64;
    println!("\n{mean:.2} fsyncs a turn in the mean of {} turns, packing included", turns.len());
}
