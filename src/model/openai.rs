//! Servers with OpenAI's chat completions: llama.cpp's, LM Studio, vLLM, LocalAI, and those in clouds.

mod calls;
mod events;
mod facts;
mod model;
mod responses;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

pub use model::OpenAiModel;

use super::entry::{ModelEntry, ModelInfo, RunningModel};
use super::http::{HttpClient, HttpReply};
use super::limits::AnswerLimits;
use super::stream::AnswerForm;
use crate::error::{ModelFailure, Result};
use crate::model::render::ModelRequest;
pub(super) use events::Events;
use facts::{Facts, List, Listed, Props};
pub(super) use responses::Responses;

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

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAi").field(&self.client.shown()).finish()
    }
}

impl OpenAi {
    /// A server at an address such as `http://127.0.0.1:8080`, with or without `/v1` at its end. Sends nothing yet.
    ///
    /// `silence` is the longest time that the server may be silent, before or during an answer.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for an invalid address, and for `https` without the feature `tls`.
    pub fn new(base_url: &str, silence: Duration) -> Result<Self> {
        let base = base_url.trim().trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        Ok(Self { client: Arc::new(HttpClient::new(base, silence)?) })
    }

    /// Sets the API key, which every request sends as a bearer token.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a key that is not one word of printable ASCII, or that would leave
    /// the local network unencrypted.
    pub fn api_key(self, key: Zeroizing<String>) -> Result<Self> {
        Ok(Self { client: Arc::new(HttpClient::clone(&self.client).with_key(key)?) })
    }

    /// Sets the limits of one answer.
    #[must_use]
    pub fn answer_limits(self, limits: AnswerLimits) -> Self {
        Self { client: Arc::new(self.client.with_limits(limits)) }
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

    async fn send_body(&self, path: &'static str, body: String) -> Result<HttpReply> {
        Ok(HttpReply::new(self.client.post(path, body).await?, AnswerForm::ChatCompletions))
    }

    /// The facts about a model. All of them are unknown if the server does not list the model.
    async fn facts(&self, model: &str) -> Result<Facts> {
        let listed = self.list().await?;
        let Some(listed) = facts::find(&listed, model) else { return Ok(Facts::default()) };
        let (window, tools) = self.abilities_of(listed).await;
        Ok(Facts { window, tools, has_template: listed.has_template() })
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
