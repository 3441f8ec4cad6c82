//! Computes what new limits would hide, and what they would show again.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::retention::Horizon;

/// How many messages a change of limits affects, and their times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AffectedMessages {
    /// The number of messages.
    pub messages: u64,
    /// The first message's time.
    pub first: Option<Timestamp>,
    /// The last message's time.
    pub last: Option<Timestamp>,
}

impl AffectedMessages {
    fn add(&mut self, stored: &StoredMessage) {
        let at = stored.message.said_at();
        self.messages += 1;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(Some(at));
    }
}

/// The effect of new limits on a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitsEffect {
    /// Visible messages that would be hidden at once. Later appends and clean-ups delete them.
    pub hides: AffectedMessages,
    /// Hidden messages that are still stored and would be visible again.
    pub returns: AffectedMessages,
    state: Option<LimitsState>,
}

/// What to do with hidden messages that the new limits would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenMessages {
    /// Show them again.
    Keep,
    /// Delete them for good, with all other hidden messages.
    Delete,
}

/// The state from which an effect was computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LimitsState {
    pub(crate) last_seq: u64,
    /// The revision of the settings.
    pub(crate) rev: u64,
    /// From where on the conversation is shown now.
    pub(crate) before: Horizon,
    /// From where on the other limits would show it.
    pub(crate) after: Horizon,
}

impl LimitsEffect {
    /// An effect that is worked out from this state, before any message is noted.
    pub(crate) fn from_state(state: LimitsState) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Counts a message that is stored.
    pub(crate) fn note(&mut self, stored: &StoredMessage) {
        let Some(state) = &self.state else { return };
        match (state.before.shows(stored.name), state.after.shows(stored.name)) {
            (true, false) => self.hides.add(stored),
            (false, true) => self.returns.add(stored),
            _ => {}
        }
    }

    /// Checks the limits against the state as it is now.
    pub(crate) fn check_state(&self, now: &LimitsState) -> Result<()> {
        // Of a conversation that was never written to there is no state.
        let is_same = self.state.as_ref().map_or(now.last_seq == 0, |then| then == now);
        if is_same { Ok(()) } else { Err(Error::MoreThanAnnounced) }
    }
}

/// The outcome of a clean-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanupReport {
    /// The number of messages removed.
    pub removed: usize,
    /// Whether the whole conversation had expired.
    pub expired: bool,
}

/// The least and the most hidden messages that are collected before they are removed together.
const TOGETHER: (u64, u64) = (16, 1024);

/// The most messages that an append removes; more are left to the next ones, and to a clean-up.
pub(crate) const AT_ONCE: u64 = 4096;

/// How many messages over the limit of `most` are deleted together.
pub(crate) fn together(most: u64) -> u64 {
    let (least, greatest) = TOGETHER;
    (most / 8).clamp(least, greatest)
}
