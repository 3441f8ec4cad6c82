//! Having a conversation forget.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Conversation;
use crate::error::Result;
use crate::store::{Forgotten, StoredMessage};

impl Conversation {
    /// The newest exchange: an utterance or note, and what followed it. Empty where nothing is kept.
    ///
    /// # Errors
    /// What keeps the messages from being read.
    pub async fn last_exchange(&self) -> Result<Vec<Arc<StoredMessage>>> {
        let mut most = 64;
        loop {
            let tail = self.store().read_tail(most).await?.messages;
            let start = tail.iter().rposition(|stored| stored.message.starts_exchange());
            if start.is_some() || tail.len() < most {
                // Where nobody has said anything yet, the newest message is all that can be meant.
                let start = start.unwrap_or(tail.len().saturating_sub(1));
                return Ok(tail.into_iter().skip(start).collect());
            }
            most = most.saturating_mul(4);
        }
    }

    /// Deletes messages by number for ever, once no turn goes on. What was spoken in answer to one of them and is not
    /// kept yet goes with it.
    ///
    /// # Errors
    /// Those of [`ConversationStore::forget`](crate::ConversationStore::forget).
    pub async fn forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<Forgotten> {
        let mut between = self.wait().await;
        let forgotten = self.store().forget(seqs).await?;
        between.forget(seqs);
        Ok(forgotten)
    }
}
