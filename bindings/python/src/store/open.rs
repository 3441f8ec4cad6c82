//! An open store, which all conversations share.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::PyResult;
use sottovoce::config::ConfiguredKey;
use sottovoce::persona::PersonaRegistry;
use sottovoce::{Config, EncryptionKey, Error, Result, Scope, SystemClock, admin};
use tokio::sync::Mutex;

use crate::conversation::{Conversation, OpenConversation};
use crate::error::{closed, raise};

/// How many open conversations are kept that nobody holds.
const KEPT: usize = 256;

/// An open store.
pub(crate) struct OpenStore {
    pub(crate) config: Config,
    keys: Vec<Arc<EncryptionKey>>,
    contexts: PersonaRegistry,
    open: Mutex<HashMap<Place, Arc<OpenConversation>>>,
    is_closed: AtomicBool,
}

/// A scope and a thread of it.
type Place = (Scope, Option<String>);

impl OpenStore {
    pub(crate) fn new(config: Config, keys: Vec<Arc<EncryptionKey>>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            contexts: config.contexts(keys.clone(), Arc::new(SystemClock))?,
            config,
            keys,
            open: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }))
    }

    /// Checks that the store opens with the key and that a conversation can be built.
    pub(crate) async fn check(self: &Arc<Self>) -> PyResult<()> {
        self.opened(&mut *self.open.lock().await, (Scope::Default, None)).await.map_err(raise)?;
        Ok(())
    }

    pub(crate) async fn conversation(
        self: &Arc<Self>,
        scope: Scope,
        thread: Option<String>,
    ) -> PyResult<Conversation> {
        self.check_open()?;
        let mut open = self.open.lock().await;
        let found = self.opened(&mut open, (scope.clone(), thread)).await.map_err(raise)?;
        if open.len() > KEPT {
            open.retain(|_, conversation| Arc::strong_count(conversation) > 1);
        }
        drop(open);
        if let Scope::Named { id } = &scope {
            let profile = found.inner.store().profile().await.map_err(raise)?;
            if profile.assigned_persona.is_some() {
                self.contexts.open(id).await.map_err(raise)?;
            }
        }
        Ok(Conversation::new(found, Arc::clone(self)))
    }

    async fn opened(
        self: &Arc<Self>,
        open: &mut HashMap<Place, Arc<OpenConversation>>,
        place: Place,
    ) -> Result<Arc<OpenConversation>> {
        if let Some(found) = open.get(&place) {
            return Ok(Arc::clone(found));
        }
        let (scope, thread) = &place;
        let whole = match open.get(&(scope.clone(), None)) {
            Some(whole) => whole.inner.clone(),
            None => {
                let (keys, clock) = (self.keys.clone(), Arc::new(SystemClock));
                let store = self.config.open_store_with(keys, scope.clone(), clock).await?;
                self.config.conversation(Arc::new(store))?
            }
        };
        let inner = match thread {
            Some(thread) => whole.in_thread(thread),
            None => whole,
        };
        let renderer = self.config.renderer();
        let store = Arc::downgrade(self);
        let opened = Arc::new(OpenConversation::new(inner, thread.clone(), renderer, store));
        open.insert(place, Arc::clone(&opened));
        Ok(opened)
    }

    pub(crate) async fn scopes(&self) -> PyResult<Vec<String>> {
        self.check_open()?;
        let root = self.config.storage_root().map_err(raise)?;
        let found = tokio::task::spawn_blocking(move || admin::scopes(&root)).await;
        let scopes = found.map_err(|_| raise(Error::ShuttingDown))?.map_err(raise)?;
        Ok(scopes.iter().map(ToString::to_string).collect())
    }

    /// Interrupts the answers in progress, stores what was spoken, and refuses later calls.
    pub(crate) async fn close(&self) -> PyResult<()> {
        self.is_closed.store(true, Ordering::Release);
        let open: Vec<_> = self.open.lock().await.drain().map(|(_, open)| open).collect();
        let mut outcome = Ok(());
        for conversation in open {
            // One that cannot be stored must not keep the others from being stored.
            let closed = conversation.close().await;
            outcome = outcome.and(closed);
        }
        outcome
    }

    pub(crate) fn check_open(&self) -> PyResult<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(closed()) } else { Ok(()) }
    }
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStore").finish_non_exhaustive()
    }
}

/// The keys of a store, and what its owner should know about them.
pub(crate) struct Keys {
    pub(crate) keys: Vec<Arc<EncryptionKey>>,
    pub(crate) notes: Vec<String>,
}

/// The keys, made on first use if that is wanted.
pub(crate) fn keys(config: &Config, create: bool) -> Result<Keys> {
    let mut notes = Vec::new();
    let keys = match config.encryption_keys() {
        Err(Error::NoKey | Error::PlaceholderKey) if create => {
            notes.push(match config.make_key_file()? {
                Some(file) => format!(
                    "made the key file {}; back it up, because without it nobody can read what is stored",
                    file.display()
                ),
                None => format!(
                    "a copy of the passphrase's salt is in {}; back it up",
                    config.salt_folder()?.display()
                ),
            });
            config.encryption_keys()?
        }
        Err(Error::NoKey | Error::PlaceholderKey) if key_file(config)?.is_some() => {
            return Err(Error::KeyFile { path: config.key_file()?, reason: "there is none yet" });
        }
        keys => keys?,
    };
    Ok(Keys { keys, notes })
}

/// The key file, if the key is in one.
pub(crate) fn key_file(config: &Config) -> Result<Option<PathBuf>> {
    match config.key {
        ConfiguredKey::Secret { .. } => Ok(None),
        _ => config.key_file().map(Some),
    }
}

/// A note about settings in the current folder that count only elsewhere.
pub(crate) fn left_out(config: &Config) -> Option<String> {
    let names: Vec<&str> = config.left_out().iter().map(|setting| setting.key).collect();
    let file = config.local_file.as_ref().filter(|_| !names.is_empty())?;
    Some(format!(
        "{} in this folder is not followed in {}; put that into your own settings or give it as keyword arguments",
        file.display(),
        names.join(", ")
    ))
}
