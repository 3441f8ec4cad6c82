//! Imports: what a reader of another system builds, and how it gets into a store.
//!
//! A reader turns the records of its system into [`ImportedMessages`] of one conversation, or into
//! [`ImportedConversations`]. Importing these stores what the store has not had yet: a message that is there, or that was
//! forgotten there, is not stored again. Sources are only ever read; what cannot be taken is a
//! [`Refusal`] with its reason. The crate `sottovoce-import` has readers for several systems. [`Backup`] imports what an
//! [`Exporter`](crate::transfer::export::Exporter) has written.
//!
//! A reader of one's own:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use sottovoce::import::{ImportedMessage, ImportedMessages, RefusalReason};
//! use sottovoce::{ChatMessage, ChatRole};
//!
//! fn read(log: &str) -> ImportedMessages {
//!     let mut read = ImportedMessages::new("my-assistant");
//!     for (number, line) in log.lines().enumerate() {
//!         let message = line.split_once(' ').and_then(|(time, words)| {
//!             Some(ChatMessage::at(ChatRole::User, words, time.parse().ok()?))
//!         });
//!         let name = format!("line {number}");
//!         let reason = RefusalReason::Corrupt("it does not begin with a time");
//!         let message = message.ok_or(reason);
//!         let message = message.and_then(|m| ImportedMessage::new("my-assistant", &name, "log", m));
//!         read.push(name, message);
//!     }
//!     read
//! }
//!
//! # use sottovoce::{EncryptionKey, StoreOptions};
//! # let folder = tempfile::tempdir()?;
//! # let key = EncryptionKey::from_secret("a long secret that only this house knows")?;
//! # let store = StoreOptions::new(key).open(&folder).await?;
//! let log = "2025-08-24T16:36:25Z Good morning!\n2025-08-24T16:36:40Z Is it raining?";
//! assert_eq!(read(log).import_into(&store, |_| {}).await?.taken, 2);
//! assert_eq!(read(log).import_into(&store, |_| {}).await?.already_there, 2);
//! # Ok(())
//! # }
//! ```

mod artifact;
mod backup;
mod cleared;
mod conversations;
mod facts;
mod keep;
mod left_out;
mod presets;
mod refusal;
mod snapshot;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use artifact::{ImportedArtifact, OpenContents};
pub(crate) use backup::put_artifact_back;
pub use backup::{Backup, OpenStore};
pub use conversations::{ConversationReport, ImportedConversation, ImportedConversations};
pub use facts::ImportedFacts;
pub use left_out::{ImportedLimits, LeftOut, PassedOver};
pub use presets::{ImportedPreset, ImportedPresets, PresetReport};
pub use refusal::{Refusal, RefusalReason};
pub use snapshot::ImportedSnapshot;

use crate::message::ChatMessage;
pub use crate::store::record::import_digest::Origin;

/// Metadata keys that have a meaning in a store.
pub mod metadata {
    pub use crate::message::{
        ARTIFACT, ASIDE, CAME_FROM, EXPIRES_AT, IMPORTED_FROM, RESTORED_FROM, TOOL,
    };
    pub use crate::store::record::artifact::MIMIR_ID;
}

/// The messages of one conversation of another system, as a reader read them.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImportedMessages {
    /// The system's short name.
    pub system: &'static str,
    /// The messages that can be taken, oldest first.
    pub messages: Vec<ImportedMessage>,
    /// The records that cannot be taken.
    pub refused: Vec<Refusal>,
    /// Entries beside the records that are not records and were not read.
    pub passed_over: PassedOver,
    /// Whether the messages are in the system's own order. That order then overrides their times.
    pub is_ordered: bool,
}

impl ImportedMessages {
    /// An empty collection. `system` is the short name under which reports and records name the source.
    pub fn new(system: &'static str) -> Self {
        let (messages, refused) = (Vec::new(), Vec::new());
        Self { system, messages, refused, passed_over: PassedOver::default(), is_ordered: false }
    }

    /// Adds the message that was read from a file or record of that name, or refuses that file or record.
    pub fn push(
        &mut self,
        file: impl Into<String>,
        message: Result<ImportedMessage, RefusalReason>,
    ) {
        match message {
            Ok(message) => self.messages.push(ImportedMessage { file: file.into(), ..message }),
            Err(reason) => self.refused.push(Refusal::new(file.into(), reason)),
        }
    }
}

/// A message as another system has it.
#[derive(Debug)]
pub struct ImportedMessage {
    /// The message. The store adds the metadata `importedFrom`.
    pub message: ChatMessage,
    /// The file or record it was read from.
    pub file: String,
    /// The name of the system's format of that record.
    pub form: &'static str,
    origin: Origin,
    /// The time of its place in the conversation, if that may be another than its own.
    place: Option<Timestamp>,
    /// The message of which it is a restored copy.
    copy_of: Option<Origin>,
    /// Whether a store has masked it and checked its time and length before.
    was_stored: bool,
}

impl ImportedMessage {
    /// A message that a repeated import recognizes by its system, `name` and everything that `message` says. `name` is
    /// what the system itself tells its records apart by. Set afterwards what does not tell which message it is, such as
    /// what the system may yet change.
    ///
    /// # Errors
    /// [`RefusalReason::Unstorable`] for a message that cannot be written as JSON.
    pub fn new(
        system: &str,
        name: &str,
        form: &'static str,
        message: ChatMessage,
    ) -> Result<Self, RefusalReason> {
        let unwritable = |_| RefusalReason::Unstorable("it cannot be written as JSON");
        let origin = Origin::new(system, name, &message).map_err(unwritable)?;
        let (file, place, copy_of) = (name.to_owned(), None, None);
        Ok(Self { message, file, form, origin, place, copy_of, was_stored: false })
    }

    /// A message of an export, whose origin and place are known.
    pub(crate) fn known(
        file: String,
        message: ChatMessage,
        origin: Origin,
        place: Timestamp,
    ) -> Self {
        let (form, place, copy_of) = ("backup", Some(place), None);
        Self { message, file, form, origin, place, copy_of, was_stored: true }
    }

    /// The message's origin: system and record.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Adds metadata that does not identify the message.
    #[must_use]
    pub fn with_metadata(mut self, key: &str, value: Option<String>) -> Self {
        if let Some(value) = value {
            self.message.metadata.insert(key.to_owned(), value);
        }
        self
    }
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// The number of stored messages.
    pub taken: usize,
    /// The number of messages that were here already.
    pub already_there: usize,
    /// The number of messages that were forgotten here. They stay forgotten.
    pub forgotten: usize,
    /// The number of messages that were here and had been forgotten in the exported store. They are forgotten here too.
    pub removed: usize,
    /// The refused records, sorted by name.
    pub refused: Vec<Refusal>,
    /// Entries beside the records that were not read.
    pub passed_over: PassedOver,
    /// The number of readable messages in each of the system's formats.
    pub forms: BTreeMap<&'static str, usize>,
}
