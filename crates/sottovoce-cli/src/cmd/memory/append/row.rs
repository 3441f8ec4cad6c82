//! Parses one line of input as a message. Errors name the line and the field, never the content.

use std::collections::BTreeMap;

use jiff::{Timestamp, Zoned};
use serde_json::{Map, Value};
use sottovoce::{ChatMessage, ChatRole, ToolCall};

use crate::exit::Failure;

const FIELDS: [&str; 10] = [
    "seq",
    "id",
    "role",
    "content",
    "timestampUtc",
    "metadata",
    "toolCalls",
    "toolCallId",
    "threadId",
    "offsetMinutes",
];

/// Parses the message of a line. Its time is `now` if the line has none. Returns `None` for a blank line.
pub(super) fn parse(
    line: &str,
    number: usize,
    now: &Zoned,
) -> Result<Option<ChatMessage>, Failure> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    message(line, now).map(Some).map_err(|what| refused(number, &what))
}

/// The error for a line that cannot be stored.
pub(super) fn refused(number: usize, what: &str) -> Failure {
    Failure::input(
        format!("line {number}: {what}"),
        "correct the line and send it and what follows again",
    )
}

fn message(line: &str, now: &Zoned) -> Result<ChatMessage, String> {
    let mut fields: Map<String, Value> = serde_json::from_str(line)
        .map_err(|error| format!("not a JSON object (at column {})", error.column()))?;
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("there is no field {unknown:?}; there are {}", FIELDS.join(", ")));
    }
    let role: ChatRole = text(&mut fields, "role")?
        .ok_or("\"role\" is missing")?
        .parse()
        .map_err(|_| "\"role\" must be user, assistant, system or tool")?;
    let content = text(&mut fields, "content")?.ok_or("\"content\" is missing")?;
    let mut message = match text(&mut fields, "timestampUtc")? {
        Some(time) => {
            let time: Timestamp =
                time.parse().map_err(|_| "\"timestampUtc\" must be like 2025-08-24T16:36:25Z")?;
            ChatMessage::at(role, content, time)
        }
        None => ChatMessage::new(role, content, now),
    };
    message.tool_call_id = text(&mut fields, "toolCallId")?;
    message.thread_id = text(&mut fields, "threadId")?;
    message.metadata =
        take::<Option<BTreeMap<String, String>>>(&mut fields, "metadata", "an object of texts")?
            .flatten()
            .unwrap_or_default();
    message.tool_calls =
        take::<Vec<ToolCall>>(&mut fields, "toolCalls", "an array of {id, name, arguments}")?
            .unwrap_or_default();
    if let Some(offset) = take(&mut fields, "offsetMinutes", "a whole number of minutes")? {
        message.offset_minutes = offset;
    }
    Ok(message)
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{name:?} must be a text")),
    }
}

fn take<T: serde::de::DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &str,
    expected: &str,
) -> Result<Option<T>, String> {
    let value = fields.remove(name);
    value
        .map(|value| {
            serde_json::from_value(value).map_err(|_| format!("{name:?} must be {expected}"))
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2025-08-24T18:36+02:00[Europe/Berlin]".parse().unwrap()
    }

    #[test]
    fn what_tail_prints_can_be_appended_again() {
        let line = r#"{"seq":7,"role":"Assistant","content":"x","timestampUtc":"2023-05-08T13:56:20.000Z","metadata":{"a":"b"},"toolCalls":[{"id":"1","name":"f","arguments":{}}],"toolCallId":"2","threadId":"t","offsetMinutes":60}"#;
        let message = parse(line, 1, &now()).unwrap().unwrap();
        assert_eq!(
            format!(
                r#"{{"seq":7,{}"#,
                &serde_json::to_string(&message).unwrap().replacen('{', "", 1)
            ),
            line
        );
    }

    #[test]
    fn what_is_left_out_gets_a_sensible_value() {
        let message =
            parse(r#"{"role":"user","content":"x","metadata":null}"#, 1, &now()).unwrap().unwrap();
        assert_eq!(message.timestamp, now().timestamp());
        assert_eq!(message.offset_minutes, Some(120));
        assert!(parse("  ", 1, &now()).unwrap().is_none());
    }

    #[test]
    fn complaints_name_line_and_field_but_no_words() {
        for (line, part) in [
            (r#"{"role":"user","content":{"canary":1}}"#, "content"),
            (r#"{"role":"canary","content":"x"}"#, "role"),
            (r#"{"role":"user"}"#, "content"),
            (r#"{"role":"user","content":"x","timestampUtc":"canary"}"#, "timestampUtc"),
            (r#"{"role":"user","content":"x","metadata":{"a":["canary"]}}"#, "metadata"),
            (r#"{"role":"user","content":"x","contents":"canary"}"#, "contents"),
            (r#"{"role":"user","content":"\ud800 canary"}"#, "JSON"),
            (r#"["user","canary"]"#, "JSON"),
            (r#"{"role":"user","content":"canary""#, "JSON"),
        ] {
            let Err(Failure::Input { what, .. }) = parse(line, 12, &now()) else {
                panic!("{line}");
            };
            assert!(what.contains("line 12") && what.contains(part), "{what}");
            assert!(!what.contains("canary"), "{what}");
        }
    }
}
