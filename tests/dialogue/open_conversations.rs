//! The conversations of a server: what is in memory when one is dropped.

use std::sync::Arc;
use std::time::Duration;

use sottovoce::config::OpenConversations;
use sottovoce::{Config, EncryptionKey, Scope, SystemClock};

use crate::stub::{Answer, OllamaStub};

/// How many conversations are kept open.
const OPEN: usize = 256;

fn named(id: usize) -> Scope {
    Scope::Named { id: id.to_string() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_spoken_of_a_failed_answer_is_stored_when_its_conversation_is_dropped() {
    let (root, stub) = (tempfile::tempdir().unwrap(), OllamaStub::start());
    let environment = [
        ("SOTTOVOCE__CONTEXT__STORAGEROOT".into(), root.path().into()),
        ("SOTTOVOCE__LANGUAGEMODEL__BASEURL".into(), stub.url().into()),
    ];
    let none = root.path().join("settings.json");
    std::fs::write(&none, "{}").unwrap();
    let config = Config::load_with(Some(&none), environment).unwrap();
    let key = Arc::new(EncryptionKey::generate().unwrap());
    let open = OpenConversations::new(config, vec![key], Arc::new(SystemClock)).unwrap();
    stub.next(Answer::saying(&["It is "]).cut());
    let conversation = open.open(&named(0)).await.unwrap();
    let mut answer = conversation.ask("Rain?").await.unwrap();
    while answer.next().await.is_some_and(|event| event.is_ok()) {}
    drop((answer, conversation));
    for id in 1..=OPEN {
        open.open(&named(id)).await.unwrap();
    }
    assert!(open.known(&named(0)).is_none());
    let store = open.store(&named(0)).await.unwrap();
    for _ in 0..100 {
        if sottovoce::ConversationStore::read_tail(&store, 9).await.unwrap().messages.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let stored = sottovoce::ConversationStore::read_tail(&store, 9).await.unwrap().messages;
    let words: Vec<_> = stored.iter().map(|stored| stored.message.content.as_str()).collect();
    assert_eq!(words, ["Rain?", "It is "]);
    assert_eq!(stored[1].message.cut_off(), Some("failed"));
}
