//! The conversation that every contender stores.

use std::ops::Range;

use jiff::{SignedDuration, Timestamp};
use sottovoce::ChatMessage;

use crate::contender::Outcome;
use crate::support;

const DAY: i64 = 24 * 60 * 60 * 1_000;
/// The start of measuring, in milliseconds since 1970: 2025-01-06, seven in the morning.
const NOW: i64 = 1_736_146_800_250;

/// Messages until now, evenly distributed over days. Added ones follow a second apart.
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
            None => now - SignedDuration::from_millis(self.pause() * (self.messages - at) as i64),
        };
        Ok(message)
    }

    pub(crate) fn messages(self, places: Range<usize>) -> Outcome<Vec<ChatMessage>> {
        places.map(|at| self.message(at)).collect()
    }

    /// A day in the middle.
    pub(crate) fn day(self) -> Outcome<Range<Timestamp>> {
        let middle = self.message(self.messages / 2)?.timestamp;
        Ok(middle..middle + SignedDuration::from_millis(DAY))
    }

    /// Another day each time, distributed over the conversation.
    pub(crate) fn other_day(self, time: usize) -> Outcome<Range<Timestamp>> {
        let days = (self.messages / self.of_a_day()).max(1);
        let first = self.message(time.wrapping_mul(7_919) % days * self.of_a_day())?.timestamp;
        Ok(first..first + SignedDuration::from_millis(DAY))
    }

    /// How many messages that day has at first.
    pub(crate) fn of_a_day(self) -> usize {
        let whole = (DAY as u64).div_ceil(self.pause() as u64) as usize;
        whole.min(self.messages - self.messages / 2)
    }

    /// Whole milliseconds, as the contenders store them; rounded up, so that a day has no extra message.
    fn pause(self) -> i64 {
        (DAY as u64).div_ceil(self.per_day as u64) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_as_many_messages_as_it_says() {
        for (messages, per_day) in [(1_000, 100), (100, 100), (1_000, 7), (25_000, 10_001)] {
            let talk = Talk { messages, per_day };
            let day = talk.day().unwrap();
            let all = talk.messages(0..messages).unwrap();
            let of_it = all.iter().filter(|message| day.contains(&message.timestamp)).count();
            assert_eq!(of_it, talk.of_a_day(), "{messages} messages, {per_day} a day");
            assert!(of_it <= per_day);
        }
    }

    #[test]
    fn time_only_moves_forward() {
        let talk = Talk { messages: 50, per_day: 7 };
        let times: Vec<_> = talk.messages(0..60).unwrap().iter().map(|m| m.timestamp).collect();
        assert!(times.is_sorted_by(|before, after| before < after));
    }
}
