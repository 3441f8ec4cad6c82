//! An encrypted, on-device memory of conversations, and prompts built from it, for voice assistants.
//!
//! A host wires a store and a model, and asks. Each utterance and each answer is sealed in a file of its own; the
//! prompt holds what matters of the history, and every message in it has its time:
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//! use sottovoce::{Conversation, EncryptionKey, ModelOptions, Ollama, OllamaModel, StoreOptions};
//!
//! #[tokio::main]
//! async fn main() -> sottovoce::Result<()> {
//!     let key = EncryptionKey::from_secret("a long secret that only this house knows")?;
//!     let store = StoreOptions::new(key).open("conversation").await?;
//!     let server = Ollama::new("http://127.0.0.1:11434", Duration::from_secs(120))?;
//!     let model = OllamaModel::new(server, ModelOptions::new("llama3.2"));
//!     let conversation = Conversation::builder(Arc::new(store)).model(model).build();
//!     println!("{}", conversation.ask("What's the weather like?").await?.whole().await?.0);
//!     Ok(())
//! }
//! ```
//!
//! A host that asks a model itself calls [`Conversation::prepare_turn`], renders the prompt, and calls [`Conversation::store_reply`].
//! With the feature `config`, on by default, [`Config`] does the wiring from an `appsettings.json`.
//!
//! # Where to look
//!
//! | for | see |
//! |---|---|
//! | a turn: the answer sentence by sentence, interrupting it | [`Conversation`], [`Answer`], [`Sentences`], [`conversation`] |
//! | storing and reading messages, artifacts, snapshots and settings | [`ConversationStore`], [`StoreOptions`], [`store`] |
//! | keys, checks, repair, moving a store | [`EncryptionKey`], [`admin`] |
//! | the history and your own retrieval | [`ContextProvider`], [`context`] |
//! | prompts, and why they say what they say | [`prompt`] |
//! | models, model servers, and requests for them | [`LanguageModel`], [`model`] |
//! | conversations in which the model plays a part | [`persona`] |
//! | searching what was said | [`context::recall::Recall`], for people; [`conversation::MemoryTools`], for models |
//! | backups, and conversations of other systems | [`export`], [`import`], the crate `sottovoce-import` |
//! | what the devices of one owner exchange to share conversations | [`exchange`], the crate `sottovoce-sync` |
//! | masking before sealing | [`Redactor`], [`ContactRedactor`] |
//!
//! Calls that touch files run on tokio's blocking threads and go on to their end when their future is dropped.

#[cfg(not(unix))]
compile_error!(
    "sottovoce keeps its files through Unix system calls; other systems are not supported yet"
);

#[macro_use]
mod debug_shows;

mod clock;
#[cfg(feature = "config")]
pub mod config;
pub mod context;
pub mod conversation;
mod crypto;
mod directory;
mod error;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod message;
pub mod model;
pub mod persona;
pub mod prompt;
mod scope;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transfer;

pub use clock::{Clock, ManualClock, SystemClock};
#[cfg(feature = "config")]
pub use config::Config;
pub use context::ContextProvider;
pub use conversation::{Answer, AnswerEvent, Conversation, ConversationBuilder, Sentences};
pub use crypto::EncryptionKey;
pub use error::{Error, Result, with_causes};
pub use message::redact::{ContactRedactor, Redactor};
pub use message::{ChatMessage, ChatRole, Source, ToolCall};
#[cfg(feature = "http")]
pub use model::http_client as http;
pub use model::{LanguageModel, ModelOptions};
#[cfg(feature = "ollama")]
pub use model::{Ollama, OllamaModel, OpenAi, OpenAiModel};
pub use scope::Scope;
pub use store::{ConversationStore, FileConversationStore, StoreOptions, StoredMessage};
pub use transfer::{exchange, export, import};

/// Administration: keys, checks, repair, and moving a store.
pub mod admin {
    pub use crate::crypto::PLACEHOLDER_KEY;
    pub use crate::store::care::baseline::Inventory;
    pub use crate::store::care::catalog_baseline::StoreInventory;
    pub use crate::store::care::move_store::{MovedStore, move_store};
    pub use crate::store::care::rekey::{Rekey, RekeyReport};
    pub use crate::store::care::repair::{RepairOptions, RepairReport};
    pub use crate::store::care::repair_kind::{RepairAction, RepairKind};
    pub use crate::store::file_store::PackReport;
    pub use crate::store::folder::conversation_folders::scopes;
    pub use crate::store::folder::keyring::store_keys::{StoreKey, copy_salt, store_keys};
    pub use crate::store::folder::keyring::{create_vault, store_exists};
    pub use crate::store::read::location::RecordLocation;
    pub use crate::store::read::stats::Stats;
    pub use crate::store::record::finding::{Progress, Report};
}

/// Compiles the samples of the README.
#[cfg(all(doctest, feature = "config"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the samples of the developers' pages.
#[cfg(all(doctest, feature = "config"))]
mod pages {
    #[doc = include_str!("../docs/api/another-store.md")]
    struct AnotherStore;

    #[doc = include_str!("../docs/api/append-and-read.md")]
    struct AppendAndRead;

    #[doc = include_str!("../docs/api/barge-in.md")]
    struct BargeIn;

    #[cfg(feature = "recall")]
    #[doc = include_str!("../docs/recall.md")]
    struct Recall;

    #[doc = include_str!("../docs/api/retrieval.md")]
    struct Retrieval;

    #[doc = include_str!("../docs/api/several-people.md")]
    struct SeveralPeople;

    #[doc = include_str!("../docs/api/testing.md")]
    struct Testing;

    #[doc = include_str!("../docs/api/turn.md")]
    struct Turn;
}
