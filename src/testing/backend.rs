//! The contract of backends.

use super::*;
use crate::store::{Batch, Document, DocumentId, ReadQuery, StoredMessage};
use zeroize::Zeroizing;

pub(super) async fn the_medium_keeps_what_was_committed<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let before = store.state().await?;
    same!((before.last_seq, before.forgotten().count()), (0, 0));
    let one = Arc::new(StoredMessage::from_parts(store.scope(), 1, time(START), said("1"))?);
    let two = Arc::new(StoredMessage::from_parts(store.scope(), 2, time(START), said("2"))?);
    let bytes = Zeroizing::new(b"{}".to_vec());
    let batch = Batch::new(&before).write(Document::Calibration, bytes).append([one.clone(), two]);
    let after = store.commit(batch).await?;
    same!(after.last_seq, 2);
    holds!(after.revision != before.revision);
    let after = store.commit(Batch::new(&after).delete([2..=2])).await?;
    for store in [store, at.open().await?] {
        let state = store.state().await?;
        same!(state.revision, after.revision);
        holds!(state.last_seq >= 2 && state.forgotten().any(|range| range.contains(&2)));
        let result = store.read(ReadQuery::Tail(9)).await?;
        same!(seqs(Ok(result.clone()))?, [1]);
        holds!(result.messages.first().is_some_and(|stored| **stored == *one));
        let document = store.document(&DocumentId::from(Document::Calibration)).await?;
        same!(document.as_ref().map(|bytes| bytes.as_slice()), Some(&b"{}"[..]));
    }
    Ok(())
}

pub(super) async fn a_stale_revision_is_a_conflict<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let (one, other) = (at.open().await?, at.open().await?);
    let stale = one.state().await?;
    other.append_message(said("first")).await?;
    let late = Arc::new(StoredMessage::from_parts(one.scope(), 1, time(START), said("late"))?);
    let bytes = Zeroizing::new(b"late".to_vec());
    let batch = Batch::new(&stale).write(Document::Calibration, bytes).append([late]);
    refused!(one.commit(batch).await, Error::Conflict);
    same!(texts(one.read_tail(9).await)?, ["first"]);
    holds!(one.document(&Document::Calibration.into()).await?.is_none());
    Ok(())
}

pub(super) async fn the_medium_reads_by_tail_number_and_time<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let state = store.state().await?;
    // The second is placed before the first, as imported messages may be.
    let place = |seq, at: &str| StoredMessage::from_parts(store.scope(), seq, time(at), said(seq));
    let messages = [
        Arc::new(place(1, "2025-08-24T10:00:01Z")?),
        Arc::new(place(2, "2025-08-24T10:00:00Z")?),
        Arc::new(place(3, "2025-08-24T10:00:02Z")?),
    ];
    store.commit(Batch::new(&state).append(messages)).await?;
    for (n, expected) in [(0, &[][..]), (1, &[3]), (2, &[1, 3]), (9, &[2, 1, 3])] {
        same!(seqs(store.read(ReadQuery::Tail(n)).await)?, expected);
    }
    same!(seqs(store.read(ReadQuery::Seqs(2..=9)).await)?, [2, 3]);
    let times = time("2025-08-24T10:00:00Z")..time("2025-08-24T10:00:02Z");
    same!(seqs(store.read(ReadQuery::Times(times)).await)?, [2, 1]);
    Ok(())
}
