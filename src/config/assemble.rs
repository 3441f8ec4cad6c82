//! Builds keys, stores, models and conversations from a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::config::{Config, ConfiguredKey, ModelKind};
use crate::context::{
    ContextProvider, LastNContextProvider, PersonaHistoryProvider, RollingWindowProvider,
};
use crate::conversation::{Conversation, ConversationBuilder, MemoryTools};
use crate::crypto::EncryptionKey;
use crate::error::{Error, Result};
use crate::message::redact::ContactRedactor;
use crate::model::render::{
    KeepAlive, ModelOptions, OllamaChatRenderer, OpenAiChatRenderer, PromptRenderer,
};
#[cfg(feature = "ollama")]
use crate::model::{
    AnswerLimits, LanguageModel, ModelServer, Ollama, OllamaModel, OpenAi, OpenAiModel,
};
use crate::persona::{PersonaLimits, PersonaRegistry};
use crate::scope::Scope;
use crate::store::{
    ConversationStore, FileConversationStore, Retention, StoreKey, StoreOptions, copy_salt,
    create_vault, store_exists, store_keys,
};

/// Older messages are summarized after this time without a new turn.
const IDLE: Duration = Duration::from_secs(3);

/// Reads the key of a file. Makes the file durable before anything is sealed with the key.
fn found(file: &Path) -> Result<Option<Arc<EncryptionKey>>> {
    let key = EncryptionKey::read_file(file)?.map(Arc::new);
    // Reading must also work on a read-only file system.
    if key.is_some()
        && let Err(error) = EncryptionKey::anchor_file(file)
    {
        tracing::warn!(%error, "the key file may not be durable");
    }
    Ok(key)
}

impl Config {
    /// The keys: the configured one, or the key file's, and during a change of keys also that of the new key file.
    ///
    /// # Errors
    /// [`Error::NoKey`] or [`Error::PlaceholderKey`] if there is no key yet, or only a passphrase without a store;
    /// [`Error::KeyLost`] if a store exists and its key file does not, [`Error::PassphraseNeeded`] if a store needs
    /// its passphrase.
    pub fn encryption_keys(&self) -> Result<Vec<Arc<EncryptionKey>>> {
        // Read the new file first. It replaces the old one when the change ends, and reading the old one second then
        // finds the new key.
        let next = found(&self.next_key_file()?)?;
        let key_file = self.key_file()?;
        let first = match &self.key {
            ConfiguredKey::Secret { key, .. } => {
                if key.needs_salt() && !store_exists(&self.storage_root()?)? {
                    return Err(Error::NoKey);
                }
                Some(Arc::clone(key))
            }
            _ => found(&key_file)?,
        };
        if first.is_none() {
            match self.no_key(key_file)? {
                Error::KeyLost { .. } if next.is_some() => {}
                error => return Err(error),
            }
        }
        Ok(first.into_iter().chain(next).collect())
    }

    /// The keys of a store with a passphrase: the one that this passphrase makes, and during a change of keys also that of the
    /// new key file. Opening a conversation tells whether it is the right one.
    ///
    /// # Errors
    /// [`Error::EmptyPassphrase`], and those of reading the key file.
    pub fn keys_of_passphrase(
        &self,
        passphrase: Zeroizing<String>,
    ) -> Result<Vec<Arc<EncryptionKey>>> {
        let key = EncryptionKey::from_passphrase(passphrase)?;
        let next = EncryptionKey::read_file(&self.next_key_file()?)?;
        Ok([Some(key), next].into_iter().flatten().map(Arc::new).collect())
    }

    /// Creates the key file of a first use, unless it exists or the configuration gives a key. For a passphrase it
    /// creates the salt. Returns the path of the key, if it is in a file.
    ///
    /// # Errors
    /// [`Error::KeyLost`] if a store exists already: a new key could not read it.
    pub fn make_key_file(&self) -> Result<Option<PathBuf>> {
        if let ConfiguredKey::Secret { key, .. } = &self.key {
            if key.needs_salt() {
                create_vault(&self.storage_root()?, key, &self.salt_folder()?)?;
            }
            return Ok(None);
        }
        let key_file = self.key_file()?;
        if EncryptionKey::read_file(&key_file)?.is_none() {
            let no_key = self.no_key(key_file.clone())?;
            if matches!(no_key, Error::KeyLost { .. } | Error::PassphraseNeeded { .. }) {
                return Err(no_key);
            }
            EncryptionKey::read_or_make_file(&key_file)?;
        } else {
            EncryptionKey::anchor_file(&key_file)?;
        }
        Ok(Some(key_file))
    }

    /// Decides which error a missing key is.
    fn no_key(&self, key_file: PathBuf) -> Result<Error> {
        let root = self.storage_root()?;
        if store_keys(&root, &[])?.first().is_some_and(StoreKey::is_of_passphrase) {
            return Ok(Error::PassphraseNeeded { root });
        }
        Ok(match (store_exists(&root)?, &self.key) {
            (true, _) => Error::KeyLost { root, key_file },
            (false, ConfiguredKey::Absent) => Error::NoKey,
            (false, _) => Error::PlaceholderKey,
        })
    }

    /// The limits of conversations that set none of their own.
    pub fn retention(&self) -> Retention {
        Retention::FOREVER
            .max_messages(self.context.max_messages.unwrap_or(0))
            .ttl_seconds(self.context.ttl_seconds.unwrap_or(0))
    }

    /// Opens one conversation of the configured store.
    ///
    /// # Errors
    /// Those of [`encryption_keys`](Self::encryption_keys) and [`StoreOptions::open`].
    pub async fn open_store(
        &self,
        scope: Scope,
        clock: Arc<dyn Clock>,
    ) -> Result<FileConversationStore> {
        self.open_store_with(self.encryption_keys()?, scope, clock).await
    }

    /// [`open_store`](Self::open_store) with keys that the user was asked for.
    ///
    /// # Errors
    /// [`Error::NoKey`] without a key, and those of [`StoreOptions::open`].
    pub async fn open_store_with(
        &self,
        keys: Vec<Arc<EncryptionKey>>,
        scope: Scope,
        clock: Arc<dyn Clock>,
    ) -> Result<FileConversationStore> {
        let has_passphrase = keys.iter().any(|key| key.needs_salt());
        let options = self.store_options(keys, clock)?.scope(scope);
        let root = self.storage_root()?;
        let store = options.open(&root).await?;
        // A failed copy must not keep the store from opening.
        if has_passphrase && let Err(error) = copy_salt(&root, &self.salt_folder()?) {
            tracing::warn!(%error, "the passphrase's salt could not be copied");
        }
        Ok(store)
    }

    /// The contexts of the configured store.
    ///
    /// # Errors
    /// [`Error::NoKey`] without a key, and those of [`storage_root`](Self::storage_root).
    pub fn contexts(
        &self,
        keys: Vec<Arc<EncryptionKey>>,
        clock: Arc<dyn Clock>,
    ) -> Result<PersonaRegistry> {
        let personas = &self.personas;
        let limits = PersonaLimits {
            contexts: personas.max_contexts as usize,
            messages: personas.max_messages.into(),
            remove_after_days: personas.remove_after_days,
            daily_backups: personas.daily_backups as usize,
        };
        let registry = PersonaRegistry::new(self.storage_root()?, self.store_options(keys, clock)?);
        let registry = registry.limits(limits);
        Ok(match &personas.backup_folder {
            Some(folder) => registry.backups(folder),
            None => registry,
        })
    }

    /// The options for opening any conversation's store.
    fn store_options(
        &self,
        keys: Vec<Arc<EncryptionKey>>,
        clock: Arc<dyn Clock>,
    ) -> Result<StoreOptions> {
        let mut keys = keys.into_iter();
        let options = StoreOptions::new(keys.next().ok_or(Error::NoKey)?)
            .clock(clock)
            .retention(self.retention());
        let mut options = keys.fold(options, StoreOptions::also_with);
        // The place of a new key, if the key is changed while the store is open.
        if !matches!(self.key, ConfiguredKey::Secret { .. }) {
            options = options.key_file(self.key_file()?);
        }
        let mut options = options.key_file(self.next_key_file()?);
        if let Some(folder) = &self.personas.backup_folder {
            options = options.backups(folder);
        }
        if let Some(folder) = &self.witness {
            options = options.witness(folder);
        }
        Ok(match self.context.redact {
            true => options.redactor(Arc::new(ContactRedactor::new()?)),
            false => options,
        })
    }

    /// Builds a conversation on the given store, as configured:
    ///
    /// - the system prompt;
    /// - the newest messages in blocks, or a rolling window in steps if the conversation's settings or the
    ///   configuration ask for it;
    /// - masking if it is on;
    /// - summaries of older messages when a prompt is nearly full;
    /// - functions by which the model reads artifacts and earlier messages;
    /// - long tool results as artifacts;
    /// - a budget that leaves room for the answer;
    /// - with the feature `ollama`, the model.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid server address.
    pub fn conversation(&self, store: Arc<dyn ConversationStore>) -> Result<Conversation> {
        Ok(self.conversation_builder(store)?.build())
    }

    pub(super) fn conversation_builder(
        &self,
        store: Arc<dyn ConversationStore>,
    ) -> Result<ConversationBuilder> {
        let model = &self.language_model;
        let window = Duration::from_secs(self.context.window_seconds);
        let mut builder = Conversation::builder(store)
            .system(&model.system_prompt)
            .history(self.history_provider())
            .last_n(self.context.last_n)
            .snapshot_window(window)
            .refuse_when_busy(model.refuse_when_busy)
            .memory_tools(self.memory_tools());
        if let Some(window) = model.num_ctx {
            builder = builder.model_window(window as usize);
        }
        if let Some(answer) = model.num_predict {
            builder = builder.answer_tokens(answer as usize);
        }
        if let Some(confidence) = self.context.min_confidence {
            builder = builder.min_confidence(confidence);
        }
        if let Some(share) = self.context.compact_at {
            builder = builder.summarize_at(share, IDLE);
        }
        if let Some(bytes) = self.context.long_result {
            builder = builder.long_result(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        #[cfg(feature = "recall")]
        if self.context.recall.tokens > 0 {
            let provider = self.context.recall.provider(Arc::clone(builder.index()));
            builder = builder.context(provider);
        }
        #[cfg(feature = "ollama")]
        {
            builder = builder.model(self.model()?).answer_limits(self.answer_limits());
        }
        Ok(builder)
    }

    /// The provider of the history, as configured: the newest messages, or a rolling window.
    pub fn history_provider(&self) -> Arc<dyn ContextProvider> {
        let window = Duration::from_secs(self.context.window_seconds);
        let rolling = RollingWindowProvider::new().window(window);
        let unless_set = self.context.rolling_window;
        if self.context.exact {
            return Arc::new(rolling.where_set(unless_set, Arc::new(LastNContextProvider::new())));
        }
        let newest = Arc::new(LastNContextProvider::in_blocks());
        let history = rolling.in_steps().where_set(unless_set, newest);
        Arc::new(PersonaHistoryProvider::new(Arc::new(history)))
    }

    fn memory_tools(&self) -> MemoryTools {
        let context = &self.context;
        MemoryTools::default()
            .calls(context.memory_calls)
            .bytes(context.memory_bytes)
            .inline(context.inline_artifact)
    }

    /// The configured model server.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid address, and those of [`api_key`](Self::api_key).
    #[cfg(feature = "ollama")]
    pub fn server(&self) -> Result<ModelServer> {
        let (url, limits) = (&self.language_model.base_url, self.answer_limits());
        let silence = Duration::from_secs(self.language_model.timeout_seconds.max(1));
        let key = self.api_key()?;
        if self.language_model.kind == ModelKind::Ollama {
            let server = Ollama::new(url, silence)?.answer_limits(limits);
            return Ok(ModelServer::Ollama(match key {
                Some(key) => server.api_key(key)?,
                None => server,
            }));
        }
        let server = OpenAi::new(url, silence)?.answer_limits(limits);
        Ok(ModelServer::OpenAi(match key {
            Some(key) => server.api_key(key)?,
            None => server,
        }))
    }

    /// The configured model on that server.
    ///
    /// # Errors
    /// Those of [`server`](Self::server).
    #[cfg(feature = "ollama")]
    pub fn model(&self) -> Result<Arc<dyn LanguageModel>> {
        let (options, allow_cloud) = (self.model_options(), self.language_model.allow_cloud);
        Ok(match self.server()? {
            ModelServer::Ollama(server) => {
                Arc::new(OllamaModel::new(server, options).allow_cloud(allow_cloud))
            }
            ModelServer::OpenAi(server) => {
                Arc::new(OpenAiModel::new(server, options).allow_cloud(allow_cloud))
            }
        })
    }

    #[cfg(feature = "ollama")]
    fn answer_limits(&self) -> AnswerLimits {
        AnswerLimits {
            bytes: self.language_model.max_answer_bytes,
            calls: self.language_model.max_tool_calls,
            time: Duration::from_secs(self.language_model.max_answer_seconds),
        }
    }

    /// The renderer for the configured model.
    pub fn renderer(&self) -> Box<dyn PromptRenderer> {
        let options = self.model_options();
        match self.language_model.kind {
            ModelKind::Ollama => Box::new(OllamaChatRenderer::new(options)),
            ModelKind::OpenAi => Box::new(OpenAiChatRenderer::new(options)),
        }
    }

    /// The configured options for the model.
    pub fn model_options(&self) -> ModelOptions {
        let model = &self.language_model;
        let mut options = ModelOptions::new(&model.model);
        options.num_ctx = model.num_ctx;
        options.num_predict = model.num_predict;
        options.temperature = model.temperature;
        options.keep_alive = model.keep_alive.as_deref().map(KeepAlive::from);
        options.think = model.think;
        options.strict = model.strict;
        options
    }
}
