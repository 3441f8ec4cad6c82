//! The published contract on files and memory, and on the file store reduced to its backend, so that the provided
//! methods follow the same rules as the overridden ones.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tempfile::TempDir;
use zeroize::Zeroizing;

use crate::EncryptionKey;
use crate::clock::Clock;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::error::{Error, Result};
use crate::message::{ChatMessage, ChatRole};
use crate::scope::Scope;
use crate::store::record::document::DocumentId;
use crate::store::record::read_result::ReadResult;
use crate::store::{
    ArtifactKind, ArtifactStore, Batch, ConversationStore, FileConversationStore, NewArtifact,
    ReadQuery, Retention, StoreBackend, StoreOptions, StorePolicy, StoreState,
};
use crate::testing::{StoreSetup, conversation_store_contract};

fn options(setup: StoreSetup) -> StoreOptions {
    let key = EncryptionKey::from_secret("a secret of the contract tests").unwrap();
    StoreOptions::new(key)
        .scope(setup.scope)
        .clock(setup.clock)
        .retention(setup.policy.retention)
        .max_message_bytes(setup.policy.max_message_bytes)
}

#[derive(Default)]
struct Memories(Mutex<BTreeMap<String, Arc<MemoryDirectory>>>);

impl Memories {
    async fn open(&self, setup: StoreSetup, loose: usize) -> Result<FileConversationStore> {
        let root = self.0.lock().unwrap().entry(setup.name.clone()).or_default().clone();
        let root: Arc<dyn Directory> = root;
        let below = setup.scope.folder()?;
        let folder = below.iter().fold(Arc::clone(&root), |at, name| at.folder(name));
        options(setup).loose_files(loose).open_directory(root, folder).await
    }
}

#[tokio::test]
async fn files_keep_the_contract() {
    for loose in [1, 64] {
        let root = TempDir::new().unwrap();
        let open = async |setup: StoreSetup| {
            let folder = root.path().join(&setup.name);
            let store = options(setup).loose_files(loose).open(folder).await?;
            Ok(Arc::new(store) as Arc<dyn ConversationStore>)
        };
        conversation_store_contract(open).await.unwrap();
    }
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    for loose in [1, 64] {
        let memories = Memories::default();
        let open = async |setup| {
            Ok(Arc::new(memories.open(setup, loose).await?) as Arc<dyn ConversationStore>)
        };
        conversation_store_contract(open).await.unwrap();
    }
}

/// A file store of which only the backend is used.
#[derive(Debug)]
struct MediumOnly {
    store: FileConversationStore,
    /// The message that another writer appends right before the next commit.
    meanwhile: Mutex<Option<ChatMessage>>,
    /// How many messages were read.
    read: AtomicUsize,
}

impl MediumOnly {
    fn new(store: FileConversationStore) -> Self {
        Self { store, meanwhile: Mutex::default(), read: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl StoreBackend for MediumOnly {
    fn scope(&self) -> &Arc<Scope> {
        self.store.scope()
    }

    async fn state(&self) -> Result<StoreState> {
        self.store.state().await
    }

    async fn read(&self, query: ReadQuery) -> Result<ReadResult> {
        let result = self.store.read(query).await?;
        self.read.fetch_add(result.messages.len(), Relaxed);
        Ok(result)
    }

    async fn read_before(&self, skip: usize, n: usize) -> Result<ReadResult> {
        let result = self.store.read_before(skip, n).await?;
        self.read.fetch_add(result.messages.len(), Relaxed);
        Ok(result)
    }

    async fn document(&self, id: &DocumentId) -> Result<Option<Zeroizing<Vec<u8>>>> {
        self.store.document(id).await
    }

    async fn commit(&self, batch: Batch) -> Result<StoreState> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(message) = meanwhile {
            self.store.append_message(message).await?;
        }
        self.store.commit(batch).await
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.store.clock()
    }

    fn policy(&self) -> StorePolicy {
        self.store.policy()
    }

    fn artifact_store(&self) -> Option<&dyn ArtifactStore> {
        Some(&self.store)
    }
}

impl ConversationStore for MediumOnly {}

#[tokio::test]
async fn the_provided_methods_keep_the_contract() {
    for loose in [1, 64] {
        let memories = Memories::default();
        let open = async |setup| {
            let store = MediumOnly::new(memories.open(setup, loose).await?);
            Ok(Arc::new(store) as Arc<dyn ConversationStore>)
        };
        conversation_store_contract(open).await.unwrap();
    }
}

#[tokio::test]
async fn a_deletion_that_is_refused_leaves_the_message_its_artifact() {
    let root: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
    let key = EncryptionKey::from_secret("a secret of the contract tests").unwrap();
    let store = StoreOptions::new(key).open_directory(Arc::clone(&root), root).await.unwrap();
    let store = MediumOnly::new(store);
    let words = Box::new("a long result of a tool".as_bytes());
    let new = NewArtifact::new(ArtifactKind::ToolResult, "forecast");
    let id = store.store.add_artifact(new, words).await.unwrap().artifact.id.clone();
    let now = store.store.clock().now();
    let mut result = ChatMessage::new(ChatRole::Tool, "kept as an artifact", &now);
    result.metadata.insert("artifact".to_owned(), id.clone());
    assert_eq!(result.moved_to(), Some(id.as_str()));
    store.append_message(result).await.unwrap();

    let plan = store.plan_forget_all().await.unwrap();
    *store.meanwhile.lock().unwrap() =
        Some(ChatMessage::new(ChatRole::User, "said meanwhile", &now));
    let refused = store.forget_planned(&plan).await;
    assert!(matches!(refused, Err(Error::MoreThanAnnounced)), "{refused:?}");
    assert!(store.store.open_artifact(&id).await.unwrap().is_some());

    store.forget(&[1..=1]).await.unwrap();
    assert!(store.store.open_artifact(&id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_limit_makes_a_store_of_others_read_no_more_than_it_is_asked_for() {
    let root: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
    let key = EncryptionKey::from_secret("a secret of the contract tests").unwrap();
    let store = StoreOptions::new(key).open_directory(Arc::clone(&root), root).await.unwrap();
    let store = MediumOnly::new(store);
    let now = store.store.clock().now();
    let many = (0..3_000).map(|n| ChatMessage::new(ChatRole::User, n.to_string(), &now));
    store.store.append_all(many.collect()).await.unwrap();
    for most in [1_000_000, 2_990] {
        let limits = Retention::FOREVER.max_messages(most);
        store
            .change_profile(Box::new(move |profile| profile.retention = Some(limits)))
            .await
            .unwrap();
        let before = store.read.load(Relaxed);
        assert_eq!(store.read_tail(4).await.unwrap().messages.len(), 4);
        store.append_message(ChatMessage::new(ChatRole::User, "next", &now)).await.unwrap();
        let read = store.read.load(Relaxed) - before;
        assert!(read < 300, "{read} messages were read with a limit of {most}");
    }
}
