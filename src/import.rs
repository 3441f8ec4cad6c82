//! Conversations that other systems wrote: read into [`Foreign`], one file a system, and from there into a store.
//!
//! A source is only ever read. What cannot be taken is a [`Refusal`] with its reason; what was taken before, or was
//! forgotten since, is not taken again.

mod artifact;
mod backup;
mod calls;
#[cfg(feature = "sqlite")]
mod chorus;
mod cleared;
mod conversations;
mod discord;
mod elara;
mod facts;
mod given;
mod json;
mod jsonl;
mod keep;
mod known;
mod left_out;
mod level;
mod lines;
#[cfg(feature = "sqlite")]
mod llm_generator;
mod mimir;
mod notes;
mod openai;
mod presets;
mod refusal;
mod snapshot;
#[cfg(feature = "sqlite")]
mod sqlite;
mod time;
mod twins;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use artifact::ForeignArtifact;
pub use backup::{Backup, OpenStore};
#[cfg(feature = "sqlite")]
pub use chorus::ChorusDatabase;
pub use conversations::{ConversationReport, ForeignConversation, ForeignConversations};
pub use discord::DiscordFolder;
pub use elara::ElaraFolder;
pub use facts::ForeignFacts;
pub use jsonl::JsonLines;
pub use left_out::{ForeignLimits, LeftOut, PassedOver};
#[cfg(feature = "sqlite")]
pub use llm_generator::LlmGeneratorDatabase;
pub use mimir::MimirFolder;
pub use openai::OpenAiExport;
pub use presets::{ForeignPreset, ForeignPresets, PresetReport};
pub use refusal::{Refusal, RefusalReason};
pub use snapshot::ForeignSnapshot;
#[cfg(feature = "sqlite")]
pub use sqlite::leftover_copies;

use crate::message::ChatMessage;
use crate::store::record::import_digest::Origin;

/// What was read of another system: one conversation, in order.
#[derive(Debug)]
#[non_exhaustive]
pub struct Foreign {
    /// The system's short name.
    pub system: &'static str,
    /// What can be taken, oldest first.
    pub messages: Vec<ForeignMessage>,
    /// What cannot.
    pub refused: Vec<Refusal>,
    /// Entries that lie beside the records and are none, and were not looked into.
    pub passed_over: PassedOver,
    /// Whether its messages are in the system's own order, which counts for more than their times.
    is_a_line: bool,
}

impl Foreign {
    pub(crate) fn new(system: &'static str) -> Self {
        let (messages, refused) = (Vec::new(), Vec::new());
        Self { system, messages, refused, passed_over: PassedOver::default(), is_a_line: false }
    }
}

/// A message as another system has it.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForeignMessage {
    /// What was said, exactly. In the store its metadata also says `importedFrom`.
    pub message: ChatMessage,
    /// The file or record it was read from.
    pub file: String,
    /// Which of the system's forms that has.
    pub form: &'static str,
    origin: Origin,
    /// Where it stands in time, if that is later than when it was said.
    place: Option<Timestamp>,
}

impl ForeignMessage {
    /// `name` is what the system itself tells its records apart by, and where to find the record. What the system may
    /// yet change about a message is added [`with`](Self::with) it.
    pub(crate) fn new(
        system: &str,
        name: &str,
        form: &'static str,
        message: ChatMessage,
    ) -> Result<Self, RefusalReason> {
        let unwritable = |_| RefusalReason::Unstorable("it cannot be written as JSON");
        let origin = Origin::new(system, name, &message).map_err(unwritable)?;
        Ok(Self { message, file: name.to_owned(), form, origin, place: None })
    }

    /// A message that was imported once and says which it was.
    pub(crate) fn known(file: String, message: ChatMessage, origin: Origin) -> Self {
        Self { message, file, form: "backup", origin, place: None }
    }

    /// What tells it from every other one.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// The same, with metadata that does not tell which message it is.
    fn with(mut self, key: &str, value: Option<String>) -> Self {
        if let Some(value) = value {
            self.message.metadata.insert(key.to_owned(), value);
        }
        self
    }

    /// The same, with several of these.
    fn with_notes(mut self, notes: BTreeMap<String, String>) -> Self {
        self.message.metadata.extend(notes);
        self
    }

    /// The same, said at a moment that does not tell which message it is.
    fn said_at(mut self, at: Timestamp) -> Self {
        self.message.timestamp = at;
        self
    }

    /// The same, found elsewhere than its name says.
    fn found_in(mut self, file: String) -> Self {
        self.file = file;
        self
    }
}

/// What an import came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// How many messages were stored.
    pub taken: usize,
    /// How many an earlier import had stored.
    pub already_there: usize,
    /// How many an earlier import had stored and were forgotten since; they stay forgotten.
    pub forgotten: usize,
    /// What was not taken, sorted by name.
    pub refused: Vec<Refusal>,
    /// Entries beside the records that were not looked into.
    pub passed_over: PassedOver,
    /// How many messages could be read in each of the system's forms.
    pub forms: BTreeMap<&'static str, usize>,
}
