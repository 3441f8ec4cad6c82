//! One conversation's file: `{"version":1,"createdAt","lastUpdated","expiresAt","messages":[{"role","content","timestamp"}]}`.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::SYSTEM;
use crate::import::RefusalReason::{self, Corrupt};
use crate::import::{Foreign, ForeignMessage, Refusal, json};
use crate::message::{ChatMessage, ChatRole, EXPIRES_AT};
use crate::store::origin::Origin;

/// How reports name the form.
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

/// Reads a file's messages into `foreign` and says when they expire. What is wrong with one message is refused alone.
pub(super) fn read(
    bytes: &[u8],
    name: &str,
    thread: Option<&str>,
    foreign: &mut Foreign,
) -> Result<Option<Timestamp>, RefusalReason> {
    let fields: Fields<'_> =
        json::object(json::text(bytes)?, "its fields are not those of a conversation")?;
    if fields.version.is_some_and(|version| version != 1) {
        return Err(Corrupt("it is of another version than 1"));
    }
    let expiry =
        fields.expires_at.map(|at| moment(at.get()).ok_or(Corrupt("its expiresAt is not a time")));
    let expiry = expiry.transpose()?;
    let mut twins: HashMap<Origin, usize> = HashMap::new();
    for (at, row) in fields.messages.iter().enumerate() {
        let place = format!("{name}#{}", at + 1);
        match message(row.get(), thread).and_then(|message| named(name, message, &mut twins)) {
            Ok(message) => {
                let expiry = expiry.map(|expiry| expiry.to_string());
                foreign.messages.push(message.with(EXPIRES_AT, expiry).found_in(place));
            }
            Err(reason) => foreign.refused.push(Refusal::new(place, reason)),
        }
    }
    // Stable: what was said in the same millisecond stays in the file's order.
    foreign.messages.sort_by_key(|foreign| foreign.message.timestamp);
    Ok(expiry)
}

/// The message under the file's name. Its place in the file is no part of that: the oldest go as new ones come. Nor is
/// when it expires, which each new message puts off. Those that are the same in everything are counted.
fn named(
    name: &str,
    message: ChatMessage,
    twins: &mut HashMap<Origin, usize>,
) -> Result<ForeignMessage, RefusalReason> {
    let first = ForeignMessage::new(SYSTEM, name, FORM, message)?;
    let before = twins.entry(first.origin).or_default();
    *before += 1;
    if *before == 1 {
        return Ok(first);
    }
    ForeignMessage::new(SYSTEM, &format!("{name}#{before}"), FORM, first.message)
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
    let mut message = ChatMessage::at(role, content(row.content.get())?, time);
    message.thread_id = thread.map(str::to_owned);
    Ok(message)
}

/// A text as it is; anything else as JSON, as the bot itself gives it to its model.
fn content(json: &str) -> Result<String, RefusalReason> {
    if json.starts_with('"') {
        return serde_json::from_str(json).map_err(|_| Corrupt("its content is not a text"));
    }
    Ok(compact(json))
}

/// The JSON without the white space between its parts.
fn compact(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let keep = |c: &char| {
        let is_part = inside || !c.is_ascii_whitespace();
        inside ^= *c == '"' && !escaped;
        escaped = inside && *c == '\\' && !escaped;
        is_part
    };
    json.chars().filter(keep).collect()
}

/// Milliseconds since 1970, as JavaScript counts them.
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
            let _ = read(&bytes, "dms/1.json", None, &mut Foreign::new(SYSTEM));
        }

        #[test]
        fn compact_json_means_the_same(text in "[ \\\\\"a-c]{0,12}", number in any::<i32>()) {
            let value = serde_json::json!({ "a b": [text, number, null], "c": {} });
            let laid_out = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(compact(&laid_out), value.to_string());
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
