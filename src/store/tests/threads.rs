//! Threads: what one of them holds is read whatever the others say, and what the document about them says only saves
//! reading.

use std::sync::Arc;

use crate::EncryptionKey;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::message::ChatMessage;
use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken, said};
use crate::store::{ConversationStore, FileConversationStore, StoreOptions};

const DOCUMENT: &str = "threads";

async fn open(directory: &Arc<impl Directory + 'static>) -> FileConversationStore {
    let key = EncryptionKey::from_secret("a secret of the tests of threads").unwrap();
    let directory: Arc<dyn Directory> = directory.clone();
    StoreOptions::new(key).open_directory(directory.clone(), directory).await.unwrap()
}

fn in_thread(thread: Option<&str>, number: u64) -> ChatMessage {
    let mut message = said(format!("message {number} about the weather and the garden"));
    message.thread_id = thread.map(str::to_owned);
    message
}

/// Appends `count` messages of a thread.
async fn append(store: &FileConversationStore, thread: Option<&str>, count: u64) {
    let messages = (0..count).map(|number| in_thread(thread, number)).collect();
    store.append_all(messages).await.unwrap();
}

async fn seqs(store: &FileConversationStore, thread: Option<&str>, n: usize) -> Vec<u64> {
    let reading = store.read_thread(thread, n).await.unwrap();
    assert!(reading.messages.iter().all(|stored| stored.message.thread_id.as_deref() == thread));
    reading.messages.iter().map(|stored| stored.seq).collect()
}

/// The same without the document.
async fn expected(store: &FileConversationStore, thread: Option<&str>, n: usize) -> Vec<u64> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    let reading = reading.of_thread(thread, n, usize::MAX).unwrap();
    reading.messages.iter().map(|stored| stored.seq).collect()
}

#[tokio::test]
async fn a_thread_is_read_without_what_thousands_of_messages_of_another_one_say() {
    let directory = Arc::new(MemoryDirectory::default());
    let counting = FaultyDirectory::over(directory.clone());
    let writer = open(&directory).await;
    append(&writer, Some("a"), 10).await;
    append(&writer, Some("b"), 12_000).await;
    let store = open(&counting).await;
    for warmth in ["cold", "warm", "warm"] {
        let before = counting.bytes_read();
        assert!(seqs(&store, Some("a"), 36).await.into_iter().eq(1..=10), "{warmth}");
        let read = counting.bytes_read() - before;
        // A message takes some 500 bytes, so this is a tenth of what there is.
        assert!(read < 600_000, "{warmth}: {read} bytes");
    }
    append(&writer, Some("a"), 1).await;
    assert_eq!(seqs(&store, Some("a"), 2).await, [10, 12_011]);
    assert_eq!(seqs(&store, None, 5).await, [0; 0]);
}

#[tokio::test]
async fn twenty_messages_of_a_thread_among_forty_thousand_are_found_with_few_bytes() {
    let directory = Arc::new(MemoryDirectory::default());
    let counting = FaultyDirectory::over(directory.clone());
    let writer = open(&directory).await;
    let of = |number: u64| if number.is_multiple_of(2000) { Some("a") } else { None };
    let messages = (0..40_000).map(|number| in_thread(of(number), number)).collect();
    writer.append_all(messages).await.unwrap();
    // As a store that was written before there was such a document: the first read makes it.
    directory.remove(DOCUMENT).unwrap();
    let wanted: Vec<u64> = (0..20).map(|part| part * 2000 + 1).collect();
    assert_eq!(seqs(&open(&directory).await, Some("a"), 36).await, wanted);
    let store = open(&counting).await;
    let before = counting.bytes_read();
    assert_eq!(seqs(&store, Some("a"), 36).await, wanted);
    let read = counting.bytes_read() - before;
    assert!(read < 3_000_000, "{read} bytes of some 20 million");
    assert_eq!(seqs(&store, Some("a"), 3).await, wanted[17..]);
}

#[tokio::test]
async fn no_document_whatever_its_state_changes_what_is_read_of_a_thread() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    append(&store, Some("a"), 300).await;
    append(&store, None, 300).await;
    append(&store, Some("b"), 700).await;
    let older = directory.read(DOCUMENT).unwrap().unwrap();
    append(&store, Some("a"), 20).await;
    append(&store, Some("b"), 700).await;
    store.forget(&[290..=295, 1301..=1310]).await.unwrap();
    let newest = directory.read(DOCUMENT).unwrap().unwrap();
    assert_ne!(older, newest);
    let documents = [Some(newest), Some(older), Some(b"not a document\n".to_vec()), None];
    for (at, document) in documents.into_iter().enumerate() {
        for (thread, n) in [(Some("a"), 15), (Some("a"), 400), (None, 7), (Some("b"), 600)] {
            match &document {
                Some(bytes) => directory.replace(DOCUMENT, bytes).unwrap(),
                None => directory.remove(DOCUMENT).unwrap(),
            }
            let store = open(&directory).await;
            let wanted = expected(&store, thread, n).await;
            assert_eq!(seqs(&store, thread, n).await, wanted, "{at}: {thread:?} {n}");
            assert_eq!(seqs(&store, thread, n).await, wanted, "{at}: again {thread:?} {n}");
        }
    }
}

#[tokio::test]
async fn a_document_of_other_messages_under_the_same_numbers_is_not_believed() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    append(&store, Some("a"), 600).await;
    append(&store, Some("b"), 600).await;
    let document = directory.read(DOCUMENT).unwrap().unwrap();
    let other = Arc::new(MemoryDirectory::default());
    let vault = directory.read("vault").unwrap().unwrap();
    other.create("vault", &vault).unwrap();
    let store = open(&other).await;
    let later = |number: u64| {
        let mut message = in_thread(Some(if number < 100 { "b" } else { "a" }), number);
        message.timestamp = "2025-09-24T16:36:25.123Z".parse().unwrap();
        message
    };
    store.append_all((0..1300).map(later).collect()).await.unwrap();
    other.replace(DOCUMENT, &document).unwrap();
    let store = open(&other).await;
    assert!(seqs(&store, Some("b"), 200).await.into_iter().eq(1..=100));
    assert_eq!(seqs(&store, Some("a"), 3).await, [1298, 1299, 1300]);
}

#[tokio::test]
async fn a_writer_that_cannot_note_threads_keeps_every_message_and_the_next_one_catches_up() {
    let directory = Arc::new(MemoryDirectory::default());
    let faulty = FaultyDirectory::over(directory.clone());
    append(&open(&directory).await, Some("a"), 600).await;
    let before = directory.read(DOCUMENT).unwrap();
    assert!(before.is_some());
    faulty.fail(Call::Replace, 0, usize::MAX, broken);
    let store = open(&faulty).await;
    append(&store, Some("b"), 1200).await;
    assert!(faulty.was_reached());
    assert_eq!(directory.read(DOCUMENT).unwrap(), before);
    let store = open(&directory).await;
    assert!(seqs(&store, Some("a"), 5).await.into_iter().eq(596..=600));
    assert!(seqs(&store, Some("b"), 5).await.into_iter().eq(1796..=1800));
    append(&store, Some("b"), 600).await;
    assert_ne!(directory.read(DOCUMENT).unwrap(), before);
}

#[tokio::test]
async fn a_forgotten_thread_leaves_no_name_behind_and_a_conversation_no_document() {
    use crate::store::StoreBackend;
    use crate::store::record::document::Document;
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    append(&store, Some("a surprise for Ann"), 600).await;
    append(&store, Some("b"), 600).await;
    let document = |store: FileConversationStore| async move {
        let text = store.document(&Document::Threads.into()).await.unwrap().unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    };
    assert!(document(store.clone()).await.contains("a surprise for Ann"));
    store.forget(&[1..=599]).await.unwrap();
    assert_eq!(seqs(&store, Some("a surprise for Ann"), 9).await, [600]);
    store.forget(&[600..=600]).await.unwrap();
    assert_eq!(seqs(&store, Some("a surprise for Ann"), 9).await, [0; 0]);
    assert!(!document(store.clone()).await.contains("Ann"));
    assert!(seqs(&open(&directory).await, Some("b"), 2).await.into_iter().eq(1199..=1200));
    store.forget_all().await.unwrap();
    assert!(directory.read(DOCUMENT).unwrap().is_none());
}

#[tokio::test]
async fn who_uses_no_threads_gets_no_document() {
    let directory = Arc::new(MemoryDirectory::default());
    append(&open(&directory).await, None, 2000).await;
    assert!(directory.read(DOCUMENT).unwrap().is_none());
}
