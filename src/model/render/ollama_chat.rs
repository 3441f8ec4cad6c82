//! Renders prompts for Ollama's `/api/chat`.

use serde::Serialize;

use super::chat_line::{self, ChatLine};
use super::{ModelOptions, ModelRequest, OllamaSettings, PromptRenderer};
use crate::prompt::Prompt;

/// Renders messages whose beginning stays the same from turn to turn, so that a local model reads only what is new.
///
/// Each user message starts with its time, as in a log: `[Sunday 24 August 2025 18:36 +02:00]`, and later on the same
/// day `[Sunday 18:37]`. The newest message has the current time. The speaker's name follows if the host set it.
/// Later lines of a message are indented, so that none can pass for another person's message.
#[derive(Debug, Clone)]
pub struct OllamaChatRenderer(ModelOptions);

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<ChatLine<'a, Call<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<&'a serde_json::Value>,
    #[serde(flatten)]
    settings: OllamaSettings<'a>,
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a serde_json::Value,
}

impl OllamaChatRenderer {
    /// A renderer with these settings.
    pub fn new(options: ModelOptions) -> Self {
        Self(options)
    }
}

impl PromptRenderer for OllamaChatRenderer {
    fn render(&self, prompt: &Prompt) -> ModelRequest {
        let body = Body {
            model: &self.0.model,
            messages: chat_line::lines(prompt, |call| Call {
                id: &call.id,
                function: Function { name: &call.name, arguments: &call.arguments },
            }),
            tools: self.0.tools.iter().chain(&prompt.tools).collect(),
            settings: OllamaSettings::new(&self.0, prompt),
        };
        ModelRequest::new("/api/chat", &body)
    }
}
