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
                return Ok(tail.into_iter().skip(start.unwrap_or(0)).collect());
            }
            most = most.saturating_mul(4);
        }
    }

    /// Deletes messages by number for ever, once no turn goes on; what is in memory of them goes too, and an
    /// utterance that still waited for its answer is not retried.
    ///
    /// # Errors
    /// Those of [`ConversationStore::forget`](crate::ConversationStore::forget).
    pub async fn forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<Forgotten> {
        let mut between = self.wait().await;
        between.forget();
        self.store().forget(seqs).await
    }
}
