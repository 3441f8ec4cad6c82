//! An open conversation, with the sessions of its clients.

use std::sync::{Arc, Mutex, PoisonError};

use sottovoce::context::recall::{Recall, RecallContextProvider, ScoreFloor};
use sottovoce::context::{ContextProvider, ContextRequest};
use sottovoce::{Config, Conversation, ConversationStore};

use crate::receipt::Receipts;
use crate::session::Sessions;

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

impl OpenScope {
    /// The conversation in a store, as configured.
    pub(crate) fn new(store: Arc<dyn ConversationStore>, config: &Config) -> Self {
        let settings = &config.context.recall;
        let recall = (settings.tokens > 0).then(|| Arc::new(Recall::new(Arc::clone(&store))));
        let recaller = recall.as_ref().map(|recall| {
            let floor = ScoreFloor::configured(settings.min_score);
            let provider = RecallContextProvider::new(Arc::clone(recall)).floor(floor);
            Arc::new(provider.tokens(settings.tokens))
        });
        Self {
            conversation: Conversation::builder(Arc::clone(&store)).build(),
            store,
            history: config.history_provider(),
            last_n: config.context.last_n,
            recall,
            recaller,
            sessions: tokio::sync::Mutex::default(),
            receipts: Mutex::default(),
        }
    }

    /// Loads the search index in the background, so that the first question need not wait for it.
    pub(crate) fn warm_up(self: &Arc<Self>) {
        let Some(recaller) = self.recaller.clone() else { return };
        let scope = Arc::clone(self);
        tokio::spawn(async move {
            let request = ContextRequest::new(&scope.store, "Which words were said here?", 1);
            if let Err(error) = recaller.get_context(&request).await {
                tracing::warn!(%error, "could not load the index of what was said");
            }
        });
    }

    pub(crate) fn receipts(&self) -> std::sync::MutexGuard<'_, Receipts> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
