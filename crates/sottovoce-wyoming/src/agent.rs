//! What all connections share: the configuration and the open conversations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sottovoce::persona::PersonaRegistry;
use sottovoce::{Clock, Config, Conversation, EncryptionKey, Error, Result, Scope};

use crate::phrases::Phrases;

/// How many open conversations are remembered.
const OPEN: usize = 256;
/// How often what the limits hide is deleted.
pub(crate) const CLEANED_EVERY: Duration = Duration::from_secs(60 * 60);

/// The agent: its conversations, as configured.
pub struct Agent {
    config: Config,
    clock: Arc<dyn Clock>,
    keys: Vec<Arc<EncryptionKey>>,
    contexts: PersonaRegistry,
    pub(crate) phrases: Phrases,
    open: Mutex<HashMap<Scope, Conversation>>,
}

impl Agent {
    /// An agent for the configured store, opened with these keys, and the configured model.
    ///
    /// # Errors
    /// [`Error::NoKey`] without a key.
    pub fn new(
        config: Config,
        keys: Vec<Arc<EncryptionKey>>,
        clock: Arc<dyn Clock>,
        phrases: Phrases,
    ) -> Result<Arc<Self>> {
        let contexts = config.contexts(keys.clone(), Arc::clone(&clock))?;
        Ok(Arc::new(Self { config, clock, keys, contexts, phrases, open: Mutex::default() }))
    }

    /// The conversation of a scope. All connections share one, so that turns wait for each other.
    ///
    /// # Errors
    /// Those of opening it, and [`Error::Persona`] for a context that is deleted, expired or full.
    pub(crate) async fn open(&self, scope: &Scope) -> Result<Conversation> {
        let known = self.conversations().get(scope).cloned();
        let conversation = match known {
            // The folder may have been removed and restored.
            Some(known) => match known.store().profile().await {
                Ok(_) => known,
                Err(Error::FolderReplaced { .. }) => self.reopen(scope).await?,
                Err(error) => return Err(error),
            },
            None => self.reopen(scope).await?,
        };
        if let Scope::Named { id } = scope
            && conversation.store().profile().await?.assigned_persona.is_some()
        {
            self.contexts.open(id).await?;
        }
        Ok(conversation)
    }

    async fn reopen(&self, scope: &Scope) -> Result<Conversation> {
        let (keys, clock) = (self.keys.clone(), Arc::clone(&self.clock));
        let store = self.config.open_store_with(keys, scope.clone(), clock).await?;
        let opened = self.config.conversation(Arc::new(store))?;
        let mut open = self.conversations();
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(scope.clone(), opened.clone());
        Ok(opened)
    }

    /// Deletes what the limits of the open conversations hide.
    pub(crate) async fn clean(&self) {
        let open: Vec<Conversation> = self.conversations().values().cloned().collect();
        for conversation in open {
            if let Err(error) = conversation.store().cleanup().await {
                tracing::warn!(%error, "could not delete what the limits hide");
            }
        }
    }

    /// Waits for the turns in progress, and stores what was spoken.
    pub(crate) async fn close(&self) {
        let open: Vec<Conversation> = self.conversations().drain().map(|(_, open)| open).collect();
        for conversation in open {
            if let Err(error) = conversation.close().await {
                tracing::warn!(%error, "could not store the end of a turn");
            }
        }
    }

    fn conversations(&self) -> MutexGuard<'_, HashMap<Scope, Conversation>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("phrases", &self.phrases).finish_non_exhaustive()
    }
}
