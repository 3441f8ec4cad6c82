//! From a prompt to the request of one kind of model server.

mod ollama_chat;
mod ollama_generate;
mod openai_chat;
mod time;
mod turn;

use std::fmt;

use serde::Serialize;

pub use ollama_chat::OllamaChatRenderer;
pub use ollama_generate::OllamaPromptRenderer;
pub use openai_chat::OpenAiChatRenderer;

use crate::prompt::Prompt;

/// Gives a prompt the form that one provider wants. Equal prompts give equal bytes.
pub trait PromptRenderer: Send + Sync {
    /// The provider's request.
    fn render(&self, prompt: &Prompt) -> ModelRequest;
}

/// A request for a model server: where to post it, and the JSON. `Debug` shows no words.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The path below the server's address.
    pub path: &'static str,
    /// The JSON body.
    pub body: String,
}

impl ModelRequest {
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

/// Settings that every request to a model carries. They should be the same each time: a server that sees another
/// context window loads the model anew.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// The model's name, as the server knows it.
    pub model: String,
    /// The context window in tokens; the server's default where `None`.
    pub num_ctx: Option<u32>,
    /// The most tokens of an answer; the server's default where `None`.
    pub num_predict: Option<u32>,
    /// The sampling temperature, 0 to 2; the model's default where `None`.
    pub temperature: Option<f64>,
    /// How long the server keeps the model loaded: a duration such as `5m`, or seconds, where -1 is for ever.
    pub keep_alive: Option<KeepAlive>,
    /// Whether a thinking model thinks aloud first; left out where `None`, since others refuse the field.
    pub think: Option<bool>,
    /// Whether the answer comes in pieces.
    pub stream: bool,
}

impl ModelOptions {
    /// Defaults for a model: everything left to the server, the answer streamed.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            num_ctx: None,
            num_predict: None,
            temperature: None,
            keep_alive: None,
            think: None,
            stream: true,
        }
    }
}

/// How long a model stays loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum KeepAlive {
    /// Seconds; negative is for ever.
    Seconds(i64),
    /// A number with a unit, such as `5m` or `24h`.
    Text(String),
}

impl From<&str> for KeepAlive {
    fn from(text: &str) -> Self {
        text.trim().parse().map_or_else(|_| Self::Text(text.trim().to_owned()), Self::Seconds)
    }
}

/// The part of an Ollama request that is the same for both of its forms.
#[derive(Serialize)]
struct OllamaSettings<'a> {
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a KeepAlive>,
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

impl<'a> From<&'a ModelOptions> for OllamaSettings<'a> {
    fn from(options: &'a ModelOptions) -> Self {
        Self {
            stream: options.stream,
            think: options.think,
            keep_alive: options.keep_alive.as_ref(),
            options: OllamaOptions {
                num_ctx: options.num_ctx,
                num_predict: options.num_predict,
                temperature: options.temperature,
            },
        }
    }
}
