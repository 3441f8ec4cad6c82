//! Readers of conversations that other programs wrote. What they read goes into a [`sottovoce`] store.
//!
//! | source | reader |
//! |---|---|
//! | chorus, an SQLite database | `ChorusDatabase`, with the feature `sqlite` |
//! | the Discord bot, a folder of JSON files | [`DiscordFolder`] |
//! | Elara, a folder of sealed or plain files | [`ElaraFolder`]; [`export_for_elara`] writes one |
//! | mcp-llm-generator, an SQLite database | `LlmGeneratorDatabase`, with the feature `sqlite` |
//! | Mimir, a project's folder | [`MimirFolder`] |
//! | the data exports of ChatGPT and Claude, and files of chat completions | [`ChatExport`] |
//! | any other program, JSON lines | [`JsonLines`] |
//!
//! A reader opens its source read-only. It returns [`ImportedMessages`](sottovoce::import::ImportedMessages) of one
//! conversation, or [`ImportedConversations`](sottovoce::import::ImportedConversations), whose `preview` says what an
//! import would do, and whose `import_into` stores what the store has not had yet:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use sottovoce::{EncryptionKey, StoreOptions};
//! use sottovoce_import::{JsonLines, Reader};
//!
//! # let folder = tempfile::tempdir()?;
//! # let key = EncryptionKey::from_secret("a long secret that only this house knows")?;
//! # let store = StoreOptions::new(key).open(&folder).await?;
//! let line = r#"{"role":"user","content":"Hello!","timestamp":"2025-08-24T16:36:25Z"}"#;
//! let messages = JsonLines::from_reader(line.as_bytes()).read(|_| {}).await?;
//! let report = messages.import_into(&store, |_| {}).await?;
//! assert_eq!(report.taken, 1);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "sqlite")]
mod chorus;
mod claude;
mod discord;
mod elara;
mod export;
mod fields;
mod jsonl;
#[cfg(feature = "sqlite")]
mod llm_generator;
mod mimir;
mod openai;
mod reader;
mod sink;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
mod system;
mod twins;

#[cfg(feature = "sqlite")]
pub use chorus::ChorusDatabase;
pub use discord::DiscordFolder;
pub use elara::{ElaraFolder, export_for_elara};
pub use jsonl::JsonLines;
#[cfg(feature = "sqlite")]
pub use llm_generator::LlmGeneratorDatabase;
pub use mimir::MimirFolder;
pub use openai::ChatExport;
pub use reader::Reader;
