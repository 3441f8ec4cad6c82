//! What all clients share: the configuration, the model server and the open conversations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sottovoce::persona::PersonaRegistry;
use sottovoce::{Clock, Config, EncryptionKey, Error, Result, Scope};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::forward::Upstream;
use crate::open_scope::OpenScope;

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
    contexts: PersonaRegistry,
    open: Mutex<HashMap<Scope, Arc<OpenScope>>>,
}

impl Hub {
    /// A hub for the configured store, opened with these keys, in front of the configured model server.
    ///
    /// # Errors
    /// [`Error::Config`] for an address of the model server that cannot be used, and [`Error::NoKey`] without a key.
    pub fn new(
        config: Config,
        keys: Vec<Arc<EncryptionKey>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            upstream: Upstream::new(&config)?,
            contexts: config.contexts(keys.clone(), Arc::clone(&clock))?,
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
        let opened = Arc::new(OpenScope::new(Arc::new(store), &self.config));
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

    /// [`open`](Self::open) for what will be said in it.
    ///
    /// # Errors
    /// [`Error::Persona`] for a context that is deleted, expired or full.
    pub(crate) async fn open_to_talk(&self, scope: &Scope) -> Result<Arc<OpenScope>> {
        let opened = self.open(scope).await?;
        if let Scope::Named { id } = scope
            && opened.store.profile().await?.assigned_persona.is_some()
        {
            self.contexts.open(id).await?;
        }
        Ok(opened)
    }

    fn scopes(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Arc<OpenScope>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}
