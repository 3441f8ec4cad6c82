//! How a moment reads in a prompt.

use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::message::ChatMessage;
use crate::prompt::Prompt;

/// `Sunday 2025-08-24 18:36 +02:00`: with the weekday, because people say "on Friday", and to the minute.
pub(super) fn of_message(message: &ChatMessage) -> String {
    let minutes = message.offset_minutes.unwrap_or(0);
    let offset = Offset::from_seconds(i32::from(minutes) * 60).unwrap_or(Offset::UTC);
    at_offset(message.timestamp, offset)
}

/// The time of the utterance being answered. It is the current time, so where one was said earlier or elsewhere, the
/// clock's is taken instead.
pub(super) fn of_turn(prompt: &Prompt) -> String {
    const A_MINUTE: SignedDuration = SignedDuration::from_mins(1);
    let said = prompt.user_input.timestamp;
    if prompt.now.timestamp().duration_since(said).abs() < A_MINUTE {
        of_message(&prompt.user_input)
    } else {
        at_offset(prompt.now.timestamp(), prompt.now.offset())
    }
}

/// The current time, with the zone's name where it has one.
pub(super) fn of_now(now: &Zoned) -> String {
    let time = at_offset(now.timestamp(), now.offset());
    match now.time_zone().iana_name() {
        Some(name) => format!("{time} ({name})"),
        None => time,
    }
}

fn at_offset(timestamp: Timestamp, offset: Offset) -> String {
    let time = timestamp.to_zoned(offset.to_time_zone());
    time.strftime("%A %Y-%m-%d %H:%M %:z").to_string()
}
