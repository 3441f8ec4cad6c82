//! An embedding model that has a say in which messages recall brings in.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::results::RecallHit;
use crate::context::Embedder;
use crate::error::Result;
use crate::store::ConversationStore;

/// The most vectors in memory; the oldest make way.
const MOST: usize = 1024;

/// An embedding model, what it counts, and the vectors of passages that it was asked for. They are in memory only.
pub(super) struct Reranker {
    embedder: Arc<dyn Embedder>,
    weight: f32,
    known: Mutex<VecDeque<Known>>,
}

/// A passage of a message and its vector, of length one. Both are wiped.
struct Known {
    seq: u64,
    passage: Zeroizing<String>,
    vector: Arc<Zeroizing<Vec<f32>>>,
}

impl Reranker {
    pub(super) fn new(embedder: Arc<dyn Embedder>, weight: f32) -> Self {
        Self { embedder, weight, known: Mutex::default() }
    }

    /// Adds to each score the weighted cosine of question and passage, and orders the hits by their new scores. If the
    /// model fails, everything stays as it is.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn rerank(
        &self,
        store: &dyn ConversationStore,
        question: &str,
        hits: &mut [RecallHit],
    ) -> Result<()> {
        if hits.is_empty() {
            return Ok(());
        }
        let state = store.state().await?;
        let mut known = self.known.lock().await;
        known.retain(|known| !state.forgotten.contains(known.seq));
        let vectors: Vec<Option<_>> = hits
            .iter()
            .map(|hit| {
                let same =
                    |known: &&Known| known.seq == hit.stored.seq && *known.passage == passage(hit);
                known.iter().find(same).map(|known| Arc::clone(&known.vector))
            })
            .collect();
        let missing = hits.iter().zip(&vectors).filter(|(_, vector)| vector.is_none());
        let texts: Vec<&str> =
            std::iter::once(question).chain(missing.map(|(hit, _)| passage(hit))).collect();
        let mut embedded = match self.embedder.embed(&texts).await {
            Ok(embedded) if embedded.len() == texts.len() => embedded.into_iter().map(unit),
            Ok(_) => {
                tracing::warn!("an embedding model gave too few or too many vectors; not used");
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(%error, "an embedding model failed; recall goes on without it");
                return Ok(());
            }
        };
        let asked = embedded.next().unwrap_or_default();
        for (hit, vector) in hits.iter_mut().zip(vectors) {
            let vector = match vector {
                Some(vector) => vector,
                None => {
                    let vector = Arc::new(embedded.next().unwrap_or_default());
                    let passage = Zeroizing::new(passage(hit).to_owned());
                    let seq = hit.stored.seq;
                    known.push_back(Known { seq, passage, vector: Arc::clone(&vector) });
                    vector
                }
            };
            let cosine: f32 = asked.iter().zip(vector.iter()).map(|(a, b)| a * b).sum();
            hit.hit.why.embedding = self.weight * cosine;
            hit.hit.score += hit.hit.why.embedding;
        }
        let too_many = known.len().saturating_sub(MOST);
        known.drain(..too_many);
        hits.sort_by(|a, b| b.hit.score.total_cmp(&a.hit.score));
        Ok(())
    }
}

/// The passage that fits best. That of an artifact stands for the message that refers to it.
fn passage(hit: &RecallHit) -> &str {
    let text = &hit.stored.message.content;
    text.get(hit.hit.passage.clone()).unwrap_or(text)
}

/// A vector of length one in the same direction, or zeros.
fn unit(vector: Vec<f32>) -> Zeroizing<Vec<f32>> {
    let mut vector = Zeroizing::new(vector);
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    let is_usable = length.is_finite() && length > 0.;
    let factor = if is_usable { 1. / length } else { 0. };
    vector.iter_mut().for_each(|value| *value = if is_usable { *value * factor } else { 0. });
    vector
}
