//! Steps on the search index.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use sottovoce::context::recall::{Recall, RecallQuery};
use sottovoce::store::{Batch, DocumentId, StoreBackend};
use sottovoce::{ConversationStore, Error, FileConversationStore};

use crate::crash::check::ensure;
use crate::crash::house::{block_on, open, said, say, text};
use crate::crash::told::Told;
use crate::task::Result;

/// So many numbers that the index is worth writing. Of the messages only the first few are left, so that a check is quick.
const MANY: u64 = 260;
/// The numbers that were forgotten, with that of the record of it.
pub(crate) const GONE: RangeInclusive<u64> = 9..=LAST;
/// The last number.
pub(crate) const LAST: u64 = MANY + 1;
const SEGMENT: DocumentId = DocumentId::Segment(0);

/// A conversation whose index is not written yet.
pub(crate) fn seed(root: &Path) -> Result<()> {
    block_on(async {
        let store = open(root, 1).await?;
        let messages = (1..=MANY).map(|seq| said(text(seq)));
        store.append_all(messages.collect::<Result<_>>()?).await?;
        store.forget(&[*GONE.start()..=MANY]).await?;
        Ok(())
    })
}

/// Prepares a conversation whose index has a segment that cannot be read.
pub(crate) fn seed_useless(root: &Path) -> Result<()> {
    seed(root)?;
    block_on(async { write(&open(root, 1).await?, b"no segment").await })
}

/// Writes the index as a conversation does while nobody waits.
pub(crate) fn save(root: &Path) -> Result<()> {
    block_on(async {
        let store = open(root, 1).await?;
        let recall = Recall::new(Arc::new(store.clone()));
        found(&store, &recall, 1).await?;
        recall.save().await?;
        say(&format!("document {}", store.read_tail(1).await?.last_seq));
        Ok(())
    })
}

/// Writes a segment of these bytes.
pub(crate) async fn write(store: &FileConversationStore, bytes: &[u8]) -> Result<()> {
    let batch = Batch::new(&store.state().await?).write(SEGMENT, bytes.to_vec().into());
    store.commit(batch).await?;
    Ok(())
}

/// The bytes of the segment, if there is one.
pub(crate) async fn read(store: &FileConversationStore) -> Result<Option<Vec<u8>>> {
    Ok(store.document(&SEGMENT).await?.map(|bytes| bytes.to_vec()))
}

/// The answer to a question about a number: numbers of messages, and scores to the last bit.
async fn found(
    store: &FileConversationStore,
    recall: &Recall,
    number: u64,
) -> Result<Vec<(u64, u32)>> {
    let question = format!("Which message has number {number}?");
    let query = RecallQuery::new(&question, store.clock().now(), 20);
    let found = recall.find_in(&query, None).await?;
    ensure!(found.skipped.is_empty(), "the index passes over {:?}", found.skipped);
    Ok(found.hits.iter().map(|hit| (hit.stored.seq, hit.hit.score.to_bits())).collect())
}

/// Checks that the index answers as one without any segment; that an acknowledged segment is there and reaches as far
/// as it was; and that none is there once messages of it are forgotten.
pub(crate) fn answers(root: &Path, told: &Told, forgets: &[u64]) -> Result<()> {
    block_on(async {
        let store = open(root, 1).await?;
        let state = store.state().await?;
        let segment = read(&store).await?;
        let until =
            segment.as_ref().and_then(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
        ensure!(
            told.document.is_none_or(|told| until == Some(told)),
            "the segment reaches to {until:?}, {:?} was acknowledged",
            told.document
        );
        let is_forgotten =
            forgets.iter().any(|seq| state.forgotten().any(|range| range.contains(seq)));
        ensure!(!is_forgotten || segment.is_none(), "a segment holds what was forgotten");
        let recall = Recall::new(Arc::new(store.clone()));
        let loaded = found(&store, &recall, 2).await?;
        ensure!(!loaded.is_empty(), "the index finds nothing");
        let is_back = loaded.iter().any(|(seq, _)| forgets.contains(seq));
        ensure!(!(is_forgotten && is_back), "the index finds what was forgotten");
        match store.commit(Batch::new(&state).remove(SEGMENT)).await {
            // The first writer has finished a forgetting that was interrupted.
            Err(Error::Conflict) => {
                store.commit(Batch::new(&store.state().await?).remove(SEGMENT)).await?
            }
            outcome => outcome?,
        };
        let made = found(&store, &Recall::new(Arc::new(store.clone())), 2).await?;
        ensure!(made == loaded, "{loaded:?} with a segment, {made:?} without");
        Ok(())
    })
}
