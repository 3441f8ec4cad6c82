//! Artifacts: sealed, read back, and deleted when they should be.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use crate::common::{block_on, key, open, options, said};
use sottovoce::admin::{Rekey, RepairOptions};
use sottovoce::store::{
    AddedArtifact, ArtifactKind, ArtifactStore, FindingKind, NewArtifact, Retention, SavedMessage,
    Snapshot,
};
use sottovoce::{
    ConversationStore, EncryptionKey, Error, FileConversationStore, Scope, StoreOptions,
};

const CANARY: &str = "canary in the coal mine";

async fn add(store: &FileConversationStore, name: &str, text: &str) -> AddedArtifact {
    let content = Box::new(Cursor::new(text.as_bytes().to_vec()));
    store.add_artifact(NewArtifact::new(ArtifactKind::File, name), content).await.unwrap()
}

async fn read(store: &FileConversationStore, id: &str) -> String {
    let mut text = String::new();
    store.open_artifact(id).await.unwrap().unwrap().read_to_string(&mut text).unwrap();
    text
}

async fn findings(store: &FileConversationStore) -> Vec<FindingKind> {
    let report = store.verify(|_| {}).await.unwrap();
    report.findings.into_iter().map(|finding| finding.kind).collect()
}

fn files(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root.join("artifacts"))
        .map(|entries| {
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        })
        .unwrap_or_default();
    names.retain(|name| name != "lock");
    names.sort();
    names
}

#[test]
fn an_artifact_is_sealed_described_listed_and_readable_from_any_place() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let text: String = (0..20_000).map(|line| format!("{line}: {CANARY}\n")).collect();
        let AddedArtifact { artifact, was_there, .. } = add(&store, "src/a.rs", &text).await;
        assert!(!was_there);
        assert_eq!((artifact.size, artifact.lines), (text.len() as u64, Some(20_000)));
        assert_eq!(artifact.description(), "src/a.rs (file, 20000 lines)");
        assert_eq!(artifact.mime_type, "text/plain");
        let (listed, wrong) = open(root.path()).await.artifacts().await.unwrap();
        assert_eq!((listed, wrong), (vec![artifact.clone()], Vec::new()));
        assert_eq!(read(&store, &artifact.id).await, text);
        let mut contents = store.open_artifact(&artifact.id).await.unwrap().unwrap();
        for at in [0, 65_479, 65_480, 131_000, text.len() - 3, text.len(), text.len() + 9] {
            contents.seek(SeekFrom::Start(at as u64)).unwrap();
            let mut part = vec![0; 40];
            let read = contents.read(&mut part).unwrap();
            let rest = text.as_bytes().get(at..).unwrap_or_default();
            assert!(rest.starts_with(&part[..read]) && (read > 0 || rest.is_empty()), "{at}");
        }
        assert_eq!(findings(&store).await, []);
        for (path, (bytes, ..)) in crate::common::snapshot(root.path()) {
            let holds = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
            assert!(!holds, "{}", path.display());
        }
        assert!(!format!("{artifact:?}{contents:?}").contains("a.rs"));
    });
}

#[test]
fn the_same_bytes_are_kept_once_and_an_empty_file_and_one_that_is_no_text_are_kept_too() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let first = add(&store, "a", "the same").await;
        let again = add(&store, "b", "the same").await;
        assert!(again.was_there && again.artifact == first.artifact);
        assert_eq!(files(root.path()).len(), 2);
        let empty = add(&store, "empty", "").await.artifact;
        assert_eq!((empty.size, empty.lines), (0, Some(0)));
        assert_eq!(read(&store, &empty.id).await, "");
        let bytes = Box::new(Cursor::new(vec![0, 159, 146, 150]));
        let new = NewArtifact::new(ArtifactKind::Other("image".into()), "x.png");
        let binary = store.add_artifact(new, bytes).await.unwrap().artifact;
        assert_eq!((binary.lines, binary.mime_type.as_str()), (None, "application/octet-stream"));
        assert_eq!(findings(&store).await, []);
        // Another conversation has none of them.
        let other =
            options().scope(Scope::Dm { user: "1".into() }).open(root.path()).await.unwrap();
        assert!(other.open_artifact(&first.artifact.id).await.unwrap().is_none());
        assert!(!add(&other, "a", "the same").await.was_there);
    });
}

#[test]
fn what_cannot_be_read_to_its_end_leaves_nothing() {
    struct Failing(u8);
    impl Read for Failing {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 3 { Err(std::io::ErrorKind::BrokenPipe.into()) } else { Ok(into.len()) }
        }
    }
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let new = NewArtifact::new(ArtifactKind::CommandOutput, "x");
        let failed = store.add_artifact(new, Box::new(Failing(0))).await;
        assert!(matches!(failed, Err(Error::Io { .. })));
        assert!(files(root.path()).is_empty() && store.artifacts().await.unwrap().0.is_empty());
        store.append_message(said(1)).await.unwrap();
        assert_eq!(findings(&store).await, []);
    });
}

#[test]
fn a_deleted_artifact_does_not_come_back_with_a_backup_and_its_reference_is_noted() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let artifact = add(&store, "a", CANARY).await.artifact;
        store.append_message(said(format!("see {}", artifact.reference()))).await.unwrap();
        assert_eq!(findings(&store).await, []);
        let backup: Vec<_> = files(root.path())
            .into_iter()
            .map(|name| {
                (name.clone(), std::fs::read(root.path().join("artifacts").join(name)).unwrap())
            })
            .collect();
        store.delete_artifacts(std::slice::from_ref(&artifact.id)).await.unwrap();
        assert!(files(root.path()).is_empty());
        let id = artifact.id.clone();
        assert_eq!(findings(&store).await, [FindingKind::Dangling { id: id.clone() }]);
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
        for (name, bytes) in backup {
            std::fs::write(root.path().join("artifacts").join(name), bytes).unwrap();
        }
        assert!(store.open_artifact(&id).await.unwrap().is_none());
        assert!(open(root.path()).await.artifacts().await.unwrap().0.is_empty());
        assert!(findings(&store).await.contains(&FindingKind::Resurrected));
        store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert!(files(root.path()).is_empty());
    });
}

#[test]
fn an_artifact_that_was_changed_cut_swapped_or_taken_away_is_named_and_never_read_as_another() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let long = "x".repeat(200_000);
        let (a, b) =
            (add(&store, "a", &long).await.artifact, add(&store, "b", "other").await.artifact);
        let path = |id: &str| root.path().join("artifacts").join(id);
        let whole = std::fs::read(path(&a.id)).unwrap();
        let mut changed = whole.clone();
        changed[150_000] ^= 1;
        let cut = whole[..65_536].to_vec();
        let swapped = std::fs::read(path(&b.id)).unwrap();
        for wrong in [changed.clone(), cut, swapped, Vec::new()] {
            std::fs::write(path(&a.id), wrong).unwrap();
            let found = findings(&store).await;
            assert!(
                matches!(found[..], [FindingKind::Unopenable | FindingKind::Damaged(_)]),
                "{found:?}"
            );
            let mut text = Vec::new();
            let opened = store.open_artifact(&a.id).await;
            assert!(opened.is_err() || opened.unwrap().unwrap().read_to_end(&mut text).is_err());
            let report = store.repair(RepairOptions::default(), |_| {}).await.unwrap().report;
            assert!(!report.is_sound(), "nothing is thrown away unasked");
        }
        // The part before the change can be read.
        std::fs::write(path(&a.id), changed).unwrap();
        let mut start = vec![0; 100_000];
        store.open_artifact(&a.id).await.unwrap().unwrap().read_exact(&mut start).unwrap();
        std::fs::write(path(&a.id), whole).unwrap();
        assert_eq!(findings(&store).await, []);
        std::fs::remove_file(path(&a.id)).unwrap();
        assert_eq!(findings(&store).await, [FindingKind::Absent]);
        let repaired = store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert!(repaired.report.is_sound());
        assert_eq!(store.artifacts().await.unwrap().0.len(), 1);
        // A useless file is set aside on request.
        std::fs::write(path(&b.id), b"rubbish").unwrap();
        let options = RepairOptions { quarantine: true, ..RepairOptions::default() };
        store.repair(options, |_| {}).await.unwrap();
        assert!(!path(&b.id).exists() && root.path().join("artifacts/quarantine").exists());
    });
}

#[test]
fn a_change_of_keys_reaches_artifacts() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        store.append_message(said(1)).await.unwrap();
        let long = CANARY.repeat(10_000);
        let artifact = add(&store, "a", &long).await.artifact;
        drop(store);
        let new = || EncryptionKey::from_secret("another secret of the tests, long").unwrap();
        let rekeyed = Rekey::new(key(), new())
            .run(root.path(), |_| std::ops::ControlFlow::Continue(()))
            .await;
        let rekeyed = rekeyed.unwrap();
        assert!(rekeyed.left.is_empty() && rekeyed.kept.is_empty(), "{rekeyed:?}");
        assert!(matches!(options().open(root.path()).await, Err(Error::WrongKey { .. })));
        let store = StoreOptions::new(new()).open(root.path()).await.unwrap();
        assert_eq!(read(&store, &artifact.id).await, long);
        assert_eq!(findings(&store).await, []);
    });
}

#[test]
fn settings_that_are_lost_lose_no_artifact() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let artifact = add(&store, "a", CANARY).await.artifact;
        store.append_message(said(1)).await.unwrap();
        drop(store);
        std::fs::remove_file(root.path().join("profile")).unwrap();
        let store = open(root.path()).await;
        store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert_eq!(read(&store, &artifact.id).await, CANARY);
        assert_eq!(findings(&store).await, []);
    });
}

#[test]
fn an_artifact_is_found_by_its_beginning_and_its_reference_and_the_nearest_are_named_otherwise() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let none = store.profile().await.unwrap().find_artifact("ab").unwrap_err();
        assert_eq!(
            none.to_string(),
            "there is no such artifact; none was added in this conversation"
        );
        let (a, b) = (add(&store, "a", "1").await.artifact, add(&store, "b", "2").await.artifact);
        let profile = store.profile().await.unwrap();
        let whole = a.reference();
        let cut = whole.strip_suffix(&a.id[30..]).unwrap();
        for id in [a.id.as_str(), &a.id[..30], &whole, cut] {
            assert_eq!(profile.find_artifact(id).unwrap(), a.id, "{id}");
        }
        for id in ["", "artifact://", &format!("{}0", a.id), "../a"] {
            match profile.find_artifact(id) {
                Err(Error::NoSuchArtifact { nearest }) => {
                    assert!(nearest.len() == 2 && nearest.contains(&b.id), "{nearest:?}");
                }
                other => panic!("{id}: {other:?}"),
            }
        }
        store.delete_artifacts(std::slice::from_ref(&a.id)).await.unwrap();
        assert!(store.profile().await.unwrap().find_artifact(&a.id).is_err());
    });
}

async fn unreferenced(store: &FileConversationStore) -> Vec<String> {
    let references = store.artifact_references().await.unwrap();
    assert_eq!(references.unread, []);
    references.unreferenced.iter().map(|artifact| artifact.name.clone()).collect()
}

#[test]
fn what_a_message_a_hidden_one_a_snapshot_or_a_folder_in_use_refers_to_is_in_use() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        assert!(unreferenced(&store).await.is_empty());
        let mut ids = Vec::new();
        for name in ["said", "moved", "hidden", "saved", "in folder", "in lost folder", "unused"] {
            ids.push(add(&store, name, name).await.artifact);
        }
        let folder = async |name: &str, text: String| {
            let new = NewArtifact::new(ArtifactKind::Folder, name);
            store.add_artifact(new, Box::new(Cursor::new(text))).await.unwrap().artifact
        };
        let inner = folder("inner", format!("x  {}", ids[4].reference())).await;
        let outer = folder("outer", format!("y  {}", inner.reference())).await;
        folder("lost", format!("z  {}", ids[5].reference())).await;
        // An artifact that happens to contain a reference does not keep another one.
        add(&store, "log", &ids[6].reference()).await;

        let hidden = store.append_message(said(ids[2].reference())).await.unwrap().seq;
        let twice = said(format!("{} and {}", ids[0].reference(), outer.reference()));
        let seen = store.append_message(twice).await.unwrap().seq;
        let moved = said("a long result").with_metadata("artifact", &ids[1].id);
        store.append_message(moved).await.unwrap();
        let at = "2025-08-24T16:36:25Z".parse().unwrap();
        let saved = vec![SavedMessage::new(1, said(ids[3].reference()))];
        store.save_snapshot(Snapshot::new(at, (at, at), saved).unwrap()).await.unwrap();
        let two = Retention::default().max_messages(2);
        store.change_profile(Box::new(move |profile| profile.retention = Some(two))).await.unwrap();
        assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 2);

        let mut names = unreferenced(&store).await;
        names.sort();
        assert_eq!(names, ["in lost folder", "log", "lost", "unused"]);
        let references = store.artifact_references().await.unwrap();
        let of = |id: &str| references.messages[id].iter().copied().collect::<Vec<_>>();
        assert_eq!((of(&ids[2].id), of(&ids[0].id)), (vec![hidden], vec![seen]));
        assert_eq!(references.messages.len(), 4);
    });
}

#[test]
fn while_a_message_cannot_be_read_nobody_says_that_an_artifact_is_in_no_use() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let artifact = add(&store, "a", "1").await.artifact;
        store.append_message(said(artifact.reference())).await.unwrap();
        drop(store);
        std::fs::write(&crate::common::records(root.path())[0], b"rubbish").unwrap();
        let references = open(root.path()).await.artifact_references().await.unwrap();
        assert!(!references.unread.is_empty());
    });
}
