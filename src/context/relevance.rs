//! A provider of the most relevant history, instead of the newest.

use std::sync::Arc;

use async_trait::async_trait;

use super::history::History;
use super::prune::{PrunePlan, PruneStrategy, RelevanceStrategy};
use super::{Context, ContextProvider, ContextRequest, Placement, blocks};
use crate::context::tokens::TokenRates;
use crate::error::Result;

/// The number of messages considered.
const LOOKED_AT: usize = 1024;

/// Provides the newest messages, and of the earlier ones those with the highest scores, as long as they fit a number
/// of tokens.
///
/// A choice that changed every turn would make a local model read everything again. Therefore the candidates end at a
/// block border, as the window of [`LastNContextProvider`](crate::context::LastNContextProvider) in blocks does, and
/// are scored as of that border. Between two moves of the border, prompts only grow at their end.
pub struct RelevanceProvider {
    strategy: Arc<dyn PruneStrategy>,
    rates: TokenRates,
    max_tokens: usize,
}

impl RelevanceProvider {
    /// Provides at most this many tokens beside the newest messages, scored by [`RelevanceStrategy`].
    pub fn new(max_tokens: usize) -> Self {
        let strategy = Arc::new(RelevanceStrategy::new());
        Self { strategy, rates: TokenRates::default(), max_tokens }
    }

    /// Sets another strategy.
    #[must_use]
    pub fn by(mut self, strategy: Arc<dyn PruneStrategy>) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets the rates for estimating tokens.
    #[must_use]
    pub fn rates(mut self, rates: TokenRates) -> Self {
        self.rates = rates;
        self
    }
}

impl std::fmt::Debug for RelevanceProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelevanceProvider")
            .field("strategy", &self.strategy.name())
            .field("max_tokens", &self.max_tokens)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ContextProvider for RelevanceProvider {
    fn placement(&self) -> Placement {
        Placement::History
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let n = request.n as u64;
        if n == 0 {
            return Ok(Context::new(Vec::new(), "no history was asked for"));
        }
        let reading = History::of(request).await?.newest(LOOKED_AT).await?;
        let mut messages = reading.messages;
        let last = request.before.unwrap_or(reading.last_seq.saturating_add(1)).saturating_sub(1);
        let low = last.saturating_sub(n.saturating_mul(blocks::HIGH_WATER));
        let border = blocks::border(low, last.saturating_sub(n), blocks::length(request.n));
        let seqs = blocks::rising(messages.iter().map(|stored| stored.seq).collect());
        let older = seqs.partition_point(|&seq| seq <= border);
        let newest = messages.iter().take(older).next_back().map(|stored| stored.ordered_at());
        if let Some(moment) = newest {
            let older = messages.get(..older).unwrap_or_default();
            let limits = (self.max_tokens, 0);
            let pruning = PrunePlan::plan(older, &*self.strategy, &self.rates, limits, moment);
            let dropped: std::collections::HashSet<u64> = pruning.dropped().collect();
            messages.retain(|stored| !dropped.contains(&stored.seq));
        }
        let whole = blocks::whole_from(messages.iter().map(|stored| &stored.message), 0);
        let messages = messages.into_iter().skip(whole).map(Into::into).collect();
        let why = format!("worth most before number {border}, by {}", self.strategy.name());
        let mut context = Context::new(messages, why);
        context.skipped = reading.skipped;
        Ok(context)
    }
}
