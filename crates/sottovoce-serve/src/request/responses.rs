//! Requests of OpenAI's responses: one text, or a list of items.

use sottovoce::ToolCall;

use super::chat::{Role, arguments, content, items, message, role, session, system as read_system};
use super::json::{Object, place};
use super::line::{ChatRequest, Line, Speaker, System, Unread};

pub(super) fn read(body: &str, fields: &Object<'_>) -> Result<ChatRequest, Unread> {
    let place_of = |name| fields.raw(name).and_then(|raw| place(body, raw));
    let instructions = fields.only_text("instructions")?.filter(|text| !text.is_empty());
    let mut system =
        instructions.and_then(|text| Some(System { text, place: place_of("instructions")? }));
    let mut lines = Vec::new();
    let input = fields.text("input");
    let is_list = input.is_none();
    lines.extend(input.map(|words| line(Speaker::User, words, place_of("input"))));
    let items = if is_list { items(fields, "input")? } else { Vec::new() };
    for (at, raw) in items.into_iter().enumerate() {
        let item = message(raw.get())?;
        let kind = item.only_text("type")?.unwrap_or_else(|| "message".to_owned());
        match kind.as_str() {
            "message" => {
                let (words, places) = content(body, item.raw("content"))?;
                match role(&item)? {
                    Role::User => {
                        lines.push(line(Speaker::User, words, places.into_iter().next()));
                    }
                    Role::Assistant => lines.push(line(Speaker::Assistant, words, None)),
                    Role::System if at == 0 && system.is_none() => {
                        system = read_system(body, &places);
                    }
                    Role::System | Role::Tool => {}
                }
            }
            "function_call" => {
                let mut called = line(Speaker::Assistant, String::new(), None);
                called.calls.push(ToolCall {
                    id: item.text("call_id").unwrap_or_default(),
                    name: item.text("name").unwrap_or_default(),
                    arguments: arguments(item.raw("arguments")),
                });
                lines.push(called);
            }
            "function_call_output" => {
                let (said, _) = content(body, item.raw("output"))?;
                let mut result = line(Speaker::Tool, said, None);
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
        window: None,
    })
}

fn line(speaker: Speaker, text: String, place: Option<std::ops::Range<usize>>) -> Line {
    Line { speaker, text, calls: Vec::new(), call_id: None, tool: None, place }
}
