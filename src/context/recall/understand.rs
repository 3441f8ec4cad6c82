//! Giving messages their meanings, while nobody waits.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::block::is_indexed;
use super::index::Recall;
use super::{meaning, text};
use crate::error::Result;
use crate::store::record::document::block_of;
use crate::store::{StoredMessage, blocking};

/// How far the meanings of a conversation's messages are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Understood {
    /// How many messages have a meaning.
    pub known: usize,
    /// How many messages are in the index.
    pub all: usize,
}

impl Recall {
    /// How far the meanings of the messages are known. Until a message has one, it is found by its words alone. In an
    /// edition without the encoder none is missing.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn understood(&self) -> Result<Understood> {
        self.is_asked.store(true, Ordering::Relaxed);
        let mut loaded = self.hold().await;
        loaded.refresh(self.store()).await?;
        let all = loaded.index.len();
        let known = if meaning::IS_IN { loaded.index.with_meaning() } else { all };
        Ok(Understood { known, all })
    }

    /// Gives at most `n` messages their meanings, the newest first. Returns how many; 0 if none is left. A message that
    /// cannot be read now counts, and is not tried again. Encoding takes a processor for some hundredths of a second a
    /// sentence. [`save`](Self::save) keeps the meanings.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn understand(&self, n: usize) -> Result<usize> {
        let mut failed = self.failed.lock().await;
        if !meaning::IS_IN {
            return Ok(0);
        }
        let (removals, wanted) = {
            let mut loaded = self.hold().await;
            loaded.refresh(self.store()).await?;
            let most = n.saturating_add(failed.len());
            blocking(move || {
                loaded.index.refresh();
                Ok((loaded.removals, loaded.index.without_meaning(most)))
            })
            .await?
        };
        let mut wanted: Vec<_> =
            wanted.into_iter().filter(|(seq, _)| !failed.contains(seq)).collect();
        wanted.truncate(n);
        let mut meanings = HashMap::new();
        for (seq, passages) in &wanted {
            let read = self.store().read_seqs(seq.saturating_sub(1).max(1)..=*seq).await?;
            failed.insert(*seq);
            let mut messages = read.messages;
            let Some(place) = messages.iter().position(|stored| stored.seq == *seq) else {
                continue;
            };
            let stored = messages.swap_remove(place);
            let before = messages.pop().filter(|before| is_right_before(before, &stored));
            let Ok(whole) = text::whole(&**self.store(), &stored).await else { continue };
            let passages = passages.clone();
            let vectors = blocking(move || {
                let before = before.as_ref().map(|before| &before.message);
                let text = whole.as_ref().map_or(&*stored.message.content, |whole| &whole.text);
                Ok(meaning::of_passages(before, &stored.message, text, &passages))
            })
            .await?;
            if let Some(vectors) = vectors {
                failed.remove(seq);
                meanings.insert(*seq, vectors);
            }
        }
        let mut loaded = self.hold().await;
        if loaded.removals != removals {
            // A message tells of the one before it, which may be gone.
            return Ok(wanted.len());
        }
        loaded.index.set_meanings(&meanings);
        for seq in meanings.keys() {
            if let Some(extent) = loaded.extent(block_of(*seq)) {
                extent.unwritten_meanings += 1;
            }
        }
        Ok(wanted.len())
    }
}

/// Whether a message tells of the one behind it. Segments are deleted one by one, so that none tells of another one's
/// messages.
fn is_right_before(before: &StoredMessage, stored: &StoredMessage) -> bool {
    is_indexed(before)
        && before.seq + 1 == stored.seq
        && before.message.thread_id == stored.message.thread_id
        && block_of(before.seq) == block_of(stored.seq)
}
