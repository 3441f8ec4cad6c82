//! The published contract over files and memory, and over the file store reduced to its medium, so that the provided
//! methods are held to the same rules as those that the file store overrides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tempfile::TempDir;
use zeroize::Zeroizing;

use crate::EncryptionKey;
use crate::clock::Clock;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::error::Result;
use crate::scope::Scope;
use crate::store::record::document::DocumentId;
use crate::store::record::read_result::ReadResult;
use crate::store::{
    Batch, ConversationStore, FileConversationStore, ReadQuery, StoreBackend, StoreOptions,
    StorePolicy, StoreState,
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

/// A file store of which only the medium is used.
#[derive(Debug)]
struct MediumOnly(FileConversationStore);

#[async_trait]
impl StoreBackend for MediumOnly {
    fn scope(&self) -> &Arc<Scope> {
        self.0.scope()
    }

    async fn state(&self) -> Result<StoreState> {
        self.0.state().await
    }

    async fn read(&self, query: ReadQuery) -> Result<ReadResult> {
        self.0.read(query).await
    }

    async fn document(&self, id: &DocumentId) -> Result<Option<Zeroizing<Vec<u8>>>> {
        self.0.document(id).await
    }

    async fn commit(&self, batch: Batch) -> Result<StoreState> {
        self.0.commit(batch).await
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock()
    }

    fn policy(&self) -> StorePolicy {
        self.0.policy()
    }
}

impl ConversationStore for MediumOnly {}

#[tokio::test]
async fn the_provided_methods_keep_the_contract() {
    for loose in [1, 64] {
        let memories = Memories::default();
        let open = async |setup| {
            let store = MediumOnly(memories.open(setup, loose).await?);
            Ok(Arc::new(store) as Arc<dyn ConversationStore>)
        };
        conversation_store_contract(open).await.unwrap();
    }
}
