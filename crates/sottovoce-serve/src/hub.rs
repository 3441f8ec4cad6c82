//! What all clients share: the configuration, the model server and the open conversations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sottovoce::context::recall::{Recall, RecallContextProvider};
use sottovoce::context::{ContextProvider, ContextRequest};
use sottovoce::{
    Clock, Config, Conversation, ConversationStore, EncryptionKey, Error, Result, Scope,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::forward::Upstream;
use crate::receipt::Receipts;
use crate::session::Sessions;

/// How many open conversations are remembered.
const OPEN: usize = 256;

/// What all clients share.
pub struct Hub {
    pub(crate) config: Config,
    pub(crate) upstream: Upstream,
    /// The tasks that pass on and record answers.
    pub(crate) turns: TaskTracker,
    /// Cancelled when answers in progress must end.
    pub(crate) cut: CancellationToken,
    clock: Arc<dyn Clock>,
    keys: Vec<Arc<EncryptionKey>>,
    history: Arc<dyn ContextProvider>,
    open: Mutex<HashMap<Scope, Arc<OpenScope>>>,
}

/// An open conversation.
pub(crate) struct OpenScope {
    pub(crate) store: Arc<dyn ConversationStore>,
    /// The same conversation, for storing answers.
    pub(crate) conversation: Conversation,
    pub(crate) history: Arc<dyn ContextProvider>,
    /// About how many messages of history are wanted.
    pub(crate) last_n: usize,
    pub(crate) recall: Option<Arc<Recall>>,
    pub(crate) recaller: Option<Arc<RecallContextProvider>>,
    /// Locked while a request is prepared, so that requests are stored in their order.
    pub(crate) sessions: tokio::sync::Mutex<Sessions>,
    pub(crate) receipts: Mutex<Receipts>,
}

impl Hub {
    /// A hub for the configured store, opened with these keys, in front of the configured model server.
    ///
    /// # Errors
    /// [`Error::Config`] for an address of the model server that cannot be used.
    pub fn new(
        config: Config,
        keys: Vec<Arc<EncryptionKey>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            upstream: Upstream::new(&config)?,
            history: config.history_provider(),
            config,
            turns: TaskTracker::new(),
            cut: CancellationToken::new(),
            clock,
            keys,
            open: Mutex::default(),
        }))
    }

    /// The conversation of a scope. All clients share one.
    pub(crate) async fn open(&self, scope: &Scope) -> Result<Arc<OpenScope>> {
        let known = self.scopes().get(scope).cloned();
        if let Some(known) = known {
            // The folder may have been removed and restored.
            match known.store.profile().await {
                Ok(_) => return Ok(known),
                Err(Error::FolderReplaced { .. }) => drop(self.scopes().remove(scope)),
                Err(error) => return Err(error),
            }
        }
        let (keys, clock) = (self.keys.clone(), Arc::clone(&self.clock));
        let store = self.config.open_store_with(keys, scope.clone(), clock).await?;
        let opened = Arc::new(self.scope(Arc::new(store)));
        let mut open = self.scopes();
        if open.len() >= OPEN {
            open.clear();
        }
        // Another request may have opened it first.
        let opened = Arc::clone(open.entry(scope.clone()).or_insert(opened));
        drop(open);
        opened.warm_up();
        Ok(opened)
    }

    fn scope(&self, store: Arc<dyn ConversationStore>) -> OpenScope {
        let settings = &self.config.context.recall;
        let recall = (settings.tokens > 0).then(|| Arc::new(Recall::new(Arc::clone(&store))));
        let recaller = recall.as_ref().map(|recall| {
            let provider = RecallContextProvider::new(Arc::clone(recall)).tokens(settings.tokens);
            #[expect(clippy::cast_possible_truncation)] // A score has few digits.
            Arc::new(match settings.min_score {
                Some(score) => provider.min_score(score as f32),
                None => provider,
            })
        });
        OpenScope {
            conversation: Conversation::builder(Arc::clone(&store)).build(),
            store,
            history: Arc::clone(&self.history),
            last_n: self.config.context.last_n,
            recall,
            recaller,
            sessions: tokio::sync::Mutex::default(),
            receipts: Mutex::default(),
        }
    }

    fn scopes(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Arc<OpenScope>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenScope {
    /// Loads the search index in the background, so that the first question need not wait for it.
    fn warm_up(self: &Arc<Self>) {
        let Some(recaller) = self.recaller.clone() else { return };
        let scope = Arc::clone(self);
        tokio::spawn(async move {
            let request = ContextRequest::new(&scope.store, "Which words were said here?", 1);
            if let Err(error) = recaller.get_context(&request).await {
                tracing::warn!(%error, "could not load the index of what was said");
            }
        });
    }

    /// Writes what is new of the search index into the store, in the background.
    pub(crate) fn keep_index(&self) {
        let Some(recall) = self.recall.clone() else { return };
        tokio::spawn(async move {
            if recall.is_behind().await
                && let Err(error) = recall.save().await
            {
                tracing::warn!(%error, "could not keep the index of what was said");
            }
        });
    }

    pub(crate) fn receipts(&self) -> std::sync::MutexGuard<'_, Receipts> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}
