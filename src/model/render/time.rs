//! Formats times for prompts.

use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::message::{ChatMessage, texts};
use crate::prompt::Prompt;

/// The local time of a message if its offset is known; else UTC.
pub(super) fn of_message(message: &ChatMessage) -> Zoned {
    let minutes = message.offset_minutes.unwrap_or(0);
    let offset = Offset::from_seconds(i32::from(minutes) * 60).unwrap_or(Offset::UTC);
    at_offset(message.said_at(), offset)
}

/// The time of the utterance being answered. This is the current time. If the utterance was said earlier or
/// elsewhere, the clock's time is used. A turn that has begun keeps its choice.
pub(super) fn of_turn(prompt: &Prompt) -> Zoned {
    const A_MINUTE: SignedDuration = SignedDuration::from_mins(1);
    let said = prompt.user_input.timestamp;
    let is_now = prompt.now.timestamp().duration_since(said).abs() < A_MINUTE;
    if is_now || !prompt.since.is_empty() {
        of_message(&prompt.user_input)
    } else {
        at_offset(prompt.now.timestamp(), prompt.now.offset())
    }
}

/// `Sunday 24 August 2025 18:36 +02:00`: to the minute, with the weekday, because people say "on Friday". The month's
/// name cannot be mistaken for a day.
pub(super) fn in_full(moment: &Zoned) -> String {
    moment.strftime("%A %-d %B %Y %H:%M %:z").to_string()
}

/// The current time, with the zone's name if it has one.
pub(super) fn of_now(now: &Zoned) -> String {
    let time = in_full(&at_offset(now.timestamp(), now.offset()));
    match now.time_zone().iana_name() {
        Some(name) => format!("{time} ({name})"),
        None => time,
    }
}

/// The shortest pause that is mentioned: a conversation is probably over after it.
const PAUSE: SignedDuration = SignedDuration::from_hours(3);

/// Formats successive times as in a log: `Sunday 18:36` on the same day, `Monday 25 August 07:05` on another day, and
/// in full if the year or the offset from UTC differs. Tokenizers that split digits need a third as many tokens for
/// the short form. After a pause of hours it adds their number, because small models subtract badly: `Sunday 23:30, 5
/// hours later`.
///
/// The text depends on the times alone. Prompts that begin with the same time therefore have the same text.
#[derive(Default)]
pub(super) struct Log {
    last: Option<Zoned>,
}

impl Log {
    pub(super) fn moment(&mut self, moment: &Zoned) -> String {
        let Some(last) = self.last.replace(moment.clone()) else {
            return in_full(moment);
        };
        let is_here = last.offset() == moment.offset();
        let time = if is_here && last.date() == moment.date() {
            moment.strftime("%A %H:%M").to_string()
        } else if is_here && last.year() == moment.year() {
            moment.strftime("%A %-d %B %H:%M").to_string()
        } else {
            in_full(moment)
        };
        let pause = moment.timestamp().duration_since(last.timestamp());
        match pause.as_hours() {
            hours if pause < PAUSE || hours < 0 => time,
            hours => time + &texts::pause(hours),
        }
    }
}

fn at_offset(timestamp: Timestamp, offset: Offset) -> Zoned {
    timestamp.to_zoned(offset.to_time_zone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_says_what_has_changed_and_no_more() {
        let mut log = Log::default();
        let written: Vec<String> = [
            "2025-08-24T18:36+02:00[+02:00]",
            "2025-08-24T18:37+02:00[+02:00]",
            "2025-08-25T07:05+02:00[+02:00]",
            "2025-08-25T07:05+03:00[+03:00]",
            "2026-08-25T07:05+03:00[+03:00]",
            "2026-08-25T07:06+03:00[+03:00]",
        ]
        .iter()
        .map(|moment| log.moment(&moment.parse().unwrap()))
        .collect();
        assert_eq!(
            written,
            [
                "Sunday 24 August 2025 18:36 +02:00",
                "Sunday 18:37",
                "Monday 25 August 07:05, 12 hours later",
                "Monday 25 August 2025 07:05 +03:00",
                "Tuesday 25 August 2026 07:05 +03:00, 365 days later",
                "Tuesday 07:06",
            ]
        );
    }
}
