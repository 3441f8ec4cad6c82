//! Validation of a message before it gets a number.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::message::redact::{Redactor, redact_message};
use crate::store::record::encoding::{LONGEST_RECORD, encode, measure};
use crate::store::record::name::NameTime;

/// Limits for what a writer accepts, and how long it waits for the lock.
#[derive(Clone)]
pub(crate) struct Limits {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) lock_timeout: Duration,
    pub(crate) max_message_bytes: usize,
    pub(crate) redactor: Option<Arc<dyn Redactor>>,
}

/// Which time goes into a record's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampPolicy {
    /// The message's own time, or one after the newest record's if that is earlier: for messages that are said now.
    Newest,
    /// The message's own time: for imported messages.
    Own,
}

impl TimestampPolicy {
    pub(crate) fn date(self, own: NameTime, newest: NameTime) -> NameTime {
        match self {
            Self::Newest => own.not_before(newest),
            Self::Own => own,
        }
    }
}

/// The latest time that a message may have: a day ahead of the clock.
pub(crate) fn latest(now: Timestamp) -> Timestamp {
    now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX)
}

/// The latest place that another device can give a message: a week ahead. What is said after it stands behind it, so a
/// conversation may also expire that much later.
pub(crate) fn latest_place(now: Timestamp) -> Timestamp {
    now.checked_add(SignedDuration::from_hours(7 * 24)).unwrap_or(Timestamp::MAX)
}

/// # Errors
/// [`Error::ClockBehind`] if the clock shows a time more than a week before the newest message's: it cannot tell what has
/// expired.
pub(crate) fn check_clock(now: Timestamp, newest: Option<Timestamp>) -> Result<()> {
    let later = newest.filter(|newest| latest_place(now) < *newest);
    later.map_or(Ok(()), |newest| Err(Error::ClockBehind { newest }))
}

/// A message that passed validation.
pub(crate) struct ValidMessage {
    pub(crate) message: ChatMessage,
    pub(crate) time: NameTime,
    /// The length of its record in bytes.
    pub(crate) size: usize,
}

impl ValidMessage {
    pub(crate) fn new(mut message: ChatMessage, limits: &Limits) -> Result<Self> {
        if let Some(redactor) = &limits.redactor {
            redact_message(&**redactor, &mut message);
        }
        if message.timestamp > latest(limits.clock.now().timestamp()) {
            return Err(Error::FromTheFuture);
        }
        let time = NameTime::try_from(message.timestamp)?;
        let size = measure(&message, limits.max_message_bytes)?;
        Ok(Self { message, time, size })
    }

    /// A message that was stored before. It is not redacted again, and its record may be longer than the limit, since the
    /// mark of its origin came on top.
    pub(crate) fn stored_before(message: ChatMessage, time: NameTime) -> Result<Self> {
        let size = measure(&message, LONGEST_RECORD)?;
        Ok(Self { message, time, size })
    }

    /// Validates a message from another system. `place` is the time that orders it, if that is later than its own.
    pub(crate) fn imported(
        message: ChatMessage,
        place: Option<Timestamp>,
        limits: &Limits,
    ) -> Result<Self> {
        let mut draft = Self::new(message, limits)?;
        if let Some(place) = place {
            draft.time = draft.time.max(NameTime::try_from(place)?);
        }
        Ok(draft)
    }

    /// A message of another store, which has redacted it and checked its time and length. Any record can hold it.
    pub(crate) fn received(message: ChatMessage, at: Timestamp) -> Result<Self> {
        Self::stored_before(message, NameTime::try_from(at)?)
    }

    /// Validates several messages. Fails if one of them is invalid.
    pub(crate) fn all(messages: Vec<ChatMessage>, limits: &Limits) -> Result<Vec<Self>> {
        messages.into_iter().map(|message| Self::new(message, limits)).collect()
    }

    /// Encodes its record.
    pub(crate) fn encode(&self) -> Result<Zeroizing<Vec<u8>>> {
        encode(&self.message, self.size)
    }
}
