//! Stored messages and their encoding as records.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::scope::Scope;
use crate::store::record::name::{NameTime, RecordKind, RecordName};

/// The most bytes of a record's plaintext. A sealed record of this length still fits the limit for reading a file.
pub(crate) const LONGEST_RECORD: usize = 11 << 20;

/// The deepest nesting of a tool call's arguments. JSON readers commonly stop at 128 levels for the whole record.
const DEEPEST: usize = 64;

/// A stored message. Its scope and number identify it; a number is never used twice.
#[derive(Clone, PartialEq)]
pub struct StoredMessage {
    /// The conversation's scope.
    pub scope: Arc<Scope>,
    /// The number in that conversation, from 1.
    pub seq: u64,
    /// The message.
    pub message: ChatMessage,
    pub(crate) name: RecordName,
}

impl StoredMessage {
    /// The message with that number, at that place in time within the conversation, which is kept to the millisecond. For
    /// stores that read it from their medium.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] for a number of 0 and for a time before the year 0.
    pub fn from_parts(
        scope: &Arc<Scope>,
        seq: u64,
        ordered_at: Timestamp,
        message: ChatMessage,
    ) -> Result<Self> {
        if seq == 0 {
            return Err(Error::InvalidMessage { reason: "numbers begin at 1" });
        }
        let time = NameTime::try_from(ordered_at)?;
        Ok(Self::new(scope, RecordName { time, seq, kind: message.role.into() }, message))
    }

    pub(crate) fn new(scope: &Arc<Scope>, name: RecordName, message: ChatMessage) -> Self {
        Self { scope: Arc::clone(scope), seq: name.seq, message, name }
    }

    /// The record's file name.
    pub fn file_name(&self) -> String {
        self.name.to_string()
    }

    /// The time that orders the message in its conversation: its own, or the previous message's if that is later.
    pub fn ordered_at(&self) -> Timestamp {
        self.name.time.timestamp().unwrap_or(self.message.timestamp)
    }
}

debug_shows!(StoredMessage: seq, message);

/// The length of the record's JSON in bytes.
///
/// # Errors
/// [`Error::TooLarge`] if the record is longer than the limit; [`Error::InvalidMessage`] if it could not be read
/// back.
pub(crate) fn measure(message: &ChatMessage, limit: usize) -> Result<usize> {
    if message.tool_calls.iter().any(|call| deeper_than(&call.arguments, DEEPEST)) {
        return Err(Error::InvalidMessage {
            reason: "a tool call's arguments are nested more than 64 deep",
        });
    }
    let mut counted = Count(0);
    serde_json::to_writer(&mut counted, message).map_err(unwritable)?;
    let Count(size) = counted;
    if size > limit { Err(Error::TooLarge { size, limit }) } else { Ok(size) }
}

/// Encodes the record as JSON. The buffer has the [measured](measure) size and never reallocates, so wiping it leaves
/// no copy behind.
pub(crate) fn encode(message: &ChatMessage, size: usize) -> Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(size));
    serde_json::to_writer(&mut *bytes, message).map_err(unwritable)?;
    Ok(bytes)
}

/// A value as JSON.
///
/// # Errors
/// None is expected: every value of this crate has a JSON form.
pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<Zeroizing<Vec<u8>>> {
    serde_json::to_vec(value).map(Zeroizing::new).map_err(unwritable)
}

fn unwritable(_: serde_json::Error) -> Error {
    Error::InvalidMessage { reason: "it cannot be written as JSON" }
}

/// Decodes a record's JSON. `None` if it is no message, or if its role differs from the one in the name.
pub(crate) fn decode(name: RecordName, plaintext: &[u8]) -> Option<ChatMessage> {
    object(plaintext).filter(|message: &ChatMessage| RecordKind::from(message.role) == name.kind)
}

/// Parses a JSON object. serde would also accept an array for a struct.
pub(crate) fn object<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    // Checking UTF-8 once is faster than letting serde check each string.
    let json = str::from_utf8(json).ok().filter(|json| json.starts_with('{'))?;
    serde_json::from_str(json).ok()
}

fn deeper_than(value: &serde_json::Value, levels: usize) -> bool {
    use serde_json::Value::{Array, Object};
    let mut inside: Box<dyn Iterator<Item = &serde_json::Value>> = match value {
        Array(items) => Box::new(items.iter()),
        Object(fields) => Box::new(fields.values()),
        _ => return false,
    };
    levels == 0 || inside.any(|value| deeper_than(value, levels - 1))
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ChatRole, ToolCall};

    fn message(text: &str) -> ChatMessage {
        let time = "2025-08-24T16:36:25.123Z".parse().unwrap();
        ChatMessage::at(ChatRole::User, text, time)
    }

    fn encode(message: &ChatMessage, limit: usize) -> Result<Zeroizing<Vec<u8>>> {
        super::encode(message, measure(message, limit)?)
    }

    fn round_trip(message: &ChatMessage) -> Option<ChatMessage> {
        let name = "20250824T163625123Z_0001_user.json".parse().unwrap();
        decode(name, &encode(message, 1 << 20).unwrap())
    }

    #[test]
    fn a_record_is_compact_json_with_fields_in_order() {
        let message = message("What's the weather like tomorrow?")
            .with_metadata("source", "voice")
            .with_metadata("lang", "en");
        assert_eq!(
            str::from_utf8(&encode(&message, 1 << 20).unwrap()).unwrap(),
            r#"{"role":"User","content":"What's the weather like tomorrow?","timestampUtc":"2025-08-24T16:36:25.123Z","metadata":{"lang":"en","source":"voice"}}"#
        );
    }

    #[test]
    fn difficult_text_comes_back_exactly() {
        for text in
            ["", "\0\u{1}\u{7f}", "\u{202e}abc\u{2028}", "👩‍👩‍👧‍👦 e\u{301}", "\"\\\n\r\t", "\u{feff}"]
        {
            let message = message(text);
            assert_eq!(round_trip(&message).unwrap(), message);
        }
    }

    #[test]
    fn times_keep_their_digits_and_every_optional_field_comes_back() {
        for (time, written) in [
            ("2025-08-24T16:36:25Z", "16:36:25.000Z"),
            ("2025-08-24T16:36:25.123456Z", "16:36:25.123456Z"),
            ("2025-08-24T16:36:25.123456789Z", "16:36:25.123456789Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ] {
            let mut full = message("x");
            full.timestamp = time.parse().unwrap();
            full.offset_minutes = Some(-210);
            full.thread_id = Some("t".into());
            full.tool_call_id = Some("c".into());
            full.tool_calls = vec![ToolCall {
                id: "c".into(),
                name: "light".into(),
                arguments: serde_json::json!({"on": true}),
            }];
            let json = encode(&full, 1 << 20).unwrap();
            assert!(str::from_utf8(&json).unwrap().contains(written));
            assert_eq!(round_trip(&full).unwrap(), full);
        }
    }

    #[test]
    fn a_record_of_another_shape_or_role_is_no_message() {
        let name: RecordName = "20250824T163625123Z_0001_user.json".parse().unwrap();
        let good = r#"{"role":"User","content":"x","timestampUtc":"2025-08-24T16:36:25.123Z","metadata":null}"#;
        assert!(decode(name, good.as_bytes()).is_some());
        for wrong in [
            good.replace("User", "Assistant"),
            good.replace("User", "user"),
            good.replace(r#""content":"x""#, r#""content":"x","content":"y""#),
            good.replace("null", r#"null,"more":1"#),
            good.replace(r#""x""#, r#""\ud800""#),
            format!("[{good}]"),
            r#"["User","x","2025-08-24T16:36:25.123Z",null]"#.to_owned(),
            good.replace("null", &"[".repeat(100_000)),
        ] {
            assert!(decode(name, wrong.as_bytes()).is_none());
        }
    }

    #[test]
    fn a_message_at_the_limit_is_kept_and_one_byte_more_is_refused() {
        let size = encode(&message("x"), usize::MAX).unwrap().len();
        assert!(encode(&message("x"), size).is_ok());
        assert!(matches!(encode(&message("x"), size - 1), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn arguments_that_could_not_be_read_again_are_not_sealed() {
        let mut deep = serde_json::json!(1);
        for _ in 0..65 {
            deep = serde_json::Value::Array(vec![deep]);
        }
        let mut message = message("x");
        message.tool_calls =
            vec![ToolCall { id: String::new(), name: "f".into(), arguments: deep }];
        assert!(encode(&message, 1 << 20).is_err());
    }

    #[test]
    fn debug_shows_shape_and_no_words() {
        let message = message("canary words").with_metadata("note", "canary note");
        assert!(!format!("{message:?}").contains("canary"));
    }
}
