//! The prompt as one text, for Ollama's `/api/generate`.

use std::fmt::Write;

use serde::Serialize;

use super::turn::{self, indented};
use super::{ModelOptions, ModelRequest, OllamaSettings, PromptRenderer, time};
use crate::context::Placement;
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
        let role = |message: &ChatMessage| match turn::speaker(message) {
            Some(speaker) => format!("{} ({speaker})", message.role),
            None => message.role.to_string(),
        };
        let remembered = prompt.placed(Placement::Stable).chain(prompt.placed(Placement::History));
        let mut text = String::new();
        for message in remembered {
            if text.is_empty() {
                text.push_str("Previous context:\n");
            }
            let calls = message.tool_calls.iter().map(call).collect::<String>();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}: {calls}{}", role(message), indented(&message.content));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&turn::found(prompt).unwrap_or_default());
        let _ = write!(
            text,
            "Current time: {}\n{}: {}\nAssistant:",
            time::of_now(&prompt.now),
            role(&prompt.user_input),
            indented(&prompt.user_input.content)
        );
        text
    }
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
            settings: (&self.0).into(),
        };
        ModelRequest::new("/api/generate", &body)
    }
}
