//! Where a conversation stands: its settings, and how far it goes.

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::read::reader::Reader;
use crate::store::record::document::Document;
use crate::store::settings::profile::Profile;

/// Where a conversation stands at some moment.
#[derive(Debug, Clone)]
pub(crate) struct ConversationState {
    pub(crate) profile: Arc<Profile>,
    /// When the newest message was said, if there is one.
    pub(crate) last: Option<Timestamp>,
    /// The highest number given so far, to whatever record.
    pub(crate) last_seq: u64,
    /// How many messages there are.
    pub(crate) messages: u64,
}

impl ConversationState {
    /// Looks, without listing anything as long as what is remembered is current.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the settings cannot be read, and what keeps the conversation from being read.
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
