//! A model server with either protocol.

use super::entry::{ModelEntry, ModelInfo, RunningModel};
use super::{Ollama, OpenAi};
use crate::error::{Error, ModelFailure, Result};

/// A model server, by protocol. Clones share its connections.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ModelServer {
    /// An Ollama server.
    Ollama(Ollama),
    /// A server with OpenAI's chat completions.
    OpenAi(OpenAi),
}

impl ModelServer {
    /// The server's version, if it reports one. The request also shows whether the server can be reached.
    ///
    /// # Errors
    /// [`Error::Model`](crate::Error::Model), as for all methods here.
    pub async fn version(&self) -> Result<Option<String>> {
        match self {
            Self::Ollama(server) => server.version().await.map(Some),
            Self::OpenAi(server) => server.models().await.map(|_| None),
        }
    }

    /// The models on the server with their abilities. A broken or just deleted model does not hide the others.
    pub async fn models(&self) -> Result<Vec<(ModelEntry, ModelInfo)>> {
        let server = match self {
            Self::Ollama(server) => server,
            Self::OpenAi(server) => return server.models().await,
        };
        let mut models = Vec::new();
        for model in server.models().await? {
            let info = match server.show(&model.name).await {
                Err(Error::Model {
                    failure: ModelFailure::NoSuchModel { .. } | ModelFailure::Refused { .. },
                    ..
                }) => ModelInfo::default(),
                info => info?,
            };
            models.push((model, info));
        }
        Ok(models)
    }

    /// The abilities of a model.
    pub async fn show(&self, model: &str) -> Result<ModelInfo> {
        match self {
            Self::Ollama(server) => server.show(model).await,
            Self::OpenAi(server) => server.show(model).await,
        }
    }

    /// The models that are loaded.
    pub async fn running(&self) -> Result<Vec<RunningModel>> {
        match self {
            Self::Ollama(server) => server.running().await,
            Self::OpenAi(server) => server.running().await,
        }
    }
}
