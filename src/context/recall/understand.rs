//! Giving messages their meanings, while nobody waits.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sottovoce_recall::Meaning;

use super::block::is_indexed;
use super::index::Recall;
use super::{meaning, text};
use crate::error::Result;
use crate::store::record::document::block_of;
use crate::store::{StoredMessage, blocking};

/// Messages by number, with their passages in bytes of their texts.
type Wanted = Vec<(u64, Vec<Range<usize>>)>;

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
        let (removals, wanted) = self.without_meaning(n, &failed).await?;
        let mut meanings = HashMap::new();
        for (seq, passages) in &wanted {
            match self.encode(*seq, passages.clone()).await? {
                Some(vectors) => drop(meanings.insert(*seq, vectors)),
                None => drop(failed.insert(*seq)),
            }
        }
        self.keep(removals, &meanings).await;
        Ok(wanted.len())
    }

    /// The newest `n` messages without meanings, with their passages, and how often anything was taken out before.
    async fn without_meaning(&self, n: usize, failed: &HashSet<u64>) -> Result<(u64, Wanted)> {
        let mut loaded = self.hold().await;
        loaded.refresh(self.store()).await?;
        let most = n.saturating_add(failed.len());
        let (removals, mut wanted) = blocking(move || {
            loaded.index.refresh();
            Ok((loaded.removals, loaded.index.without_meaning(most)))
        })
        .await?;
        wanted.retain(|(seq, _)| !failed.contains(seq));
        wanted.truncate(n);
        Ok((removals, wanted))
    }

    /// The meanings of a message's passages; `None` if it cannot be read.
    async fn encode(&self, seq: u64, passages: Vec<Range<usize>>) -> Result<Option<Vec<Meaning>>> {
        let read = self.store().read_seqs(seq.saturating_sub(1).max(1)..=seq).await?;
        let mut messages = read.messages;
        let Some(place) = messages.iter().position(|stored| stored.seq == seq) else {
            return Ok(None);
        };
        let stored = messages.swap_remove(place);
        let before = messages.pop().filter(|before| is_right_before(before, &stored));
        let Ok(whole) = text::whole(&**self.store(), &stored).await else { return Ok(None) };
        let told = Arc::new((before, stored, whole));
        let mut meanings = Vec::with_capacity(passages.len());
        for passage in passages {
            let told = Arc::clone(&told);
            // One by one: a host that ends waits for what has begun.
            let meaning = blocking(move || {
                let (before, stored, whole) = &*told;
                let before = before.as_ref().map(|before| &before.message);
                let text = whole.as_ref().map_or(&*stored.message.content, |whole| &whole.text);
                Ok(meaning::of_passage(before, &stored.message, text, passage))
            });
            match meaning.await? {
                Some(meaning) => meanings.push(meaning),
                None => return Ok(None),
            }
        }
        Ok(Some(meanings))
    }

    /// Takes meanings into the index, unless anything was taken out since they were wanted: a message tells of the one
    /// before it, which may be gone.
    async fn keep(&self, removals: u64, meanings: &HashMap<u64, Vec<Meaning>>) {
        let mut loaded = self.hold().await;
        if loaded.removals != removals {
            return;
        }
        loaded.index.set_meanings(meanings);
        for seq in meanings.keys() {
            if let Some(extent) = loaded.extent(block_of(*seq)) {
                extent.unwritten_meanings += 1;
            }
        }
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

#[cfg(all(test, feature = "meaning"))]
mod tests;
