//! Servers with OpenAI's chat completions: llama.cpp's, LM Studio, vLLM, LocalAI, and those in clouds.

mod facts;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::entry::{ModelEntry, ModelInfo, RunningModel};
use super::http::{HttpClient, HttpReply};
use super::served::{Facts, ServedModel, Serving, settings_of_a_server};
use super::stream::AnswerForm;
use crate::error::{ModelFailure, Result};
use crate::model::render::{ModelOptions, ModelRequest, OpenAiChatRenderer, PromptRenderer};
use facts::{List, Listed, Props};

/// A server with OpenAI's chat completions. Clones share its connections.
///
/// The client connects to the given address only: it follows no redirects and uses no proxy. Errors, logs and `Debug`
/// show no key, and the address without user name and password.
///
/// ```no_run
/// # async fn example() -> sottovoce::Result<()> {
/// use std::time::Duration;
/// use sottovoce::{LanguageModel, ModelOptions, OpenAi, OpenAiModel};
///
/// let server = OpenAi::new("http://127.0.0.1:8080/v1", Duration::from_secs(120))?;
/// let model = OpenAiModel::new(server, ModelOptions::new("qwen3-8b"));
/// println!("{:?}", model.limits().await?.window);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenAi {
    client: Arc<HttpClient>,
}

settings_of_a_server!(OpenAi);

impl OpenAi {
    /// A server at an address such as `http://127.0.0.1:8080`, with or without `/v1` or `/v1/chat/completions` at its end. Sends nothing yet.
    ///
    /// `silence` is the longest time that the server may be silent, before or during an answer.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for an invalid address, and for `https` without the feature `tls`.
    pub fn new(base_url: &str, silence: Duration) -> Result<Self> {
        let base = base_url.trim().trim_end_matches('/');
        let base = base.strip_suffix("/chat/completions").unwrap_or(base);
        let base = base.strip_suffix("/v1").unwrap_or(base);
        Ok(Self { client: Arc::new(HttpClient::new(base, silence)?) })
    }

    /// Whether the server is on this machine or the local network, by its address: a loopback, private or link-local
    /// number, a name without dots, or one that ends in `.local`, `.localhost`, `.internal` or `.home.arpa`. Any
    /// other counts as a cloud.
    pub fn is_near(&self) -> bool {
        self.client.is_near()
    }

    /// The models that the server lists, with what it reports about each.
    pub async fn models(&self) -> Result<Vec<(ModelEntry, ModelInfo)>> {
        let remote = !self.is_near();
        let described = |model: Listed| {
            let info = model.info(remote);
            (model.entry(remote), info)
        };
        Ok(self.list().await?.into_iter().map(described).collect())
    }

    /// What the server reports about a model.
    pub async fn show(&self, model: &str) -> Result<ModelInfo> {
        let listed = self.list().await?;
        let Some(listed) = facts::find(&listed, model) else {
            return Err(self.client.fail(ModelFailure::NoSuchModel { model: model.to_owned() }));
        };
        Ok(listed.info(!self.is_near()))
    }

    /// The loaded models, as far as the server reports their windows.
    pub async fn running(&self) -> Result<Vec<RunningModel>> {
        let mut running = Vec::new();
        for listed in self.list().await? {
            if let (Some(window), _) = self.abilities_of(&listed).await {
                running.push(listed.running(window));
            }
        }
        Ok(running)
    }

    /// Sends a request unchanged. Streamed and whole answers are read the same way.
    ///
    /// Does not check whether the server is nearby; [`OpenAiModel`] does.
    pub async fn send(&self, request: &ModelRequest) -> Result<HttpReply> {
        self.send_body(request.path, request.body.clone()).await
    }

    /// The facts about a model. All of them are unknown if the server does not list the model.
    async fn facts(&self, model: &str) -> Result<Facts> {
        let listed = self.list().await?;
        let Some(listed) = facts::find(&listed, model) else { return Ok(Facts::default()) };
        let (window, tools) = self.abilities_of(listed).await;
        Ok(Facts { window, tools, thinks: listed.has_template(), cannot_think: false })
    }

    /// The model's window, and whether it can call functions.
    async fn abilities_of(&self, listed: &Listed) -> (Option<u32>, bool) {
        let (mut window, mut tools) = (listed.window(), listed.can_call());
        if listed.is_of_llama_cpp() {
            // The list reports all slots together, this path reports each slot.
            if let Ok(answer) = self.client.get("/props").await
                && let Ok(props) = answer.json::<Props>().await
            {
                tools |= props.can_call();
                window = window.into_iter().chain(props.window()).min();
            }
        }
        (window, tools)
    }

    /// The server's list of models. LM Studio reports more in a list of its own.
    async fn list(&self) -> Result<Vec<Listed>> {
        let listed = self.client.get("/v1/models").await?.json::<List>().await?.data;
        if listed.iter().any(|model| model.window().is_some()) {
            return Ok(listed);
        }
        if self.is_near()
            && let Ok(answer) = self.client.get("/api/v0/models").await
            && let Ok(more) = answer.json::<List>().await
        {
            return Ok(more.data);
        }
        Ok(listed)
    }

    /// Refuses a server outside the local network.
    fn refuse_cloud(&self, model: &str) -> Result<()> {
        if self.is_near() {
            return Ok(());
        }
        tracing::warn!(
            server = self.client.shown(),
            "the server is not nearby, which is not allowed"
        );
        Err(self.client.fail(ModelFailure::Cloud { model: model.to_owned() }))
    }
}

/// A model on a server with OpenAI's chat completions. One that is not [near](OpenAi::is_near) counts as other people's
/// machine, and is not asked ahead of time, because that costs money.
pub type OpenAiModel = ServedModel<OpenAi>;

#[async_trait]
impl Serving for OpenAi {
    fn renderer(options: ModelOptions) -> Box<dyn PromptRenderer> {
        Box::new(OpenAiChatRenderer::new(options))
    }

    async fn learn(&self, options: &ModelOptions, allow_cloud: bool) -> Result<Facts> {
        let model = &options.model;
        if !allow_cloud {
            self.refuse_cloud(model)?;
        }
        let said = self.facts(model).await?;
        let window = said.window.into_iter().chain(options.num_ctx).min();
        tracing::debug!(model, window, "looked at");
        Ok(Facts { window, ..said })
    }

    fn is_free(&self) -> bool {
        self.is_near()
    }

    async fn send_body(&self, path: &'static str, body: String) -> Result<HttpReply> {
        Ok(HttpReply::new(self.client.post(path, body).await?, AnswerForm::ChatCompletions))
    }
}
