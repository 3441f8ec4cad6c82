//! How confidently the utterance of an exchange was heard.

use crate::error::Result;
use crate::store::{ConversationStore, StoredMessage};

/// How far back, in numbers, the utterance of an answer is looked for.
const FARTHEST: u64 = 64;

/// Whether a stored message belongs to an exchange whose utterance was heard with less confidence.
pub(crate) async fn is_doubted(
    store: &dyn ConversationStore,
    stored: &StoredMessage,
    least: f64,
) -> Result<bool> {
    let is_low = |stored: &StoredMessage| {
        stored.message.confidence().is_some_and(|confidence| confidence < least)
    };
    if stored.message.starts_exchange() {
        return Ok(is_low(stored));
    }
    let first = stored.seq.saturating_sub(FARTHEST).max(1);
    let before = store.read_seqs(first..=stored.seq).await?.messages;
    let utterance = before.iter().rev().find(|before| {
        before.message.thread_id == stored.message.thread_id && before.message.starts_exchange()
    });
    Ok(utterance.is_some_and(|utterance| is_low(utterance)))
}
