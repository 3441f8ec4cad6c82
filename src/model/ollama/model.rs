//! A model on an Ollama server, looked at before it is told anything.

use async_trait::async_trait;
use serde_json::json;

use super::Ollama;
use crate::error::Result;
use crate::model::http::{Edit, FactCache, HttpReply};
use crate::model::render::{ModelOptions, ModelRequest};
use crate::model::{LanguageModel, ModelLimits, Reply};

/// A model on an Ollama server.
///
/// The first call of any of its methods asks the server what the model is, loads it, and asks what window it got. A
/// model that runs in a cloud is refused then, before anything of a conversation is sent, unless
/// [allowed](Self::allow_cloud). After a lost connection all of this is asked anew.
///
/// A thinking model is told not to think where the options leave it open: nobody wants to wait for it in a
/// conversation.
#[derive(Debug)]
pub struct OllamaModel {
    server: Ollama,
    options: ModelOptions,
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
    /// A model with the options that its requests are rendered with.
    pub fn new(server: Ollama, options: ModelOptions) -> Self {
        Self { server, options, allow_cloud: false, facts: FactCache::default() }
    }

    /// Whether the conversation may be sent on to another machine; it may not by default.
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
        // What runs elsewhere is neither loaded nor listed here.
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
            tracing::warn!(model = name, "cannot think; it is not asked to");
        }
        tracing::debug!(model = name, window, thinks, "looked at");
        Ok(Facts { thinks, tools: info.can("tools"), window })
    }

    /// A request as this model can take it.
    fn fitted(&self, body: &str, facts: Facts, warm_up: bool) -> String {
        let think = match (self.options.think, facts.thinks) {
            (None, true) => Some(true),
            (Some(true), false) => Some(false),
            _ => None,
        };
        if think.is_none() && !warm_up {
            return body.to_owned();
        }
        let Some(mut edit) = Edit::of(body) else { return body.to_owned() };
        match think {
            Some(true) if !edit.has("think") => edit.set("think", &false),
            Some(false) => edit.remove("think"),
            _ => {}
        }
        if warm_up {
            edit.set("stream", &false);
            // 0 would be no limit.
            edit.set_option("num_predict", json!(1));
        }
        edit.written().unwrap_or_else(|| body.to_owned())
    }

    async fn send(&self, request: &ModelRequest, warm_up: bool) -> Result<HttpReply> {
        let body = self.fitted(&request.body, self.facts().await?, warm_up);
        tracing::debug!(model = self.options.model, bytes = body.len(), warm_up, "asking");
        let reply = self.server.send_body(request.path, body).await;
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

    async fn reply(&self, request: &ModelRequest) -> Result<Box<dyn Reply>> {
        Ok(self.facts.watched(self.send(request, false).await?))
    }

    async fn warm_up(&self, request: &ModelRequest) -> Result<()> {
        self.facts.finish(self.send(request, true).await?).await
    }
}
