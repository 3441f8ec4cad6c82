//! The state of a conversation: its settings and its highest number.

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::Result;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::profile::Profile;
use crate::store::record::store_state::StoreState;

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
        tail.check_settings(&reader.folder)?;
        let last_seq = tail.last_seq;
        let messages = last_seq.saturating_sub(tail.without_message().count());
        Ok(Self { profile: Arc::clone(&tail.profile), last: tail.last_said(), last_seq, messages })
    }
}

/// The revision of a conversation with that newest end: it grows with every record and with every change of the settings.
pub(crate) fn revision(tail: &Tail) -> u64 {
    tail.last_seq.saturating_add(tail.profile.rev.max(tail.head.profile()))
}

/// The state of a conversation: its revision, and how far it goes.
pub(crate) fn of_tail(tail: &Tail) -> StoreState {
    let newest = (tail.last_seq > 0).then(|| tail.newest.timestamp()).flatten();
    StoreState::new(tail.last_seq, revision(tail), newest)
        .with_forgotten(tail.without_message().ranges())
}
