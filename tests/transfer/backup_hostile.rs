//! Hostile exports are refused and damage nothing.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::time::Duration;

use crate::common::{block_on, key, options, said, snapshot, texts, within};
use sottovoce::import::{Backup, ConversationReport};
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact};
use sottovoce::{ConversationStore, FileConversationStore, Scope};

fn scope() -> Scope {
    Scope::Dm { user: "ann".into() }
}

async fn store(root: &Path) -> FileConversationStore {
    options().scope(scope()).open(root).await.unwrap()
}

fn message(seq: u64, kind: &str, text: &str) -> String {
    let message = serde_json::to_string(&said(text)).unwrap();
    format!(r#"{{"name":"20250824T163625123Z_{seq:04}_{kind}","message":{message}}}"#)
}

fn forget(seq: u64, erased: &str) -> String {
    format!(r#"{{"name":"20250824T163625123Z_{seq:04}_forget","erased":{erased}}}"#)
}

fn export(profile: &str, records: &[String], behind: &str) -> String {
    format!(
        r#"{{"sottovoce":1,"conversations":[{{"scope":"{}","lastSeq":3,"profile":{profile},"records":[{}]{behind}}}]}}"#,
        scope(),
        records.join(",")
    )
}

async fn import(text: &str, root: &Path) -> sottovoce::Result<Vec<ConversationReport>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.json");
    std::fs::write(&file, text).unwrap();
    let root = root.to_owned();
    let open: sottovoce::import::OpenStore = Box::new(move |scope| {
        let root = root.clone();
        Box::pin(async move { options().scope(scope).open(root).await })
    });
    Backup::new(file).key(key()).import(open, |_| {}, |_| {}).await
}

fn folder(root: &Path) -> std::path::PathBuf {
    let found = snapshot(root)
        .into_keys()
        .find(|path| path.ends_with("head") && !path.ends_with("catalog/head"))
        .unwrap();
    found.parent().unwrap().to_owned()
}

/// Checks that the conversation accepts a message, returns it, and is sound.
async fn works(root: &Path) {
    let store = store(root).await;
    store.append_message(said("still here")).await.unwrap();
    let reading = store.read_tail(1).await.unwrap();
    assert_eq!(texts(&reading), ["still here"]);
    let report = store.verify(|_| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_forget_record_of_numbers_to_come_forgets_nothing_that_is_said_later() {
    block_on(async {
        for erased in ["[[1,18446744073709551615]]", "[[2,2]]", "[[3,9]]"] {
            let root = tempfile::tempdir().unwrap();
            let records = [message(1, "user", "one"), forget(2, erased)];
            let _ = import(&export(r#"{"rev":0}"#, &records, ""), root.path()).await;
            works(root.path()).await;
        }
    });
}

#[test]
fn the_last_number_is_refused_so_that_others_can_come_after_it() {
    within(Duration::from_secs(20), || {
        block_on(async {
            for seq in [u64::MAX, u64::MAX - 1, 1 << 60] {
                let root = tempfile::tempdir().unwrap();
                let records = [message(1, "user", "one"), message(seq, "user", "last")];
                let _ = import(&export(r#"{"rev":0}"#, &records, ""), root.path()).await;
                works(root.path()).await;
            }
        });
    });
}

#[test]
fn names_that_lead_out_of_the_store_write_nothing_there() {
    block_on(async {
        for id in [
            "../x",
            "../../x",
            "../../../x",
            "../head",
            "../../../vault",
            "/tmp/../x",
            "",
            ".",
            "..",
        ] {
            let outer = tempfile::tempdir().unwrap();
            let root = outer.path().join("root");
            // Another conversation, which must not change.
            options().open(&root).await.unwrap().append_message(said("mine")).await.unwrap();
            std::fs::write(outer.path().join("x"), "a file of somebody's").unwrap();
            let before = snapshot(&root);
            let profile =
                format!(r#"{{"rev":2,"snapshots":{{"{id}":1}},"artifacts":{{"{id}":"00"}}}}"#);
            let snapshots = format!(
                r#","snapshots":[{{"id":"{id}","rev":1,"savedAt":"2025-08-24T16:36:25Z","summary":"s","windowStart":"2025-08-24T16:36:25Z","windowEnd":"2025-08-24T16:36:25Z","messages":[]}}]"#
            );
            let artifacts = format!(
                r#","artifacts":[{{"meta":{{"id":"{id}","type":"file","name":"n","mimeType":"text/plain","size":1,"sha256":"00","createdAt":"2025-08-24T16:36:25Z"}},"content":["YQ=="]}}]"#
            );
            for behind in [&snapshots, &artifacts] {
                let text = export(&profile, &[message(1, "user", "one")], behind);
                let outcome = import(&text, &root).await;
                let after = snapshot(&root);
                for (path, (bytes, ..)) in &before {
                    let there = after.get(path).map(|(bytes, ..)| bytes);
                    assert_eq!(there, Some(bytes), "{id}: {}", path.display());
                }
                let x = std::fs::read_to_string(outer.path().join("x")).unwrap();
                assert_eq!(x, "a file of somebody's");
                let strange: Vec<_> = after
                    .keys()
                    .filter(|path| path.file_name().is_some_and(|name| name == "x"))
                    .collect();
                assert!(strange.is_empty(), "{id}: {strange:?}");
                assert!(outcome.is_err(), "{id}");
                works(&root).await;
                std::fs::remove_dir_all(root.join("dms")).unwrap();
            }
        }
    });
}

#[test]
fn settings_with_impossible_numbers_are_refused_or_do_no_harm() {
    block_on(async {
        let max = u64::MAX;
        for settings in [
            r#""pruned":{"erased":[[5,1]]}"#.to_owned(),
            r#""pruned":{"erased":[[0,0],[9,9],[3,4]]}"#.to_owned(),
            r#""restored":{"erased":[[9,1],[0,18446744073709551615]]}"#.to_owned(),
            format!(r#""pruned":{{"erased":[[1,{max}]]}}"#),
            format!(r#""restored":{{"erased":[[1,{max}]]}}"#),
            r#""compacted":[{"at":"2025-08-24T16:36:25Z","until":"2025-08-24T16:36:25Z","of":{"erased":[[7,2]]},"text":"t"}]"#.to_owned(),
            format!(r#""retention":{{"ttlSeconds":{max},"maxMessages":4294967295}},"windowSeconds":{max}"#),
            format!(r#""brought":{{"tokens":{max},"micros":{max}}}"#),
            format!(r#""snapshots":{{"00112233-4455-6677-8899-aabbccddeeff":{max}}}"#),
        ] {
            for rev in [1, max] {
                let root = tempfile::tempdir().unwrap();
                let profile = format!(r#"{{"rev":{rev},{settings}}}"#);
                let records = [message(1, "user", "one"), message(2, "user", "two")];
                let behind = format!(
                    r#","snapshots":[{{"id":"00112233-4455-6677-8899-aabbccddeeff","rev":{max},"savedAt":"2025-08-24T16:36:25Z","summary":"s","windowStart":"2025-08-24T16:36:25Z","windowEnd":"2025-08-24T16:36:25Z","messages":[{{"seq":1,"message":{}}},{{"seq":2,"message":{}}}]}}]"#,
                    serde_json::to_string(&said("one")).unwrap(),
                    serde_json::to_string(&said("two")).unwrap(),
                );
                let behind = if settings.contains("snapshots") { behind } else { String::new() };
                let imported = import(&export(&profile, &records, &behind), root.path()).await;
                let store = store(root.path()).await;
                let _ = store.profile().await.unwrap().pruned();
                store.append_message(said("more")).await.unwrap();
                store.forget(&[1..=1]).await.unwrap();
                // Each change is compared with the state before.
                let before = store.profile().await.unwrap();
                let other = options().scope(scope()).open(root.path()).await.unwrap();
                other.clear().await.unwrap();
                let after = store.profile().await.unwrap();
                assert!(before.cleared.is_none() && after.cleared.is_some(), "{settings} {imported:?}");
                if let Ok(snapshot) = store.read_snapshot("00112233-4455-6677-8899-aabbccddeeff").await
                    && let Some(snapshot) = snapshot
                {
                    let words = serde_json::to_string(&snapshot).unwrap();
                    assert!(!words.contains("one"), "{settings}");
                }
                works(root.path()).await;
            }
        }
    });
}

#[test]
fn records_that_are_none_are_refused_and_what_is_there_stays() {
    block_on(async {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        for records in [
            vec![message(0, "user", "zero")],
            vec![message(1, "user", "one"), message(1, "user", "again")],
            vec![message(2, "user", "two"), message(1, "user", "one")],
            vec![message(1, "user", "one").replace("_user\"", "_assistant\"")],
            vec![message(1, "forget", "one")],
            vec![message(1, "user", "one"), forget(2, "[[5,1]]")],
            vec![message(1, "user", "one"), forget(2, "[[0,1]]")],
            vec![deep.clone()],
            vec![r#"{"name":"x"}"#.to_owned()],
        ] {
            let root = tempfile::tempdir().unwrap();
            let text = export(r#"{"rev":0}"#, &records, "");
            let outcome = import(&text, root.path()).await;
            assert!(outcome.is_err(), "{}", records[0].get(..90).unwrap_or(&records[0]));
            works(root.path()).await;
            // The same in a conversation with messages.
            let before = texts(&store(root.path()).await.read_tail(99).await.unwrap()).len();
            let _ = import(&text, root.path()).await;
            let after = texts(&store(root.path()).await.read_tail(99).await.unwrap()).len();
            assert!(after >= before);
        }
    });
}

#[test]
fn an_artifact_that_cannot_be_opened_is_not_removed_for_one_that_is_not_it() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path()).await;
        store.append_message(said("one")).await.unwrap();
        let new = NewArtifact::new(ArtifactKind::File, "a");
        let added = store.add_artifact(new, Box::new(&b"the contents"[..])).await.unwrap();
        let out = root.path().join("out.json");
        let mut exporter =
            sottovoce::export::Exporter::to_file(sottovoce::export::ExportForm::Json, &out)
                .unwrap();
        exporter.add(&store, sottovoce::export::ExportRange::default(), |_| {}).await.unwrap();
        exporter.finish().await.unwrap();
        let text = std::fs::read_to_string(&out).unwrap();
        let artifacts = folder(root.path()).join("artifacts");
        let path = artifacts.join(&added.artifact.id);
        // As if it were sealed under a key that is not available now.
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let wrong = text.replace("dGhlIGNvbnRlbnRz", "YW5vdGhlciB0aGluZw==");
        assert_ne!(wrong, text);
        import(&wrong, root.path()).await.unwrap_err();
        assert!(find(&artifacts, &bytes), "what could not be opened is gone");
        // The right artifact takes its place, and the file still exists.
        import(&text, root.path()).await.unwrap();
        assert!(find(&artifacts, &bytes), "what could not be opened is gone");
        assert!(store.open_artifact(&added.artifact.id).await.unwrap().is_some());
    });
}

/// Whether any file below a folder holds these bytes.
const ID: &str = "00000000000000000000000000000abc";

fn find(folder: &Path, bytes: &[u8]) -> bool {
    snapshot(folder).values().any(|(there, ..)| there == bytes)
}

#[test]
fn an_artifact_whose_adding_was_interrupted_is_taken_from_the_export() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path()).await;
        store.append_message(said("mine")).await.unwrap();
        // A sealed but unlisted artifact of a killed program.
        let sha = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        let artifacts = format!(
            r#","artifacts":[{{"meta":{{"id":"{ID}","type":"file","name":"n","mimeType":"text/plain","size":1,"sha256":"{sha}","createdAt":"2025-08-24T16:36:25Z"}},"content":["eA=="]}}]"#
        );
        let records = [message(5, "user", "one")];
        import(&export(r#"{"rev":0}"#, &records, ""), root.path()).await.unwrap();
        store.change_profile(Box::new(|profile| profile.rename(Some("t".into())))).await.unwrap();
        let kept = ["head", "profile"]
            .map(|name| (name, std::fs::read(folder(root.path()).join(name)).unwrap()));
        let text = export(r#"{"rev":0}"#, &records, &artifacts);
        import(&text, root.path()).await.unwrap();
        // As it was before it was listed.
        for (name, bytes) in &kept {
            std::fs::write(folder(root.path()).join(name), bytes).unwrap();
        }
        std::fs::remove_file(folder(root.path()).join(format!("artifacts/{ID}.meta"))).unwrap();
        assert!(store.open_artifact(ID).await.unwrap().is_none());
        import(&text, root.path()).await.unwrap();
        assert!(store.open_artifact(ID).await.unwrap().is_some());
    });
}
