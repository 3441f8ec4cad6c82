//! The check of every file, which takes a while: how far it is, and what it found.

use std::sync::{Arc, Mutex};

use jiff::Zoned;
use sottovoce::admin::{Progress, Report};
use sottovoce::config::OpenConversations;
use sottovoce::{Scope, with_causes};
use sottovoce_net::lock;

/// How a check stands.
#[derive(Clone, Default)]
pub(crate) struct Verified {
    /// Which conversation is being checked, and how far; `None` if no check runs.
    pub(crate) running: Option<(Scope, (usize, usize))>,
    /// What was found so far, or by the last check.
    pub(crate) results: Vec<(Scope, Result<Arc<Report>, String>)>,
    /// When the last check ended.
    pub(crate) ended: Option<Zoned>,
}

/// The check. At most one runs.
#[derive(Clone, Default)]
pub(crate) struct Verifying(Arc<Mutex<Verified>>);

impl Verifying {
    pub(crate) fn now(&self) -> Verified {
        lock(&self.0).clone()
    }

    /// Begins a check of these conversations, unless one runs.
    pub(crate) fn begin(&self, conversations: Arc<OpenConversations>, scopes: Vec<Scope>) {
        let Some(first) = scopes.first().cloned() else { return };
        {
            let mut state = lock(&self.0);
            if state.running.is_some() {
                return;
            }
            *state = Verified { running: Some((first, (0, 0))), ..Verified::default() };
        }
        let verifying = self.clone();
        tokio::spawn(async move {
            for scope in scopes {
                let result = verifying.check(&conversations, &scope).await;
                let result = result.map(Arc::new).map_err(|error| with_causes(&error));
                lock(&verifying.0).results.push((scope, result));
            }
            let mut state = lock(&verifying.0);
            state.running = None;
            state.ended = Some(conversations.clock().now());
        });
    }

    async fn check(
        &self,
        conversations: &OpenConversations,
        scope: &Scope,
    ) -> sottovoce::Result<Report> {
        let store = conversations.store(scope).await?;
        let (verifying, of) = (self.clone(), scope.clone());
        let shown = move |Progress { done, total, .. }| {
            lock(&verifying.0).running = Some((of.clone(), (done, total)));
        };
        store.verify(shown).await
    }
}
