//! What all clients share: the model server and the open conversations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sottovoce::config::OpenConversations;
use sottovoce::conversation::Metrics;
use sottovoce::{Config, Conversation, Result, Scope};
use sottovoce_net::lock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::forward::Upstream;
use crate::open_scope::OpenScope;

/// Older messages are summarized this long after the last turn. By then most clients begin a new session, and only those
/// get the summary.
const IDLE: Duration = Duration::from_secs(5 * 60);

const MINUTE: Duration = Duration::from_secs(60);

/// What all clients share.
pub struct Hub {
    pub(crate) upstream: Upstream,
    /// The tasks that pass on and record answers.
    pub(crate) turns: TaskTracker,
    /// Cancelled when answers in progress must end.
    pub(crate) cut: CancellationToken,
    /// When to summarize, if a model is configured for it.
    idle: Option<Duration>,
    pub(crate) conversations: Arc<OpenConversations>,
    scopes: Mutex<HashMap<Scope, Arc<OpenScope>>>,
    /// When it was last logged that something was not recorded.
    unrecorded: Mutex<Option<Instant>>,
}

impl Hub {
    /// A hub for these conversations, in front of the configured model server.
    ///
    /// # Errors
    /// [`Error::Config`](sottovoce::Error::Config) for an address of the model server that cannot be used.
    pub fn new(conversations: Arc<OpenConversations>) -> Result<Self> {
        let config = conversations.config();
        // Clients name models themselves. The default is none that anybody chose, and the server may not have it.
        let is_model = |setting: &sottovoce::config::Setting| {
            setting.key == "LanguageModel.Model" && setting.origin != "default"
        };
        Ok(Self {
            upstream: Upstream::new(config)?,
            turns: TaskTracker::new(),
            cut: CancellationToken::new(),
            idle: config.settings().iter().any(is_model).then_some(IDLE),
            conversations,
            scopes: Mutex::default(),
            unrecorded: Mutex::default(),
        })
    }

    /// Summarizes this long after the last turn, instead of five minutes, if a model is configured for it.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = self.idle.map(|_| idle);
        self
    }

    pub(crate) fn config(&self) -> &Config {
        self.conversations.config()
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        self.conversations.metrics()
    }

    /// Logs, at most once a minute, that a request was passed on without being recorded.
    pub(crate) fn note_unrecorded(&self, reason: &'static str) {
        let mut last = lock(&self.unrecorded);
        if last.is_none_or(|last| last.elapsed() >= MINUTE) {
            *last = Some(Instant::now());
            tracing::warn!(reason, "a request was passed on unrecorded");
        }
    }

    /// The conversation of a scope. All clients share one.
    pub(crate) async fn open(&self, scope: &Scope) -> Result<Arc<OpenScope>> {
        Ok(self.with_sessions(scope, self.conversations.open(scope).await?))
    }

    /// [`open`](Self::open) for what will be said in it.
    ///
    /// # Errors
    /// [`Error::Persona`](sottovoce::Error::Persona) for a context that is deleted, expired or full.
    pub(crate) async fn open_to_talk(&self, scope: &Scope) -> Result<Arc<OpenScope>> {
        Ok(self.with_sessions(scope, self.conversations.open_to_talk(scope).await?))
    }

    fn with_sessions(&self, scope: &Scope, conversation: Conversation) -> Arc<OpenScope> {
        let mut scopes = lock(&self.scopes);
        if let Some(known) = scopes.get(scope)
            && Arc::ptr_eq(&known.store, conversation.store())
        {
            return Arc::clone(known);
        }
        // Sessions go with their conversations.
        scopes.retain(|scope, _| self.conversations.known(scope).is_some());
        let opened = Arc::new(OpenScope::new(conversation, self.config(), self.idle));
        scopes.insert(scope.clone(), Arc::clone(&opened));
        drop(scopes);
        opened.warm_up();
        opened
    }
}

sottovoce::debug_shows!(Hub: upstream);
