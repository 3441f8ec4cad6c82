//! The conversations of the store as syncing opens them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sottovoce::config::OpenConversations;
use sottovoce::{ConversationStore, Error, FileConversationStore, Result, Scope, admin};
use sottovoce_sync::{Conversations, OpenRemote, Syncer};

/// How many stores are kept open. A sync asks for each of them several times, and each remembers which messages it has.
const OPEN: usize = 256;

/// What syncs these conversations.
pub(crate) fn syncer(conversations: Arc<OpenConversations>, remote: OpenRemote) -> Syncer {
    let clock = Arc::clone(conversations.clock());
    Syncer::new(stores(conversations), clock, remote)
}

/// These conversations, as syncing opens them.
pub(crate) fn stores(conversations: Arc<OpenConversations>) -> Arc<dyn Conversations> {
    Arc::new(Stores { conversations, open: Mutex::default() })
}

/// The stores, opened with the configured limits. Conversations that are open in the same process see what is stored
/// through these.
struct Stores {
    conversations: Arc<OpenConversations>,
    open: Mutex<HashMap<Scope, FileConversationStore>>,
}

#[async_trait]
impl Conversations for Stores {
    async fn scopes(&self) -> Result<Vec<Scope>> {
        admin::scopes(&self.conversations.config().storage_root()?)
    }

    async fn open(&self, scope: &Scope) -> Result<FileConversationStore> {
        let known = self.lock().get(scope).cloned();
        if let Some(known) = known {
            match known.profile().await {
                Ok(_) => return Ok(known),
                // The conversation was forgotten completely and begun again.
                Err(Error::FolderReplaced { .. }) => drop(self.lock().remove(scope)),
                Err(error) => return Err(error),
            }
        }
        let store = self.conversations.store(scope).await?;
        let mut open = self.lock();
        if open.len() >= OPEN
            && let Some(any) = open.keys().next().cloned()
        {
            open.remove(&any);
        }
        open.insert(scope.clone(), store.clone());
        Ok(store)
    }
}

impl Stores {
    fn lock(&self) -> MutexGuard<'_, HashMap<Scope, FileConversationStore>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

sottovoce::debug_shows!(Stores as it: open = it.lock().len());
