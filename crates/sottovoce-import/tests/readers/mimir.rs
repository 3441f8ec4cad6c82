//! Imports of Mimir's folders, including hostile ones.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{block_on, options, snapshot, within};
use jiff::Timestamp;
use serde_json::{Value, json};
use sottovoce::import::{ConversationReport, ImportedConversations};
use sottovoce::store::{ArtifactKind, ArtifactStore, Cost, NewArtifact};
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope, StoredMessage};
use sottovoce_import::{MimirFolder, Reader};

const MUSIC: &str = "conv-meph3g5nsdd5cv78rvl";
const LIST: &str = "conv-mep9o8bxovaooktzhh";
const MORNING: &str = "conv-mep92pvzx9164urj24";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mimir")
}

fn expected() -> Vec<Value> {
    let bytes = std::fs::read(fixtures().join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&bytes).unwrap();
    expected["conversations"].as_array().unwrap().clone()
}

fn named(id: &str) -> Scope {
    Scope::Named { id: id.into() }
}

async fn read(folder: &Path) -> ImportedConversations {
    MimirFolder::new(folder).read(|_| {}).await.unwrap()
}

async fn store(root: &Path, id: &str) -> FileConversationStore {
    options().scope(named(id)).open(root).await.unwrap()
}

/// The reports, by conversation.
type Reports = BTreeMap<String, ConversationReport>;

async fn import(folder: &Path, root: &Path) -> Reports {
    let previews = read(folder).await.conversations;
    let mut reports = Reports::new();
    for (conversation, preview) in read(folder).await.conversations.into_iter().zip(previews) {
        let Scope::Named { id } = conversation.scope.clone() else { panic!() };
        let store = store(root, &id).await;
        let preview = preview.preview(&store).await.unwrap();
        let report = conversation.import_into(&store, |_| {}).await.unwrap();
        assert_eq!(report, preview);
        reports.insert(id, report);
    }
    reports
}

/// The numbers of imported messages, snapshots and artifacts.
fn taken(reports: &Reports) -> (usize, usize, usize) {
    reports.values().fold((0, 0, 0), |(messages, snapshots, artifacts), report| {
        let messages = messages + report.messages.taken;
        (messages, snapshots + report.snapshots, artifacts + report.artifacts)
    })
}

fn refused(reports: &Reports) -> BTreeMap<String, &'static str> {
    let all = reports.values().flat_map(|report| &report.messages.refused);
    all.map(|refusal| (refusal.file.clone(), refusal.reason.code())).collect()
}

async fn all(root: &Path, id: &str) -> Vec<Arc<StoredMessage>> {
    let store = store(root, id).await;
    let reading = store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    reading.messages
}

async fn words(root: &Path, id: &str) -> Vec<String> {
    all(root, id).await.iter().map(|stored| stored.message.content.clone()).collect()
}

fn copy_into(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_into(&entry.path(), &to);
        } else {
            std::fs::write(&to, std::fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// A copy of the fixtures for changes.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_into(&fixtures(), folder.path());
    folder
}

fn place(folder: &Path, id: &str, name: &str) -> PathBuf {
    folder.join(".mimir/context/conversations").join(id).join(name)
}

fn put(folder: &Path, id: &str, name: &str, text: impl AsRef<[u8]>) {
    let path = place(folder, id, name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A project with one conversation, `a`, of these lines.
fn project(lines: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a", "messages.jsonl", lines);
    folder
}

fn line(words: &str, id: usize, time: &str) -> String {
    let row = json!({"role": "user", "content": words, "id": format!("msg-{id}"),
        "timestamp": format!("2025-08-24T{time}Z")});
    format!("{row}\n")
}

fn calls(stored: &StoredMessage) -> Value {
    let result = |id: &str| {
        let note = stored.message.metadata.get(&format!("result:{id}"));
        note.map_or(Value::Null, |note| serde_json::from_str(note).unwrap())
    };
    let calls = stored.message.tool_calls.iter().map(|call| {
        json!({"id": call.id, "name": call.name, "arguments": call.arguments,
            "result": result(&call.id)})
    });
    let calls: Vec<Value> = calls.collect();
    if calls.is_empty() { Value::Null } else { calls.into() }
}

fn shown(stored: &StoredMessage) -> Value {
    let message = &stored.message;
    json!([
        message.role.as_str(),
        message.content,
        i64::try_from(message.timestamp.as_nanosecond()).unwrap(),
        calls(stored),
        message.metadata["messageId"],
        message.tool_call_id,
        message.metadata.get("model"),
        message.metadata.get("latencyMs"),
    ])
}

fn wanted(message: &Value) -> Value {
    let metadata = &message["metadata"];
    let json = |value: &Value| if value.is_null() { Value::Null } else { value.to_string().into() };
    json!([
        message["role"],
        message["content"],
        message["unix_ms"].as_i64().unwrap() * 1_000_000,
        message["tool_calls"],
        message["source_id"],
        metadata["toolCallId"],
        metadata["model"],
        json(&metadata["latencyMs"]),
    ])
}

#[tokio::test]
async fn every_conversation_is_what_mimir_had() {
    let (expected, source) = (expected(), snapshot(&fixtures()));
    let root = tempfile::tempdir().unwrap();
    let found = read(&fixtures()).await;
    assert_eq!((found.system, found.passed_over.total(), found.refused.len()), ("mimir", 0, 0));
    let reports = import(&fixtures(), root.path()).await;
    assert_eq!(reports.keys().collect::<Vec<_>>(), [MORNING, LIST, MUSIC]);
    assert_eq!(taken(&reports), (43, 2, 2));
    for conversation in expected {
        let id = conversation["conversation_id"].as_str().unwrap();
        let report = &reports[id].messages;
        assert_eq!((report.refused.len(), report.passed_over.total()), (0, 0));
        let messages = conversation["messages"].as_array().unwrap();
        let stored = all(root.path(), id).await;
        assert_eq!(
            stored.iter().map(|stored| shown(stored)).collect::<Vec<_>>(),
            messages.iter().map(wanted).collect::<Vec<_>>()
        );
        assert!(stored.iter().all(|s| s.message.metadata["importedFrom"].starts_with("mimir:")));
        let store = store(root.path(), id).await;
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
    }
    assert_eq!(snapshot(&fixtures()), source);
}

/// A change of these digests would store all earlier imports a second time.
#[tokio::test]
async fn what_tells_one_from_another_is_what_the_format_says() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let stored = all(root.path(), MUSIC).await;
    let origins = ["c368d5f392ff3775c53ee0e60de2871c", "c551037b851d63c0f9ba936bcef692b0"];
    for (stored, origin) in stored.iter().zip(origins) {
        assert_eq!(stored.message.metadata["importedFrom"], format!("mimir:{origin}"));
    }
    let store = store(root.path(), MUSIC).await;
    let (artifacts, _) = store.artifacts().await.unwrap();
    assert_eq!(artifacts[0].id, "aab88c6f558c021ebfe8496ff4e7986d");
    let saved = store.read_snapshot("88d743fe-1d2a-8522-b4d6-f194899827c2").await.unwrap();
    assert_eq!(saved.unwrap().description.as_deref(), Some("before dinner"));
}

#[tokio::test]
async fn what_a_killed_import_left_under_an_artifacts_id_keeps_it_from_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path(), MUSIC).await;
    let other = self::store(root.path(), "other").await;
    other.append_message(crate::common::said("a vault is made")).await.unwrap();
    let folder = root.path().join("conversations").join(MUSIC).join("artifacts");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("aab88c6f558c021ebfe8496ff4e7986d"), "half").unwrap();
    assert_eq!(taken(&import(&fixtures(), root.path()).await), (43, 2, 2));
    assert_eq!(taken(&import(&fixtures(), root.path()).await), (0, 0, 0));
    let (artifacts, findings) = store.artifacts().await.unwrap();
    assert_eq!((artifacts.len(), findings.len()), (1, 0));
    assert_eq!(artifacts[0].metadata["mimirId"], "art-mepkz3b0bvd01ajhmpl");
}

#[tokio::test]
async fn what_is_too_large_for_the_settings_is_refused_and_the_messages_are_taken() {
    let folder = project(&line("a", 1, "10:00:00"));
    let metadata = json!({"title": "x".repeat(2 << 20), "tags": ["t"]}).to_string();
    put(folder.path(), "a", "metadata.json", metadata);
    let root = tempfile::tempdir().unwrap();
    let conversation = read(folder.path()).await.conversations.remove(0);
    let store = store(root.path(), "a").await;
    let report = conversation.import_into(&store, |_| {}).await.unwrap();
    assert_eq!(report.messages.taken, 1);
    assert_eq!(report.messages.refused[0].file, "conversations/a/metadata.json");
    assert_eq!(report.messages.refused[0].reason.to_string(), "it is over 1 MiB");
    assert_eq!(store.profile().await.unwrap().title, None);
    assert!(store.verify(|_| {}).await.unwrap().is_sound());
}

#[tokio::test]
async fn what_mimir_knows_of_a_conversation_becomes_its_settings() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    for conversation in expected() {
        let id = conversation["conversation_id"].as_str().unwrap();
        let profile = store(root.path(), id).await.profile().await.unwrap();
        assert_eq!(profile.title.as_deref(), conversation["title"].as_str());
        let tags: BTreeSet<String> = serde_json::from_value(conversation["tags"].clone()).unwrap();
        assert_eq!(profile.tags, tags);
        let created_at: Timestamp = conversation["created_at"].as_str().unwrap().parse().unwrap();
        assert_eq!(profile.created_at, Some(created_at));
        let metadata = conversation["metadata"].as_object().unwrap();
        assert_eq!(profile.metadata.len(), metadata.len());
        for (name, value) in metadata {
            let kept = &profile.metadata[name];
            let parsed = || serde_json::from_str::<Value>(kept).unwrap();
            assert!(value.as_str() == Some(kept) || *value == parsed());
        }
    }
    let morning = store(root.path(), MORNING).await.profile().await.unwrap();
    assert_eq!(morning.imported_cost, Cost::new(812, 3100));
    let list = store(root.path(), LIST).await.profile().await.unwrap();
    assert_eq!(list.metadata["nested"], r#"{"n":1,"list":[1,"zwei",null]}"#);
}

#[tokio::test]
async fn settings_that_say_something_already_stay_as_they_are() {
    let root = tempfile::tempdir().unwrap();
    let (own, theirs) = (store(root.path(), LIST).await, store(root.path(), MORNING).await);
    own.change_profile(Box::new(|profile| {
        profile.title = Some("mine".into());
        profile.metadata.insert("device".into(), "study".into());
        profile.imported_cost = Cost::new(1, 2);
    }))
    .await
    .unwrap();
    import(&fixtures(), root.path()).await;
    let profile = own.profile().await.unwrap();
    assert_eq!(profile.title.as_deref(), Some("mine"));
    assert_eq!(
        (profile.metadata["device"].as_str(), profile.imported_cost),
        ("study", Cost::new(1, 2))
    );
    assert_eq!(profile.metadata["locale"], "de-CH");

    // Changes since the first import are the user's own too, and another import writes nothing.
    theirs.change_profile(Box::new(|profile| profile.tags = ["home".into()].into())).await.unwrap();
    let before = snapshot(root.path());
    import(&fixtures(), root.path()).await;
    assert_eq!(theirs.profile().await.unwrap().tags.len(), 1);
    assert_eq!(snapshot(root.path()), before);
}

#[tokio::test]
async fn large_data_become_artifacts_with_the_same_bytes() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    for conversation in expected() {
        let store = store(root.path(), conversation["conversation_id"].as_str().unwrap()).await;
        let (artifacts, findings) = store.artifacts().await.unwrap();
        assert!(findings.is_empty());
        let wanted = conversation["artifacts"].as_array().unwrap();
        assert_eq!(artifacts.len(), wanted.len());
        for (artifact, wanted) in artifacts.iter().zip(wanted) {
            assert_eq!(artifact.metadata["mimirId"], wanted["artifact_id"].as_str().unwrap());
            assert_eq!(artifact.kind.as_str(), wanted["type"].as_str().unwrap());
            assert_eq!(artifact.name, wanted["name"].as_str().unwrap());
            assert_eq!(artifact.mime_type, wanted["mime_type"].as_str().unwrap_or("text/plain"));
            assert_eq!(artifact.size, wanted["size_bytes"].as_u64().unwrap());
            assert_eq!(artifact.sha256, wanted["sha256"].as_str().unwrap());
            let created_at: Timestamp = wanted["created_at"].as_str().unwrap().parse().unwrap();
            assert_eq!(artifact.created_at, created_at);
            let mut text = String::new();
            let mut contents = store.open_artifact(&artifact.id).await.unwrap().unwrap();
            contents.read_to_string(&mut text).unwrap();
            assert_eq!(text, wanted["content"].as_str().unwrap());
        }
    }
}

#[tokio::test]
async fn a_saved_state_is_a_snapshot_of_the_first_messages() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let store = store(root.path(), MUSIC).await;
    let (snapshots, findings) = store.snapshots().await.unwrap();
    assert!(findings.is_empty());
    let expected = expected();
    let wanted = expected[2]["snapshots"].as_array().unwrap();
    assert_eq!(snapshots.len(), 2);
    for wanted in wanted {
        let saved_at: Timestamp = wanted["timestamp"].as_str().unwrap().parse().unwrap();
        let saved = snapshots.iter().find(|saved| saved.saved_at == saved_at).unwrap();
        let description = wanted["description"].as_str().or(wanted["type"].as_str());
        assert_eq!(saved.description.as_deref(), description);
        assert_eq!(saved.messages.len() as u64, wanted["message_count"].as_u64().unwrap());
        let last = &saved.messages.last().unwrap().message;
        assert_eq!(last.metadata["messageId"], wanted["last_message_id"].as_str().unwrap());
        assert_eq!(saved.window_start, saved.messages[0].message.timestamp);
        assert_eq!((saved.id.as_bytes()[14], saved.window_end), (b'8', saved_at));
        assert!(b"89ab".contains(&saved.id.as_bytes()[19]));
    }
}

#[tokio::test]
async fn a_second_import_takes_nothing_whichever_of_the_folders_is_named() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let before = snapshot(root.path());
    let link = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(fixtures(), link.path().join("link")).unwrap();
    for folder in [
        fixtures(),
        fixtures().join(".mimir"),
        fixtures().join(".mimir/context"),
        link.path().join("link"),
    ] {
        let again = import(&folder, root.path()).await;
        assert_eq!(taken(&again), (0, 0, 0));
        let there: usize = again.values().map(|report| report.messages.already_there).sum();
        assert_eq!(there, 43);
    }
    assert_eq!(snapshot(root.path()), before);
}

#[tokio::test]
async fn what_was_forgotten_or_deleted_does_not_come_back() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let store = store(root.path(), MUSIC).await;
    store.forget(&[5..=6]).await.unwrap();
    let (artifacts, _) = store.artifacts().await.unwrap();
    store.delete_artifacts(&[artifacts[0].id.clone()]).await.unwrap();
    let (snapshots, _) = store.snapshots().await.unwrap();
    store.delete_snapshot(&snapshots[0].id).await.unwrap();
    let again = import(&fixtures(), root.path()).await;
    assert_eq!(taken(&again), (0, 0, 0));
    assert_eq!(again[MUSIC].messages.forgotten, 2);
    assert!(store.artifacts().await.unwrap().0.is_empty());
}

#[tokio::test]
async fn bytes_that_the_conversation_has_already_are_not_added_again() {
    let (root, folder) = (tempfile::tempdir().unwrap(), copy());
    let own = store(root.path(), LIST).await;
    let bytes = std::fs::read(place(folder.path(), LIST, "artifacts/art-mep9okheciy4pxyv0ah.txt"));
    let content = std::io::Cursor::new(bytes.unwrap());
    let new = NewArtifact::new(ArtifactKind::File, "list.txt");
    own.add_artifact(new, Box::new(content)).await.unwrap();
    // Two artifacts of Mimir that differ only in their ids.
    for id in ["art-1", "art-2"] {
        put(folder.path(), LIST, &format!("artifacts/{id}.txt"), "twice");
        let meta = format!(r#"{{"id":"{id}","type":"file","name":"x","size":5}}"#);
        put(folder.path(), LIST, &format!("artifacts/{id}.txt.meta.json"), meta);
    }
    let reports = import(folder.path(), root.path()).await;
    assert_eq!(reports[LIST].artifacts, 1);
    assert_eq!(own.artifacts().await.unwrap().0.len(), 2);
    assert_eq!(import(folder.path(), root.path()).await[LIST].artifacts, 0);
}

#[tokio::test]
async fn the_order_of_the_lines_counts_for_more_than_their_times() {
    let times =
        ["10:00:05", "10:00:03", "10:00:03", "09:00:00", "10:00:05", "10:00:06", "10:00:04"];
    let lines: String =
        (0..).zip(times).map(|(at, time)| line(&at.to_string(), at, time)).collect();
    let folder = project(&lines);
    // The messages of the first import are in place when the others arrive.
    let some: String = lines.split_inclusive('\n').take(3).collect();
    put(folder.path(), "a", "messages.jsonl", some);
    let root = tempfile::tempdir().unwrap();
    assert_eq!(taken(&import(folder.path(), root.path()).await).0, 3);
    put(folder.path(), "a", "messages.jsonl", &lines);
    assert_eq!(taken(&import(folder.path(), root.path()).await).0, 4);
    assert_eq!(words(root.path(), "a").await, ["0", "1", "2", "3", "4", "5", "6"]);
    for (stored, time) in all(root.path(), "a").await.iter().zip(times) {
        assert_eq!(stored.message.timestamp, format!("2025-08-24T{time}Z").parse().unwrap());
    }
    let store = store(root.path(), "a").await;
    let newest = store.read_tail(2).await.unwrap().messages;
    assert_eq!(newest.iter().map(|s| s.message.content.as_str()).collect::<Vec<_>>(), ["5", "6"]);
    store.pack(|_| {}).await.unwrap();
    assert!(store.verify(|_| {}).await.unwrap().is_sound());
}

#[tokio::test]
async fn a_time_that_no_clock_shows_yet_moves_nothing_but_itself() {
    let future = line("late", 2, "10:00:00").replace("2025-", "2999-");
    let lines = [line("a", 1, "10:00:01"), future, line("b", 3, "10:00:02")].concat();
    let (folder, root) = (project(&lines), tempfile::tempdir().unwrap());
    let reports = import(folder.path(), root.path()).await;
    let place = "conversations/a/messages.jsonl#2".to_owned();
    assert_eq!(refused(&reports), BTreeMap::from([(place, "from-the-future")]));
    let stored = all(root.path(), "a").await;
    assert!(stored.iter().all(|stored| stored.ordered_at() == stored.message.timestamp));
}

#[tokio::test]
async fn a_line_that_is_bad_or_cut_is_refused_alone_and_only_a_line_feed_ends_one() {
    let good = line("a\u{2028}b\u{85}c", 1, "10:00:00");
    let lines = [
        good.as_str(),
        "\n",
        "{\"role\":\"user\"}\n",
        "[]\n",
        "nonsense\r\n",
        &line("x", 2, "25:00:00"),
        &line("x", 2, "10:00:00").replace("\"user\"", "\"nobody\""),
        &line("x", 2, "10:00:00").replace("msg", "\\ud800"),
        "\u{0}\u{0}\u{0}\n",
        &line("d", 3, "10:00:01").replace('\n', "\r\n"),
        good.get(..40).unwrap(),
    ]
    .concat();
    let mut bytes = lines.into_bytes();
    bytes.extend(b"\n\xff\n");
    bytes.extend(line("e", 4, "10:00:02").trim_end().as_bytes());
    let (folder, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(folder.path(), "a", "messages.jsonl", bytes);
    let reports = import(folder.path(), root.path()).await;
    assert_eq!(words(root.path(), "a").await, ["a\u{2028}b\u{85}c", "d", "e"]);
    let refused = refused(&reports);
    let numbers: BTreeSet<usize> =
        refused.keys().map(|file| file.rsplit_once('#').unwrap().1.parse().unwrap()).collect();
    assert_eq!(numbers, BTreeSet::from([3, 4, 5, 6, 7, 8, 9, 11, 12]));
    assert!(refused.values().all(|code| *code == "corrupt"));
    // A line that was incomplete is imported once it is complete, and nothing twice.
    put(folder.path(), "a", "messages.jsonl", [good, line("f", 5, "10:00:03")].concat());
    assert_eq!(taken(&import(folder.path(), root.path()).await).0, 1);
}

#[tokio::test]
async fn a_snapshot_counts_lines_and_holds_those_of_them_that_could_be_taken() {
    let lines =
        [line("a", 1, "10:00:00"), "nonsense\n".to_owned(), line("b", 2, "10:00:01")].concat();
    let (folder, root) = (project(&lines), tempfile::tempdir().unwrap());
    let state = |id: &str, count: &str| {
        let metadata = r#"{"id":"x","timestamp":"2025-08-24T12:00:00Z","type":"manual"}"#;
        put(folder.path(), "a", &format!("snapshots/{id}/metadata.json"), metadata);
        let state = format!(r#"{{"messageCount":{count}}}"#);
        put(folder.path(), "a", &format!("snapshots/{id}/conversation-state.json"), state);
    };
    state("two", "2");
    state("many", "99");
    state("none", "0");
    state("wrong", "-1");
    put(folder.path(), "a", "snapshots/two/files/main.rs", "fn main() {}");
    put(folder.path(), "a", "snapshots/half/metadata.json", "{}");
    let reports = import(folder.path(), root.path()).await;
    assert_eq!((taken(&reports), reports["a"].messages.passed_over.total()), ((2, 2, 0), 2));
    let places = ["messages.jsonl#2", "snapshots/half", "snapshots/wrong"];
    let codes = ["corrupt", "unreadable", "corrupt"];
    let wanted = places.map(|place| format!("conversations/a/{place}")).into_iter().zip(codes);
    assert_eq!(refused(&reports), wanted.collect());
    let (snapshots, _) = store(root.path(), "a").await.snapshots().await.unwrap();
    let counts: BTreeSet<_> = snapshots.iter().map(|saved| saved.messages.len()).collect();
    assert_eq!(counts, BTreeSet::from([1, 2]));
}

#[test]
fn hostile_folders_are_refused_piece_by_piece_and_nothing_outside_is_read() {
    let folder = project(&line("good", 1, "10:00:00"));
    let base = folder.path().join(".mimir/context/conversations");
    std::fs::write(folder.path().join("secret.txt"), "outside").unwrap();
    let meta = |name: &str| format!(r#"{{"id":"../../x","type":"file","name":"{name}"}}"#);
    put(folder.path(), "a", "artifacts/up.txt", "inside");
    put(folder.path(), "a", "artifacts/up.txt.meta.json", meta("../../../etc/passwd"));
    put(folder.path(), "a", "artifacts/alone.txt", "x");
    put(folder.path(), "a", "artifacts/odd.json", "x");
    put(folder.path(), "a", "artifacts/bad.txt", "x");
    put(folder.path(), "a", "artifacts/bad.txt.meta.json", "[]");
    put(folder.path(), "a", "artifacts/link.txt.meta.json", meta("x"));
    put(folder.path(), "a", "artifacts/folder.txt/x", "x");
    put(folder.path(), "a", "metadata.json", r#"{"title":1}"#);
    put(folder.path(), "a", "notes.md", "x");
    put(folder.path(), "empty", "notes.md", "x");
    put(folder.path(), "b\n", "messages.jsonl", line("x", 1, "10:00:00"));
    put(folder.path(), "links", "metadata.json", "{}");
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(folder.path().join(to), base.join(name)).unwrap();
    };
    link("secret.txt", "a/artifacts/link.txt");
    link("secret.txt", "links/messages.jsonl");
    link(".mimir", "links/artifacts");
    link(".mimir/context/conversations/a", "linked");
    std::fs::write(base.join("stray.json"), "{}").unwrap();
    let pipe = base.join("links/snapshots");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    let source = snapshot(folder.path());
    let root = tempfile::tempdir().unwrap();
    let (from, into) = (folder.path().to_owned(), root.path().to_owned());
    let (found, reports) = within(Duration::from_secs(60), move || {
        block_on(async { (read(&from).await, import(&from, &into).await) })
    });
    assert_eq!(taken(&reports), (1, 0, 1));
    let found_refused: BTreeMap<_, _> =
        found.refused.iter().map(|r| (r.file.as_str(), r.reason.code())).collect();
    assert_eq!(
        found_refused,
        BTreeMap::from([
            (r"conversations/b\n", "unstorable"),
            ("conversations/linked", "not-plain"),
        ])
    );
    assert_eq!(found.passed_over.total(), 2);
    let wanted = BTreeMap::from([
        ("conversations/a/artifacts/alone.txt.meta.json".to_owned(), "unreadable"),
        ("conversations/a/artifacts/bad.txt.meta.json".to_owned(), "corrupt"),
        ("conversations/a/artifacts/folder.txt".to_owned(), "not-plain"),
        ("conversations/a/artifacts/link.txt".to_owned(), "not-plain"),
        ("conversations/a/metadata.json".to_owned(), "corrupt"),
        ("conversations/links/artifacts".to_owned(), "not-plain"),
        ("conversations/links/messages.jsonl".to_owned(), "not-plain"),
        ("conversations/links/snapshots".to_owned(), "not-plain"),
    ]);
    assert_eq!(refused(&reports), wanted);
    assert_eq!(reports["a"].messages.passed_over.total(), 2);
    let artifacts = block_on(async { store(root.path(), "a").await.artifacts().await.unwrap().0 });
    assert_eq!(artifacts[0].metadata["mimirId"], "up");
    assert_eq!(snapshot(folder.path()), source);
}

#[tokio::test]
async fn no_folder_of_mimir_is_an_error_and_another_scopes_store_too() {
    let empty = tempfile::tempdir().unwrap();
    for path in
        [empty.path().to_owned(), empty.path().join("absent"), fixtures().join("expected.json")]
    {
        let missing = MimirFolder::new(&path).read(|_| {}).await;
        assert!(missing.is_err(), "{}", path.display());
    }
    let other = store(empty.path(), "other").await;
    let mut conversations = read(&fixtures()).await.conversations.into_iter();
    let kept = conversations.next().unwrap().import_into(&other, |_| {}).await;
    assert!(matches!(kept, Err(Error::OtherScope)));
}
