//! Renders a prompt to the request of one kind of model server.

mod chat_line;
mod earlier;
mod ollama_chat;
mod ollama_generate;
mod openai_chat;
mod options;
mod stamp_filter;
mod time;

use std::fmt;

use serde::Serialize;

pub use earlier::earlier_text;
pub use ollama_chat::OllamaChatRenderer;
pub use ollama_generate::OllamaPromptRenderer;
pub use openai_chat::OpenAiChatRenderer;
pub use options::{KeepAlive, ModelOptions};
pub(crate) use stamp_filter::StampFilter;

#[cfg(feature = "recall")]
use crate::message::ChatMessage;
use crate::prompt::Prompt;

/// The full time of a message.
#[cfg(feature = "recall")]
pub(crate) fn said_when(message: &ChatMessage) -> String {
    time::in_full(&time::of_message(message))
}

/// Renders a prompt in a provider's format. Equal prompts give equal bytes.
pub trait PromptRenderer: Send + Sync {
    /// Returns the provider's request.
    fn render(&self, prompt: &Prompt) -> ModelRequest;
}

/// A request for a model server: a path and a JSON body. `Debug` shows no words.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The path below the server's address.
    pub path: &'static str,
    /// The JSON body.
    pub body: String,
}

impl ModelRequest {
    /// A JSON body for this path below the server's address.
    pub fn json(path: &'static str, body: &serde_json::Value) -> Self {
        Self::new(path, body)
    }

    fn new(path: &'static str, body: &impl Serialize) -> Self {
        // The bodies are structs of strings and numbers, which always have a JSON form.
        let body = serde_json::to_string(body).unwrap_or_default();
        Self { path, body }
    }
}

impl fmt::Debug for ModelRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelRequest({}, {} bytes)", self.path, self.body.len())
    }
}

/// The part of an Ollama request that both of its formats share.
#[derive(Serialize)]
struct OllamaSettings<'a> {
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a KeepAlive>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncate: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shift: Option<bool>,
    options: OllamaOptions,
}

#[derive(Serialize)]
struct OllamaOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

impl<'a> OllamaSettings<'a> {
    /// The settings of every request, except those that the prompt overrides.
    fn new(options: &'a ModelOptions, prompt: &Prompt) -> Self {
        Self {
            stream: options.stream,
            think: options.think,
            keep_alive: options.keep_alive.as_ref(),
            truncate: options.strict.then_some(false),
            shift: options.strict.then_some(false),
            options: OllamaOptions {
                num_ctx: options.num_ctx,
                num_predict: prompt.max_tokens.or(options.num_predict),
                temperature: prompt.temperature.or(options.temperature),
            },
        }
    }
}

/// A constructor of a renderer for known settings.
#[cfg(feature = "ollama")]
pub(crate) type MakeRenderer =
    dyn Fn(ModelOptions) -> Box<dyn PromptRenderer> + Send + Sync + 'static;
