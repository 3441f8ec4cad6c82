//! Artifacts after a failing call: added, deleted, or forgotten with their message.

use std::io::Cursor;
use std::sync::Arc;

use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken};
use crate::store::{
    ArtifactKind, ArtifactStore, ConversationStore, FileConversationStore, FindingKind,
    NewArtifact, StoreOptions,
};
use crate::{ChatMessage, ChatRole, EncryptionKey, Result};

const FOLDERS: [&str; 3] = ["packs", "snapshots", "artifacts"];

fn options() -> StoreOptions {
    StoreOptions::new(EncryptionKey::from_secret("a secret of the tests, long enough").unwrap())
}

async fn open(directory: &Arc<impl Directory + 'static>) -> FileConversationStore {
    let directory: Arc<dyn Directory> = directory.clone();
    options().open_directory(directory.clone(), directory).await.unwrap()
}

fn copied(directory: &MemoryDirectory) -> Arc<MemoryDirectory> {
    let copy = Arc::new(MemoryDirectory::default());
    let files = |directory: &dyn Directory| {
        let mut names = Vec::new();
        directory
            .list(&mut |name, kind| {
                if kind == crate::directory::EntryKind::File {
                    names.push(String::from_utf8(name.into()).unwrap());
                }
            })
            .unwrap();
        names
    };
    for name in files(directory) {
        copy.replace(&name, &directory.read(&name).unwrap().unwrap()).unwrap();
    }
    for folder in FOLDERS {
        let (from, to) = (directory.folder(folder), copy.folder(folder));
        for name in files(&*from) {
            to.replace(&name, &from.read(&name).unwrap().unwrap()).unwrap();
        }
    }
    copy
}

fn said(text: impl ToString) -> ChatMessage {
    let at = "2025-08-24T16:36:25.123Z".parse().unwrap();
    ChatMessage::at(ChatRole::User, text.to_string(), at)
}

async fn add(store: &FileConversationStore, text: &'static str) -> Result<String> {
    let new = NewArtifact::new(ArtifactKind::File, text);
    let added = store.add_artifact(new, Box::new(Cursor::new(text.as_bytes()))).await?;
    Ok(added.artifact.id.clone())
}

/// Checks that the store is sound, except for unreachable leftovers of an interruption.
async fn is_sound(store: &FileConversationStore, what: &str) {
    let mut findings = store.verify(|_| {}).await.unwrap().findings;
    findings.retain(|finding| {
        finding.kind != FindingKind::Resurrected && finding.kind != FindingKind::Leftover
    });
    assert!(findings.is_empty(), "{what}: {findings:?}");
}

#[tokio::test]
async fn an_artifact_is_there_whole_or_not_at_all_whatever_fails() {
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(&memory).await;
    store.append_message(said("one")).await.unwrap();
    let kept = add(&store, "kept").await.unwrap();
    let moved = add(&store, "moved").await.unwrap();
    let result = said("is kept elsewhere").with_metadata("artifact", moved.clone());
    let result = store.append_message(result).await.unwrap().seq;
    drop(store);
    for op in 0..3 {
        for times in [1, usize::MAX] {
            for after in 0..400 {
                let copy = copied(&memory);
                let faulty = FaultyDirectory::over(copy.clone());
                let store = open(&faulty).await;
                faulty.fail(Call::Any, after, times, broken);
                let outcome = match op {
                    0 => add(&store, "new").await.map(Some),
                    1 => store.delete_artifacts(std::slice::from_ref(&kept)).await.map(|()| None),
                    _ => store.forget(&[result..=result]).await.map(|_| None),
                };
                if !faulty.was_reached() {
                    assert!(after > 10, "op {op}: {after}");
                    break;
                }
                drop(store);
                let what = format!("op {op}, {times} times after {after}: {}", outcome.is_ok());
                let store = open(&copy).await;
                let has = async |id: &str| store.open_artifact(id).await.unwrap().is_some();
                match (op, &outcome) {
                    (0, Ok(Some(id))) => assert!(has(id).await, "{what}"),
                    (1, Ok(_)) => assert!(!has(&kept).await, "{what}"),
                    (2, Ok(_)) => assert!(!has(&moved).await, "{what}"),
                    _ => {}
                }
                assert!(op == 1 || has(&kept).await, "{what}");
                let there = store.read_seqs(result..=result).await.unwrap().messages.len();
                assert!(there == 0 || has(&moved).await, "{what}: a message without its artifact");
                assert!(op == 2 || there == 1, "{what}");
                store.append_message(said("next")).await.unwrap();
                assert_eq!(has(&moved).await, there == 1, "{what}: words of what is gone");
                is_sound(&store, &what).await;
                // A second try succeeds.
                match op {
                    0 => assert!(has(&add(&store, "new").await.unwrap()).await, "{what}"),
                    1 => store.delete_artifacts(std::slice::from_ref(&kept)).await.unwrap(),
                    _ => drop(store.forget(&[result..=result]).await.unwrap()),
                }
                is_sound(&store, &what).await;
            }
        }
    }
}

/// A source that says when it is first read, and goes on when it is told to.
struct Slow(std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>);

impl std::io::Read for Slow {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.send(()).unwrap();
        match self.1.recv() {
            Ok(()) => {
                into[0] = b'x';
                Ok(1)
            }
            Err(_) => Ok(0),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_slow_keeps_nobody_from_adding_and_nobody_sweeps_its_file() {
    let root = tempfile::tempdir().unwrap();
    let open = async || options().open(root.path().to_owned()).await.unwrap();
    let store = open().await;
    store.append_message(said("one")).await.unwrap();
    let leftover = root.path().join("artifacts/.tmp-0123456789abcdef");
    let (reached, was_reached) = std::sync::mpsc::channel();
    let (go, going) = std::sync::mpsc::channel();
    let slow = tokio::spawn({
        let (store, new) = (store.clone(), NewArtifact::new(ArtifactKind::File, "slow"));
        async move { store.add_artifact(new, Box::new(Slow(reached, going))).await }
    });
    was_reached.recv().unwrap();
    // Others add artifacts, here and in another process, which first removes what a killed one has left.
    std::fs::write(&leftover, "left").unwrap();
    let other = open().await;
    add(&other, "other").await.unwrap();
    add(&store, "mine").await.unwrap();
    assert!(!leftover.exists(), "what nobody writes is removed");
    go.send(()).unwrap();
    was_reached.recv().unwrap();
    drop(go);
    let added = slow.await.unwrap().unwrap();
    assert_eq!(added.artifact.size, 1);
    assert!(open().await.open_artifact(&added.artifact.id).await.unwrap().is_some());
    assert!(open().await.verify(|_| {}).await.unwrap().is_sound());
}
