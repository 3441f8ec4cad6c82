//! The settings of every request to a model.

use serde::Serialize;

/// The settings of every request to a model. Keep them the same: a server loads a model again for another context
/// window. A conversation's own temperature and answer length override these.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// The model's name, as the server knows it.
    pub model: String,
    /// The context window in tokens; `None` means the server's default.
    pub num_ctx: Option<u32>,
    /// The most tokens of an answer; `None` means the server's default.
    pub num_predict: Option<u32>,
    /// The sampling temperature, 0 to 2; `None` means the model's default.
    pub temperature: Option<f64>,
    /// How long the server keeps the model loaded: a duration such as `5m`, or seconds; -1 means for ever.
    pub keep_alive: Option<KeepAlive>,
    /// Whether a thinking model thinks before it answers. `None` leaves the field out, because other models refuse
    /// it.
    pub think: Option<bool>,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether the server must refuse a prompt that is too long instead of cutting it silently (Ollama only).
    pub strict: bool,
    /// Functions that the model may call, as JSON objects in the server's format. They stand at the head of the
    /// prompt, so keep them the same from turn to turn.
    pub tools: Vec<serde_json::Value>,
}

impl ModelOptions {
    /// The default settings for a model: a streamed answer, and the server's defaults.
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
    /// Seconds; a negative number means for ever.
    Seconds(i64),
    /// A number with a unit, such as `5m` or `24h`.
    Text(String),
}

impl From<&str> for KeepAlive {
    fn from(text: &str) -> Self {
        text.trim().parse().map_or_else(|_| Self::Text(text.trim().to_owned()), Self::Seconds)
    }
}
