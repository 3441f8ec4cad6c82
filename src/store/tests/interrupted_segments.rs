//! Segments of the search index after a failing call, and beside other writers.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::Error;
use crate::directory::memory::MemoryDirectory;
use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken};
use crate::store::tests::interrupted_documents::{clock, copied, exchanges, open, options, words};
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
    let mut reached = 0;
    for times in [1, usize::MAX] {
        for after in 0..400 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(options(&clock), &faulty).await;
            faulty.fail(Call::Any, after, times, broken);
            let first = store.forget(&[1..=1]).await;
            if !faulty.was_reached() {
                break;
            }
            reached += 1;
            drop(store);
            let store = open(options(&clock), &copy).await;
            let state = store.state().await.unwrap();
            let is_forgotten = state.forgotten().any(|range| range.contains(&1));
            assert!(is_forgotten || first.is_err(), "{times} {after}");
            if is_forgotten {
                assert_eq!(segment(&store).await, None, "{times} {after}");
            }
            store.forget(&[1..=1]).await.unwrap();
            assert_eq!(segment(&store).await, None, "{times} {after}");
            assert!(!words(&store).await.contains(&"q1".to_owned()));
        }
    }
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
    let mut reached = 0;
    for times in [1, usize::MAX] {
        for after in 0..400 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(options(&clock), &faulty).await;
            let state = store.state().await.unwrap();
            faulty.fail(Call::Any, after, times, broken);
            let outcome = store.commit(batch(&state, b"new")).await;
            if !faulty.was_reached() {
                break;
            }
            reached += 1;
            drop(store);
            let found = segment(&open(options(&clock), &copy).await).await;
            let is_new = found.as_deref() == Some(b"new");
            assert!(is_new || found.as_deref() == Some(b"old"), "{times} {after}: {found:?}");
            assert!(is_new || outcome.is_err(), "{times} {after}");
        }
    }
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
