//! Exports whose settings would harm the conversation that imports them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;

use crate::common::{block_on, key, open, options, said, texts};
use serde_json::{Value, json};
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::{Backup, ConversationReport, LeftOut};
use sottovoce::store::Retention;
use sottovoce::{ChatMessage, ConversationStore, FileConversationStore, Scope};

async fn export(store: &FileConversationStore) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.json");
    let mut exporter = Exporter::to_file(ExportForm::Json, &path).unwrap();
    exporter.add(store, ExportRange::default(), |_| {}).await.unwrap();
    exporter.finish().await.unwrap();
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}

/// The records stay before the lists, because the order of fields matters.
fn text(export: &Value) -> String {
    let one = &export["conversations"][0];
    let mut fields: Vec<String> = Vec::new();
    for name in ["scope", "lastSeq", "profile", "calibration", "imports", "records", "snapshots"] {
        if !one[name].is_null() {
            fields.push(format!("{}:{}", json!(name), one[name]));
        }
    }
    format!(r#"{{"sottovoce":1,"conversations":[{{{}}}]}}"#, fields.join(","))
}

async fn import(text: &str, root: &Path, with_limits: bool) -> ConversationReport {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.json");
    std::fs::write(&file, text).unwrap();
    let root = root.to_owned();
    let open: sottovoce::import::OpenStore = Box::new(move |scope| {
        let root = root.clone();
        Box::pin(async move { options().scope(scope).open(root).await })
    });
    let backup = Backup::new(file).key(key()).with_limits(with_limits);
    backup.import(open, |_| {}, |_| {}).await.unwrap().remove(0)
}

async fn talk(store: &FileConversationStore, said_words: &[&str]) {
    for words in said_words {
        store.append_message(said(*words)).await.unwrap();
    }
}

async fn words(root: &Path) -> Vec<String> {
    texts(&open(root).await.read_tail(99).await.unwrap()).into_iter().map(str::to_owned).collect()
}

/// How many messages prompts may still hold.
async fn in_context(root: &Path) -> usize {
    let store = open(root).await;
    let profile = store.profile().await.unwrap();
    let reading = store.read_tail(99).await.unwrap();
    let is_shown = |stored: &&std::sync::Arc<sottovoce::StoredMessage>| {
        !profile.hides(stored)
            && !profile.is_pruned(stored.seq)
            && profile.summary(None).is_none_or(|summary| !summary.replaces(stored))
    };
    reading.messages.iter().filter(is_shown).count()
}

/// Settings of a later revision that would hide everything.
fn hostile() -> Vec<(&'static str, Value)> {
    let persona = json!({"systemPrompt": "Obey me.", "personality": "", "temperature": 0.7,
        "maxTokens": 1000, "maxHistoryTokens": 15000, "expiryDays": 1});
    vec![
        ("retention", json!({"maxMessages": 1})),
        ("retention", json!({"ttlSeconds": 1})),
        ("windowSeconds", json!(1)),
        ("cleared", json!({"at": "2025-08-25T00:00:00Z", "seq": 10})),
        ("cleared", json!({"at": "2025-08-25T00:00:00Z", "seq": 4_000_000_000u64})),
        ("pruned", json!({"erased": [[1, 4_000_000_000u64]]})),
        (
            "compacted",
            json!([{"at": "2025-08-25T00:00:00Z", "until": "2999-01-01T00:00:00Z",
            "of": {"erased": [[1, 5]]}, "text": "Nothing was said."}]),
        ),
        (
            "character",
            json!({"persona": persona, "updatedAt": "2025-08-24T00:00:00Z",
            "deletedAt": "2025-08-24T00:00:00Z", "overSince": "2025-08-24T00:00:00Z"}),
        ),
        (
            "presets",
            json!({"preset-calm-counselor": {"name": "Calm Counselor", "description": "",
            "persona": persona, "isActive": true}}),
        ),
    ]
}

#[test]
fn an_export_with_one_matching_message_hides_and_removes_nothing() {
    block_on(async {
        for (name, value) in hostile() {
            let root = tempfile::tempdir().unwrap();
            let store = open(root.path()).await;
            talk(&store, &["a", "b", "c", "d", "e"]).await;
            let mut export = export(&store).await;
            let one = &mut export["conversations"][0];
            one["lastSeq"] = json!(10);
            one["profile"] = json!({"rev": 99, (name): value});
            one["records"].as_array_mut().unwrap().truncate(1);
            let report = import(&text(&export), root.path(), false).await;
            assert_eq!(report.messages.already_there, 1, "{name}");
            store.cleanup().await.unwrap();
            assert_eq!(words(root.path()).await, ["a", "b", "c", "d", "e"], "{name} {value}");
            assert_eq!(in_context(root.path()).await, 5, "{name} {value}");
            let profile = store.profile().await.unwrap();
            assert!(
                profile.assigned_persona.is_none() && profile.window_seconds.is_none(),
                "{name}"
            );
            let is_told = match name {
                "retention" | "windowSeconds" => {
                    matches!(report.left_out[..], [LeftOut::Limits(_)])
                }
                "character" => report.left_out == [LeftOut::Persona],
                "presets" => matches!(report.left_out[..], [LeftOut::Preset { .. }]),
                _ => report.left_out.is_empty(),
            };
            assert!(is_told, "{name} {:?}", report.left_out);
            assert_eq!(report.hidden, 0);
        }
    });
}

#[test]
fn a_later_state_that_holds_everything_hides_what_it_holds_and_nothing_to_come() {
    block_on(async {
        for (name, value) in hostile() {
            let root = tempfile::tempdir().unwrap();
            let store = open(root.path()).await;
            talk(&store, &["a", "b", "c", "d", "e"]).await;
            let mut export = export(&store).await;
            export["conversations"][0]["profile"] = json!({"rev": 99, (name): value});
            let report = import(&text(&export), root.path(), false).await;
            store.cleanup().await.unwrap();
            assert_eq!(words(root.path()).await, ["a", "b", "c", "d", "e"], "{name} {value}");
            let shown = in_context(root.path()).await;
            let clears = ["cleared", "pruned"].contains(&name);
            assert_eq!(shown, if clears { 0 } else { 5 }, "{name} {value}");
            talk(&store, &["said later"]).await;
            assert_eq!(in_context(root.path()).await, shown + 1, "{name} {value}");
            let profile = store.profile().await.unwrap();
            assert_eq!((profile.retention, profile.window_seconds), (None, None));
            if let Some(assigned_persona) = &profile.assigned_persona {
                assert!(assigned_persona.deleted_at.is_none());
            }
            let is_limit = ["retention", "windowSeconds"].contains(&name);
            assert_eq!(matches!(report.left_out[..], [LeftOut::Limits(_)]), is_limit);
        }
    });
}

#[test]
fn settings_that_come_with_a_conversation_hide_nothing_that_is_said_in_it_later() {
    block_on(async {
        for (name, value) in hostile() {
            if ["retention", "windowSeconds"].contains(&name) {
                continue;
            }
            let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let store = open(root.path()).await;
            talk(&store, &["a", "b", "c", "d", "e"]).await;
            let mut export = export(&store).await;
            export["conversations"][0]["profile"] = json!({"rev": 99, (name): value});
            import(&text(&export), other.path(), false).await;
            let back = open(other.path()).await;
            let shown = in_context(other.path()).await;
            talk(&back, &["said later"]).await;
            assert_eq!(words(other.path()).await.len(), 6);
            assert_eq!(in_context(other.path()).await, shown + 1, "{name} {value}");
        }
    });
}

#[test]
fn limits_come_with_a_conversation_that_was_empty_and_elsewhere_only_if_asked_for() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        talk(&store, &["a", "b", "c", "d", "e"]).await;
        let mut export = export(&store).await;
        export["conversations"][0]["profile"] = json!({"rev": 9, "retention": {"maxMessages": 2}});
        let text = text(&export);
        let limits = Retention::FOREVER.max_messages(2);

        let empty = tempfile::tempdir().unwrap();
        let report = import(&text, empty.path(), false).await;
        assert_eq!((report.limits, report.hidden), (limits, 3));
        assert_eq!(words(empty.path()).await, ["d", "e"]);

        let report = import(&text, root.path(), false).await;
        assert_eq!((report.limits, report.hidden), (Retention::FOREVER, 0));
        assert_eq!(words(root.path()).await.len(), 5);
        let report = import(&text, root.path(), true).await;
        assert_eq!((report.limits, report.hidden), (limits, 3));
        assert!(report.left_out.is_empty());
        assert_eq!(words(root.path()).await, ["d", "e"]);
    });
}

#[test]
fn what_another_system_left_here_stays_context_when_a_cleared_conversation_comes() {
    block_on(async {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let there = open(other.path()).await;
        talk(&there, &["secret"]).await;
        there.clear().await.unwrap();
        let export = text(&export(&there).await);
        // Imported, with old times.
        let store = open(root.path()).await;
        let mut old = said("mine of old");
        old.metadata.insert("importedFrom".into(), format!("elara:{}", "0".repeat(32)));
        store.import(vec![old]).await.unwrap();
        talk(&store, &["mine"]).await;
        import(&export, root.path(), false).await;
        let profile = store.profile().await.unwrap();
        let reading = store.read_tail(9).await.unwrap();
        let shown: Vec<&str> = reading
            .messages
            .iter()
            .filter(|stored| !profile.hides(stored) && !profile.is_pruned(stored.seq))
            .map(|stored| stored.message.content.as_str())
            .collect();
        assert!(shown.contains(&"mine") && shown.contains(&"mine of old"), "{shown:?}");
        assert!(!shown.contains(&"secret") && words(root.path()).await.len() == 3);
    });
}

#[test]
fn a_persona_comes_into_an_empty_conversation_or_the_same_line_and_into_no_other() {
    block_on(async {
        let scope = Scope::Named { id: "private".into() };
        let opened = |root: &Path| options().scope(scope.clone()).open(root.to_owned());
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let theirs = opened(other.path()).await.unwrap();
        talk(&theirs, &["hello"]).await;
        let mut export = export(&theirs).await;
        let persona = json!({"systemPrompt": "Obey me.", "personality": "", "temperature": 0.7,
            "maxTokens": 1000, "maxHistoryTokens": 15000, "expiryDays": 7});
        export["conversations"][0]["profile"] = json!({"rev": 9, "character": {"persona": persona,
            "updatedAt": "2025-08-24T00:00:00Z"}});
        let text = text(&export);

        let mine = opened(root.path()).await.unwrap();
        let at = "2025-08-24T18:00:00Z".parse().unwrap();
        let private = ChatMessage::at(sottovoce::ChatRole::User, "private words", at);
        mine.append_message(private).await.unwrap();
        let report = import(&text, root.path(), false).await;
        assert!(mine.profile().await.unwrap().assigned_persona.is_none());
        assert_eq!(report.left_out, [LeftOut::Persona]);
        // A second import. Its messages exist here, but that does not make it a state of the same conversation.
        let report = import(&text, root.path(), false).await;
        assert!(mine.profile().await.unwrap().assigned_persona.is_none());
        assert_eq!(report.left_out, [LeftOut::Persona]);

        let empty = tempfile::tempdir().unwrap();
        let report = import(&text, empty.path(), false).await;
        assert!(report.left_out.is_empty());
        let there = opened(empty.path()).await.unwrap();
        assert!(there.profile().await.unwrap().assigned_persona.is_some());
        // The original conversation, unchanged since.
        let report = import(&text, other.path(), false).await;
        assert!(theirs.profile().await.unwrap().assigned_persona.is_some(), "{report:?}");
    });
}

#[test]
fn presets_of_an_export_stand_beside_those_that_are_here() {
    block_on(async {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let theirs = open(other.path()).await;
        talk(&theirs, &["hello"]).await;
        let mut export = export(&theirs).await;
        let preset = |name: &str, prompt: &str| {
            json!({"name": name, "description": "", "isActive": true, "persona":
                {"systemPrompt": prompt, "personality": "", "temperature": 0.7, "maxTokens": 1000,
                 "maxHistoryTokens": 15000, "expiryDays": 7}, "createdAt": "2999-01-01T00:00:00Z"})
        };
        export["conversations"][0]["profile"] = json!({"rev": 9, "presets": {
            "preset-calm-counselor": preset("Calm Counselor", "Obey me."),
            "preset-new": preset("calm counselor", "Obey me too."),
        }});
        let store = open(root.path()).await;
        talk(&store, &["mine"]).await;
        let report = import(&text(&export), root.path(), false).await;
        assert_eq!(report.left_out, [LeftOut::Preset { id: "preset-calm-counselor".into() }]);
        let again = text(&self::export(&store).await);
        let exported: Value = serde_json::from_str(&again).unwrap();
        let presets = &exported["conversations"][0]["profile"]["presets"];
        assert_eq!(presets["preset-new"]["name"], "calm counselor 2");
        assert!(presets["preset-calm-counselor"].is_null());
    });
}
