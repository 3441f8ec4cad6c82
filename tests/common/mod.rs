//! Helpers shared by the integration tests.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

pub mod scripted;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use sottovoce::store::{FindingKind, ReadResult};
use sottovoce::{
    ChatMessage, ChatRole, ConversationStore, EncryptionKey, FileConversationStore, StoreOptions,
};

/// The variable that tells a test that it runs as a child process, and on which folder.
pub const CHILD: &str = "SOTTOVOCE_TEST_FOLDER";

pub fn key() -> EncryptionKey {
    EncryptionKey::from_secret("a secret of the tests, long enough").unwrap()
}

pub fn options() -> StoreOptions {
    StoreOptions::new(key())
}

pub async fn open(root: &Path) -> FileConversationStore {
    options().open(root).await.unwrap()
}

pub fn said(text: impl ToString) -> ChatMessage {
    let at = "2025-08-24T16:36:25.123Z".parse().unwrap();
    ChatMessage::at(ChatRole::User, text.to_string(), at)
}

/// A store in a new folder that holds the messages `1` to `n`, in files of their own unless so many are packed.
pub async fn filled(root: &Path, n: u64) -> FileConversationStore {
    let store = open(root).await;
    let messages: Vec<ChatMessage> = (1..=n).map(said).collect();
    for few in messages.chunks(8) {
        store.append_all(few.to_vec()).await.unwrap();
    }
    store
}

pub fn texts(reading: &ReadResult) -> Vec<&str> {
    reading.messages.iter().map(|stored| stored.message.content.as_str()).collect()
}

pub fn kinds(reading: &ReadResult) -> Vec<&FindingKind> {
    reading.skipped.iter().map(|finding| &finding.kind).collect()
}

/// The record files of a folder, in the order of their names.
pub fn records(folder: &Path) -> Vec<PathBuf> {
    let mut records: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    records.sort();
    records
}

/// Everything below a folder: names, bytes, modes and modification times.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, i64, i64)> {
    let mut found = BTreeMap::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let about = path.symlink_metadata().unwrap();
        let mut bytes = Vec::new();
        if about.is_dir() {
            paths.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if about.is_file() {
            bytes = std::fs::read(&path).unwrap();
        }
        found.insert(path, (bytes, about.mode(), about.mtime(), about.mtime_nsec()));
    }
    found
}

/// A command that runs one test of this binary in a child process.
#[track_caller]
pub fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(child_args(test)).env(CHILD, folder);
    command
}

/// The arguments that make this binary run only that test, from the caller's file.
#[track_caller]
pub fn child_args(test: &str) -> [String; 5] {
    let file = Path::new(std::panic::Location::caller().file());
    let module = file.file_stem().unwrap().to_str().unwrap();
    let is_binary = file.parent() == Some(Path::new("tests"));
    let test = if is_binary { test.to_owned() } else { format!("{module}::{test}") };
    ["--ignored", "--exact", "--nocapture", "--test-threads=1", &test].map(str::to_owned)
}

/// The folder of a test that runs as a child process; `None` otherwise.
pub fn child_folder() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(1).build().unwrap().block_on(work)
}

/// Runs `work` on its own thread, and fails after the limit without waiting for it.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waiting) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = done.send(work());
    });
    match waiting.recv_timeout(limit) {
        Ok(outcome) => outcome,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still hanging after {limit:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().unwrap_err())
        }
    }
}
