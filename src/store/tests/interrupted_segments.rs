//! Segments of the search index after a failing call, and beside other writers.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::Error;
use crate::directory::memory::MemoryDirectory;
use crate::store::tests::interrupted_documents::{
    at_each_failure, clock, exchanges, open, options, words,
};
use crate::store::{
    Batch, ConversationStore, DocumentId, FileConversationStore, StoreBackend, StoreState,
};

const SEGMENT: DocumentId = DocumentId::Segment(0);

fn batch(state: &StoreState, bytes: &[u8]) -> Batch {
    Batch::new(state).write(SEGMENT, Zeroizing::new(bytes.to_vec()))
}

async fn segment(store: &FileConversationStore) -> Option<Vec<u8>> {
    store.document(&SEGMENT).await.unwrap().map(|bytes| bytes.to_vec())
}

#[tokio::test]
async fn no_segment_outlives_a_forgotten_message_whatever_fails() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=3).await;
    let state = store.state().await.unwrap();
    store.commit(batch(&state, b"of six messages")).await.unwrap();
    let forget = async |store: &FileConversationStore| store.forget(&[1..=1]).await.is_ok();
    let reached = at_each_failure(
        &memory,
        || options(&clock),
        forget,
        async |told, copy, what| {
            let store = open(options(&clock), copy).await;
            let state = store.state().await.unwrap();
            let is_forgotten = state.forgotten().any(|range| range.contains(&1));
            assert!(is_forgotten || !told, "{what}");
            if is_forgotten {
                assert_eq!(segment(&store).await, None, "{what}");
            }
            store.forget(&[1..=1]).await.unwrap();
            assert_eq!(segment(&store).await, None, "{what}");
            assert!(!words(&store).await.contains(&"q1".to_owned()));
        },
    )
    .await;
    assert!(reached > 20, "{reached}");
}

#[tokio::test]
async fn a_segment_is_the_old_or_the_new_one_whatever_fails() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=3).await;
    let state = store.state().await.unwrap();
    store.commit(batch(&state, b"old")).await.unwrap();
    let write = async |store: &FileConversationStore| {
        let state = store.state().await?;
        store.commit(batch(&state, b"new")).await
    };
    let reached = at_each_failure(
        &memory,
        || options(&clock),
        write,
        async |told, copy, what| {
            let store = open(options(&clock), copy).await;
            let found = segment(&store).await;
            let is_new = found.as_deref() == Some(b"new");
            assert!(is_new || found.as_deref() == Some(b"old"), "{what}: {found:?}");
            assert!(is_new || told.is_err(), "{what}");
            assert_eq!(words(&store).await.len(), 6, "{what}");
        },
    )
    .await;
    assert!(reached > 5, "{reached}");
}

#[tokio::test]
async fn a_segment_made_before_a_forgetting_is_not_written_after_it() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let (reader, other) =
        (open(options(&clock), &memory).await, open(options(&clock), &memory).await);
    exchanges(&reader, &clock, 1..=3).await;
    let state = reader.state().await.unwrap();
    other.forget(&[2..=2]).await.unwrap();
    let refused = reader.commit(batch(&state, b"of what was there")).await;
    assert!(matches!(refused, Err(Error::Conflict)), "{refused:?}");
    assert_eq!(segment(&other).await, None);
}
