//! Renders prompts as one text, for Ollama's `/api/generate`.

use std::fmt::Write;

use serde::Serialize;

use super::{ModelOptions, ModelRequest, OllamaSettings, PromptRenderer, chat_line, time};
use crate::context::Placement;
use crate::message::quote::indented;
use crate::message::{ChatMessage, ToolCall, texts};
use crate::prompt::Prompt;

/// Renders one text: the context line by line, the current time, the utterance. It suits models without a chat
/// template, and readers. With [`OllamaChatRenderer`](super::OllamaChatRenderer) a server can reuse more of the last
/// prompt.
///
/// Later lines of a message are indented, so that no message can write a line of another role.
#[derive(Debug, Clone)]
pub struct OllamaPromptRenderer(ModelOptions);

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    system: &'a str,
    prompt: String,
    #[serde(flatten)]
    settings: OllamaSettings<'a>,
}

impl OllamaPromptRenderer {
    /// A renderer with these settings.
    pub fn new(options: ModelOptions) -> Self {
        Self(options)
    }

    /// Returns the text alone.
    pub fn render_text(prompt: &Prompt) -> String {
        let remembered = prompt.placed(Placement::Stable).chain(prompt.placed(Placement::History));
        let mut text = remembered.map(line).collect::<String>();
        if !text.is_empty() {
            text = format!("{}\n{text}\n", texts::CONTEXT);
        }
        text.push_str(&chat_line::found(prompt));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {}", texts::TIME, time::of_now(&prompt.now));
        text.push_str(&line(&prompt.user_input));
        text.extend(prompt.since.iter().map(|message| line(message.message())));
        text.push_str(texts::ANSWER);
        text
    }
}

/// A message as a line with its role.
fn line(message: &ChatMessage) -> String {
    let speaker = chat_line::speaker(message).map(|speaker| format!(" ({speaker})"));
    let calls = message.tool_calls.iter().map(call).collect::<String>();
    format!(
        "{}{}: {calls}{}\n",
        message.role,
        speaker.unwrap_or_default(),
        chat_line::words(message)
    )
}

fn call(call: &ToolCall) -> String {
    indented(&format!("[calls {}({})] ", call.name, call.arguments)).into_owned()
}

impl PromptRenderer for OllamaPromptRenderer {
    fn render(&self, prompt: &Prompt) -> ModelRequest {
        let body = Body {
            model: &self.0.model,
            system: &prompt.system,
            prompt: Self::render_text(prompt),
            settings: OllamaSettings::new(&self.0, prompt),
        };
        ModelRequest::new("/api/generate", &body)
    }
}
