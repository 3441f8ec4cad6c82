//! Requests with a list of messages, as Ollama's chat and OpenAI's chat completions have it.

use std::ops::Range;

use serde_json::value::RawValue;
use sottovoce::ToolCall;

use super::json::{Object, place, text};
use super::line::{ChatRequest, Line, Speaker, System};

pub(super) fn read(body: &str, fields: &Object<'_>) -> Option<ChatRequest> {
    let mut system = None;
    let mut lines = Vec::new();
    for (at, raw) in fields.array("messages")?.into_iter().enumerate() {
        let message = Object::parse(raw.get())?;
        let (words, places) = content(body, message.raw("content"));
        let speaker = match message.text("role")?.as_str() {
            "user" => Speaker::User,
            "assistant" => Speaker::Assistant,
            "tool" | "function" => Speaker::Tool,
            "system" | "developer" if at == 0 => {
                system = places.last().and_then(|last| {
                    Some(System { text: text(body.get(last.clone())?)?, place: last.clone() })
                });
                continue;
            }
            // A note in the middle belongs to the client.
            _ => continue,
        };
        lines.push(Line {
            speaker,
            text: words,
            calls: calls(&message),
            call_id: message.text("tool_call_id"),
            tool: message.text("tool_name").or_else(|| message.text("name")),
            place: places.into_iter().next(),
        });
    }
    let window = fields.object("options").and_then(|options| options.number("num_ctx"));
    Some(ChatRequest {
        model: fields.text("model").unwrap_or_default(),
        system,
        lines,
        session: session(fields),
        previous: None,
        window: window.and_then(count),
    })
}

/// What the client calls its session or its thread.
pub(super) fn session(fields: &Object<'_>) -> Option<String> {
    let conversation = || {
        let named = || fields.object("conversation")?.text("id");
        fields.text("conversation").or_else(named)
    };
    conversation().or_else(|| fields.text("user")).filter(|name| !name.trim().is_empty())
}

/// A number of tokens, as some clients send it: with a fraction.
pub(super) fn count(number: f64) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is in that range.
    (1.0..1e9).contains(&number).then_some(number as usize)
}

/// The words of a content, which is one text or a list of parts, and where its texts stand.
pub(super) fn content(body: &str, raw: Option<&str>) -> (String, Vec<Range<usize>>) {
    let Some(raw) = raw else { return Default::default() };
    if let Some(words) = text(raw) {
        return (words, place(body, raw).into_iter().collect());
    }
    let parts: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
    let mut words = Vec::new();
    let mut places = Vec::new();
    for part in parts {
        let Some(part) = Object::parse(part.get()) else { continue };
        let Some(raw) = part.raw("text") else { continue };
        let Some(said) = text(raw) else { continue };
        words.push(said);
        places.extend(place(body, raw));
    }
    (words.join("\n"), places)
}

fn calls(message: &Object<'_>) -> Vec<ToolCall> {
    let calls = message.array("tool_calls").unwrap_or_default();
    let read = |raw: &RawValue| {
        let call = Object::parse(raw.get())?;
        let function = call.object("function")?;
        Some(ToolCall {
            id: call.text("id").unwrap_or_default(),
            name: function.text("name")?,
            arguments: arguments(function.raw("arguments")),
        })
    };
    calls.into_iter().filter_map(read).collect()
}

/// The arguments of a call: an object, or its text. A text that is no JSON is kept as it is.
pub(super) fn arguments(raw: Option<&str>) -> serde_json::Value {
    let Some(raw) = raw else { return serde_json::Value::Null };
    match serde_json::from_str(raw) {
        Ok(serde_json::Value::String(written)) => {
            serde_json::from_str(&written).unwrap_or(serde_json::Value::String(written))
        }
        Ok(arguments) => arguments,
        Err(_) => serde_json::Value::Null,
    }
}
