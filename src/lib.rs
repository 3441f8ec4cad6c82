//! An encrypted, on-device memory of conversations, and prompts built from it, for voice assistants.
//!
//! A host hands over every utterance. Each is sealed in a file of its own, the context that matters is gathered, and a
//! prompt comes back, stamped with the current time and ready for a local model:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use sottovoce::{
//!     Conversation, ConversationStore, EncryptionKey, LastNContextProvider, ModelOptions,
//!     OllamaChatRenderer, PromptBuilder, PromptRenderer, StoreOptions, SystemClock,
//!     SystemPromptProvider,
//! };
//!
//! let folder = tempfile::tempdir()?;
//! let key = EncryptionKey::from_secret("a long secret that only this house knows")?;
//! let store: Arc<dyn ConversationStore> = Arc::new(StoreOptions::new(key).open(&folder).await?);
//!
//! let system = SystemPromptProvider::new("You are a helpful voice assistant.");
//! let clock = Arc::new(SystemClock);
//! let builder = PromptBuilder::new(system, store.scope().clone(), clock.clone())
//!     .with(Arc::new(LastNContextProvider::in_blocks(store.clone())));
//! let conversation = Conversation::new(store, builder, clock, 6);
//!
//! let heard = conversation.hear("What's the weather like tomorrow?").await?;
//! let request = OllamaChatRenderer::new(ModelOptions::new("llama3.2")).render(&heard.prompt);
//! assert_eq!(request.path, "/api/chat");
//! conversation.keep("Sunny, 24 degrees.").await?;
//! # Ok(())
//! # }
//! ```
//!
//! With a model, [`Conversation::ask`] does the whole turn and hands over the answer as it comes. With the feature
//! `config`, on by default, [`Config`] does this wiring from an `appsettings.json`.
//!
//! # Where to look
//!
//! | for | see |
//! |---|---|
//! | keeping and reading messages | [`ConversationStore`], [`FileConversationStore`], [`StoreOptions`] |
//! | large data beside the messages | [`ConversationStore::add_artifact`], [`Artifact`], [`ArtifactReferences`] |
//! | words in what was said | [`search()`], for people; [`MemoryTools`], for models |
//! | keys | [`EncryptionKey`] |
//! | what a prompt recalls | [`ContextProvider`], [`LastNContextProvider`], [`RetrievalContextProvider`] |
//! | prompts and why they say what they say | [`PromptBuilder`], [`Prompt`], [`Receipt`] |
//! | requests for model servers | [`PromptRenderer`], [`OllamaChatRenderer`], [`OllamaPromptRenderer`], [`OpenAiChatRenderer`] |
//! | whole turns | [`Conversation`], [`Answer`], [`Sentences`], [`TurnReport`] |
//! | models that answer | [`LanguageModel`], [`Ollama`], [`OllamaModel`], [`OllamaEmbedder`], [`OpenAi`], [`OpenAiModel`] |
//! | changing the key | [`Rekey`] |
//! | what is wrong with a store | [`FileConversationStore::verify`], [`FileConversationStore::repair`], [`Finding`] |
//! | conversations of other systems, backups | [`import`], the crate `sottovoce-import` |
//! | masking before sealing | [`Redactor`], [`ContactRedactor`] |
//!
//! Calls that touch files run on tokio's blocking threads and go on to their end when their future is dropped.

#[cfg(not(unix))]
compile_error!(
    "sottovoce keeps its files through Unix system calls; other systems are not supported yet"
);

mod blob;
mod clock;
#[cfg(feature = "config")]
pub mod config;
mod context;
mod conversation;
mod crypto;
mod error;
mod export;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
pub mod import;
mod key_file;
mod message;
mod model;
mod persona;
mod prompt;
mod redact;
mod registry;
mod scope;
mod store;

pub use clock::{Clock, ManualClock, SystemClock};
#[cfg(feature = "config")]
pub use config::Config;
#[cfg(feature = "config")]
pub use config::RendererKind;
pub use context::tokens::{TokenCount, TokenRates};
pub use context::{
    Activity, ActivityContextProvider, Context, ContextMessage, ContextProvider, ContextRequest,
    DocumentsContextProvider, Embedder, LastNContextProvider, OldestStrategy,
    PersonaHistoryProvider, Placement, PruneDecision, PrunePlan, PruneStrategy, Query,
    RelevanceProvider, RelevanceStrategy, RetrievalContextProvider, Retriever,
    RollingWindowProvider, Score,
};
pub use conversation::search::{Found, SEARCH_NOTE, SearchHit, SearchOptions, SearchWords, search};
pub use conversation::{
    Answer, AnswerEvent, Conversation, MemoryTools, Overview, PreparedTurn, Sentences,
    SummaryReport, TurnOutcome, TurnReport,
};
pub use crypto::{EncryptionKey, PLACEHOLDER_KEY};
pub use error::{AnswerLimit, Error, ModelFailure, PersonaFailure, Result};
pub use export::{ExportForm, ExportRange, Exported, Exporter};
pub use message::{ChatMessage, ChatRole, ToolCall};
pub use model::render::{
    KeepAlive, ModelOptions, ModelRequest, OllamaChatRenderer, OllamaPromptRenderer,
    OpenAiChatRenderer, PromptRenderer,
};
pub use model::{AnswerLimits, LanguageModel, ModelLimits, Reply, ReplyPart, Usage};
#[cfg(feature = "ollama")]
pub use model::{
    HttpReply, ModelEntry, ModelInfo, ModelServer, Ollama, OllamaEmbedder, OllamaModel, OpenAi,
    OpenAiModel, RunningModel,
};
pub use persona::{Character, Persona, Preset};
pub use prompt::{
    Outcome, Prompt, PromptBuilder, Receipt, ReceiptEntry, SystemPromptProvider, Utterance,
};
pub use redact::{ContactRedactor, Redactor};
pub use registry::{
    MaintenanceReport, NewPersonaConversation, PersonaChange, PersonaConversation,
    PersonaConversationChange, PersonaConversations, PersonaLimits, PersonaRegistry, PresetChange,
};
pub use scope::Scope;
pub use store::record::read_result::ReadResult;
pub use store::{
    AddedArtifact, AffectedMessages, Artifact, ArtifactContents, ArtifactKind, ArtifactLines,
    ArtifactReferences, CleanupReport, Cleared, ConversationStore, Cost, Document,
    FileConversationStore, Finding, FindingKind, ForgetPlan, ForgetReport, HiddenMessages,
    Inventory, LimitsEffect, MovedStore, NewArtifact, PackReport, Profile, ProfileChange, Progress,
    Rekey, RekeyReport, RepairAction, RepairKind, RepairOptions, RepairReport, Report,
    RestoreThreads, Retention, SavedMessage, Snapshot, Stats, StoreInventory, StoreKey,
    StoreOptions, StoredMessage, Summary, artifact_references, copy_salt, create_vault,
    find_artifact, move_store, scopes, store_exists, store_keys,
};

/// The samples of the README, so that they are compiled.
#[cfg(all(doctest, feature = "config"))]
#[doc = include_str!("../README.md")]
struct Readme;
