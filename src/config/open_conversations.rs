//! The conversations that a server has open, shared by all ways into it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::{Conversation, Metrics};
use crate::crypto::EncryptionKey;
use crate::error::{Error, Result};
use crate::persona::PersonaRegistry;
use crate::scope::Scope;
use crate::store::{ArtifactSource, ConversationStore, FileConversationStore};

/// How many conversations are kept open.
const OPEN: usize = 256;

const HOUR: Duration = Duration::from_secs(3600);

/// The open conversations of a configured store: at most 256 of them, and those in which a turn is in progress.
///
/// All servers of one process share it. So turns of a conversation wait for each other whichever way they come in, and
/// its tail and its index are in memory once.
pub struct OpenConversations {
    config: Config,
    keys: Vec<Arc<EncryptionKey>>,
    clock: Arc<dyn Clock>,
    contexts: PersonaRegistry,
    metrics: Arc<Metrics>,
    open: Mutex<Open>,
    /// Where artifacts are that the stores do not have.
    artifact_source: OnceLock<Arc<dyn ArtifactSource>>,
    /// Held by the server that deletes every hour what limits hide.
    cleaning: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Open {
    /// Counts uses.
    uses: u64,
    conversations: HashMap<Scope, Used>,
}

struct Used {
    /// The number of the last use.
    last: u64,
    conversation: Conversation,
    store: FileConversationStore,
}

impl OpenConversations {
    /// The conversations of the configured store, opened with these keys. Opens none yet.
    ///
    /// # Errors
    /// [`Error::NoKey`] without a key, and those of [`Config::storage_root`].
    pub fn new(
        config: Config,
        keys: Vec<Arc<EncryptionKey>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let contexts = config.contexts(keys.clone(), Arc::clone(&clock))?;
        let (metrics, open, cleaning, artifact_source) = Default::default();
        Ok(Arc::new(Self {
            config,
            keys,
            clock,
            contexts,
            metrics,
            open,
            artifact_source,
            cleaning,
        }))
    }

    /// Has the stores that are opened from now on ask this source for artifacts that they do not have. The first one counts.
    pub fn set_artifact_source(&self, source: Arc<dyn ArtifactSource>) {
        let _ = self.artifact_source.set(source);
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The contexts of the store.
    pub fn contexts(&self) -> &PersonaRegistry {
        &self.contexts
    }

    /// The clock of all conversations.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// What the conversations count together.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The conversation of a scope. Opens it unless it is open. Its folder may have been removed and restored
    /// meanwhile; then it is opened again.
    ///
    /// # Errors
    /// Those of opening the store, and of reading its settings.
    pub async fn open(&self, scope: &Scope) -> Result<Conversation> {
        Ok(self.open_with_files(scope).await?.0)
    }

    /// [`open`](Self::open), with the conversation's store for what only a file store can do.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub async fn open_with_files(
        &self,
        scope: &Scope,
    ) -> Result<(Conversation, FileConversationStore)> {
        let known = self.lock().used(scope);
        if let Some(known) = known {
            match known.1.profile().await {
                Ok(_) => return Ok(known),
                Err(Error::FolderReplaced { .. }) => self.lock().remove(scope, &known.0),
                Err(error) => return Err(error),
            }
        }
        let files = self.store(scope).await?;
        let store: Arc<dyn ConversationStore> = Arc::new(files.clone());
        let opened = self.config.conversation_builder(store)?.metrics(Arc::clone(&self.metrics));
        let (conversation, dropped) = self.lock().insert(scope, (opened.build(), files));
        if let Some(dropped) = dropped {
            // Words that were spoken before a turn failed may be in memory only. Nobody waits for them to be stored.
            tokio::spawn(async move { close(&dropped).await });
        }
        Ok(conversation)
    }

    /// [`open`](Self::open) for what will be said in it.
    ///
    /// # Errors
    /// [`Error::Persona`] for a context that is deleted, expired or full.
    pub async fn open_to_talk(&self, scope: &Scope) -> Result<Conversation> {
        let conversation = self.open(scope).await?;
        if let Scope::Named { id } = scope
            && conversation.store().profile().await?.assigned_persona.is_some()
        {
            self.contexts.open(id).await?;
        }
        Ok(conversation)
    }

    /// The conversation of a scope if it is open.
    pub fn known(&self, scope: &Scope) -> Option<Conversation> {
        self.lock().conversations.get(scope).map(|used| used.conversation.clone())
    }

    /// Checks that the store can be read with the keys. A store that does not exist yet can.
    ///
    /// # Errors
    /// [`Error::WrongKey`] for another store's keys, and what else keeps the store from opening.
    pub async fn check(&self) -> Result<()> {
        self.store(&Scope::Default).await.map(drop)
    }

    /// Opens the store of a scope by itself, for what is no turn.
    ///
    /// # Errors
    /// Those of [`Config::open_store_with`].
    pub async fn store(&self, scope: &Scope) -> Result<FileConversationStore> {
        let (keys, clock) = (self.keys.clone(), Arc::clone(&self.clock));
        let store = self.config.open_store_with(keys, scope.clone(), clock).await?;
        Ok(match self.artifact_source.get() {
            Some(source) => store.with_artifact_source(Arc::clone(source)),
            None => store,
        })
    }

    /// The open conversations, in no order.
    pub fn all(&self) -> Vec<Conversation> {
        self.lock().conversations.values().map(|used| used.conversation.clone()).collect()
    }

    /// Deletes every hour what the limits of the open conversations hide. Runs until it is dropped. If several servers call
    /// it, one of them does it.
    pub async fn clean_hourly(&self) {
        let _cleaning = self.cleaning.lock().await;
        loop {
            tokio::time::sleep(HOUR).await;
            self.cleanup().await;
        }
    }

    /// Deletes what the limits of the open conversations hide. A failure is logged, and does not keep the others from it.
    async fn cleanup(&self) {
        for conversation in self.all() {
            if let Err(error) = conversation.store().cleanup().await {
                tracing::warn!(%error, "could not delete what the limits hide");
            }
        }
    }

    /// Waits for the turns in progress, and stores what was spoken. A server calls it last.
    pub async fn close(&self) {
        for conversation in self.all() {
            close(&conversation).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn close(conversation: &Conversation) {
    if let Err(error) = conversation.close().await {
        tracing::warn!(%error, "could not store the end of a turn");
    }
}

impl Open {
    fn used(&mut self, scope: &Scope) -> Option<(Conversation, FileConversationStore)> {
        self.uses += 1;
        let used = self.conversations.get_mut(scope)?;
        used.last = self.uses;
        Some((used.conversation.clone(), used.store.clone()))
    }

    /// Adds a conversation, or returns the one that another call has added first. One too many drops the one whose last
    /// use is longest ago, and none in which a turn is in progress: two turns of one conversation would not wait for each
    /// other. Returns also the dropped one.
    fn insert(
        &mut self,
        scope: &Scope,
        opened: (Conversation, FileConversationStore),
    ) -> ((Conversation, FileConversationStore), Option<Conversation>) {
        if let Some(known) = self.used(scope) {
            return (known, None);
        }
        let mut dropped = None;
        if self.conversations.len() >= OPEN {
            let resting =
                self.conversations.iter().filter(|(_, used)| !used.conversation.is_busy());
            let oldest = resting.min_by_key(|(_, used)| used.last).map(|(scope, _)| scope.clone());
            dropped = oldest.and_then(|oldest| self.conversations.remove(&oldest));
        }
        let (conversation, store) = opened.clone();
        self.conversations.insert(scope.clone(), Used { last: self.uses, conversation, store });
        (opened, dropped.map(|dropped| dropped.conversation))
    }

    /// Removes a conversation, unless another call has put a newer one in its place.
    fn remove(&mut self, scope: &Scope, old: &Conversation) {
        let is_old = |used: &Used| Arc::ptr_eq(used.conversation.store(), old.store());
        if self.conversations.get(scope).is_some_and(is_old) {
            self.conversations.remove(scope);
        }
    }
}

debug_shows!(OpenConversations as it: open = it.lock().conversations.len());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    fn named(id: usize) -> Scope {
        Scope::Named { id: id.to_string() }
    }

    fn conversations(root: &std::path::Path) -> Arc<OpenConversations> {
        let file = root.join("settings.json");
        std::fs::write(&file, "{}").unwrap();
        let environment = [("SOTTOVOCE__CONTEXT__STORAGEROOT".into(), root.join("store").into())];
        let config = Config::load_with(Some(&file), environment).unwrap();
        let key = Arc::new(EncryptionKey::generate().unwrap());
        OpenConversations::new(config, vec![key], Arc::new(SystemClock)).unwrap()
    }

    #[tokio::test]
    async fn turns_of_one_scope_wait_for_each_other_whoever_opened_it() {
        let folder = tempfile::tempdir().unwrap();
        let open = conversations(folder.path());
        let turn = open.open(&named(1)).await.unwrap().host_turn().await.unwrap();
        let again = open.open_to_talk(&named(1)).await.unwrap();
        assert!(again.is_busy());
        assert!(!open.open(&named(2)).await.unwrap().is_busy());
        turn.end();
        assert!(!again.is_busy());
    }

    #[tokio::test]
    async fn one_too_many_drops_the_one_used_longest_ago_unless_a_turn_is_in_progress() {
        let folder = tempfile::tempdir().unwrap();
        let open = conversations(folder.path());
        for id in 0..OPEN {
            open.open(&named(id)).await.unwrap();
        }
        let turn = open.open(&named(1)).await.unwrap().host_turn().await.unwrap();
        for id in (2..OPEN).chain([0]) {
            open.open(&named(id)).await.unwrap();
        }
        open.open(&named(OPEN)).await.unwrap();
        assert!(open.known(&named(2)).is_none(), "it was used longest ago");
        assert!(open.known(&named(0)).is_some() && open.known(&named(1)).is_some());
        assert_eq!(open.all().len(), OPEN);
        drop(turn);
    }

    #[tokio::test]
    async fn a_turn_in_progress_keeps_its_conversation_open_however_many_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let open = conversations(folder.path());
        let mut turns = Vec::new();
        for id in 0..=OPEN {
            turns.push(open.open(&named(id)).await.unwrap().host_turn().await.unwrap());
        }
        assert!(open.open(&named(0)).await.unwrap().is_busy(), "another turn would not wait");
    }

    #[tokio::test]
    async fn a_conversation_that_was_opened_again_does_not_go_with_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let open = conversations(folder.path());
        let old = open.open(&named(1)).await.unwrap();
        open.lock().remove(&named(1), &old);
        let again = open.open(&named(1)).await.unwrap();
        open.lock().remove(&named(1), &old);
        let known = open.known(&named(1)).unwrap();
        assert!(Arc::ptr_eq(known.store(), again.store()));
    }

    #[tokio::test]
    async fn the_key_of_another_store_is_found_before_anything_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let open = conversations(folder.path());
        open.check().await.unwrap();
        open.open(&named(1)).await.unwrap().prepare_turn("Hello.").await.unwrap();
        open.check().await.unwrap();
        let other = conversations(folder.path());
        let refused = other.check().await.unwrap_err();
        assert!(matches!(refused, Error::WrongKey { .. }), "{refused:?}");
        let shown = refused.for_clients(refused.help());
        let root = folder.path().display().to_string();
        assert!(refused.to_string().contains(&root) && !shown.contains(&root), "{shown}");
        assert!(!shown.contains("vault") && !shown.contains("key"), "{shown}");
    }

    #[tokio::test]
    async fn a_folder_that_was_removed_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let open = conversations(folder.path());
        let scope = named(1);
        let said = |open: Conversation| async move { open.prepare_turn("Hello.").await.unwrap() };
        said(open.open(&scope).await.unwrap()).await;
        let inside: std::path::PathBuf = scope.folder().unwrap().iter().collect();
        std::fs::remove_dir_all(folder.path().join("store").join(inside)).unwrap();
        let again = open.open(&scope).await.unwrap();
        assert_eq!(said(again).await.message.seq, 1);
    }
}
