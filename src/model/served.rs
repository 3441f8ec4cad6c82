//! A model on a server: asked about, checked and loaded before it gets any conversation text.

use std::fmt;

use async_trait::async_trait;

use super::http::{FactCache, HttpReply};
use crate::error::Result;
use crate::model::render::{MakeRenderer, ModelOptions, PromptRenderer};
use crate::model::{LanguageModel, ModelLimits, Reply};
use crate::prompt::Prompt;

/// What a server reports about a model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    pub(super) window: Option<u32>,
    pub(super) tools: bool,
    /// Whether the model would think if the request did not say that it must not.
    pub(super) thinks: bool,
    /// Whether the server refuses a request that asks this model to think.
    pub(super) cannot_think: bool,
}

/// A model server as a model on it uses it.
#[async_trait]
pub trait Serving: fmt::Debug + Send + Sync + 'static {
    /// The renderer of a model for which no other is set.
    fn renderer(options: ModelOptions) -> Box<dyn PromptRenderer>;

    /// Asks about the model, and loads it if the server is told to. Refuses a model on other machines unless the cloud
    /// is allowed.
    async fn learn(&self, options: &ModelOptions, allow_cloud: bool) -> Result<Facts>;

    /// Whether a request for one token costs nothing.
    fn is_free(&self) -> bool;

    /// Sends a request.
    async fn send_body(&self, path: &'static str, body: String) -> Result<HttpReply>;
}

/// A model on a server.
///
/// The first call of any method asks the server about the model. A model on other people's machines is refused at that
/// point, before anything of a conversation is sent, unless it is [allowed](Self::allow_cloud). After a lost connection
/// the server is asked again.
///
/// If the options do not say whether to think, a thinking model is told not to, because a conversation should not wait
/// for thoughts.
#[must_use]
pub struct ServedModel<S> {
    server: S,
    options: ModelOptions,
    renderer: Box<MakeRenderer>,
    allow_cloud: bool,
    facts: FactCache<Facts>,
}

impl<S: Serving> ServedModel<S> {
    /// A model on a server, with these options and the server's own form of chat requests.
    pub fn new(server: S, options: ModelOptions) -> Self {
        let renderer = Box::new(S::renderer);
        Self { server, options, renderer, allow_cloud: false, facts: FactCache::default() }
    }

    /// Sets another renderer, such as `OllamaPromptRenderer::new`.
    pub fn renderer<R: PromptRenderer + 'static>(
        mut self,
        make: impl Fn(ModelOptions) -> R + Send + Sync + 'static,
    ) -> Self {
        self.renderer = Box::new(move |options| Box::new(make(options)));
        self
    }

    /// Sets whether the conversation may be sent to other people's machines; the default is no.
    pub fn allow_cloud(mut self, allow: bool) -> Self {
        self.allow_cloud = allow;
        self
    }

    async fn facts(&self) -> Result<Facts> {
        self.facts.get(self.server.learn(&self.options, self.allow_cloud)).await
    }

    async fn send(&self, prompt: &Prompt, stream: bool) -> Result<HttpReply> {
        let facts = self.facts().await?;
        let mut options = self.options.clone();
        options.stream &= stream;
        options.think = match options.think {
            None => facts.thinks.then_some(false),
            Some(true) if facts.cannot_think => None,
            asked => asked,
        };
        let request = (self.renderer)(options).render(prompt);
        let bytes = request.body.len();
        tracing::debug!(model = self.options.model, bytes, warm_up = !stream, "asking");
        let reply = self.server.send_body(request.path, request.body).await;
        self.facts.watch(reply).map(|reply| reply.allow_cloud(self.allow_cloud))
    }
}

#[async_trait]
impl<S: Serving> LanguageModel for ServedModel<S> {
    fn name(&self) -> &str {
        &self.options.model
    }

    async fn limits(&self) -> Result<ModelLimits> {
        let Facts { window, tools, .. } = self.facts().await?;
        Ok(ModelLimits { window, tools })
    }

    async fn reply(&self, prompt: &Prompt) -> Result<Box<dyn Reply>> {
        Ok(self.facts.watched(self.send(prompt, true).await?))
    }

    /// Lets the server read the prompt by asking for an answer of one token. A server that costs money is not asked.
    async fn warm_up(&self, prompt: &Prompt) -> Result<()> {
        self.facts().await?;
        if !self.server.is_free() {
            return Ok(());
        }
        self.facts.finish(self.send(&prompt.for_one_token(), false).await?).await
    }
}

impl<S: fmt::Debug> fmt::Debug for ServedModel<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedModel")
            .field("server", &self.server)
            .field("options", &self.options)
            .field("allow_cloud", &self.allow_cloud)
            .finish_non_exhaustive()
    }
}

/// The settings that all model servers have.
macro_rules! settings_of_a_server {
    ($server:ident) => {
        impl std::fmt::Debug for $server {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($server)).field(&self.client.shown()).finish()
            }
        }

        impl $server {
            /// Sets the API key, which every request sends as a bearer token.
            ///
            /// # Errors
            /// [`Error::Config`](crate::Error::Config) for a key that is not one word of printable ASCII, or that
            /// would leave the local network unencrypted.
            pub fn api_key(self, key: zeroize::Zeroizing<String>) -> crate::error::Result<Self> {
                Ok(Self { client: Arc::new(HttpClient::clone(&self.client).with_key(key)?) })
            }

            /// Sets the limits of one answer.
            pub fn answer_limits(self, limits: crate::model::AnswerLimits) -> Self {
                Self { client: Arc::new(self.client.with_limits(limits)) }
            }
        }
    };
}
pub(super) use settings_of_a_server;
