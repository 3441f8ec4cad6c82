//! The contexts of the store, and the selected one.

use sottovoce::persona::{PersonaConversation, PersonaFailure, PersonaRegistry, Preset};
use sottovoce::{Config, ConversationStore, Error, FileConversationStore, Scope};

use super::Session;
use crate::exit::Failure;

impl Session {
    /// The contexts for reading; `None` before the first use, because reading must not create a key.
    pub(crate) fn contexts(&self, config: &Config) -> Result<Option<PersonaRegistry>, Failure> {
        let stores = self.stores_or_empty(config)?;
        match stores.is_empty() {
            true => Ok(None),
            false => Ok(Some(config.contexts(stores.keys(), self.clock())?)),
        }
    }

    /// The contexts for writing. Creates the key file on first use.
    pub(crate) fn contexts_or_make(&self, config: &Config) -> Result<PersonaRegistry, Failure> {
        Ok(config.contexts(self.stores_or_make(config)?.keys(), self.clock())?)
    }

    /// Finds a context by id or name. Returns its registry too.
    pub(crate) async fn find_context(
        &self,
        config: &Config,
        id_or_name: &str,
    ) -> Result<(PersonaRegistry, PersonaConversation), Failure> {
        let none = PersonaFailure::NoSuchConversation { known: Vec::new() };
        let contexts = self.contexts(config)?.ok_or(Error::Persona(none))?;
        let found = contexts.find(id_or_name).await?;
        Ok((contexts, found))
    }

    /// The scope of a context, by id or name.
    pub(crate) async fn scope_of_context(&self, id_or_name: &str) -> Result<Scope, Failure> {
        let (_, found) = self.find_context(&self.config()?, id_or_name).await?;
        Ok(Scope::Named { id: found.id })
    }

    /// The context of a conversation, if it is one.
    pub(crate) async fn context_of(
        &self,
        config: &Config,
        store: &FileConversationStore,
    ) -> Result<Option<PersonaConversation>, Failure> {
        let Some((contexts, id)) = self.registered(config, store).await? else { return Ok(None) };
        Ok(Some(contexts.get(id).await?))
    }

    /// Fails if the context is expired, deleted or full, however it was selected.
    pub(crate) async fn check_open(
        &self,
        config: &Config,
        store: &FileConversationStore,
    ) -> Result<(), Failure> {
        if let Some((contexts, id)) = self.registered(config, store).await? {
            contexts.open(id).await?;
        }
        Ok(())
    }

    /// The registry, and the id of the conversation's context.
    async fn registered<'a>(
        &self,
        config: &Config,
        store: &'a FileConversationStore,
    ) -> Result<Option<(PersonaRegistry, &'a str)>, Failure> {
        let Scope::Named { id } = &**store.scope() else { return Ok(None) };
        if store.profile().await?.assigned_persona.is_none() {
            return Ok(None);
        }
        Ok(self.contexts(config)?.map(|contexts| (contexts, id.as_str())))
    }

    /// All presets; before the first use, the built-in ones.
    pub(crate) async fn presets(&self, config: &Config) -> Result<Vec<Preset>, Failure> {
        match self.contexts(config)? {
            Some(contexts) => Ok(contexts.presets().await?),
            None => Ok(Preset::all_built_in()),
        }
    }
}
