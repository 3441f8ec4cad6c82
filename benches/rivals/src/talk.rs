//! The conversation that everybody keeps.

use std::ops::Range;

use jiff::{SignedDuration, Timestamp};
use sottovoce::ChatMessage;

use crate::contender::Outcome;
use crate::support;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// When measuring begins, in milliseconds since 1970: 2025-01-06, seven in the morning.
const NOW: i64 = 1_736_146_800_250;

/// So many messages until now, evenly so many a day; what is added then comes a second apart.
#[derive(Clone, Copy)]
pub(crate) struct Talk {
    pub(crate) messages: usize,
    pub(crate) per_day: usize,
}

impl Talk {
    pub(crate) fn message(self, at: usize) -> Outcome<ChatMessage> {
        let mut message = support::message(at);
        let now = Timestamp::from_millisecond(NOW)?;
        message.timestamp = match at.checked_sub(self.messages) {
            Some(after) => now + SignedDuration::from_secs(after as i64),
            None => now - self.pause() * (self.messages - at) as i32,
        };
        Ok(message)
    }

    pub(crate) fn messages(self, places: Range<usize>) -> Outcome<Vec<ChatMessage>> {
        places.map(|at| self.message(at)).collect()
    }

    /// A day in the middle.
    pub(crate) fn day(self) -> Outcome<Range<Timestamp>> {
        let middle = self.message(self.messages / 2)?.timestamp;
        Ok(middle..middle + DAY)
    }

    /// How many messages that day has.
    pub(crate) fn of_a_day(self) -> usize {
        self.per_day.min(self.messages - self.messages / 2)
    }

    fn pause(self) -> SignedDuration {
        // Whole milliseconds, as the contenders keep them; rounded up, so that a day has no more than it should.
        SignedDuration::from_millis(DAY.as_millis() as i64)
            .checked_div(self.per_day as i32)
            .unwrap_or(DAY)
    }
}
