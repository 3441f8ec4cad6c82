//! A model on a server of OpenAI's chat completions.

use async_trait::async_trait;
use serde_json::json;

use super::OpenAi;
use super::facts::Facts;
use crate::error::Result;
use crate::model::http::{Edit, FactCache, HttpReply};
use crate::model::render::{ModelOptions, ModelRequest};
use crate::model::{LanguageModel, ModelLimits, Reply};

/// A model on a server of OpenAI's chat completions.
///
/// The first call of any of its methods asks the server what window the model has. A server that is not
/// [near](OpenAi::is_near) is refused before that, and gets nothing of a conversation, unless
/// [allowed](Self::allow_cloud). After a lost connection it is asked anew.
///
/// llama.cpp's server and vLLM are told not to think where the options leave it open: nobody wants to wait for it in a
/// conversation.
#[derive(Debug)]
pub struct OpenAiModel {
    server: OpenAi,
    options: ModelOptions,
    allow_cloud: bool,
    facts: FactCache<Facts>,
}

impl OpenAiModel {
    /// A model with the options that its requests are rendered with.
    pub fn new(server: OpenAi, options: ModelOptions) -> Self {
        Self { server, options, allow_cloud: false, facts: FactCache::default() }
    }

    /// Whether the conversation may leave the house; it may not by default.
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

    /// A request as this server can take it.
    fn fitted(&self, body: &str, facts: Facts, warm_up: bool) -> String {
        const THINKING: &str = "chat_template_kwargs";
        let is_quiet = facts.has_template && self.options.think.is_none();
        if !is_quiet && !warm_up {
            return body.to_owned();
        }
        let Some(mut edit) = Edit::of(body) else { return body.to_owned() };
        if is_quiet && !edit.has(THINKING) {
            edit.set(THINKING, &json!({ "enable_thinking": false }));
        }
        if warm_up {
            edit.set("stream", &false);
            edit.remove("stream_options");
            edit.set("max_tokens", &1);
        }
        edit.written().unwrap_or_else(|| body.to_owned())
    }

    async fn send(&self, request: &ModelRequest, warm_up: bool) -> Result<HttpReply> {
        let body = self.fitted(&request.body, self.facts().await?, warm_up);
        tracing::debug!(model = self.options.model, bytes = body.len(), "asking");
        self.facts.watch(self.server.send_body(request.path, body).await)
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

    async fn reply(&self, request: &ModelRequest) -> Result<Box<dyn Reply>> {
        Ok(self.facts.watched(self.send(request, false).await?))
    }

    /// Has the server read the request for an answer of one token. What is not nearby is not asked: that costs money.
    async fn warm_up(&self, request: &ModelRequest) -> Result<()> {
        self.facts().await?;
        if !self.server.is_near() {
            return Ok(());
        }
        self.facts.finish(self.send(request, true).await?).await
    }
}
