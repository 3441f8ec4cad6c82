//! A store in a folder in memory where there is one, with a clock of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sottovoce::context::recall::{Recall, RecallQuery, Recalled};
use sottovoce::{
    ChatMessage, ChatRole, Clock, ConversationStore, EncryptionKey, FileConversationStore,
    ManualClock, Scope, StoreOptions,
};
use tempfile::TempDir;

use crate::common::key;

pub(crate) const START: &str = "2025-03-03T09:00:00Z";

pub(crate) struct Home {
    pub(crate) clock: Arc<ManualClock>,
    root: PathBuf,
    _folder: Option<TempDir>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let home = Self::in_folder(folder.path());
        Self { _folder: Some(folder), ..home }
    }

    pub(crate) fn in_folder(folder: &Path) -> Self {
        let clock = Arc::new(ManualClock::at_utc(START.parse().unwrap()));
        Self { clock, root: folder.join("root"), _folder: None }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.clone()
    }

    /// The folder of the segments of the default conversation.
    pub(crate) fn segments(&self) -> PathBuf {
        self.root().join("recall")
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().timestamp()
    }

    pub(crate) fn options(&self, key: EncryptionKey) -> StoreOptions {
        StoreOptions::new(key).clock(Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    pub(crate) async fn open(&self) -> Arc<FileConversationStore> {
        Arc::new(self.options(key()).open(self.root()).await.unwrap())
    }

    pub(crate) async fn open_as(&self, scope: Scope) -> Arc<FileConversationStore> {
        Arc::new(self.options(key()).scope(scope).open(self.root()).await.unwrap())
    }

    pub(crate) fn message(&self, role: ChatRole, text: impl Into<String>) -> ChatMessage {
        ChatMessage::new(role, text, &self.clock.now())
    }

    /// Says something and answers it, half a minute apart.
    pub(crate) async fn say(&self, store: &FileConversationStore, said: &str, answer: &str) {
        for (role, text) in [(ChatRole::User, said), (ChatRole::Assistant, answer)] {
            self.clock.advance(SignedDuration::from_secs(30));
            store.append_message(self.message(role, text)).await.unwrap();
        }
    }

    /// So many messages about nothing in particular, in one batch.
    pub(crate) async fn chatter(&self, store: &FileConversationStore, messages: usize) {
        let topics = ["leek soup", "the news", "a timer", "the garden hose", "an umbrella"];
        let line = |at: usize| {
            let topic = topics[at % topics.len()];
            match at % 2 {
                0 => self.message(ChatRole::User, format!("Tell me of {topic}, number {at}.")),
                _ => self.message(ChatRole::Assistant, format!("Here is fact {at} on {topic}.")),
            }
        };
        store.append_all((0..messages).map(line).collect()).await.unwrap();
    }
}

pub(crate) fn recall(store: &Arc<FileConversationStore>) -> Recall {
    Recall::new(Arc::clone(store) as Arc<dyn ConversationStore>)
}

/// The first hits for a question in the main thread.
pub(crate) async fn find(recall: &Recall, question: &str, limit: usize) -> Recalled {
    let now = recall.store().clock().now();
    recall.find_in(&RecallQuery::new(question, now, limit), None).await.unwrap()
}

/// The numbers of the hits, and their scores to the last bit.
pub(crate) fn scores(found: &Recalled) -> Vec<(u64, u32)> {
    found.hits.iter().map(|hit| (hit.stored.seq, hit.hit.score.to_bits())).collect()
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}
