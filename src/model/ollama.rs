//! The Ollama server: its models and their answers.

mod body;
mod facts;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::entry::{ModelEntry, ModelInfo, RunningModel};
use super::http::{HttpClient, HttpReply};
use super::served::{Facts, ServedModel, Serving, settings_of_a_server};
use super::stream::AnswerForm;
use crate::error::{ModelFailure, Result};
use crate::model::render::{ModelOptions, ModelRequest, OllamaChatRenderer, PromptRenderer};

/// An Ollama server. Clones share its connections.
///
/// The client connects to the given address only: it follows no redirects and uses no proxy. A user name and password
/// in the address are sent as basic authentication. Errors, logs and `Debug` show the address without them.
///
/// If the server's queue is full, the client asks again for up to two seconds. Every call may fail with
/// [`Error::Model`](crate::Error::Model).
///
/// ```no_run
/// # async fn example() -> sottovoce::Result<()> {
/// use std::time::Duration;
/// use sottovoce::{LanguageModel, ModelOptions, Ollama, OllamaModel};
///
/// let server = Ollama::new("http://127.0.0.1:11434", Duration::from_secs(120))?;
/// println!("Ollama {}", server.version().await?);
///
/// let model = OllamaModel::new(server, ModelOptions::new("llama3.2"));
/// println!("{:?}", model.limits().await?.window);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Ollama {
    client: Arc<HttpClient>,
}

settings_of_a_server!(Ollama);

impl Ollama {
    /// A server at an address such as `http://127.0.0.1:11434`. Sends nothing yet.
    ///
    /// `silence` is the longest time that the server may be silent, before or during an answer. A server is silent
    /// while it loads a model.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for an invalid address, and for `https` without the feature `tls`.
    pub fn new(base_url: &str, silence: Duration) -> Result<Self> {
        Ok(Self { client: Arc::new(HttpClient::new(base_url, silence)?) })
    }

    /// The server's version, such as `0.33.0`.
    pub async fn version(&self) -> Result<String> {
        #[derive(Deserialize)]
        struct Version {
            version: String,
        }
        let answer = self.client.get("/api/version").await?.json::<Version>().await?;
        Ok(answer.version)
    }

    /// The models that the server has, loaded or not.
    pub async fn models(&self) -> Result<Vec<ModelEntry>> {
        let answer = self.client.get("/api/tags").await?.json::<facts::Tags>().await?;
        Ok(answer.into())
    }

    /// The abilities of a model.
    pub async fn show(&self, model: &str) -> Result<ModelInfo> {
        let body = json!({ "model": model }).to_string();
        let answer = self.client.post("/api/show", body).await?.json::<facts::Show>().await?;
        Ok(answer.into())
    }

    /// The models that are loaded.
    pub async fn running(&self) -> Result<Vec<RunningModel>> {
        let answer = self.client.get("/api/ps").await?.json::<facts::Running>().await?;
        Ok(answer.into())
    }

    /// Loads a model with these options, so that the first request with the same options does not load it again.
    /// Sends no conversation text.
    pub async fn load(&self, options: &ModelOptions) -> Result<()> {
        #[derive(Deserialize)]
        struct Loaded {}
        let body = body::load(options);
        let _: Loaded = self.client.post("/api/chat", body).await?.json().await?;
        tracing::debug!(model = options.model, "loaded");
        Ok(())
    }

    /// Sends a request unchanged. Streamed and whole answers are read the same way.
    ///
    /// Does not check whether the model runs in a cloud; [`OllamaModel`] does.
    pub async fn send(&self, request: &ModelRequest) -> Result<HttpReply> {
        self.send_body(request.path, request.body.clone()).await
    }

    /// Refuses a model that would send conversation text to another machine.
    fn refuse_cloud(&self, model: &str, info: &ModelInfo) -> Result<()> {
        if info.remote {
            tracing::warn!(model, "the model runs in a cloud, which is not allowed");
            return Err(self.client.fail(ModelFailure::Cloud { model: model.to_owned() }));
        }
        Ok(())
    }
}

/// A model on an Ollama server. It is loaded before it is asked.
pub type OllamaModel = ServedModel<Ollama>;

#[async_trait]
impl Serving for Ollama {
    fn renderer(options: ModelOptions) -> Box<dyn PromptRenderer> {
        Box::new(OllamaChatRenderer::new(options))
    }

    async fn learn(&self, options: &ModelOptions, allow_cloud: bool) -> Result<Facts> {
        let name = &options.model;
        let info = self.show(name).await?;
        if !allow_cloud {
            self.refuse_cloud(name, &info)?;
        }
        let mut loaded = None;
        // A model that runs elsewhere is neither loaded nor listed here.
        if !info.remote {
            self.load(options).await?;
            let this = self.running().await?.into_iter().find(|model| model.is(name));
            loaded = this.and_then(|model| model.context_length);
        }
        let windows = [options.num_ctx, info.context_length, loaded];
        let window = windows.into_iter().flatten().min();
        let thinks = info.can("thinking");
        if options.think == Some(true) && !thinks {
            tracing::warn!(model = name, "the model cannot think, so it is not asked to");
        }
        tracing::debug!(model = name, window, thinks, "looked at");
        Ok(Facts { window, tools: info.can("tools"), thinks, cannot_think: !thinks })
    }

    fn is_free(&self) -> bool {
        true
    }

    async fn send_body(&self, path: &'static str, body: String) -> Result<HttpReply> {
        Ok(HttpReply::new(self.client.post(path, body).await?, AnswerForm::Ollama))
    }
}
