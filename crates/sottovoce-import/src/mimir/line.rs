//! Parses a message: `{"role","content","id","timestamp"}`, and optionally `toolCalls` and `metadata`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sottovoce::import::ImportedMessage;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::{ChatMessage, ChatRole};

use crate::fields::notes::{self, MESSAGE_ID, Raw};
use crate::fields::{calls, json, time};
use crate::system::MIMIR;
use crate::twins::Twins;

/// The name of this format in reports.
const FORM: &str = "message";
/// The metadata of a tool's message with the id of the call that it answers.
const TOOL_CALL_ID: &str = "toolCallId";
/// The fields of a tool call that a message can hold. The others become metadata.
const OF_A_CALL: [&str; 3] = ["id", "name", "arguments"];

#[derive(Deserialize)]
struct Fields<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    id: Option<String>,
    timestamp: Option<String>,
    #[serde(rename = "toolCalls", borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
}

/// Reads a line. Its id, text and time identify a message; its metadata does not.
pub(super) fn read(
    bytes: &[u8],
    conversation: &str,
    twins: &mut Twins,
) -> Result<ImportedMessage, RefusalReason> {
    let fields: Fields<'_> =
        json::object(json::text(bytes)?, "its fields are not those of a message")?;
    let role: ChatRole = fields
        .role
        .parse()
        .map_err(|_| Corrupt("its role is not user, assistant, system or tool"))?;
    let time = fields.timestamp.as_deref().and_then(time::parse);
    let (at, offset) = time.ok_or(Corrupt("its timestamp is not a time"))?;
    let (tool_calls, of_calls) = tool_calls(fields.tool_calls, role)?;
    let content = match fields.content {
        Some(content) => json::content(content.get())?,
        None if tool_calls.is_empty() => return Err(Corrupt("it has no content")),
        None => String::new(),
    };
    let mut notes = notes::of(MIMIR, fields.metadata.unwrap_or_default());
    let mut message = ChatMessage::at(role, content, at);
    message.offset_minutes = offset;
    message.tool_calls = tool_calls;
    if role == ChatRole::Tool {
        message.tool_call_id = notes.remove(TOOL_CALL_ID);
    }
    for (name, value) in of_calls {
        notes.entry(name).or_insert(value);
    }
    let id = fields.id.as_deref();
    let name = id.map_or_else(|| conversation.to_owned(), |id| format!("{conversation}/{id}"));
    if let Some(id) = fields.id
        && let Some(theirs) = notes.insert(MESSAGE_ID.to_owned(), id)
    {
        notes.insert(format!("{MIMIR}:{MESSAGE_ID}"), theirs);
    }
    let mut imported = twins.tell_apart(MIMIR, &name, FORM, message)?;
    imported.message.metadata.extend(notes);
    Ok(imported)
}

type Calls = (Vec<sottovoce::ToolCall>, BTreeMap<String, String>);

/// Reads the tool calls, and their other fields as metadata: `result:` and the call's id, or its index if it has none.
fn tool_calls(json: Option<&RawValue>, role: ChatRole) -> Result<Calls, RefusalReason> {
    let Some(json) = json else { return Ok(Calls::default()) };
    let unreadable = Corrupt("its toolCalls are not tool calls");
    let value: Value = serde_json::from_str(json.get()).map_err(|_| unreadable.clone())?;
    let calls = calls::read(value, role)?;
    let raw: Vec<Raw<'_>> = serde_json::from_str(json.get()).map_err(|_| unreadable)?;
    let mut notes = BTreeMap::new();
    for (at, (call, raw)) in calls.iter().zip(raw).enumerate() {
        let place = if call.id.is_empty() { (at + 1).to_string() } else { call.id.clone() };
        for (name, value) in raw {
            if OF_A_CALL.contains(&name.as_str()) {
                continue;
            }
            if let Some(value) = notes::text(value.get()) {
                notes.insert(format!("{name}:{place}"), value);
            }
        }
    }
    Ok((calls, notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = r#"{"role":"assistant","content":"","toolCalls":[{"id":"c","name":"f","arguments":{"a":null},"result":{ "ok": true },"error":null},{"name":"g","arguments":{},"result":"x"}],"metadata":{"toolCallId":"d","messageId":7,"n":{"a": [1.50, null]}},"id":"msg-1","timestamp":"2025-08-24T09:15:32.100Z"}"#;

    fn one(line: &str) -> Result<ImportedMessage, RefusalReason> {
        read(line.as_bytes(), "conv-1", &mut Twins::default())
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            at in 0..LINE.len(),
            with in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let mut bytes = LINE.as_bytes().to_vec();
            bytes.splice(at..=at, with);
            let _ = read(&bytes, "conv-1", &mut Twins::default());
            let _ = read(bytes.get(..at).unwrap(), "conv-1", &mut Twins::default());
        }
    }

    #[test]
    fn what_a_call_says_beyond_its_arguments_is_noted() {
        let read = one(LINE).unwrap();
        let notes: Vec<_> =
            read.message.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            notes,
            [
                ("messageId", "msg-1"),
                ("mimir:messageId", "7"),
                ("n", r#"{"a":[1.50,null]}"#),
                ("result:2", "x"),
                ("result:c", r#"{"ok":true}"#),
                ("toolCallId", "d"),
            ]
        );
        assert_eq!(read.message.tool_calls.len(), 2);
        assert_eq!(read.message.tool_call_id, None);
        let answer = LINE.replace("assistant", "tool").replace(r#""toolCalls""#, r#""x""#);
        assert_eq!(one(&answer).unwrap().message.tool_call_id.as_deref(), Some("d"));
        assert!(one(&LINE.replace("assistant", "user")).is_err());
    }

    #[test]
    fn notes_do_not_tell_which_message_it_is_and_all_else_does() {
        let plain = one(LINE).unwrap().origin();
        assert_eq!(one(&LINE.replace("1.50", "2")).unwrap().origin(), plain);
        for (from, to) in [("msg-1", "msg-2"), ("32.100", "32.101"), (r#"t":"""#, r#"t":"x""#)] {
            let changed = one(&LINE.replacen(from, to, 1));
            assert!(changed.is_err() || changed.unwrap().origin() != plain, "{from}");
        }
        let twice = &mut Twins::default();
        let mut origin = || read(LINE.as_bytes(), "conv-1", twice).unwrap().origin();
        assert_ne!(origin(), origin());
    }
}
