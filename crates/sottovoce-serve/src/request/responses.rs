//! Requests of OpenAI's responses: one text, or a list of items.

use sottovoce::{ChatRole, ToolCall};

use super::chat::{arguments, content, items, message, role, session, system as read_system};
use super::json::{Object, place};
use super::line::{ChatRequest, Line, System, Unread};

pub(super) fn read(body: &str, fields: &Object<'_>) -> Result<ChatRequest, Unread> {
    let place_of = |name| fields.raw(name).and_then(|raw| place(body, raw));
    let instructions = fields.only_text("instructions")?.filter(|text| !text.is_empty());
    let mut system =
        instructions.and_then(|text| Some(System { text, place: place_of("instructions")? }));
    let mut lines = Vec::new();
    let input = fields.text("input");
    let is_list = input.is_none();
    lines.extend(input.map(|words| Line::new(ChatRole::User, words, place_of("input"))));
    let items = if is_list { items(fields, "input")? } else { Vec::new() };
    for (at, raw) in items.into_iter().enumerate() {
        let item = message(raw.get())?;
        let kind = item.only_text("type")?.unwrap_or_else(|| "message".to_owned());
        match kind.as_str() {
            "message" => {
                let (words, places) = content(body, item.raw("content"))?;
                match role(&item)? {
                    ChatRole::User => {
                        lines.push(Line::new(ChatRole::User, words, places.into_iter().next()));
                    }
                    ChatRole::Assistant => lines.push(Line::new(ChatRole::Assistant, words, None)),
                    ChatRole::System if at == 0 && system.is_none() => {
                        system = read_system(body, &places);
                    }
                    ChatRole::System | ChatRole::Tool => {}
                }
            }
            "function_call" => {
                let mut called = Line::new(ChatRole::Assistant, String::new(), None);
                called.calls.push(ToolCall {
                    id: item.text("call_id").unwrap_or_default(),
                    name: item.text("name").unwrap_or_default(),
                    arguments: arguments(item.raw("arguments")),
                });
                lines.push(called);
            }
            "function_call_output" => {
                let (said, _) = content(body, item.raw("output"))?;
                let mut result = Line::new(ChatRole::Tool, said, None);
                result.call_id = item.text("call_id");
                lines.push(result);
            }
            _ => {}
        }
    }
    Ok(ChatRequest {
        model: fields.only_text("model")?.unwrap_or_default(),
        system,
        lines,
        session: session(fields),
        previous: fields.text("previous_response_id"),
        ..ChatRequest::default()
    })
}
