//! How a moment reads in a prompt.

use jiff::tz::Offset;
use jiff::{Timestamp, Zoned};

use crate::message::ChatMessage;

/// `Sunday 2025-08-24 18:36 +02:00`: with the weekday, because people say "on Friday", and to the minute.
pub(super) fn of_message(message: &ChatMessage) -> String {
    let minutes = message.offset_minutes.unwrap_or(0);
    let offset = Offset::from_seconds(i32::from(minutes) * 60).unwrap_or(Offset::UTC);
    at_offset(message.timestamp, offset)
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
