//! Clears and forgets a conversation's messages.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::conversation::Conversation;
use crate::error::Result;
use crate::store::{ForgetPlan, ForgetReport, Profile, StoredMessage};

impl Conversation {
    /// The newest exchange: an utterance or note, and what followed it. Empty if nothing is stored.
    ///
    /// # Errors
    /// Those of reading the messages.
    pub async fn last_exchange(&self) -> Result<Vec<Arc<StoredMessage>>> {
        let mut most = 64;
        loop {
            let tail = self.store().read_thread(self.thread(), most).await?.messages;
            let is_all = tail.len() < most;
            let start = tail.iter().rposition(|stored| stored.message.starts_exchange());
            if start.is_some() || is_all {
                // If no user has spoken yet, only the newest message can be meant.
                let start = start.unwrap_or(tail.len().saturating_sub(1));
                return Ok(tail.into_iter().skip(start).collect());
            }
            most = most.saturating_mul(4);
        }
    }

    /// Clears the context: later prompts hold nothing that was said so far, in any thread. Deletes nothing. First
    /// stores the spoken text of the last answer.
    ///
    /// # Errors
    /// Those of writing the settings.
    pub async fn clear(&self) -> Result<Arc<Profile>> {
        let mut state = self.wait().await;
        self.keep_unfinished(&mut state).await?;
        state.request = None;
        Ok(Arc::new(self.store().clear().await?))
    }

    /// Undoes the last [`clear`](Self::clear), as [`Profile::undo_clear`] describes. Returns whether there was one.
    ///
    /// # Errors
    /// Those of [`ConversationStore::change_profile`](crate::ConversationStore::change_profile).
    pub async fn undo_clear(&self) -> Result<bool> {
        let mut state = self.wait().await;
        if self.store().profile().await?.cleared.is_none() {
            return Ok(false);
        }
        state.request = None;
        self.store().change_profile(Box::new(|profile| _ = profile.undo_clear())).await?;
        Ok(true)
    }

    /// Deletes messages permanently by number, after the turn in progress. Spoken text that answers one of them and
    /// is not stored yet is dropped too.
    ///
    /// # Errors
    /// Those of [`ConversationStore::forget`](crate::ConversationStore::forget).
    pub async fn forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetReport> {
        let mut state = self.wait().await;
        let forgotten = self.store().forget(seqs).await?;
        state.forget(&forgotten.plan.numbers().collect::<Vec<_>>());
        Ok(forgotten)
    }

    /// Deletes exactly the messages of a plan that the store made.
    ///
    /// # Errors
    /// Those of [`ConversationStore::forget_planned`](crate::ConversationStore::forget_planned).
    pub async fn forget_planned(&self, plan: &ForgetPlan) -> Result<ForgetReport> {
        let mut state = self.wait().await;
        let forgotten = self.store().forget_planned(plan).await?;
        state.forget(&forgotten.plan.numbers().collect::<Vec<_>>());
        Ok(forgotten)
    }

    /// Deletes all messages and everything derived from them, after the turn in progress. Spoken text that is not
    /// stored yet is dropped too.
    ///
    /// # Errors
    /// Those of [`ConversationStore::forget_all`](crate::ConversationStore::forget_all).
    pub async fn forget_all(&self) -> Result<ForgetReport> {
        let mut state = self.wait().await;
        let forgotten = self.store().forget_all().await?;
        state.forget(&forgotten.plan.numbers().collect::<Vec<_>>());
        Ok(forgotten)
    }
}
