//! The state of a conversation: its settings and its highest number.

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::read::reader::Reader;
use crate::store::record::document::Document;
use crate::store::settings::profile::Profile;

/// A conversation's state at some moment.
#[derive(Debug, Clone)]
pub(crate) struct ConversationState {
    pub(crate) profile: Arc<Profile>,
    /// The time of the newest message, if there is one.
    pub(crate) last: Option<Timestamp>,
    /// The highest number assigned so far, to a message or a forget record.
    pub(crate) last_seq: u64,
    /// The number of messages.
    pub(crate) messages: u64,
}

impl ConversationState {
    /// Reads the state. Does not list the folder while the cached tail is current.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the settings could not be read. Also what prevents reading the conversation.
    pub(crate) fn of(reader: &Reader) -> Result<Self> {
        let tail = reader.newest()?;
        if !tail.knows_settings() {
            let place = reader.folder.blobs.path().join(Document::Profile.file_name());
            let reason = "the conversation's settings cannot be read";
            return Err(Error::Damaged { place: place.display().to_string(), reason });
        }
        let last_seq = tail.last_seq;
        let messages = last_seq.saturating_sub(tail.without_message().count());
        Ok(Self { profile: Arc::clone(&tail.profile), last: tail.last_said(), last_seq, messages })
    }
}
