//! Forgets a whole store: all conversations with their personas, the presets and the backups.

use std::sync::Arc;

use super::PersonaRegistry;
use crate::directory::fs::FsDirectory;
use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::file_store::blocking;
use crate::store::write::removal::purge_all;
use crate::store::write::sweep::sweep;
use crate::store::{
    ConversationStore, Document, FileConversationStore, ForgetPlan, Profile, scopes,
};

/// What a store holds.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct StoreContents {
    /// The conversations, each with what forgetting it deletes.
    pub conversations: Vec<(Scope, ForgetPlan)>,
    /// Those that cannot be read now, and why.
    pub unreadable: Vec<(Scope, Error)>,
    /// How many contexts there are, also deleted and expired ones.
    pub contexts: usize,
    /// How many presets are the user's own, or changed.
    pub presets: usize,
    /// How many backups the store has made by itself.
    pub backups: usize,
    /// Whether the store syncs with other devices.
    pub syncs: bool,
    /// Whether it shares conversations with teams.
    pub is_in_teams: bool,
}

impl PersonaRegistry {
    /// What forgetting everything would delete.
    ///
    /// # Errors
    /// Those of reading what all conversations share.
    pub async fn store_contents(&self) -> Result<StoreContents> {
        let mut contents = StoreContents {
            contexts: self.list().await?.contexts.len(),
            backups: self.names().await?.len(),
            ..StoreContents::default()
        };
        for scope in self.scopes().await? {
            let planned = async { self.of_scope(&scope).await?.plan_forget_all().await };
            match planned.await {
                // Its folder is there as long as the store is.
                Ok(plan) if scope == Scope::Default && plan.is_nothing() => {}
                Ok(plan) => contents.conversations.push((scope, plan)),
                Err(error) => contents.unreadable.push((scope, error)),
            }
        }
        let default = self.default_store().await?;
        contents.presets = default.conversation_state().await?.profile.presets.len();
        let has = async |document| Ok::<_, Error>(default.read_document(document).await?.is_some());
        contents.syncs = has(Document::Sync).await?;
        contents.is_in_teams = has(Document::Teams).await?;
        Ok(contents)
    }

    /// Forgets everything that the store holds: messages, snapshots, artifacts, titles, settings, personas, presets and the
    /// backups that it has made. The default conversation's settings record that it was forgotten, and name nobody. Calls
    /// `done` after each conversation. Returns the conversations that could not be forgotten, or still have a folder, since
    /// something was said meanwhile or it holds files that are not the store's. Call it again to finish what was interrupted.
    ///
    /// # Errors
    /// Those of the default conversation and of deleting the backups.
    pub async fn forget_everything(
        &self,
        done: impl Fn(&Scope) + Send + Sync,
    ) -> Result<Vec<(Scope, Option<Error>)>> {
        let mut left = Vec::new();
        // The default conversation comes last: it records what was forgotten.
        let mut all = self.scopes().await?;
        all.sort_unstable_by_key(|scope| *scope == Scope::Default);
        for scope in all {
            match self.forget_all_of(&scope).await {
                Ok(true) => {}
                Ok(false) => left.push((scope.clone(), None)),
                Err(error) => left.push((scope.clone(), Some(error))),
            }
            done(&scope);
        }
        self.held().clear();
        self.delete_all(self.names().await?).await?;
        let root = self.root.clone();
        blocking(move || purge_all(&FsDirectory::new(&root, &[])?)).await?;
        Ok(left)
    }

    /// Forgets a conversation with its persona and settings. Returns whether nothing of it is left.
    async fn forget_all_of(&self, scope: &Scope) -> Result<bool> {
        let store = self.of_scope(scope).await?;
        store.forget_all().await?;
        store.change_profile(Box::new(Profile::reset)).await?;
        let (reader, writer) = (Arc::clone(store.reader()), Arc::clone(store.writer()));
        blocking(move || sweep(&reader, &writer)).await?;
        // Of a conversation in which nothing was ever said, the first call only records that it is gone.
        Ok(*scope == Scope::Default
            || store.clone().remove_forgotten().await?
            || store.remove_forgotten().await?)
    }

    pub(super) async fn of_scope(&self, scope: &Scope) -> Result<FileConversationStore> {
        self.options.clone().scope(scope.clone()).open(&self.root).await
    }

    pub(super) async fn scopes(&self) -> Result<Vec<Scope>> {
        let root = self.root.clone();
        blocking(move || scopes(&root)).await
    }
}
