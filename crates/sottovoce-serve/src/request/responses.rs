//! Requests of OpenAI's responses: one text, or a list of items.

use sottovoce::ToolCall;

use super::chat::{arguments, content, session};
use super::json::{Object, place, text};
use super::line::{ChatRequest, Line, Speaker, System};

pub(super) fn read(body: &str, fields: &Object<'_>) -> Option<ChatRequest> {
    let place_of = |name| fields.raw(name).and_then(|raw| place(body, raw));
    let instructions = fields.text("instructions").filter(|text| !text.is_empty());
    let mut system =
        instructions.and_then(|text| Some(System { text, place: place_of("instructions")? }));
    let mut lines = Vec::new();
    if let Some(words) = fields.text("input") {
        lines.push(line(Speaker::User, words, place_of("input")));
    }
    for (at, raw) in fields.array("input").unwrap_or_default().into_iter().enumerate() {
        let item = Object::parse(raw.get())?;
        let kind = item.text("type").unwrap_or_else(|| "message".to_owned());
        let (words, places) = content(body, item.raw("content"));
        let role = item.text("role").unwrap_or_default();
        match (kind.as_str(), role.as_str()) {
            ("message", "user") => {
                lines.push(line(Speaker::User, words, places.into_iter().next()));
            }
            ("message", "assistant") => lines.push(line(Speaker::Assistant, words, None)),
            ("message", "system" | "developer") if at == 0 && system.is_none() => {
                system = places.last().and_then(|last| {
                    Some(System { text: text(body.get(last.clone())?)?, place: last.clone() })
                });
            }
            ("function_call", _) => {
                let mut called = line(Speaker::Assistant, String::new(), None);
                called.calls.push(ToolCall {
                    id: item.text("call_id").unwrap_or_default(),
                    name: item.text("name").unwrap_or_default(),
                    arguments: arguments(item.raw("arguments")),
                });
                lines.push(called);
            }
            ("function_call_output", _) => {
                let (said, _) = content(body, item.raw("output"));
                let mut result = line(Speaker::Tool, said, None);
                result.call_id = item.text("call_id");
                lines.push(result);
            }
            _ => {}
        }
    }
    Some(ChatRequest {
        model: fields.text("model").unwrap_or_default(),
        system,
        lines,
        session: session(fields),
        previous: fields.text("previous_response_id"),
        window: None,
    })
}

fn line(speaker: Speaker, text: String, place: Option<std::ops::Range<usize>>) -> Line {
    Line { speaker, text, calls: Vec::new(), call_id: None, tool: None, place }
}
