//! The place for retrieval: a host plugs in how to search, and what was found joins the newest turn.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Context, ContextMessage, ContextProvider, ContextRequest, Placement};
use crate::error::Result;

/// Turns texts into vectors that lie close together when their meanings do.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// One vector a text, all of the same length.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;
}

/// What to look for. `Debug` shows no words.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Query<'a> {
    /// The utterance being answered.
    pub text: &'a str,
    /// Its vector, where an [`Embedder`] is plugged in.
    pub embedding: Option<&'a [f32]>,
    /// The most results wanted.
    pub limit: usize,
}

impl std::fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query")
            .field("text_bytes", &self.text.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Finds what bears on an utterance.
#[async_trait]
pub trait Retriever: Send + Sync {
    /// Results, the best first; failures as [`Error::host`](crate::Error::host). Snippets that are no stored messages
    /// are usually of [`ChatRole::System`](crate::ChatRole::System).
    async fn retrieve(&self, query: &Query<'_>) -> Result<Vec<ContextMessage>>;
}

/// Puts what a [`Retriever`] finds beside the utterance, behind everything that stays the same from turn to turn.
///
/// The prompt builder refuses stored messages of any scope but its own, whatever a retriever returns.
pub struct RetrievalContextProvider {
    retriever: Arc<dyn Retriever>,
    embedder: Option<Arc<dyn Embedder>>,
    limit: usize,
    heading: Option<Arc<str>>,
}

impl RetrievalContextProvider {
    /// At most `limit` results a prompt.
    pub fn new(retriever: Arc<dyn Retriever>, limit: usize) -> Self {
        Self { retriever, embedder: None, limit, heading: None }
    }

    /// What stands above the results, such as `State of the house`, instead of `Possibly relevant`.
    #[must_use]
    pub fn heading(mut self, heading: impl Into<Arc<str>>) -> Self {
        self.heading = Some(heading.into());
        self
    }

    /// Embeds each utterance for the retriever.
    #[must_use]
    pub fn embedding_with(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }
}

impl std::fmt::Debug for RetrievalContextProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RetrievalContextProvider")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

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
