//! A model on an Ollama server: checked and loaded before it gets any conversation text.

use std::fmt;

use async_trait::async_trait;

use super::Ollama;
use crate::error::Result;
use crate::model::http::{FactCache, HttpReply};
use crate::model::render::{MakeRenderer, ModelOptions, OllamaChatRenderer, PromptRenderer};
use crate::model::{LanguageModel, ModelLimits, Reply};
use crate::prompt::Prompt;

/// A model on an Ollama server.
///
/// The first call of any method asks the server about the model, loads it, and asks for its window. A model that runs
/// in a cloud is refused at that point, before anything of a conversation is sent, unless it is
/// [allowed](Self::allow_cloud). After a lost connection all of this is asked again.
///
/// If the options do not say whether to think, a thinking model is told not to, because a conversation should not
/// wait for thoughts.
pub struct OllamaModel {
    server: Ollama,
    options: ModelOptions,
    renderer: Box<MakeRenderer>,
    allow_cloud: bool,
    facts: FactCache<Facts>,
}

#[derive(Debug, Clone, Copy)]
struct Facts {
    thinks: bool,
    tools: bool,
    window: Option<u32>,
}

impl OllamaModel {
    /// A model on a server, with these options and requests of [`OllamaChatRenderer`].
    pub fn new(server: Ollama, options: ModelOptions) -> Self {
        let renderer = Box::new(|options| Box::new(OllamaChatRenderer::new(options)) as _);
        Self { server, options, renderer, allow_cloud: false, facts: FactCache::default() }
    }

    /// Sets another renderer, such as `OllamaPromptRenderer::new`.
    #[must_use]
    pub fn renderer<R: PromptRenderer + 'static>(
        mut self,
        make: impl Fn(ModelOptions) -> R + Send + Sync + 'static,
    ) -> Self {
        self.renderer = Box::new(move |options| Box::new(make(options)));
        self
    }

    /// Sets whether the conversation may be sent to another machine; the default is no.
    #[must_use]
    pub fn allow_cloud(mut self, allow: bool) -> Self {
        self.allow_cloud = allow;
        self
    }

    async fn facts(&self) -> Result<Facts> {
        self.facts.get(self.learn()).await
    }

    async fn learn(&self) -> Result<Facts> {
        let name = &self.options.model;
        let info = self.server.show(name).await?;
        if !self.allow_cloud {
            self.server.refuse_cloud(name, &info)?;
        }
        let mut loaded = None;
        // A model that runs elsewhere is neither loaded nor listed here.
        if !info.remote {
            self.server.load(&self.options).await?;
            let running = self.server.running().await?;
            let this = running.into_iter().find(|model| model.is(name));
            loaded = this.and_then(|model| model.context_length);
        }
        let windows = [self.options.num_ctx, info.context_length, loaded];
        let window = windows.into_iter().flatten().min();
        let thinks = info.can("thinking");
        if self.options.think == Some(true) && !thinks {
            tracing::warn!(model = name, "the model cannot think, so it is not asked to");
        }
        tracing::debug!(model = name, window, thinks, "looked at");
        Ok(Facts { thinks, tools: info.can("tools"), window })
    }

    async fn send(&self, prompt: &Prompt, stream: bool) -> Result<HttpReply> {
        let facts = self.facts().await?;
        let mut options = self.options.clone();
        options.stream &= stream;
        options.think = match (options.think, facts.thinks) {
            (None, true) => Some(false),
            (Some(true), false) => None,
            (asked, _) => asked,
        };
        let request = (self.renderer)(options).render(prompt);
        let bytes = request.body.len();
        tracing::debug!(model = self.options.model, bytes, warm_up = !stream, "asking");
        let reply = self.server.send_body(request.path, request.body).await;
        self.facts.watch(reply).map(|reply| reply.allow_cloud(self.allow_cloud))
    }
}

#[async_trait]
impl LanguageModel for OllamaModel {
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

    async fn warm_up(&self, prompt: &Prompt) -> Result<()> {
        self.facts.finish(self.send(&prompt.for_one_token(), false).await?).await
    }
}

impl fmt::Debug for OllamaModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OllamaModel")
            .field("server", &self.server)
            .field("options", &self.options)
            .field("allow_cloud", &self.allow_cloud)
            .finish_non_exhaustive()
    }
}
