//! x
#[cfg(feature = "config")]
mod assemble;
mod blob;
mod clock;
#[cfg(feature = "config")]
pub mod config;
mod context;
mod conversation;
mod crypto;
mod error;
mod key_file;
mod message;
mod prompt;
mod redact;
mod render;
mod scope;
mod store;
mod tokens;

#[cfg(feature = "config")]
pub use assemble::RendererKind;
pub use clock::{Clock, ManualClock, SystemClock};
#[cfg(feature = "config")]
pub use config::Config;
pub use context::{
    Context, ContextMessage, ContextProvider, ContextRequest, Embedder, LastNContextProvider,
    Placement, Query, RetrievalContextProvider, Retriever,
};
pub use conversation::{Conversation, Heard};
pub use crypto::{EncryptionKey, PLACEHOLDER_KEY};
pub use error::{Error, Result};
pub use message::{ChatMessage, ChatRole, ToolCall};
pub use prompt::{
    Outcome, Prompt, PromptBuilder, Receipt, ReceiptEntry, SystemPromptProvider, Turn,
};
pub use redact::{ContactRedactor, Redactor};
pub use render::{
    KeepAlive, ModelOptions, ModelRequest, OllamaChatRenderer, OllamaPromptRenderer,
    OpenAiChatRenderer, PromptRenderer,
};
pub use scope::Scope;
pub use store::{
    ConversationStore, FileConversationStore, Finding, FindingKind, Forgotten, Progress, Reading,
    Report, StoreOptions, StoredMessage, store_exists,
};
pub use tokens::TokenRates;
