//! Models that answer rendered prompts.

#[cfg(feature = "ollama")]
mod http;
mod limits;
#[cfg(feature = "ollama")]
mod ollama;
#[cfg(feature = "ollama")]
mod openai;
pub(crate) mod render;
#[cfg(feature = "ollama")]
mod server;
mod thinking;

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

#[cfg(feature = "ollama")]
pub use http::HttpReply;
pub use limits::AnswerLimits;
pub(crate) use limits::LimitedReply;
#[cfg(feature = "ollama")]
pub use ollama::{Ollama, OllamaEmbedder, OllamaModel};
#[cfg(feature = "ollama")]
pub use openai::{OpenAi, OpenAiModel};
#[cfg(feature = "ollama")]
pub use server::{ModelEntry, ModelInfo, ModelServer, RunningModel};
pub(crate) use thinking::ThinkingFilter;

use crate::error::{AnswerLimit, Result};
use crate::message::ToolCall;
use crate::model::render::ModelRequest;

/// A model on some server.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// Its name on the server.
    fn name(&self) -> &str;

    /// What it can take. The first call may take as long as loading the model; later ones are cheap.
    async fn limits(&self) -> Result<ModelLimits>;

    /// Sends a request; the answer comes piece by piece.
    ///
    /// # Errors
    /// [`Error::Model`](crate::Error::Model) with [`ModelFailure::PromptTooLong`](crate::ModelFailure::PromptTooLong)
    /// where less history may help.
    async fn reply(&self, request: &ModelRequest) -> Result<Box<dyn Reply>>;

    /// Has the model read a request without answering it, so that the next one that begins alike is answered sooner.
    async fn warm_up(&self, request: &ModelRequest) -> Result<()>;
}

/// An answer as it comes. Dropping it tells the server to stop.
#[async_trait]
pub trait Reply: Send {
    /// The next piece; [`ReplyPart::Done`] is the last, and an answer that ends without it is an error.
    async fn next(&mut self) -> Result<ReplyPart>;
}

/// A piece of an answer. `Debug` shows no words.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ReplyPart {
    /// Words to be spoken.
    Text(String),
    /// The model thinks. What it thinks stays with it.
    Thinking,
    /// Functions that the host is to run.
    ToolCalls(Vec<ToolCall>),
    /// The end, and what it cost.
    Done(Usage),
}

impl std::fmt::Debug for ReplyPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Thinking => f.write_str("Thinking"),
            Self::ToolCalls(calls) => write!(f, "ToolCalls({})", calls.len()),
            Self::Done(usage) => f.debug_tuple("Done").field(usage).finish(),
        }
    }
}

/// What a model can take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelLimits {
    /// Tokens of prompt and answer together, where the server says.
    pub window: Option<u32>,
    /// Whether it can call functions.
    pub tools: bool,
}

impl ModelLimits {
    /// A window of so many tokens.
    pub fn window(tokens: u32) -> Self {
        Self { window: Some(tokens), tools: false }
    }

    /// Whether the model can call functions; unless told, it cannot.
    #[must_use]
    pub fn tools(mut self, can: bool) -> Self {
        self.tools = can;
        self
    }
}

/// What an answer cost, as far as the server says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt, whether or not they were evaluated anew.
    pub prompt_tokens: Option<u64>,
    /// Those of them that were not evaluated again.
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer.
    pub answer_tokens: Option<u64>,
    /// Loading the model; in JSON these times are milliseconds.
    #[serde(rename = "loadMs", serialize_with = "millis")]
    pub load_time: Option<Duration>,
    /// Evaluating the prompt.
    #[serde(rename = "promptMs", serialize_with = "millis")]
    pub prompt_time: Option<Duration>,
    /// Producing the answer.
    #[serde(rename = "answerMs", serialize_with = "millis")]
    pub answer_time: Option<Duration>,
    /// Whether the answer was cut at its greatest length.
    pub cut: bool,
    /// Which of [`AnswerLimits`] cut it, if it was not the model's own end.
    pub cut_at: Option<AnswerLimit>,
}

impl Usage {
    /// The same with the tokens of earlier requests for the same answer.
    pub(crate) fn with_before(mut self, before: &Self) -> Self {
        let add = |now: &mut Option<u64>, before: Option<u64>| {
            if let Some(before) = before {
                *now = Some(now.unwrap_or(0).saturating_add(before));
            }
        };
        add(&mut self.prompt_tokens, before.prompt_tokens);
        add(&mut self.cached_tokens, before.cached_tokens);
        add(&mut self.answer_tokens, before.answer_tokens);
        self
    }
}

/// A duration in milliseconds, to the microsecond.
pub(crate) fn millis<S: serde::Serializer>(
    time: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_micros() as f64 / 1e3).serialize(to)
}
