//! Receiving what other devices have, with a failure at any call, and while others forget.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::record::validation::ValidMessage;
use crate::store::tests::failing_storage::{
    Call, FaultyDirectory, no_files, no_space, not_durable, said,
};
use crate::store::{ConversationStore, StoreOptions};
use crate::transfer::exchange::{Exchange, Incoming};
use crate::{EncryptionKey, Error};

const ERRORS: [fn(&Path) -> Error; 3] = [no_space, not_durable, no_files];

async fn open(directory: &Arc<impl Directory + 'static>) -> Exchange {
    let directory: Arc<dyn Directory> = Arc::clone(directory) as Arc<dyn Directory>;
    let key = EncryptionKey::from_secret("a secret of the house").unwrap();
    let store = StoreOptions::new(key).open_directory(Arc::clone(&directory), directory);
    Exchange::new(store.await.unwrap())
}

async fn messages(exchange: &Exchange) -> Incoming {
    let stretch = exchange.messages(0).await.unwrap();
    let messages = stretch.messages.into_iter().map(|shared| shared.message).collect();
    Incoming { messages, ..Incoming::default() }
}

/// The messages 1 to 6 of another device, of which it has forgotten two since.
async fn elsewhere() -> (Incoming, Incoming) {
    let other = open(&Arc::new(MemoryDirectory::default())).await;
    other.store().append_all((1..=6).map(said).collect()).await.unwrap();
    let before = messages(&other).await;
    other.store().forget(&[2..=2, 5..=5]).await.unwrap();
    other.store().change_profile(Box::new(|p| p.rename(Some("x".to_owned())))).await.unwrap();
    let settings = other.settings().await.unwrap().into_iter();
    let settings = settings.map(|(name, value)| (name, Some(value))).collect();
    let forgotten = other.forgotten().await.unwrap();
    (before, Incoming { forgotten, settings, ..messages(&other).await })
}

#[tokio::test]
async fn receiving_that_fails_at_any_step_is_completed_by_the_next_time() {
    let (before, after) = elsewhere().await;
    for error in ERRORS {
        for calls in 0.. {
            let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
            let exchange = open(&faulty).await;
            exchange.store().append_message(said(9)).await.unwrap();
            // One of the forgotten messages is here already.
            let mut first = before.clone();
            first.messages.truncate(2);
            exchange.receive(first).await.unwrap();
            faulty.fail(Call::Any, calls, 1, error);
            let received = exchange.receive(after.clone()).await;
            if !faulty.was_reached() {
                assert_eq!(received.unwrap().taken, 3);
                break;
            }
            let exchange = open(&faulty).await;
            exchange.receive(after.clone()).await.unwrap();
            let late = exchange.receive(before.clone()).await.unwrap();
            assert_eq!((late.taken, late.already_there, late.forgotten), (0, 4, 2), "{calls}");
            assert_eq!(exchange.store().read_tail(99).await.unwrap().messages.len(), 5);
            assert_eq!(exchange.forgotten().await.unwrap(), after.forgotten);
            assert_eq!(exchange.settings().await.unwrap().len(), 1);
            let report = exchange.store().verify(|_| {}).await.unwrap();
            assert!(report.is_sound(), "after {calls} calls: {:?}", report.findings);
        }
    }
}

#[tokio::test]
async fn a_message_that_is_forgotten_while_it_is_on_its_way_is_not_stored() {
    let (before, after) = elsewhere().await;
    let directory = Arc::new(MemoryDirectory::default());
    let (slow, fast) = (open(&directory).await, open(&directory).await);
    slow.store().append_message(said(9)).await.unwrap();
    // The slow one has looked at everything; then the forgetting arrives, of which no message is here.
    let seen = (1, slow.store().profile().await.unwrap().imports);
    let forgotten = Incoming { forgotten: after.forgotten, ..Incoming::default() };
    assert_eq!(fast.receive(forgotten).await.unwrap().removed, 0);
    let draft = |at: usize| {
        let shared = &before.messages[at];
        ValidMessage::received(shared.message.clone(), shared.at).unwrap()
    };
    let drafts = vec![draft(1)];
    let stored =
        slow.store().write(move |writer| writer.receive(drafts, seen, false)).await.unwrap();
    assert!(stored.is_none());
}

#[tokio::test]
async fn a_title_that_a_model_proposed_is_shared_with_nobody_and_taken_back_by_nobody() {
    let exchange = open(&Arc::new(MemoryDirectory::default())).await;
    let propose = Box::new(|profile: &mut crate::store::Profile| profile.propose("x".to_owned()));
    exchange.store().change_profile(propose).await.unwrap();
    assert!(exchange.settings().await.unwrap().is_empty());
    let settings = [("title".to_owned(), None)].into();
    exchange.receive(Incoming { settings, ..Incoming::default() }).await.unwrap();
    assert_eq!(exchange.store().profile().await.unwrap().title.as_deref(), Some("x"));
    let forgotten: BTreeSet<_> = exchange.forgotten().await.unwrap();
    assert!(forgotten.is_empty());
}
