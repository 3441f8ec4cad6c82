//! Retention limits, and what they hide until it is deleted.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::message::ChatMessage;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::name::RecordName;

/// Limits on how many messages are kept and for how long. The default keeps everything forever.
///
/// Messages beyond the limits are hidden at once, even before their files are deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
#[must_use]
pub struct Retention {
    /// The most messages. The window keeps whole exchanges, so it may hold fewer. `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<NonZeroU32>,
    /// The whole conversation expires this many seconds after its last message. `None` means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<NonZeroU64>,
}

impl Retention {
    /// Keeps everything forever.
    pub const FOREVER: Self = Self { max_messages: None, ttl_seconds: None };

    /// Limits the number of messages; 0 means no limit.
    pub fn max_messages(self, messages: u32) -> Self {
        Self { max_messages: NonZeroU32::new(messages), ..self }
    }

    /// Limits the time after the last message, in seconds; 0 means forever.
    pub fn ttl_seconds(self, seconds: u64) -> Self {
        Self { ttl_seconds: NonZeroU64::new(seconds), ..self }
    }

    pub(crate) fn is_forever(self) -> bool {
        self == Self::FOREVER
    }

    /// When a conversation expires whose last message has this time; `None` if never.
    pub(crate) fn expiry(self, last: Timestamp) -> Option<Timestamp> {
        let seconds = i64::try_from(self.ttl_seconds?.get()).unwrap_or(i64::MAX);
        last.checked_add(SignedDuration::from_secs(seconds)).ok()
    }

    /// The most messages; the highest number if there is no limit.
    pub(crate) fn most(self) -> u64 {
        self.max_messages.map_or(u64::MAX, |most| most.get().into())
    }
}

/// Which part of a conversation is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Horizon {
    All,
    From {
        first: RecordName,
        /// Numbers up to this one belong to an earlier, expired part of the conversation.
        expired: u64,
    },
    /// No message: none of the newest ones can start a visible exchange.
    Nothing,
    /// The conversation has expired.
    Expired,
}

/// What the newest end of a conversation tells beside its messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewestEnd {
    /// Whether the messages at hand are all there are.
    pub(crate) is_whole: bool,
    /// When the newest message was said, be it one that does not open.
    pub(crate) last_said: Option<Timestamp>,
    /// How many messages cannot be read just now.
    pub(crate) unread: u64,
    /// The most messages that there can be, as far as numbers tell.
    pub(crate) stored: u64,
}

impl Horizon {
    /// From where on these limits show a conversation with these newest messages, oldest first. `None` where too few are
    /// at hand to tell.
    pub(crate) fn within<'a>(
        limits: Retention,
        messages: impl ExactSizeIterator<Item = &'a Arc<StoredMessage>> + Clone,
        end: NewestEnd,
        now: impl FnOnce() -> Timestamp,
    ) -> Option<Self> {
        if limits.is_forever() {
            return Some(Self::All);
        }
        if messages.len() == 0 {
            return end.is_whole.then_some(Self::All);
        }
        let expiry = end.last_said.and_then(|last| limits.expiry(last));
        if expiry.is_some_and(|expiry| expiry < now()) {
            return Some(Self::Expired);
        }
        let most = limits.most();
        if end.stored <= most {
            return Some(Self::All);
        }
        if !end.is_whole && messages.len() as u64 <= most {
            return None;
        }
        // What cannot be read just now has its place too, or the window would reach back over what was hidden.
        let most = most.saturating_sub(end.unread);
        if messages.len() as u64 <= most {
            return Some(Self::All);
        }
        let start = start(messages.clone().map(|stored| &stored.message), most);
        Some(messages.clone().nth(start).map_or(Self::Nothing, |first| Self::from(first.name)))
    }

    /// From a message on.
    pub(crate) fn from(first: RecordName) -> Self {
        Self::From { first, expired: 0 }
    }

    /// This horizon without the numbers up to `expired`.
    pub(crate) fn after(self, expired: u64) -> Self {
        match self {
            Self::All if expired > 0 => Self::From { first: RecordName::FIRST, expired },
            Self::From { first, .. } => Self::From { first, expired },
            other => other,
        }
    }

    pub(crate) fn shows(self, name: RecordName) -> bool {
        match self {
            Self::All => true,
            Self::From { first, expired } => first <= name && name.seq > expired,
            Self::Nothing | Self::Expired => false,
        }
    }

    /// Whether this horizon may show messages that the other one hides.
    pub(crate) fn hides_less_than(self, other: Self) -> bool {
        match (self, other) {
            (Self::Nothing | Self::Expired, _) | (_, Self::All) => false,
            (_, Self::Nothing | Self::Expired) | (Self::All, _) => true,
            (Self::From { first, .. }, Self::From { first: other, .. }) => first < other,
        }
    }
}

/// The index of the first visible message if at most `most` are visible, starting at a whole exchange. If one
/// exchange is longer than that, its end is visible, without tool results whose calls are hidden.
pub(crate) fn start<'a>(
    messages: impl ExactSizeIterator<Item = &'a ChatMessage> + Clone,
    most: u64,
) -> usize {
    use crate::message::ChatRole;
    let over = messages.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
    if over == 0 {
        return 0;
    }
    let after = |begins: fn(&ChatMessage) -> bool| {
        messages.clone().enumerate().skip(over).find(|(_, m)| begins(m)).map(|(at, _)| at)
    };
    after(ChatMessage::starts_exchange)
        .or_else(|| after(|message| message.role != ChatRole::Tool))
        .unwrap_or(messages.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ChatRole::{self, Assistant, System, Tool, User};

    fn started(roles: &[ChatRole], most: u64) -> usize {
        let said: Vec<_> =
            roles.iter().map(|role| ChatMessage::at(*role, "x", Timestamp::UNIX_EPOCH)).collect();
        start(said.iter(), most)
    }

    #[test]
    fn what_is_kept_begins_with_an_exchange_and_never_with_a_result_alone() {
        let talk = [User, Assistant, User, Assistant, Tool, Assistant, System, Assistant];
        assert_eq!([8, 9].map(|most| started(&talk, most)), [0, 0]);
        assert_eq!([7, 6, 5, 3, 2].map(|most| started(&talk, most)), [2, 2, 6, 6, 6]);
        let one = [User, Assistant, Tool, Tool, Assistant];
        assert_eq!([4, 3, 2, 1].map(|most| started(&one, most)), [1, 4, 4, 4]);
        assert_eq!(started(&[User, Tool, Tool], 1), 3);
    }

    #[test]
    fn an_expiry_beyond_time_is_never() {
        let day = Retention::FOREVER.ttl_seconds(86_400);
        let now: Timestamp = "2025-08-24T16:00:00Z".parse().unwrap();
        assert_eq!(day.expiry(now), Some("2025-08-25T16:00:00Z".parse().unwrap()));
        assert_eq!(Retention::FOREVER.expiry(now), None);
        assert_eq!(Retention::FOREVER.ttl_seconds(u64::MAX).expiry(now), None);
        assert!(Retention::FOREVER.ttl_seconds(0).max_messages(0).is_forever());
    }
}
