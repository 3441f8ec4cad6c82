//! Requests with one prompt, as Ollama's generate has it.

use super::chat::count;
use super::json::{Object, place};
use super::line::{ChatRequest, Line, Speaker, System};

pub(super) fn read(body: &str, fields: &Object<'_>) -> Option<ChatRequest> {
    // A raw prompt is already in the model's own format, and one with a suffix completes a text.
    if fields.is_true("raw") || fields.text("suffix").is_some_and(|suffix| !suffix.is_empty()) {
        return None;
    }
    let place_of = |name| fields.raw(name).and_then(|raw| place(body, raw));
    let system = fields.text("system").filter(|text| !text.is_empty());
    let system = system.and_then(|text| Some(System { text, place: place_of("system")? }));
    let window = fields.object("options").and_then(|options| options.number("num_ctx"));
    Some(ChatRequest {
        model: fields.text("model").unwrap_or_default(),
        system,
        lines: vec![Line {
            speaker: Speaker::User,
            text: fields.text("prompt")?,
            calls: Vec::new(),
            call_id: None,
            tool: None,
            place: place_of("prompt"),
        }],
        session: None,
        previous: None,
        window: window.and_then(count),
    })
}
