//! Tombstones: what was deleted stays deleted, however much it is, and costs nothing where nothing is deleted.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::EncryptionKey;
use crate::admin::{Rekey, RepairOptions};
use crate::directory::{Directory, fs::FsDirectory, memory::MemoryDirectory};
use crate::store::record::document::Document;
use crate::store::record::store_state::ForgottenConversation;
use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken, said};
use crate::store::tests::interrupted_documents::copied;
use crate::store::{ConversationStore, FileConversationStore, FindingKind, Profile, StoreOptions};

const DOCUMENT: &str = "tombstones";

fn secret(text: &str) -> EncryptionKey {
    EncryptionKey::from_secret(text).unwrap()
}

async fn open(directory: &Arc<impl Directory + 'static>) -> FileConversationStore {
    let directory: Arc<dyn Directory> = directory.clone();
    let options = StoreOptions::new(secret("a secret of the tests of tombstones"));
    options.open_directory(directory.clone(), directory).await.unwrap()
}

fn artifact(number: u32) -> String {
    format!("{number:032x}")
}

/// The only snapshot that was deleted.
const SNAPSHOT: &str = "3e0e4c5f-6f8a-4a53-9c2b-8d9c6f0f2a11";

/// Settings with that many deleted artifacts, and something deleted of each other kind.
fn bury(profile: &mut Profile, artifacts: u32) {
    profile.artifacts.extend((0..artifacts).map(|number| (artifact(number), String::new())));
    profile.snapshots.insert(SNAPSHOT.to_owned(), 0);
    profile.imported_presets.insert("preset-gone".to_owned());
    let gone = ForgottenConversation::new(7, "2025-08-24T16:00:00Z".parse().unwrap());
    profile.forgotten_scopes.insert("00ff".to_owned(), gone);
}

/// Whether the settings say that all of it is deleted.
fn is_buried(profile: &Profile, artifacts: u32) -> bool {
    (0..artifacts).all(|number| profile.has_deleted_artifact(&artifact(number)))
        && profile.snapshots.get(SNAPSHOT) == Some(&0)
        && profile.imported_presets.contains("preset-gone")
        && profile.forgotten_scopes.get("00ff").is_some_and(|gone| gone.last == 7)
}

async fn delete(store: &FileConversationStore, ids: Vec<String>) -> crate::Result<()> {
    store.write(move |writer| writer.delete_received_artifacts(&ids)).await
}

async fn rename(store: &FileConversationStore, title: &'static str) -> crate::Result<()> {
    let change = move |profile: &mut Profile| profile.rename(Some(title.to_owned()));
    store.change_profile(Box::new(change)).await.map(drop)
}

/// A conversation as it was written before tombstones had a document: three of them in the settings, one in the presets.
async fn older() -> Arc<MemoryDirectory> {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    store.append_message(said("one")).await.unwrap();
    rename(&store, "first").await.unwrap();
    let write = |writer: &mut crate::store::write::Writer| {
        writer.locked(|committer, tail, _| {
            let mut profile = Profile { presets_rev: 1, ..Profile::clone(&tail.profile) };
            bury(&mut profile, 3);
            profile.imported_presets.clear();
            let text = serde_json::to_vec(&profile).unwrap();
            committer.replace(Document::Profile, &text)?;
            let text = br#"{"rev":1,"presets":{},"broughtPresets":["preset-gone"]}"#;
            committer.replace(Document::Presets, text)
        })
    };
    store.write(write).await.unwrap();
    directory
}

async fn assert_sound(store: &FileConversationStore, what: &str) {
    let mut findings = store.verify(|_| {}).await.unwrap().findings;
    // A repair keeps what it could not read.
    findings.retain(|finding| !matches!(finding.kind, FindingKind::Quarantined { .. }));
    assert!(findings.is_empty(), "{what}: {findings:?}");
}

/// The settings as they are sealed.
async fn sealed(store: &FileConversationStore) -> String {
    let text = store.read_document(Document::Profile).await.unwrap().unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

#[tokio::test]
async fn ten_thousand_deleted_artifacts_make_no_write_longer_that_deletes_none() {
    let mut written = Vec::new();
    for artifacts in [1, 10_000] {
        let counting = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
        let store = open(&counting).await;
        for number in 1..=20 {
            store.append_message(said(number)).await.unwrap();
        }
        let keep = crate::store::Retention::FOREVER.max_messages(15);
        let limit = move |profile: &mut Profile| profile.retention = Some(keep);
        store.change_profile(Box::new(limit)).await.unwrap();
        delete(&store, (0..artifacts).map(artifact).collect()).await.unwrap();
        let before = counting.bytes_written();
        store.append_message(said("an append")).await.unwrap();
        let appended = counting.bytes_written() - before;
        rename(&store, "a title").await.unwrap();
        let renamed = counting.bytes_written() - before - appended;
        assert_eq!(store.forget(&[18..=18]).await.unwrap().removed.last(), Some(&18));
        written.push([appended, renamed, counting.bytes_written() - before]);
        assert!(open(&counting).await.profile().await.unwrap().has_deleted_artifact(&artifact(0)));
        assert_sound(&store, "after all").await;
    }
    for (few, many) in written[0].iter().zip(&written[1]) {
        assert!(*many < few + 100, "{written:?}");
    }
}

#[tokio::test]
async fn tombstones_in_the_settings_of_an_older_store_move_to_their_document_with_the_first_change()
{
    let directory = older().await;
    let store = open(&directory).await;
    assert!(is_buried(&store.profile().await.unwrap(), 3));
    assert_sound(&store, "as it was").await;
    assert!(directory.read(DOCUMENT).unwrap().is_none());
    rename(&store, "second").await.unwrap();
    let settings = sealed(&store).await;
    assert!(!settings.contains(SNAPSHOT) && !settings.contains(&artifact(1)), "{settings}");
    for _ in 0..2 {
        let store = open(&directory).await;
        assert!(is_buried(&store.profile().await.unwrap(), 3));
        assert_sound(&store, "moved").await;
        delete(&store, vec![artifact(3)]).await.unwrap();
    }
    assert!(is_buried(&open(&directory).await.profile().await.unwrap(), 4));
}

#[tokio::test]
async fn a_crash_between_the_documents_loses_no_tombstone() {
    let old = older().await;
    let moved = copied(&old);
    rename(&open(&moved).await, "second").await.unwrap();
    for (place, memory) in [("in the settings", old), ("in a document", moved)] {
        for op in 0..2 {
            for times in [1, usize::MAX] {
                for after in 0.. {
                    let copy = copied(&memory);
                    let faulty = FaultyDirectory::over(copy.clone());
                    let store = open(&faulty).await;
                    faulty.fail(Call::Any, after, times, broken);
                    let is_done = match op {
                        0 => rename(&store, "third").await.is_ok(),
                        _ => delete(&store, vec![artifact(3), artifact(4)]).await.is_ok(),
                    };
                    if !faulty.was_reached() {
                        assert!(is_done && after > 5, "{after}");
                        break;
                    }
                    drop(store);
                    let what = format!("{place}, op {op}, {times} times after {after}: {is_done}");
                    for title in ["fourth", "fifth"] {
                        let store = open(&copy).await;
                        let profile = store.profile().await.unwrap();
                        let count = if op == 1 && is_done { 5 } else { 3 };
                        assert!(is_buried(&profile, count), "{what}, {title}");
                        assert_sound(&store, &what).await;
                        rename(&store, title).await.unwrap();
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn settings_that_are_lost_take_no_tombstone_with_them() {
    let directory = older().await;
    let store = open(&directory).await;
    delete(&store, vec![artifact(3)]).await.unwrap();
    drop(store);
    directory.replace("profile", b"lost").unwrap();
    let store = open(&directory).await;
    store.repair(RepairOptions::default(), |_| {}).await.unwrap();
    assert_sound(&store, "after the repair").await;
    assert!(is_buried(&open(&directory).await.profile().await.unwrap(), 4));
}

#[tokio::test]
async fn lost_or_older_tombstones_are_found_and_nothing_is_changed_before_a_repair() {
    let directory = older().await;
    let store = open(&directory).await;
    delete(&store, vec![artifact(3)]).await.unwrap();
    let earlier = directory.read(DOCUMENT).unwrap().unwrap();
    delete(&store, vec![artifact(4)]).await.unwrap();
    drop(store);
    let lost: [(Option<&[u8]>, FindingKind, u32); 3] = [
        (Some(&earlier), FindingKind::Outdated, 4),
        (Some(b"{}"), FindingKind::Damaged("it is no sealed file of this store"), 0),
        (None, FindingKind::Absent, 0),
    ];
    for (bytes, kind, left) in lost {
        let copy = copied(&directory);
        match bytes {
            Some(bytes) => copy.replace(DOCUMENT, bytes).unwrap(),
            None => copy.remove(DOCUMENT).unwrap(),
        }
        let store = open(&copy).await;
        let findings = store.verify(|_| {}).await.unwrap().findings;
        let found: Vec<_> = findings.iter().map(|found| found.file.as_deref()).collect();
        assert_eq!(found, [Some(DOCUMENT)], "{kind:?}");
        assert_eq!(findings[0].kind.code(), kind.code());
        assert!(rename(&store, "refused").await.is_err());
        assert_eq!(store.read_tail(5).await.unwrap().messages.len(), 1);
        store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert_sound(&store, kind.code()).await;
        let store = open(&copy).await;
        let profile = store.profile().await.unwrap();
        assert_eq!(profile.title.as_deref(), Some("first"), "only the tombstones were lost");
        assert_eq!(profile.has_deleted_artifact(&artifact(3)), left == 4);
        assert!(!profile.has_deleted_artifact(&artifact(4)));
        delete(&store, vec![artifact(4)]).await.unwrap();
        assert_sound(&open(&copy).await, kind.code()).await;
    }
}

#[tokio::test]
async fn a_change_of_keys_takes_tombstones_over() {
    let folder = tempfile::tempdir().unwrap();
    let directory = Arc::new(FsDirectory::new(folder.path(), &[]).unwrap());
    let store = open(&directory).await;
    store.append_message(said("one")).await.unwrap();
    delete(&store, (0..30_000).map(artifact).collect()).await.unwrap();
    store.change_profile(Box::new(|profile| bury(profile, 0))).await.unwrap();
    drop(store);
    let (before, next) = ("a secret of the tests of tombstones", "the next secret of these tests");
    let rekey = Rekey::new(secret(before), secret(next));
    rekey.run(folder.path(), |_| ControlFlow::Continue(())).await.unwrap();
    let store = StoreOptions::new(secret(next)).open(folder.path()).await.unwrap();
    assert!(store.profile().await.unwrap().has_deleted_artifact(&artifact(29_999)));
    assert_sound(&store, "under the next key").await;
}
