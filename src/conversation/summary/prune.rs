//! Taking messages out of the context that it can do without, and back into it.

use std::ops::RangeInclusive;

use crate::context::{PrunePlan, PruneStrategy};
use crate::conversation::Conversation;
use crate::error::Result;

impl Conversation {
    /// What [`prune`](Self::prune) would take out of this thread's context, so that it takes at most `max_tokens` and
    /// holds its newest `keep_recent` messages whatever they take. What a summary stands for is no part of it, nor is
    /// what is more than 16,384 messages back.
    ///
    /// # Errors
    /// What keeps the messages from being read.
    pub async fn plan_pruning(
        &self,
        strategy: &dyn PruneStrategy,
        max_tokens: usize,
        keep_recent: usize,
    ) -> Result<PrunePlan> {
        let profile = self.store.profile().await?;
        let messages = self.in_context(&profile).await?;
        let rates = &self.prompts.limits.rates;
        let now = self.clock.now().timestamp();
        Ok(PrunePlan::plan(&messages, strategy, rates, (max_tokens, keep_recent), now))
    }

    /// Takes out of the context what the plan drops. It stays stored, and `tail` shows it still.
    ///
    /// # Errors
    /// What keeps the settings from being written.
    pub async fn prune(&self, pruning: &PrunePlan) -> Result<()> {
        let dropped: Vec<u64> = pruning.dropped().collect();
        if dropped.is_empty() {
            return Ok(());
        }
        let mut state = self.wait().await;
        state.request = None;
        self.store.change_profile(Box::new(move |profile| profile.prune(dropped.clone()))).await?;
        Ok(())
    }

    /// Takes messages back into the context, by their numbers; all that were taken out where none are named. How many
    /// numbers that were.
    ///
    /// # Errors
    /// What keeps the settings from being written.
    pub async fn unprune(&self, seqs: &[RangeInclusive<u64>]) -> Result<u64> {
        let seqs = if seqs.is_empty() { vec![1..=u64::MAX] } else { seqs.to_vec() };
        let mut state = self.wait().await;
        state.request = None;
        let before = self.store.profile().await?.pruned();
        let after = self
            .store
            .change_profile(Box::new(move |profile| profile.unprune(seqs.clone())))
            .await?;
        Ok(before.saturating_sub(after.pruned()))
    }
}
