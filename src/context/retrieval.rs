//! Retrieval: a host plugs in a search, and its results join the newest turn.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Context, ContextMessage, ContextProvider, ContextRequest, Placement};
use crate::error::Result;

/// Turns texts into vectors. Texts with similar meanings have vectors that lie close together.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Returns one vector for each text, all of the same length.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;
}

/// A retrieval query. `Debug` shows no words.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Query<'a> {
    /// The utterance being answered.
    pub text: &'a str,
    /// Its vector, if an [`Embedder`] is plugged in.
    pub embedding: Option<&'a [f32]>,
    /// The most results wanted.
    pub limit: usize,
}

debug_shows!(Query<'_> as it: text_bytes = it.text.len(), limit);

/// Finds what is relevant to an utterance.
#[async_trait]
pub trait Retriever: Send + Sync {
    /// Returns results, best first. Report failures as [`Error::host`](crate::Error::host). Snippets that are not
    /// stored messages usually have the role [`ChatRole::System`](crate::ChatRole::System).
    async fn retrieve(&self, query: &Query<'_>) -> Result<Vec<ContextMessage>>;
}

/// Places the results of a [`Retriever`] beside the utterance, after everything that stays the same from turn to
/// turn.
///
/// The prompt builder refuses stored messages of other scopes, whatever a retriever returns.
#[must_use]
pub struct RetrievalContextProvider {
    retriever: Arc<dyn Retriever>,
    embedder: Option<Arc<dyn Embedder>>,
    limit: usize,
    heading: Option<Arc<str>>,
}

impl RetrievalContextProvider {
    /// Provides at most `limit` results for each prompt.
    pub fn new(retriever: Arc<dyn Retriever>, limit: usize) -> Self {
        Self { retriever, embedder: None, limit, heading: None }
    }

    /// Sets the heading above the results, such as `State of the house`. The default is `Possibly relevant`.
    pub fn heading(mut self, heading: impl Into<Arc<str>>) -> Self {
        self.heading = Some(heading.into());
        self
    }

    /// Computes a vector of each utterance for the retriever.
    pub fn embedding_with(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }
}

debug_shows!(RetrievalContextProvider: limit);

#[async_trait]
impl ContextProvider for RetrievalContextProvider {
    fn placement(&self) -> Placement {
        Placement::NewestTurn
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let text = request.current_prompt;
        let embedding = match &self.embedder {
            Some(embedder) => embedder.embed(&[text]).await?.into_iter().next(),
            None => None,
        };
        let query = Query { text, embedding: embedding.as_deref(), limit: self.limit };
        let mut found = self.retriever.retrieve(&query).await?;
        found.truncate(self.limit);
        if let Some(utterance) = request.before {
            found.retain(|message| message.seq().is_none_or(|seq| seq < utterance));
        }
        let mut context = Context::new(found, "retrieved for this utterance");
        context.heading.clone_from(&self.heading);
        Ok(context)
    }
}
