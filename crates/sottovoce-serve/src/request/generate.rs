//! Requests with one prompt, as Ollama's generate has it.

use sottovoce::ChatRole;

use super::chat::{count, or_pictures};
use super::json::{Object, place};
use super::line::{ChatRequest, Line, System, Unread};

pub(super) fn read(body: &str, fields: &Object<'_>) -> Result<ChatRequest, Unread> {
    if fields.is_true("raw") {
        return Err(Unread::Aside("a raw prompt is in the model's own format"));
    }
    if fields.only_text("suffix")?.is_some_and(|suffix| !suffix.is_empty()) {
        return Err(Unread::Aside("a prompt with a suffix completes a text"));
    }
    let system = fields.only_text("system")?.filter(|text| !text.is_empty());
    let system =
        system.and_then(|text| Some(System { text, place: place(body, fields.raw("system")?)? }));
    let window = fields.object("options").and_then(|options| options.number("num_ctx"));
    let at = fields.raw("prompt").and_then(|raw| place(body, raw));
    let prompt = (fields.only_text("prompt")?.unwrap_or_default(), at.into_iter().collect());
    let (text, places) = or_pictures(prompt, fields.count("images"));
    Ok(ChatRequest {
        model: fields.only_text("model")?.unwrap_or_default(),
        system,
        lines: vec![Line::new(ChatRole::User, text, places.into_iter().next())],
        window: window.and_then(count),
        has_tokens: fields.count("context") > 0,
        ..ChatRequest::default()
    })
}
