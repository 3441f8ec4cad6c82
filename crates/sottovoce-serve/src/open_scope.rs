//! An open conversation, with the sessions of its clients.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sottovoce::context::recall::RecallContextProvider;
use sottovoce::context::{ContextProvider, ContextRequest};
use sottovoce::{Config, Conversation, ConversationStore};
use sottovoce_net::lock;

use crate::receipt::Receipts;
use crate::session::Sessions;

/// An open conversation.
pub(crate) struct OpenScope {
    pub(crate) store: Arc<dyn ConversationStore>,
    pub(crate) conversation: Conversation,
    pub(crate) history: Arc<dyn ContextProvider>,
    /// About how many messages of history are wanted.
    pub(crate) last_n: usize,
    pub(crate) recaller: Option<Arc<RecallContextProvider>>,
    /// Locked while a request is prepared, so that requests are stored in their order.
    pub(crate) sessions: tokio::sync::Mutex<Sessions>,
    pub(crate) receipts: Mutex<Receipts>,
    /// When to summarize, if a model is configured for it.
    pub(crate) idle: Option<Duration>,
}

impl OpenScope {
    /// A conversation without sessions yet.
    pub(crate) fn new(conversation: Conversation, config: &Config, idle: Option<Duration>) -> Self {
        let settings = &config.context.recall;
        let recaller = (settings.tokens > 0)
            .then(|| Arc::new(settings.provider(Arc::clone(conversation.index()))));
        Self {
            store: Arc::clone(conversation.store()),
            conversation,
            history: config.history_provider(),
            last_n: config.context.last_n,
            recaller,
            sessions: tokio::sync::Mutex::default(),
            receipts: Mutex::default(),
            idle,
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
        lock(&self.receipts)
    }
}
