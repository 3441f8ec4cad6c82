//! Parses one JSON line as a message.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::{ChatMessage, ChatRole};

use crate::fields::notes::{self, MESSAGE_ID, Raw};
use crate::fields::{calls, json, time};
use crate::system::JSONL;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp_utc: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, rename = "created_at")]
    made_at: Option<&'a RawValue>,
    #[serde(borrow)]
    created_at: Option<&'a RawValue>,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    #[serde(borrow)]
    date: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
    tool_calls: Option<Value>,
    tool_call_id: Option<String>,
    thread_id: Option<String>,
    offset_minutes: Option<i16>,
}

/// The message of a line.
pub(super) struct Row {
    pub(super) id: Option<String>,
    /// The message without metadata, which does not identify it.
    pub(super) message: ChatMessage,
    pub(super) notes: BTreeMap<String, String>,
    /// Whether it has no time.
    pub(super) is_timeless: bool,
}

pub(super) fn read(bytes: &[u8]) -> Result<Row, RefusalReason> {
    let fields: Fields<'_> =
        json::object(json::text(bytes)?, "its fields are not those of a message")?;
    let role = role(&fields.role).ok_or(Corrupt(
        "its role is not user, assistant, system or tool, nor another word for one",
    ))?;
    let time = fields.time();
    let (at, offset) = match time {
        Some(json) => time::of_json(json.get())
            .ok_or(Corrupt("its time is neither RFC 3339 with an offset nor a number"))?,
        None => (Timestamp::UNIX_EPOCH, None),
    };
    let tool_calls = calls::read(fields.tool_calls.unwrap_or_default(), role)?;
    let content = match fields.content {
        Some(content) => {
            serde_json::from_str(content.get()).map_err(|_| Corrupt("its content is not a text"))?
        }
        None if tool_calls.is_empty() => return Err(Corrupt("it has no content")),
        None => String::new(),
    };
    let id =
        fields.id.map(|id| name(id.get()).ok_or(Corrupt("its id is neither a text nor a number")));
    let id = id.transpose()?;
    let mut notes = notes::of(JSONL, fields.metadata.unwrap_or_default());
    if let Some(id) = &id {
        notes.entry(MESSAGE_ID.to_owned()).or_insert_with(|| id.clone());
    }
    let mut message = ChatMessage::at(role, content, at);
    message.tool_calls = tool_calls;
    message.tool_call_id = fields.tool_call_id;
    message.thread_id = fields.thread_id;
    message.offset_minutes = fields.offset_minutes.or(offset);
    Ok(Row { id, message, notes, is_timeless: time.is_none() })
}

impl<'a> Fields<'a> {
    /// The time, from the first of its field names that exists.
    fn time(&self) -> Option<&'a RawValue> {
        let names = [self.timestamp_utc, self.timestamp, self.made_at, self.created_at];
        names.into_iter().chain([self.time, self.date]).flatten().next()
    }
}

fn role(name: &str) -> Option<ChatRole> {
    match name.to_ascii_lowercase().as_str() {
        "human" => Some(ChatRole::User),
        "ai" | "bot" | "model" => Some(ChatRole::Assistant),
        name => name.parse().ok(),
    }
}

/// The id: a text, or a number as it is written.
fn name(json: &str) -> Option<String> {
    match serde_json::from_str::<Value>(json).ok()? {
        Value::String(text) => Some(text),
        Value::Number(_) => Some(json.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = r#"{"id":7,"role":"Assistant","content":"x","timestampUtc":"2023-05-08T13:56:20.000Z","metadata":{"a":"b","n":[1, 2]},"toolCalls":[{"id":"1","name":"f","arguments":{}}],"toolCallId":"2","threadId":"t","offsetMinutes":60}"#;

    fn one(line: &str) -> Result<Row, RefusalReason> {
        read(line.as_bytes())
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            at in 0..LINE.len(),
            with in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let mut bytes = LINE.as_bytes().to_vec();
            bytes.splice(at..=at, with);
            let _ = read(&bytes);
            let _ = read(bytes.get(..at).unwrap());
        }
    }

    #[test]
    fn what_tail_prints_is_taken_with_all_it_says() {
        let Row { id, message, notes, is_timeless } = one(LINE).unwrap();
        assert_eq!((id.as_deref(), is_timeless), (Some("7"), false));
        let written = serde_json::to_string(&message).unwrap();
        let theirs = LINE.replacen(r#""id":7,"#, "", 1);
        assert_eq!(written, theirs.replace(r#"{"a":"b","n":[1, 2]}"#, "null"));
        let notes: Vec<_> = notes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(notes, [("a", "b"), ("messageId", "7"), ("n", "[1,2]")]);
    }

    #[test]
    fn roles_and_times_have_many_names() {
        for (role, expected) in [
            ("USER", ChatRole::User),
            ("Human", ChatRole::User),
            ("AI", ChatRole::Assistant),
            ("bot", ChatRole::Assistant),
            ("model", ChatRole::Assistant),
            ("System", ChatRole::System),
            ("tool", ChatRole::Tool),
        ] {
            let row = one(&format!(r#"{{"role":"{role}","content":""}}"#)).unwrap();
            assert_eq!((row.message.role, row.is_timeless), (expected, true));
        }
        let names = ["timestampUtc", "timestamp", "created_at", "createdAt", "time", "date"];
        for time in names {
            let line = format!(
                r#"{{"role":"user","content":"x","{time}":"2025-08-24T07:43:19+02:00","time ":0}}"#
            );
            let row = one(&line).unwrap();
            assert_eq!(row.message.timestamp, "2025-08-24T05:43:19Z".parse().unwrap());
            assert_eq!((row.message.offset_minutes, row.is_timeless), (Some(120), false));
        }
        let both = r#"{"role":"user","content":"x","date":"today","time":null,"timestamp":1}"#;
        assert_eq!(one(both).unwrap().message.timestamp.as_second(), 1);
    }

    #[test]
    fn what_is_no_message_says_why_without_its_words() {
        for wrong in [
            "",
            "[]",
            "null",
            r#"{"role":"user"}"#,
            r#"{"role":"user","content":null}"#,
            r#"{"role":"user","content":["canary"]}"#,
            r#"{"role":"canary","content":"x"}"#,
            r#"{"role":"user","content":"x","time":"canary"}"#,
            r#"{"role":"user","content":"x","id":{}}"#,
            r#"{"role":"user","content":"x","metadata":["canary"]}"#,
            r#"{"role":"user","content":"x","toolCalls":[{"name":"canary"}]}"#,
            r#"{"role":"user","content":"x","offsetMinutes":"canary"}"#,
            r#"{"role":"user","content":"canary""#,
        ] {
            let reason = one(wrong).err().unwrap().to_string();
            assert!(!reason.contains("canary"), "{reason}");
        }
    }
}
