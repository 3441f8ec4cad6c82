//! Requests with a list of messages, as Ollama's chat and OpenAI's chat completions have it.

use std::ops::Range;

use serde_json::value::RawValue;
use sottovoce::{ChatRole, ToolCall};

use super::json::{Object, place, text};
use super::line::{ChatRequest, Line, System, Unread};

/// The fields of a message, of an item of a list of inputs, and of what they hold.
const MESSAGE: [&str; 10] = [
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "name",
    "type",
    "call_id",
    "arguments",
    "output",
];
const PART: [&str; 2] = ["type", "text"];
const CALL: [&str; 2] = ["id", "function"];
const FUNCTION: [&str; 2] = ["name", "arguments"];

pub(super) fn read(body: &str, fields: &Object<'_>) -> Result<ChatRequest, Unread> {
    let mut system = None;
    let mut lines = Vec::new();
    for (at, raw) in items(fields, "messages")?.into_iter().enumerate() {
        let message = message(raw.get())?;
        let content = content(body, message.raw("content"))?;
        let (words, places) = or_pictures(content, message.count("images"));
        let speaker = match role(&message)? {
            ChatRole::System if at == 0 => {
                system = self::system(body, &places);
                continue;
            }
            // A note in the middle belongs to the client.
            ChatRole::System => continue,
            speaker => speaker,
        };
        lines.push(Line {
            speaker,
            text: words,
            calls: calls(&message)?,
            call_id: message.text("tool_call_id"),
            tool: message.text("tool_name").or_else(|| message.text("name")),
            place: places.into_iter().next(),
        });
    }
    let window = fields.object("options").and_then(|options| options.number("num_ctx"));
    Ok(ChatRequest {
        model: fields.only_text("model")?.unwrap_or_default(),
        system,
        lines,
        session: session(fields),
        window: window.and_then(count),
        ..ChatRequest::default()
    })
}

/// Words, and where their texts stand.
type Content = (String, Vec<Range<usize>>);

/// Who says a message, as both protocols write it.
pub(super) fn role(message: &Object<'_>) -> Result<ChatRole, String> {
    match message.text("role").as_deref() {
        Some("user") => Ok(ChatRole::User),
        Some("assistant") => Ok(ChatRole::Assistant),
        Some("tool" | "function") => Ok(ChatRole::Tool),
        Some("system" | "developer") => Ok(ChatRole::System),
        _ => {
            Err("a message's `role` must be user, assistant, system, developer or tool".to_owned())
        }
    }
}

/// The items of a list of messages.
pub(super) fn items<'a>(fields: &Object<'a>, name: &str) -> Result<Vec<&'a RawValue>, String> {
    match (fields.raw(name), fields.array(name)) {
        (Some(_), None) => Err(format!("the field `{name}` must be a list")),
        (_, items) => Ok(items.unwrap_or_default()),
    }
}

pub(super) fn message(raw: &str) -> Result<Object<'_>, String> {
    Object::strict(raw, &MESSAGE)
}

/// The system prompt whose texts stand at these places.
pub(super) fn system(body: &str, places: &[Range<usize>]) -> Option<System> {
    let last = places.last()?;
    Some(System { text: text(body.get(last.clone())?)?, place: last.clone() })
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
pub(super) fn content(body: &str, raw: Option<&str>) -> Result<Content, String> {
    let Some(raw) = raw else { return Ok(Default::default()) };
    if let Some(words) = text(raw) {
        return Ok((words, place(body, raw).into_iter().collect()));
    }
    let parts: Vec<&RawValue> = serde_json::from_str(raw)
        .map_err(|_| "the field `content` must be a text or a list of parts")?;
    let mut words = Vec::new();
    let mut places = Vec::new();
    let mut pictures = 0;
    for part in parts {
        let part = Object::strict(part.get(), &PART)?;
        pictures += usize::from(part.text("type").is_some_and(|kind| kind.contains("image")));
        if let Some(said) = part.only_text("text")? {
            words.push(said);
            places.extend(part.raw("text").and_then(|raw| place(body, raw)));
        }
    }
    Ok(or_pictures((words.join("\n"), places), pictures))
}

/// The words of a content, and where they stand, or what can be told of one that has pictures alone. That stands nowhere.
pub(super) fn or_pictures(content: Content, pictures: usize) -> Content {
    match pictures {
        0 => content,
        _ if !content.0.trim().is_empty() => content,
        1 => ("[an image]".to_owned(), Vec::new()),
        many => (format!("[{many} images]"), Vec::new()),
    }
}

fn calls(message: &Object<'_>) -> Result<Vec<ToolCall>, String> {
    let mut calls = Vec::new();
    for raw in items(message, "tool_calls")? {
        let call = Object::strict(raw.get(), &CALL)?;
        let Some(function) = call.raw("function") else { continue };
        let function = Object::strict(function, &FUNCTION)?;
        let Some(name) = function.text("name") else { continue };
        let (id, arguments) = (call.text("id"), arguments(function.raw("arguments")));
        calls.push(ToolCall { id: id.unwrap_or_default(), name, arguments });
    }
    Ok(calls)
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
