//! Embeddings from an Ollama server.

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::Ollama;
use crate::context::Embedder;
use crate::error::Result;

/// An embedding model on an Ollama server. A model that runs in a cloud is refused before any text is sent, unless it
/// is allowed.
#[derive(Debug)]
pub struct OllamaEmbedder {
    server: Ollama,
    model: String,
    allow_cloud: bool,
    looked_at: OnceCell<()>,
}

impl OllamaEmbedder {
    /// A model by its name on the server.
    pub fn new(server: Ollama, model: impl Into<String>) -> Self {
        Self { server, model: model.into(), allow_cloud: false, looked_at: OnceCell::new() }
    }

    /// Sets whether texts may be sent to another machine; the default is no.
    #[must_use]
    pub fn allow_cloud(mut self, allow: bool) -> Self {
        self.allow_cloud = allow;
        self
    }

    async fn look_at(&self) -> Result<()> {
        if self.allow_cloud {
            return Ok(());
        }
        let info = self.server.show(&self.model).await?;
        self.server.refuse_cloud(&self.model, &info)
    }
}

#[async_trait]
impl Embedder for OllamaEmbedder {
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.looked_at.get_or_try_init(|| self.look_at()).await?;
        self.server.embed(&self.model, texts).await
    }
}
