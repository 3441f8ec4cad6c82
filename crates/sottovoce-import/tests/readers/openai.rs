//! Imports of ChatGPT's data export, and of files of chat completions.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::{options, snapshot};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sottovoce::import::{ConversationReport, ImportedConversations};
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope, StoredMessage};
use sottovoce_import::{ChatExport, Reader};

const BREAD: &str = "6f0a3c1e-1111-4aaa-8bbb-000000000001";
const VOICE: &str = "6f0a3c1e-2222-4aaa-8bbb-000000000002";
const EMPTY: &str = "6f0a3c1e-3333-4aaa-8bbb-000000000003";

fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/openai").join(name)
}

async fn read(path: &Path) -> ImportedConversations {
    ChatExport::openai(path).read(|_| {}).await.unwrap()
}

async fn store(root: &Path, id: &str) -> FileConversationStore {
    options().scope(Scope::Named { id: id.into() }).open(root).await.unwrap()
}

/// The reports, by conversation.
type Reports = BTreeMap<String, ConversationReport>;

async fn import(path: &Path, root: &Path) -> Reports {
    let previews = read(path).await.conversations;
    let mut reports = Reports::new();
    for (conversation, preview) in read(path).await.conversations.into_iter().zip(previews) {
        let Scope::Named { id } = conversation.scope.clone() else { panic!() };
        let store = store(root, &id).await;
        let preview = preview.preview(&store).await.unwrap();
        let report = conversation.import_into(&store, |_| {}).await.unwrap();
        assert_eq!(report, preview);
        reports.insert(id, report);
    }
    reports
}

/// The number of imported messages, by conversation.
fn taken(reports: &Reports) -> Vec<(&str, usize)> {
    reports.iter().map(|(id, report)| (id.as_str(), report.messages.taken)).collect()
}

async fn all(root: &Path, id: &str) -> Vec<Arc<StoredMessage>> {
    let store = store(root, id).await;
    store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap().messages
}

fn shown(stored: &StoredMessage) -> (String, &str, i64) {
    let message = &stored.message;
    let at = i64::try_from(message.timestamp.as_nanosecond() / 1_000).unwrap();
    (message.role.to_string(), &message.content, at)
}

fn note<'a>(stored: &'a StoredMessage, name: &str) -> Option<&'a str> {
    stored.message.metadata.get(name).map(String::as_str)
}

/// A file with this text, last changed at this second.
fn file(folder: &Path, name: &str, text: &str, second: u64) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    touch(&path, second);
    path
}

fn touch(path: &Path, second: u64) {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    std::fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
}

fn messages(words: &[&str]) -> Value {
    let rows = words.iter().map(|words| json!({"role": "user", "content": words}));
    json!({"messages": rows.collect::<Vec<_>>()})
}

#[tokio::test]
async fn an_export_gives_the_branch_that_is_shown_in_its_own_order() {
    let source = snapshot(&fixtures("export"));
    let root = tempfile::tempdir().unwrap();
    let reports = import(&fixtures("export"), root.path()).await;
    assert_eq!(taken(&reports), [(BREAD, 6), (VOICE, 2), (EMPTY, 0)]);
    assert!(reports.values().all(|report| report.messages.refused.is_empty()));
    // Two hidden messages, another answer, thoughts, and a picture.
    let passed_over = |id: &str| reports[id].messages.passed_over.total();
    assert_eq!((passed_over(BREAD), passed_over(VOICE), passed_over(EMPTY)), (5, 2, 1));
    let stored = all(root.path(), BREAD).await;
    let own = |words: &str| words.to_owned();
    assert_eq!(
        stored.iter().map(|stored| shown(stored)).collect::<Vec<_>>(),
        [
            (own("User"), "How long should the dough rest?", 1_717_999_201_123_456),
            (own("Assistant"), "search(\"dough rest\")", 1_717_999_204_500_000),
            (own("Tool"), "Rest it for four hours.", 1_717_999_205_500_000),
            // Its time is earlier than that of the message before it, and it still follows.
            (own("Assistant"), "Four hours, at 24 °C.", 1_717_999_204_750_000),
            (own("User"), "Is this risen enough?", 1_717_999_300_000_000),
            (own("Assistant"), "Yes.\nBake it.", 1_717_999_300_000_000),
        ]
    );
    assert_eq!(
        (note(&stored[1], "recipient"), note(&stored[2], "tool")),
        (Some("browser"), Some("browser"))
    );
    assert_eq!((note(&stored[3], "model"), note(&stored[3], "recipient")), (Some("gpt-4o"), None));
    assert!(note(&stored[0], "importedFrom").unwrap().starts_with("openai:"));
    let spoken = all(root.path(), VOICE).await;
    assert_eq!(spoken[0].message.content, "Wie wird das Wetter in Zürich?");
    assert_eq!(spoken[1].message.content, "Sonnig, 26 Grad. ☀️");

    let profile = store(root.path(), BREAD).await.profile().await.unwrap();
    assert_eq!(profile.title.as_deref(), Some("Sourdough timing"));
    assert_eq!(profile.created_at, Some("2024-06-10T06:00:00.25Z".parse().unwrap()));
    // A chat without messages stores nothing.
    assert_eq!(
        *store(root.path(), EMPTY).await.profile().await.unwrap(),
        sottovoce::store::Profile::default()
    );
    assert_eq!(snapshot(&fixtures("export")), source);
}

/// A change of these digests would store all earlier imports a second time.
#[tokio::test]
async fn what_tells_one_from_another_is_what_the_format_says() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures("export"), root.path()).await;
    import(&fixtures("training.jsonl"), root.path()).await;
    for (id, origins) in [
        (BREAD, ["dd1a83c334ead39f88d472a9f4b1fa1a", "900a02c7cf56dba30efab314065412c7"]),
        ("training", ["c217f544715b20bf48f803d81c224d78", "7530027c0c4edb28223a60c3ff58fe36"]),
    ] {
        for (stored, origin) in all(root.path(), id).await.iter().zip(origins) {
            assert_eq!(note(stored, "importedFrom").unwrap(), format!("openai:{origin}"));
        }
    }
}

#[tokio::test]
async fn a_later_export_gives_only_what_is_new_whatever_its_file_is_called() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    import(&fixtures("export/conversations.json"), root.path()).await;
    let bytes = std::fs::read(fixtures("export/conversations.json")).unwrap();
    let mut export: Value = serde_json::from_slice(&bytes).unwrap();
    let mapping = export[0]["mapping"].as_object_mut().unwrap();
    mapping["a4"]["message"]["metadata"]["model_slug"] = "gpt-5".into();
    mapping["a4"]["message"]["create_time"] = 1_717_999_207.into();
    let mut next = mapping["u1"].clone();
    next["parent"] = "a5".into();
    next["message"]["id"] = "u3".into();
    mapping.insert("u3".into(), next);
    export[0]["current_node"] = "u3".into();
    let parts = export.as_array().unwrap();
    std::fs::write(folder.path().join("conversations-000.json"), json!([parts[1]]).to_string())
        .unwrap();
    std::fs::write(folder.path().join("conversations-001.json"), json!([parts[0]]).to_string())
        .unwrap();
    let again = import(folder.path(), root.path()).await;
    assert_eq!(taken(&again), [(BREAD, 1), (VOICE, 0)]);
    assert_eq!(again[BREAD].messages.already_there, 6);
    store(root.path(), BREAD).await.forget(&[1..=1]).await.unwrap();
    let again = import(folder.path(), root.path()).await;
    assert_eq!((again[BREAD].messages.taken, again[BREAD].messages.forgotten), (0, 1));
}

#[tokio::test]
async fn a_tree_that_is_none_is_refused_alone() {
    let folder = tempfile::tempdir().unwrap();
    let user = |at: Value| json!({"author": {"role": "user"}, "create_time": at, "content": {"parts": ["x"]}});
    let tree = |id: &str, last: &str, mapping: Value| json!({"id": id, "current_node": last, "mapping": mapping});
    let export = json!([
        tree("good", "a", json!({"a": {"parent": "gone", "message": user(5.into())}})),
        tree("circle", "a", json!({"a": {"parent": "b"}, "b": {"parent": "a"}})),
        tree("dangling", "c", json!({"a": {"parent": null}})),
        tree("", "a", json!({"a": {}})),
        tree("timeless", "a", json!({"a": {"message": user(Value::Null)}})),
        tree("far", "a", json!({"a": {"message": user(1e300.into())}})),
        tree("nobody", "a", json!({"a": {"message": {"author": {"role": "x"}, "content": {"text": "x"}}}})),
        {"current_node": "a", "mapping": {}},
        {"id": 1, "mapping": {}},
        null,
        tree("nothing", "", json!({})),
    ]);
    let path = file(folder.path(), "conversations.json", &export.to_string(), 5);
    let found = read(&path).await;
    let refused: Vec<_> = found.refused.iter().map(|refusal| refusal.file.as_str()).collect();
    let places = [2, 4, 8, 9, 10].map(|number| format!("conversations.json#{number}"));
    assert_eq!(refused.len(), 5);
    assert!(places.iter().all(|place| refused.contains(&place.as_str())), "{refused:?}");
    let root = tempfile::tempdir().unwrap();
    let reports = import(&path, root.path()).await;
    let taken: Vec<_> = taken(&reports);
    assert_eq!(
        taken,
        [("dangling", 0), ("far", 0), ("good", 1), ("nobody", 0), ("nothing", 0), ("timeless", 0)]
    );
    for id in ["far", "nobody", "timeless"] {
        assert_eq!(reports[id].messages.refused.len(), 1, "{id}");
    }
}

#[tokio::test]
async fn completions_are_named_after_their_file_and_said_when_it_was_changed() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = std::fs::read_to_string(fixtures("training.jsonl")).unwrap();
    let path = file(folder.path(), "training.jsonl", &text, 1_700_000_000);
    let reports = import(&path, root.path()).await;
    assert_eq!(taken(&reports), [("training", 5), ("training-2", 3)]);
    assert_eq!(reports["training-2"].messages.passed_over.total(), 2);
    let stored = all(root.path(), "training").await;
    let roles: Vec<_> = stored.iter().map(|stored| stored.message.role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant"]);
    for (at, stored) in (0..).zip(&stored) {
        let since =
            stored.message.timestamp.duration_since(Timestamp::from_second(1_700_000_000).unwrap());
        assert_eq!(since, SignedDuration::from_millis(at));
    }
    assert_eq!(
        (note(&stored[1], "speaker"), note(&stored[3], "tool")),
        (Some("anna"), Some("light"))
    );
    let call = &stored[2].message.tool_calls[0];
    assert_eq!(
        (call.id.as_str(), &call.arguments),
        ("call_1", &json!({"room": "kitchen", "on": true}))
    );
    assert_eq!(stored[3].message.tool_call_id.as_deref(), Some("call_1"));
    let second = all(root.path(), "training-2").await;
    let words: Vec<_> = second.iter().map(|stored| stored.message.content.as_str()).collect();
    assert_eq!(words, ["You switch lights.", "What is this?", "I cannot say."]);
    assert_eq!(second[0].message.role.as_str(), "system");
}

#[tokio::test]
async fn a_file_that_was_touched_is_not_taken_twice_and_one_that_grew_only_in_part() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path =
        file(folder.path(), "chat.json", &messages(&["yes", "no", "yes"]).to_string(), 1_000);
    assert_eq!(taken(&import(&path, root.path()).await), [("chat", 3)]);
    touch(&path, 2_000);
    assert_eq!(taken(&import(&path, root.path()).await), [("chat", 0)]);
    let more = serde_json::to_string_pretty(&messages(&["yes", "no", "yes", "yes"])).unwrap();
    let path = file(folder.path(), "chat.json", &more, 3_000);
    assert_eq!(taken(&import(&path, root.path()).await), [("chat", 1)]);
    let stored = all(root.path(), "chat").await;
    assert_eq!(stored[3].message.timestamp.as_millisecond(), 3_000_003);
}

#[tokio::test]
async fn what_is_wrong_with_one_line_or_message_is_refused_alone() {
    let (root, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let rows = json!({"messages": [
        {"role": "user", "content": "good"},
        {"role": "nobody", "content": "x"},
        {"role": "user", "content": 1},
        {"role": "user", "tool_calls": [{"name": "f"}]},
        {"role": "assistant", "tool_calls": "x"},
        "x",
        {"role": "user"},
        {"role": "user", "content": [1, {"text": "parts"}, ["x"]]},
    ]});
    let lines =
        format!("{rows}\nnonsense\n{{\"messages\":1}}\n\n{{\"a\":1}}\n{}", messages(&["last"]));
    let path = file(folder.path(), "x.jsonl", &lines, 1_000);
    let found = read(&path).await;
    let mut refused: Vec<_> = found.refused.iter().map(|refusal| refusal.file.clone()).collect();
    refused.sort();
    assert_eq!(refused, ["x.jsonl#2", "x.jsonl#3", "x.jsonl#4"]);
    let reports = import(&path, root.path()).await;
    assert_eq!(taken(&reports), [("x", 2), ("x-5", 1)]);
    let refused: Vec<_> =
        reports["x"].messages.refused.iter().map(|refusal| refusal.file.as_str()).collect();
    assert_eq!(
        refused,
        ["x.jsonl#1/2", "x.jsonl#1/3", "x.jsonl#1/4", "x.jsonl#1/5", "x.jsonl#1/6"]
    );
    assert_eq!(reports["x"].messages.passed_over.total(), 3);
}

#[tokio::test]
async fn what_is_none_of_openais_is_an_error_and_one_bad_part_of_an_export_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("empty", ""), ("half.json", "[{\"mapping\":"), ("notes.txt", "x\ny")] {
        let refused = ChatExport::openai(file(folder.path(), name, text, 5)).read(|_| {}).await;
        assert!(matches!(refused, Err(Error::NotImportable { .. })), "{name}");
    }
    for path in [folder.path().to_owned(), folder.path().join("absent")] {
        let refused = ChatExport::openai(path).read(|_| {}).await;
        assert!(matches!(refused, Err(Error::Io { .. })));
    }
    let huge = std::fs::File::create(folder.path().join("huge.json")).unwrap();
    huge.set_len((1 << 30) + 1).unwrap();
    let refused = ChatExport::openai(folder.path().join("huge.json")).read(|_| {}).await;
    let Err(Error::NotImportable { reason, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(reason, "it is over 1 GiB");

    let export = std::fs::read_to_string(fixtures("export/conversations.json")).unwrap();
    file(folder.path(), "conversations-0.json", &export, 5);
    file(folder.path(), "conversations-1.json", export.get(..99).unwrap(), 5);
    std::os::unix::fs::symlink("notes.txt", folder.path().join("conversations-2.json")).unwrap();
    let found = read(folder.path()).await;
    assert_eq!(found.conversations.len(), 3);
    let refused: Vec<_> =
        found.refused.iter().map(|r| (r.file.as_str(), r.reason.code())).collect();
    assert_eq!(
        refused,
        [("conversations-1.json", "corrupt"), ("conversations-2.json", "not-plain")]
    );
}

#[tokio::test]
async fn an_export_that_does_not_say_which_branch_is_shown_gives_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let node = |id: &str, parent: Option<&str>, role: &str, words: Value, at: Value| {
        let content = json!({"content_type": "text", "parts": [words]});
        let message =
            json!({"id": id, "author": {"role": role}, "create_time": at, "content": content});
        json!({"id": id, "parent": parent, "message": message})
    };
    let mut nothing = node("n", Some("new"), "assistant", json!(""), json!(null));
    nothing["message"]["content"] = Value::Null;
    let mut export = json!({
        "id": "x", "create_time": "2026-01-02T03:04:05Z",
        "mapping": {
            "q": node("q", None, "user", json!("Which day?"), json!("2026-01-02T03:04:05.5Z")),
            "old": node("old", Some("q"), "assistant", json!("Monday."), json!(1_767_323_050)),
            "new": node("new", Some("q"), "assistant", json!("Friday."), json!("2026-01-02T03:05:00+00:00")),
        }
    });
    for (current, is_longer) in
        [(None, false), (Some(json!(null)), false), (Some(json!("gone")), true)]
    {
        if let Some(current) = current {
            export["current_node"] = current;
        }
        if is_longer {
            export["mapping"]["n"] = nothing.clone();
            export["mapping"]["n"]["message"]["create_time"] = json!("2026-01-02T03:06:00Z");
        }
        let path = file(folder.path(), "conversations.json", &json!([export]).to_string(), 1);
        let found = read(&path).await;
        assert!(found.refused.is_empty(), "{:?}", found.refused);
        let messages = &found.conversations[0].messages;
        assert!(messages.refused.is_empty(), "{:?}", messages.refused);
        let said = messages
            .messages
            .iter()
            .map(|one| (&*one.message.content, one.message.timestamp.as_second()));
        assert_eq!(
            said.collect::<Vec<_>>(),
            [("Which day?", 1_767_323_045), ("Friday.", 1_767_323_100)]
        );
    }
}
