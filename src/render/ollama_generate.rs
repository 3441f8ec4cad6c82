//! The prompt as one text, for Ollama's `/api/generate`.

use std::fmt::Write;

use serde::Serialize;

use super::turn::{Speakers, indented};
use super::{ModelOptions, ModelRequest, OllamaSettings, PromptRenderer, time};
use crate::message::{ChatMessage, ToolCall};
use crate::prompt::Prompt;

/// One text: the previous context line by line, the current time, the utterance. For models without a chat template
/// and for reading; [`OllamaChatRenderer`](super::OllamaChatRenderer) lets a server reuse more of the last prompt.
///
/// Lines within a message are set in, so that no message can write another role's line.
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
    /// Requests with these settings.
    pub fn new(options: ModelOptions) -> Self {
        Self(options)
    }

    /// The text alone.
    pub fn render_text(prompt: &Prompt) -> String {
        let mut text = String::new();
        if !prompt.context.is_empty() {
            text.push_str("Previous context:\n");
        }
        let mut speakers = Speakers::default();
        let role = |message: &ChatMessage, label: Option<String>| match label {
            Some(speaker) => format!("{} ({speaker})", message.role),
            None => message.role.to_string(),
        };
        for (_, message) in &prompt.context {
            let message = message.message();
            let calls = message.tool_calls.iter().map(call).collect::<String>();
            let role = role(message, speakers.label_of_user(message));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{role}: {calls}{}", indented(&message.content));
        }
        if !prompt.context.is_empty() {
            text.push('\n');
        }
        let _ = write!(
            text,
            "Current time: {}\n{}: {}\nAssistant:",
            time::of_now(&prompt.now),
            role(&prompt.user_input, speakers.label_of_user(&prompt.user_input)),
            indented(&prompt.user_input.content)
        );
        text
    }
}

fn call(call: &ToolCall) -> String {
    indented(&format!("[calls {}({})] ", call.name, call.arguments))
}

impl PromptRenderer for OllamaPromptRenderer {
    fn render(&self, prompt: &Prompt) -> ModelRequest {
        let body = Body {
            model: &self.0.model,
            system: &prompt.system,
            prompt: Self::render_text(prompt),
            settings: (&self.0).into(),
        };
        ModelRequest::new("/api/generate", &body)
    }
}
