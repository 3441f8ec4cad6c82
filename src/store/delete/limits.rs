//! Computes what new limits would hide, and what they would show again.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::delete::forget::{UnreadablePolicy, survey};
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::retention::{Horizon, Retention};
use crate::store::record::seq_set::SeqSet;

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
#[non_exhaustive]
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

impl LimitsState {
    fn of(reader: &Reader, tail: &Tail, retention: Option<Retention>) -> Result<Self> {
        let now = reader.now();
        let after = retention.unwrap_or(reader.folder.retention);
        Ok(Self {
            last_seq: tail.last_seq,
            rev: tail.profile.rev,
            before: horizon(reader, tail, tail.retention, now)?,
            after: horizon(reader, tail, after, now)?,
        })
    }
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

    /// For the lock's holder.
    pub(crate) fn of(reader: &Reader, tail: &Tail, retention: Option<Retention>) -> Result<Self> {
        let state = LimitsState::of(reader, tail, retention)?;
        let is_other = state.before != state.after;
        let mut effect = Self::from_state(state);
        if is_other {
            let all: SeqSet = std::iter::once(1..=tail.last_seq).collect();
            let there = all.without(&tail.without_message());
            survey(reader, tail, &there, UnreadablePolicy::Recorded, |stored| effect.note(stored))?;
        }
        Ok(effect)
    }

    /// Fails if the limits would now have another effect than this one.
    ///
    /// # Errors
    /// [`Error::MoreThanAnnounced`].
    pub(crate) fn check(
        &self,
        reader: &Reader,
        tail: &Tail,
        retention: Option<Retention>,
    ) -> Result<()> {
        self.check_state(&LimitsState::of(reader, tail, retention)?)
    }

    /// Checks the limits against the state as it is now.
    pub(crate) fn check_state(&self, now: &LimitsState) -> Result<()> {
        // Of a conversation that was never written to there is no state.
        let is_same = self.state.as_ref().map_or(now.last_seq == 0, |then| then == now);
        if is_same { Ok(()) } else { Err(Error::MoreThanAnnounced) }
    }
}

/// Whether new limits would show hidden messages, and whether they would hide visible ones. Requires the lock.
pub(crate) fn compare(
    reader: &Reader,
    tail: &Tail,
    retention: Option<Retention>,
) -> Result<(bool, bool)> {
    let LimitsState { before, after, .. } = LimitsState::of(reader, tail, retention)?;
    Ok((after.hides_less_than(before), before.hides_less_than(after)))
}

/// Which part of the conversation these limits would show.
fn horizon(reader: &Reader, tail: &Tail, limits: Retention, now: Timestamp) -> Result<Horizon> {
    let mut within = tail.clone();
    within.retention = limits;
    within.horizon_alone(&reader.folder, now)
}
