//! The file of one conversation:
//! `{"version":1,"createdAt","lastUpdated","expiresAt","messages":[{"role","content","timestamp"}]}`.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use sottovoce::import::ImportedMessages;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::import::metadata::EXPIRES_AT;
use sottovoce::{ChatMessage, ChatRole};

use crate::fields::json;
use crate::system::DISCORD;
use crate::twins::Twins;

/// The name of this format in reports.
const FORM: &str = "v1";

#[derive(Deserialize)]
struct Fields<'a> {
    version: Option<u64>,
    #[serde(rename = "expiresAt", borrow)]
    expires_at: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Row<'a> {
    role: String,
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(borrow)]
    timestamp: &'a RawValue,
}

/// Reads a file's messages, and returns when they expire. Refuses a message that cannot be read, and reads on.
pub(super) fn read(
    bytes: &[u8],
    name: &str,
    thread: Option<&str>,
    messages: &mut ImportedMessages,
) -> Result<Option<Timestamp>, RefusalReason> {
    let fields: Fields<'_> =
        json::object(json::text(bytes)?, "its fields are not those of a conversation")?;
    if fields.version.is_some_and(|version| version != 1) {
        return Err(Corrupt("its version is not 1"));
    }
    let expiry =
        fields.expires_at.map(|at| moment(at.get()).ok_or(Corrupt("its expiresAt is not a time")));
    let expiry = expiry.transpose()?;
    // A message's index does not identify it, because the bot drops the oldest ones. Its expiry does not either,
    // because each new message postpones it.
    let mut twins = Twins::default();
    for (at, row) in fields.messages.iter().enumerate() {
        let place = format!("{name}#{}", at + 1);
        let expiry = expiry.map(|expiry| expiry.to_string());
        let message = message(row.get(), thread)
            .and_then(|message| twins.tell_apart(DISCORD, name, FORM, message));
        messages.push(place, message.map(|message| message.with_metadata(EXPIRES_AT, expiry)));
    }
    messages.is_ordered = true;
    Ok(expiry)
}

fn message(row: &str, thread: Option<&str>) -> Result<ChatMessage, RefusalReason> {
    let row: Row<'_> = json::object(row, "its fields are not those of a message")?;
    let role = match row.role.as_str() {
        "user" => ChatRole::User,
        "assistant" => ChatRole::Assistant,
        "system" => ChatRole::System,
        _ => return Err(Corrupt("its role is not user, assistant or system")),
    };
    let time = moment(row.timestamp.get()).ok_or(Corrupt("its timestamp is not a time"))?;
    let mut message = ChatMessage::at(role, json::content(row.content.get())?, time);
    message.thread_id = thread.map(str::to_owned);
    Ok(message)
}

/// A whole number of milliseconds since 1970, as JavaScript writes it.
fn moment(json: &str) -> Option<Timestamp> {
    let number: serde_json::Number = serde_json::from_str(json).ok()?;
    let whole = |number: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and within the range")]
        let milliseconds = number as i64;
        (number.trunc() == number && number.abs() < 1e15).then_some(milliseconds)
    };
    let milliseconds = number.as_i64().or_else(|| number.as_f64().and_then(whole))?;
    Timestamp::from_millisecond(milliseconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes, "dms/1.json", None, &mut ImportedMessages::new(DISCORD));
        }
    }

    #[test]
    fn a_moment_is_a_whole_number_of_milliseconds() {
        let at = Timestamp::from_millisecond(1_756_013_462_123).unwrap();
        for text in ["1756013462123", "1756013462123.0", "1.756013462123e12"] {
            assert_eq!(moment(text), Some(at), "{text}");
        }
        for wrong in ["\"1756013462123\"", "1.5", "1e300", "18446744073709551616", "null", "{}"] {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }
}
