//! What every request to a model carries besides the words.

use serde::Serialize;

/// Settings that every request to a model carries. They should be the same each time: a server that sees another
/// context window loads the model anew. A conversation's own temperature and length of answers go before these.
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
    /// Whether the server is to refuse a prompt that is too long instead of cutting it silently (Ollama only).
    pub strict: bool,
    /// Functions that the model may call, as JSON objects in the server's own form. They stand at the head of the
    /// prompt, so they should stay the same from turn to turn.
    pub tools: Vec<serde_json::Value>,
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
            strict: false,
            tools: Vec::new(),
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
