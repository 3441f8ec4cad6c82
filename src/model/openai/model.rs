//! A model on a server with OpenAI's chat completions.

use std::fmt;

use async_trait::async_trait;

use super::OpenAi;
use super::facts::Facts;
use crate::error::Result;
use crate::model::http::{FactCache, HttpReply};
use crate::model::render::{MakeRenderer, ModelOptions, OpenAiChatRenderer, PromptRenderer};
use crate::model::{LanguageModel, ModelLimits, Reply};
use crate::prompt::Prompt;

/// A model on a server with OpenAI's chat completions.
///
/// The first call of any method asks the server for the model's window. A server that is not [near](OpenAi::is_near)
/// is refused before that and gets nothing of a conversation, unless it is [allowed](Self::allow_cloud). After a lost
/// connection the server is asked again.
///
/// If the options do not say whether to think, llama.cpp's server and vLLM are told not to, because a conversation
/// should not wait for thoughts.
pub struct OpenAiModel {
    server: OpenAi,
    options: ModelOptions,
    renderer: Box<MakeRenderer>,
    allow_cloud: bool,
    facts: FactCache<Facts>,
}

impl OpenAiModel {
    /// A model on a server, with these options and requests of [`OpenAiChatRenderer`].
    pub fn new(server: OpenAi, options: ModelOptions) -> Self {
        let renderer = Box::new(|options| Box::new(OpenAiChatRenderer::new(options)) as _);
        Self { server, options, renderer, allow_cloud: false, facts: FactCache::default() }
    }

    /// Sets another renderer.
    #[must_use]
    pub fn renderer<R: PromptRenderer + 'static>(
        mut self,
        make: impl Fn(ModelOptions) -> R + Send + Sync + 'static,
    ) -> Self {
        self.renderer = Box::new(move |options| Box::new(make(options)));
        self
    }

    /// Sets whether the conversation may leave the local network; the default is no.
    #[must_use]
    pub fn allow_cloud(mut self, allow: bool) -> Self {
        self.allow_cloud = allow;
        self
    }

    async fn facts(&self) -> Result<Facts> {
        self.facts.get(self.learn()).await
    }

    async fn learn(&self) -> Result<Facts> {
        let model = &self.options.model;
        if !self.allow_cloud {
            self.server.refuse_cloud(model)?;
        }
        let said = self.server.facts(model).await?;
        let window = said.window.into_iter().chain(self.options.num_ctx).min();
        tracing::debug!(model, window, "looked at");
        Ok(Facts { window, ..said })
    }

    async fn send(&self, prompt: &Prompt, stream: bool) -> Result<HttpReply> {
        let facts = self.facts().await?;
        let mut options = self.options.clone();
        options.stream &= stream;
        options.think = options.think.or(facts.has_template.then_some(false));
        let request = (self.renderer)(options).render(prompt);
        let bytes = request.body.len();
        tracing::debug!(model = self.options.model, bytes, warm_up = !stream, "asking");
        self.facts.watch(self.server.send_body(request.path, request.body).await)
    }
}

#[async_trait]
impl LanguageModel for OpenAiModel {
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

    /// Lets the server read the prompt by asking for an answer of one token. A server that is not nearby is not
    /// asked, because that costs money.
    async fn warm_up(&self, prompt: &Prompt) -> Result<()> {
        self.facts().await?;
        if !self.server.is_near() {
            return Ok(());
        }
        self.facts.finish(self.send(&prompt.for_one_token(), false).await?).await
    }
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel")
            .field("server", &self.server)
            .field("options", &self.options)
            .field("allow_cloud", &self.allow_cloud)
            .finish_non_exhaustive()
    }
}
