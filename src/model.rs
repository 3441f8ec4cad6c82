//! Language models: the trait that a conversation uses, and clients of model servers.

#[cfg(feature = "ollama")]
mod entry;
#[cfg(feature = "ollama")]
mod http;
#[cfg(feature = "http")]
pub mod http_client;
mod limits;
#[cfg(feature = "ollama")]
mod ollama;
#[cfg(feature = "ollama")]
mod openai;
pub(crate) mod render;
mod reply;
#[cfg(feature = "ollama")]
mod served;
#[cfg(feature = "ollama")]
mod server;
#[cfg(feature = "ollama")]
mod stream;
mod thinking;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

pub use crate::error::{AnswerLimit, ModelFailure};
#[cfg(feature = "ollama")]
pub use entry::{ModelEntry, ModelInfo, RunningModel};
#[cfg(feature = "ollama")]
pub use http::HttpReply;
pub use limits::AnswerLimits;
pub(crate) use limits::LimitedReply;
#[cfg(feature = "ollama")]
pub use ollama::{Ollama, OllamaModel};
#[cfg(feature = "ollama")]
pub use openai::{OpenAi, OpenAiModel};
pub use render::{
    KeepAlive, ModelOptions, ModelRequest, OllamaChatRenderer, OllamaPromptRenderer,
    OpenAiChatRenderer, PromptRenderer, earlier_text,
};
pub use reply::{Reply, ReplyPart};
#[cfg(feature = "ollama")]
pub use server::ModelServer;
#[cfg(feature = "ollama")]
pub use stream::{AnswerForm, AnswerReader, RawCall, ReplyItem};
pub(crate) use thinking::ThinkingFilter;
pub use thinking::without_thoughts;

use crate::error::Result;
use crate::prompt::Prompt;

/// A language model that answers prompts.
///
/// [`OllamaModel`] and [`OpenAiModel`] ask a server. A model that runs in the host's own process is a few lines:
///
/// ```
/// use sottovoce::model::{LanguageModel, Reply};
/// use sottovoce::prompt::Prompt;
///
/// struct Parrot;
///
/// #[async_trait::async_trait]
/// impl LanguageModel for Parrot {
///     fn name(&self) -> &str {
///         "parrot"
///     }
///
///     async fn reply(&self, prompt: &Prompt) -> sottovoce::Result<Box<dyn Reply>> {
///         Ok(format!("You said: {}", prompt.user_input.content).into())
///     }
/// }
/// ```
///
/// A model that answers word by word sends each to a channel: `Receiver<Result<ReplyPart>>` of tokio is a [`Reply`] too.
/// A model that wants one text renders the prompt with
/// [`OllamaPromptRenderer::render_text`](OllamaPromptRenderer::render_text).
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// The model's name. The conversation stores what it learns about token counts under it.
    fn name(&self) -> &str;

    /// Starts answering a prompt. The reply yields the answer in pieces.
    ///
    /// # Errors
    /// [`Error::Model`](crate::Error::Model). After [`ModelFailure::PromptTooLong`] the conversation asks again once
    /// with less history.
    async fn reply(&self, prompt: &Prompt) -> Result<Box<dyn Reply>>;

    /// The limits of the model. The first call may take as long as loading the model; later calls are cheap. The
    /// default is an unknown window, and no function calls.
    async fn limits(&self) -> Result<ModelLimits> {
        Ok(ModelLimits::default())
    }

    /// Loads the model and lets it read a prompt without answering, so that the next prompt with the same beginning
    /// is answered sooner. Does nothing by default.
    async fn warm_up(&self, _prompt: &Prompt) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl<M: LanguageModel + ?Sized> LanguageModel for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn reply(&self, prompt: &Prompt) -> Result<Box<dyn Reply>> {
        (**self).reply(prompt).await
    }

    async fn limits(&self) -> Result<ModelLimits> {
        (**self).limits().await
    }

    async fn warm_up(&self, prompt: &Prompt) -> Result<()> {
        (**self).warm_up(prompt).await
    }
}

/// The limits and abilities of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelLimits {
    /// The window for prompt and answer in tokens, if the server reports it.
    pub window: Option<u32>,
    /// Whether it can call functions.
    pub tools: bool,
}

impl ModelLimits {
    /// The limits of a model with this window.
    pub fn window(tokens: u32) -> Self {
        Self { window: Some(tokens), tools: false }
    }

    /// Sets whether the model can call functions; the default is no.
    #[must_use]
    pub fn tools(mut self, can: bool) -> Self {
        self.tools = can;
        self
    }
}

/// The cost of an answer, as far as the server reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt, cached or not.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the prompt that came from the server's cache.
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer.
    pub answer_tokens: Option<u64>,
    /// The time to load the model. In JSON these times are milliseconds.
    #[serde(rename = "loadMs", serialize_with = "millis")]
    pub load_time: Option<Duration>,
    /// The time to read the prompt.
    #[serde(rename = "promptMs", serialize_with = "millis")]
    pub prompt_time: Option<Duration>,
    /// The time to produce the answer.
    #[serde(rename = "answerMs", serialize_with = "millis")]
    pub answer_time: Option<Duration>,
    /// Whether the answer reached its length limit and was cut.
    pub cut: bool,
    /// The limit of [`AnswerLimits`] that cut it, if one did.
    pub cut_at: Option<AnswerLimit>,
}

impl Usage {
    /// A usage of these tokens.
    pub fn tokens(prompt: u64, answer: u64) -> Self {
        Self { prompt_tokens: Some(prompt), answer_tokens: Some(answer), ..Self::default() }
    }

    /// Adds the tokens of earlier requests for the same answer.
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
