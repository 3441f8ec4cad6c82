//! Prunes messages from the context, and restores them.

use std::ops::RangeInclusive;

use crate::context::{PrunePlan, PruneStrategy};
use crate::conversation::Conversation;
use crate::error::Result;

impl Conversation {
    /// Plans which messages [`prune`](Self::prune) would hide, so that this thread's context takes at most
    /// `max_tokens` and keeps its newest `keep_recent` messages whatever they take. Summarized messages are not part
    /// of the context, nor are those more than 16,384 messages back.
    ///
    /// # Errors
    /// Those of reading the messages.
    pub async fn plan_pruning(
        &self,
        strategy: &dyn PruneStrategy,
        max_tokens: usize,
        keep_recent: usize,
    ) -> Result<PrunePlan> {
        let profile = self.store.profile().await?;
        let messages = self.in_context(&profile).await?;
        let rates = &self.parts.prompts.limits.rates;
        let now = self.clock.now().timestamp();
        Ok(PrunePlan::plan(&messages, strategy, rates, (max_tokens, keep_recent), now))
    }

    /// Hides the messages that the plan drops from prompts. They stay stored and readable.
    ///
    /// # Errors
    /// Those of writing the settings.
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

    /// Restores pruned messages to the context by number; all of them if `seqs` is empty. Returns how many numbers
    /// that were.
    ///
    /// # Errors
    /// Those of writing the settings.
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
