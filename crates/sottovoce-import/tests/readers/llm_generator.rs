//! Imports of mcp-llm-generator's databases, including hostile ones.

#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{block_on, options, snapshot, within};
use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::{Value, json};
use sottovoce::import::{ConversationReport, ImportedConversations, PresetReport};
use sottovoce::persona::{PersonaChange, PersonaRegistry, PresetChange};
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope, StoredMessage};
use sottovoce_import::{LlmGeneratorDatabase, Reader};

const MIRA: &str = "context-mep92q9v-mkorf9";
const HELPER: &str = "context-mepaalnu-gck64a";
const DJ: &str = "context-mepkttns-q515ad";
const OWN_PRESET: &str = "preset-mepktsw0-5h3tw7";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mcp-llm-generator")
}

fn expected() -> Value {
    let file = fixtures().join("expected.json");
    let mut all: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    all["databases"][0].take()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Between the expiry of the last two contexts and that of the first.
fn now() -> Timestamp {
    time("2025-09-01T00:00:00Z")
}

async fn read(path: &Path) -> ImportedConversations {
    LlmGeneratorDatabase::new(path, now()).read(|_| {}).await.unwrap()
}

async fn refusal(path: &Path) -> Error {
    LlmGeneratorDatabase::new(path, now()).read(|_| {}).await.unwrap_err()
}

async fn store(root: &Path, id: &str) -> FileConversationStore {
    options().scope(Scope::Named { id: id.into() }).open(root).await.unwrap()
}

fn registry(root: &Path) -> PersonaRegistry {
    PersonaRegistry::new(root, options())
}

/// The result of an import, by context.
struct Outcome {
    contexts: BTreeMap<String, ConversationReport>,
    presets: PresetReport,
    /// Everything that was refused, by name, with the codes of the reasons.
    refused: BTreeSet<(String, &'static str)>,
    passed_over: usize,
}

impl Outcome {
    fn taken(&self) -> usize {
        self.contexts.values().map(|report| report.messages.taken).sum()
    }
}

async fn import(path: &Path, root: &Path) -> Outcome {
    let (found, previews) = (read(path).await, read(path).await);
    let main = options().open(root).await.unwrap();
    let mut refused = found.refused;
    let mut contexts = BTreeMap::new();
    for (conversation, preview) in found.conversations.into_iter().zip(previews.conversations) {
        let Scope::Named { id } = conversation.scope.clone() else { panic!() };
        let store = store(root, &id).await;
        let preview = preview.preview(&store).await.unwrap();
        let report = conversation.import_into(&store, |_| {}).await.unwrap();
        assert_eq!(report, preview);
        refused.extend(report.messages.refused.clone());
        contexts.insert(id, report);
    }
    let preview = previews.presets.preview(&main).await.unwrap();
    let presets = found.presets.import_into(&main).await.unwrap();
    assert_eq!(presets, preview);
    refused.extend(presets.refused.clone());
    let refused = refused.into_iter().map(|refusal| (refusal.file, refusal.reason.code()));
    Outcome {
        contexts,
        presets,
        refused: refused.collect(),
        passed_over: found.passed_over.total(),
    }
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

/// A copy of the database for changes.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(fixtures().join("context-memory.db"), database(folder.path())).unwrap();
    folder
}

fn database(folder: &Path) -> PathBuf {
    folder.join("context-memory.db")
}

/// A copy with this change.
fn changed(sql: &str) -> tempfile::TempDir {
    let folder = copy();
    let connection = Connection::open(database(folder.path())).unwrap();
    connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
    folder
}

/// A table with the columns of another one, without types, keys and checks.
fn loose(table: &str) -> String {
    format!(
        "CREATE TABLE loose AS SELECT * FROM {table}; DROP TABLE {table}; ALTER TABLE loose RENAME TO {table};"
    )
}

#[tokio::test]
async fn every_context_is_what_the_system_had() {
    let (expected, source) = (expected(), snapshot(&fixtures()));
    let root = tempfile::tempdir().unwrap();
    let outcome = import(&fixtures(), root.path()).await;
    assert_eq!((outcome.taken(), outcome.refused.len()), (39, 0));
    assert_eq!(outcome.passed_over, expected["tables"]["prompt_merge_history"]);
    let wanted = expected["contexts"].as_array().unwrap();
    assert_eq!(outcome.contexts.len(), wanted.len());
    let registry = registry(root.path());
    for context in wanted {
        let id = context["context_id"].as_str().unwrap();
        let report = &outcome.contexts[id];
        assert_eq!(report.expired, time(context["expires_at"].as_str().unwrap()) < now());
        let shown: Vec<Value> = all(root.path(), id)
            .await
            .iter()
            .map(|stored| {
                let message = &stored.message;
                json!([
                    message.role.as_str(),
                    message.content,
                    message.timestamp.as_millisecond(),
                    message.metadata["messageId"]
                ])
            })
            .collect();
        let messages: Vec<Value> = context["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| json!([m["role"], m["content"], m["unix_ms"], m["source_id"]]))
            .collect();
        assert_eq!(shown, messages);

        let kept = registry.get(id).await.unwrap();
        let persona = &kept.assigned_persona.persona;
        assert_eq!(
            json!({
                "name": kept.name,
                "system_prompt": persona.system_prompt,
                "personality": persona.personality,
                "temperature": persona.temperature,
                "max_tokens": persona.max_tokens,
                "max_history_tokens": persona.max_history_tokens,
                "expiry_days": persona.expiry_days,
                "is_active": kept.is_active(),
            }),
            json!({
                "name": context["name"],
                "system_prompt": context["system_prompt"],
                "personality": context["personality"],
                "temperature": context["temperature"],
                "max_tokens": context["max_tokens"],
                "max_history_tokens": context["max_history_tokens"],
                "expiry_days": context["expiry_days"],
                "is_active": context["is_active"],
            })
        );
        assert_eq!(kept.created_at, time(context["created_at"].as_str().unwrap()));
        assert_eq!(kept.assigned_persona.updated_at, time(context["updated_at"].as_str().unwrap()));
        let profile = store(root.path(), id).await.profile().await.unwrap();
        assert_eq!(
            json!(profile.metadata),
            json!({"mcp-llm-generator:expiresAt": context["expires_at"]})
        );
        assert!(store(root.path(), id).await.verify(|_| {}).await.unwrap().is_sound());
    }
    assert_eq!(snapshot(&fixtures()), source);
}

#[tokio::test]
async fn every_preset_is_what_the_system_had_under_the_id_that_it_has_here() {
    let expected = expected();
    let root = tempfile::tempdir().unwrap();
    assert_eq!(import(&fixtures(), root.path()).await.presets.taken, 6);
    let registry = registry(root.path());
    assert_eq!(registry.presets().await.unwrap().len(), 7);
    for wanted in expected["presets"].as_array().unwrap() {
        let id = wanted["id"].as_str().unwrap();
        let preset = registry.preset(id).await.unwrap();
        assert_eq!(preset.is_built_in(), id != OWN_PRESET);
        let persona = &preset.persona;
        assert_eq!(
            json!([
                preset.name,
                preset.description,
                persona.system_prompt,
                persona.personality,
                persona.temperature,
                persona.max_tokens,
                persona.max_history_tokens,
                persona.expiry_days,
                preset.is_active,
                preset.metadata,
            ]),
            json!([
                wanted["name"],
                wanted["description"],
                wanted["system_prompt"],
                wanted["default_personality"],
                wanted["default_temperature"],
                wanted["default_max_tokens"],
                wanted["default_max_history_tokens"],
                wanted["default_expiry_days"],
                wanted["is_active"],
                wanted["metadata"],
            ])
        );
        assert_eq!(preset.created_at, Some(time(wanted["created_at"].as_str().unwrap())));
        assert_eq!(preset.updated_at, Some(time(wanted["updated_at"].as_str().unwrap())));
    }
}

#[tokio::test]
async fn a_second_import_takes_nothing_wherever_the_database_lies() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let profile = store(root.path(), MIRA).await.profile().await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir(elsewhere.path().join("data")).unwrap();
    let older = elsewhere.path().join("data/contexts.db");
    std::fs::copy(database(&fixtures()), &older).unwrap();
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(fixtures(), &link).unwrap();
    let places = [
        fixtures(),
        database(&fixtures()),
        elsewhere.path().to_owned(),
        elsewhere.path().join("data"),
        older,
        link,
    ];
    for path in places {
        let again = import(&path, root.path()).await;
        assert_eq!((again.taken(), again.contexts[MIRA].messages.already_there), (0, 28));
        assert_eq!((again.presets.taken, again.presets.already_there), (0, 6));
    }
    assert_eq!(store(root.path(), MIRA).await.profile().await.unwrap(), profile);
}

#[tokio::test]
async fn what_was_forgotten_deleted_or_changed_here_stays_so() {
    let root = tempfile::tempdir().unwrap();
    let registry = registry(root.path());
    let mine = PresetChange {
        persona: PersonaChange { temperature: Some(0.1), ..PersonaChange::default() },
        ..PresetChange::default()
    };
    registry.update_preset("calm_counselor", mine).await.unwrap();
    let mine = registry.preset("calm_counselor").await.unwrap();
    let presets = import(&fixtures(), root.path()).await.presets;
    assert_eq!((presets.taken, presets.already_there), (5, 1));
    assert_eq!(registry.preset("calm_counselor").await.unwrap(), mine);

    registry.delete_preset(OWN_PRESET).await.unwrap();
    registry.delete_preset("rational_advisor").await.unwrap();
    let built_in = registry.preset("rational_advisor").await.unwrap();
    registry.delete(DJ).await.unwrap();
    store(root.path(), MIRA).await.forget(&[3..=4]).await.unwrap();
    let helper = store(root.path(), HELPER).await;
    helper.forget(&[1..=u64::MAX]).await.unwrap();
    helper.change_profile(Box::new(sottovoce::store::Profile::clear_metadata)).await.unwrap();

    let again = import(&fixtures(), root.path()).await;
    assert_eq!((again.taken(), again.contexts[MIRA].messages.forgotten), (0, 2));
    assert_eq!(again.contexts[HELPER].messages.forgotten, 7);
    let presets = &again.presets;
    assert_eq!((presets.taken, presets.already_there, presets.forgotten), (0, 4, 2));
    assert_eq!(registry.preset("rational_advisor").await.unwrap(), built_in);
    assert!(registry.preset(OWN_PRESET).await.is_err());
    assert!(!registry.get(DJ).await.unwrap().is_active());
    assert!(registry.get(HELPER).await.is_err());
    assert!(!helper.profile().await.unwrap().has_metadata());
}

#[tokio::test]
async fn a_context_that_was_given_another_character_here_keeps_it() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let folder = changed("UPDATE contexts SET system_prompt = 'Other.', name = 'Other'");
    import(folder.path(), root.path()).await;
    let kept = registry(root.path()).get(MIRA).await.unwrap();
    assert_eq!(kept.name, "Mira (Zürich)");
    assert!(kept.assigned_persona.persona.system_prompt.starts_with("You are Mira"));
}

#[tokio::test]
async fn older_databases_and_single_tables_are_taken_too() {
    for (sql, contexts, messages, presets) in [
        ("DROP TABLE prompt_merge_history", 3, 39, 6),
        ("DROP TABLE prompt_merge_history; DROP TABLE personality_presets", 3, 39, 0),
        ("DROP TABLE conversations", 3, 0, 6),
        ("DROP TABLE contexts", 0, 39, 6),
        ("DELETE FROM contexts", 0, 39, 6),
        ("DROP TABLE contexts; DROP TABLE conversations", 0, 0, 6),
        ("ALTER TABLE conversations DROP COLUMN token_count", 3, 39, 6),
        (
            "DROP INDEX idx_contexts_active; DROP INDEX idx_contexts_expires_at;
             ALTER TABLE contexts DROP COLUMN is_active;
             ALTER TABLE contexts DROP COLUMN expires_at;
             ALTER TABLE contexts DROP COLUMN max_history_tokens;
             ALTER TABLE personality_presets DROP COLUMN metadata",
            3,
            39,
            6,
        ),
    ] {
        let (root, folder) = (tempfile::tempdir().unwrap(), changed(sql));
        let outcome = import(folder.path(), root.path()).await;
        assert_eq!((outcome.taken(), outcome.presets.taken), (messages, presets), "{sql}");
        assert!(outcome.refused.is_empty(), "{sql}: {:?}", outcome.refused);
        let listed = registry(root.path()).list().await.unwrap();
        assert_eq!(listed.contexts.len(), contexts, "{sql}");
        // Whatever the tables contain, these are the same messages.
        let whole = import(&fixtures(), root.path()).await;
        assert_eq!(whole.taken(), 39 - messages, "{sql}");
        assert_eq!(registry(root.path()).list().await.unwrap().contexts.len(), 3, "{sql}");
    }
}

#[tokio::test]
async fn the_order_in_which_they_were_stored_counts_for_more_than_the_times() {
    let folder = changed(
        "INSERT INTO conversations VALUES
            ('z', 'gone', 'user', '1', 1, '2025-08-24T05:43:19.000Z'),
            ('b', 'gone', 'assistant', '2', 1, '2025-08-24T05:43:19.000Z'),
            ('a', 'gone', 'user', '3', 1, '2025-08-24T05:43:18.000Z'),
            ('y', 'gone', 'system', '4', 1, '2025-08-24T07:43:20.000+02:00');",
    );
    let root = tempfile::tempdir().unwrap();
    import(folder.path(), root.path()).await;
    assert_eq!(words(root.path(), "gone").await, ["1", "2", "3", "4"]);
    let third = &all(root.path(), "gone").await[2].message;
    assert_eq!(third.timestamp, time("2025-08-24T05:43:18Z"));
    assert!(registry(root.path()).get("gone").await.is_err());
}

#[tokio::test]
async fn what_is_still_beside_the_database_counts_and_stays_there() {
    let folder = copy();
    let running = Connection::open(database(folder.path())).unwrap();
    let row = format!(
        "INSERT INTO conversations VALUES ('x', '{MIRA}', 'user', 'just now', 2, '2025-08-25T05:00:00.000Z')"
    );
    running.execute(&row, ()).unwrap();
    assert!(folder.path().join("context-memory.db-wal").metadata().unwrap().len() > 0);
    let (root, source) = (tempfile::tempdir().unwrap(), snapshot(folder.path()));
    assert_eq!(import(folder.path(), root.path()).await.taken(), 40);
    assert_eq!(words(root.path(), MIRA).await.last().unwrap(), "just now");
    assert_eq!(snapshot(folder.path()), source);
}

#[tokio::test]
async fn what_is_wrong_with_one_message_is_refused_alone() {
    let large = "x".repeat(1_200_000);
    let folder = changed(&loose("conversations"));
    let connection = Connection::open(database(folder.path())).unwrap();
    let rows = [
        ("'{}', 'tool', 'x', ?1", "corrupt"),
        ("'{}', NULL, 'x', ?1", "corrupt"),
        ("'{}', 'user', NULL, ?1", "corrupt"),
        ("'{}', 'user', 'x', NULL", "corrupt"),
        ("'{}', 'user', 'x', 'yesterday'", "corrupt"),
        ("'{}', 'user', 'x', '2025-08-24 05:43:19'", "corrupt"),
        ("'{}', 'user', 'x', 1756013462123", "corrupt"),
        ("'{}', 'user', 'x', '9998-01-01T00:00:00.000Z'", "from-the-future"),
        ("'{}', 'user', x'00ff', ?1", "corrupt"),
        ("'{}', 'user', CAST(x'ff' AS TEXT), ?1", "corrupt"),
        ("'{}', 'user', ?2, ?1", "too-large"),
        ("NULL, 'user', 'x', ?1", "corrupt"),
        ("x'07', 'user', 'x', ?1", "corrupt"),
        ("'', 'user', 'x', ?1", "unstorable"),
        ("'a' || char(10), 'user', 'x', ?1", "unstorable"),
        ("hex(zeroblob(200)), 'user', 'x', ?1", "unstorable"),
    ];
    let mut wanted = BTreeSet::new();
    for (at, (row, code)) in rows.iter().enumerate() {
        let sql = format!(
            "INSERT INTO conversations (id, context_id, role, content, created_at) VALUES ('bad-{at}', {})",
            row.replace("{}", MIRA)
        );
        let mut statement = connection.prepare(&sql).unwrap();
        let values = ["2025-08-24T05:43:19.000Z", &large];
        for (index, value) in values.iter().enumerate().take(statement.parameter_count()) {
            statement.raw_bind_parameter(index + 1, value).unwrap();
        }
        statement.raw_execute().unwrap();
        wanted.insert((format!("conversations/bad-{at}"), *code));
    }
    // Equal messages, equal ids, no id, and a path as an id.
    connection
        .execute_batch(
            "INSERT INTO conversations (id, context_id, role, content, created_at) VALUES
                ('a', '../x', 'user', 'same', '2025-08-24T05:43:19.000Z'),
                ('a', '../x', 'user', 'same', '2025-08-24T05:43:19.000Z'),
                ('a', '../x', 'user', 'other', '2025-08-24T05:43:19.000Z'),
                (NULL, '../x', 'user', 'none', '2025-08-24T05:43:19.000Z'),
                (x'00', '../x', 'user', '', '2025-08-24T05:43:19.000Z');",
        )
        .unwrap();
    drop(connection);
    let source = snapshot(folder.path());
    let root = tempfile::tempdir().unwrap();
    let outcome = import(folder.path(), root.path()).await;
    assert_eq!(outcome.taken(), 44);
    assert_eq!(outcome.refused, wanted);
    assert_eq!(words(root.path(), "../x").await, ["same", "same", "other", "none", ""]);
    let folders = std::fs::read_dir(root.path().join("conversations")).unwrap();
    let folders: BTreeSet<_> = folders.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(folders, BTreeSet::from(["%2e%2e%2fx", MIRA, HELPER, DJ].map(Into::into)));
    assert_eq!(import(folder.path(), root.path()).await.taken(), 0);
    assert_eq!(snapshot(folder.path()), source);
}

/// Contexts with values outside the limits, each with the name and reason of its refusal.
#[tokio::test]
async fn contexts_out_of_the_limits_come_as_near_as_can_be() {
    let folder = changed(&format!(
        "{} DELETE FROM contexts; DELETE FROM conversations;
         INSERT INTO contexts VALUES
            ('hot', 'Hot', 'x', '', 1.5, 0, 10, 1000000, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', '2025-08-03T00:00:00.000Z', 1),
            ('cold', 'Cold', 'x', NULL, -3, -9223372036854775808, 9223372036854775807, 1.6, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', 'never', 0),
            ('odd', 'Odd', 'x', '', 9e999, 1e300, -9e999, NULL, NULL, NULL, NULL, NULL),
            ('types', x'00', 'x', 7, 'warm', x'01', 'many', 'two', 5, 'then', 9, 'no'),
            ('late', 'Late', 'x', '', 1, 300, 2000, 5, '9998-01-01T00:00:00.000Z', '9998-01-01T00:00:00.000Z', '9998-01-01T00:00:00.000Z', 1),
            ('line', 'a' || char(10) || 'b', 'x', '', 0, 300, 2000, 5, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', NULL, 1),
            ('long', hex(zeroblob(150)), 'x', '', 0.5, 300, 2000, 5, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', NULL, 1),
            ('huge', hex(zeroblob(3000)), 'x', '', 0.5, 300, 2000, 5, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', NULL, 1),
            ('blank', '  ', '  ', '', 0.5, 300, 2000, 5, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', NULL, 1),
            ('wordy', 'Wordy', hex(zeroblob(40000)), '', 0.5, 300, 2000, 5, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', NULL, 1),
            ('vain', 'Vain', 'x', hex(zeroblob(9000)), 0.5, 300, 2000, 5, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', NULL, 1),
            ('hot', 'Again', 'y', '', 0.5, 300, 2000, 5, NULL, NULL, NULL, 1),
            (NULL, 'None', 'y', '', 0.5, 300, 2000, 5, NULL, NULL, NULL, 1),
            ('', 'Empty', 'y', '', 0.5, 300, 2000, 5, NULL, NULL, NULL, 1);",
        loose("contexts")
    ));
    let root = tempfile::tempdir().unwrap();
    let outcome = import(folder.path(), root.path()).await;
    let wanted = [
        ("contexts", "corrupt"),
        ("contexts/", "unstorable"),
        ("contexts/hot", "unstorable"),
        ("contexts/types", "corrupt"),
        ("contexts/late", "from-the-future"),
        ("contexts/huge", "unstorable"),
        ("contexts/blank", "corrupt"),
        ("contexts/wordy", "corrupt"),
        ("contexts/vain", "corrupt"),
    ];
    assert_eq!(outcome.refused, wanted.map(|(name, code)| (name.to_owned(), code)).into());
    let registry = registry(root.path());
    let notes = async |id: &str| {
        let profile = store(root.path(), id).await.profile().await.unwrap();
        let notes = profile.metadata.iter();
        let short = |name: &str| name.strip_prefix("mcp-llm-generator:").unwrap().to_owned();
        notes.map(|(name, value)| (short(name), value.clone())).collect::<BTreeMap<_, _>>()
    };
    let figures = async |id: &str| {
        let persona = registry.get(id).await.unwrap().assigned_persona.persona;
        persona.check().unwrap();
        json!([
            persona.temperature,
            persona.max_tokens,
            persona.max_history_tokens,
            persona.expiry_days
        ])
    };
    assert_eq!(figures("hot").await, json!([1.0, 1, 1000, 36_500]));
    assert_eq!(
        json!(notes("hot").await),
        json!({"temperature": "1.5", "maxTokens": "0", "maxHistoryTokens": "10",
            "expiryDays": "1000000", "expiresAt": "2025-08-03T00:00:00.000Z"})
    );
    assert!(outcome.contexts["hot"].expired);
    assert_eq!(figures("cold").await, json!([0.0, 1, 1 << 24, 2]));
    assert_eq!(notes("cold").await["expiryDays"], "1.6");
    let cold = registry.get("cold").await.unwrap().assigned_persona;
    assert_eq!(cold.deleted_at, Some(time("2025-08-02T00:00:00Z")));
    assert_eq!(figures("odd").await, json!([1.0, 1 << 20, 1000, 7]));
    assert_eq!(registry.get("odd").await.unwrap().assigned_persona.updated_at, now());
    assert_eq!(figures("types").await, json!([0.7, 1000, 15_000, 7]));
    assert_eq!(figures("late").await, json!([1.0, 300, 2000, 5]));
    assert_eq!(registry.get("late").await.unwrap().assigned_persona.updated_at, now());
    assert_eq!(registry.get("line").await.unwrap().name, "a b");
    assert_eq!(notes("line").await["name"], "a\nb");
    assert_eq!(registry.get("long").await.unwrap().name.len(), 200);
    assert_eq!(notes("long").await["name"].len(), 300);
    assert_eq!(registry.get("huge").await.unwrap().name.len(), 200);
    for id in ["blank", "wordy", "vain"] {
        assert!(registry.get(id).await.is_err());
    }
    let wordy = store(root.path(), "wordy").await.profile().await.unwrap();
    assert_eq!(wordy.title.as_deref(), Some("Wordy"));
    assert_eq!(registry.list().await.unwrap().contexts.len(), 8);
}

#[tokio::test]
async fn presets_out_of_the_limits_come_as_near_as_can_be() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    let folder = changed(&format!(
        "{} DELETE FROM personality_presets;
         INSERT INTO personality_presets VALUES
            ('preset-calm-counselor', 'Mine', 'd', 'x', 'p', 2, 300, 2000, 5, '2025-08-01T00:00:00.000Z', '2025-08-02T00:00:00.000Z', 0, '[1]'),
            ('calm_counselor', 'Calm', 'd', 'x', 'p', 0, 300, 2000, 5, NULL, NULL, 1, NULL),
            ('own', 'Rational Advisor', hex(zeroblob(1500)), 'x', NULL, 0.5, 300, 2000, 5, 'then', NULL, 1, '{{\"mcp-llm-generator:x\":1'),
            ('deep', 'Deep', '', 'x', '', 0.5, 300, 2000, 5, NULL, NULL, 1, '{deep}'),
            ('large', 'Large', '', 'x', '', 7, 300, 2000, 5, NULL, NULL, 1, '{{\"a\":\"' || hex(zeroblob(9000)) || '\"}}'),
            ('nameless', NULL, '', 'x', '', 0.5, 300, 2000, 5, NULL, NULL, 1, '{{}}'),
            ('blank', 'Blank', '', ' ', '', 0.5, 300, 2000, 5, NULL, NULL, 1, '{{}}'),
            (NULL, 'None', '', 'x', '', 0.5, 300, 2000, 5, NULL, NULL, 1, '{{}}'),
            ('a' || char(10) || 'b', 'Lines', '', 'x', '', 0.5, 300, 2000, 5, NULL, NULL, 1, '{{}}'),
            ('', 'Empty', '', 'x', '', 0.5, 300, 2000, 5, NULL, NULL, 1, '{{}}');",
        loose("personality_presets")
    ));
    let root = tempfile::tempdir().unwrap();
    let outcome = import(folder.path(), root.path()).await;
    let preset = |id: &str| format!("personality_presets/{id}");
    let wanted = BTreeSet::from([
        (preset("calm_counselor"), "unstorable"),
        (preset("own"), "corrupt"),
        (preset("deep"), "unstorable"),
        (preset("large"), "unstorable"),
        (preset("blank"), "corrupt"),
        ("personality_presets".to_owned(), "corrupt"),
        (preset("a\\nb"), "unstorable"),
        (preset(""), "unstorable"),
    ]);
    assert_eq!(outcome.refused, wanted);
    assert_eq!(outcome.presets.taken, 5);
    let registry = registry(root.path());
    let calm = registry.preset("calm_counselor").await.unwrap();
    assert_eq!(
        (calm.name.as_str(), calm.is_active, calm.persona.temperature),
        ("Mine", false, 1.0)
    );
    assert_eq!(
        json!(calm.metadata),
        json!({"mcp-llm-generator:metadata": "[1]", "mcp-llm-generator:temperature": "2"})
    );
    let own = registry.preset("own").await.unwrap();
    assert_eq!((own.name.as_str(), own.description.len()), ("Rational Advisor 2", 2000));
    assert_eq!(own.metadata["mcp-llm-generator:description"].as_str().unwrap().len(), 3000);
    assert_eq!(own.metadata["mcp-llm-generator:metadata"], "{\"mcp-llm-generator:x\":1");
    assert!(registry.preset("deep").await.unwrap().metadata.is_empty());
    let large = registry.preset("large").await.unwrap();
    assert_eq!(json!(large.metadata), json!({"mcp-llm-generator:temperature": "7"}));
    assert_eq!(registry.preset("nameless").await.unwrap().name, "nameless");
    assert_eq!(import(folder.path(), root.path()).await.presets.already_there, 5);
}

#[tokio::test]
async fn what_is_no_database_of_the_system_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(database(&fixtures())).unwrap();
    let put = |bytes: &[u8]| {
        let path = folder.path().join("x.db");
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let mut torn = whole.clone();
    torn[..16].fill(b'x');
    for bytes in [&b""[..], b"no database", &[0; 4096], &torn] {
        assert!(
            matches!(refusal(&put(bytes)).await, Error::NotImportable { .. }),
            "{}",
            bytes.len()
        );
    }
    let none = "DROP TABLE contexts; DROP TABLE conversations; DROP TABLE personality_presets";
    for sql in [
        none,
        &format!(
            "{none}; CREATE TABLE conversations (id, title); CREATE VIEW contexts AS SELECT 1 AS id"
        ),
        &format!(
            "{none}; CREATE TABLE contexts (id, name, system_prompt AS (hex(zeroblob(900000000))))"
        ),
    ] {
        let folder = changed(sql);
        assert!(matches!(refusal(folder.path()).await, Error::NotImportable { .. }), "{sql}");
    }
    let chorus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/chorus/db/chorus.db");
    assert!(matches!(refusal(&chorus).await, Error::NotImportable { .. }));
    for path in [folder.path().join("absent"), folder.path().to_owned()] {
        assert!(matches!(refusal(&path).await, Error::Io { .. }), "{}", path.display());
    }
    let linked = copy();
    std::fs::rename(database(linked.path()), linked.path().join("kept")).unwrap();
    std::os::unix::fs::symlink(linked.path().join("kept"), database(linked.path())).unwrap();
    assert!(matches!(refusal(linked.path()).await, Error::NotPlain { .. }));
}

#[tokio::test]
async fn a_table_that_is_another_is_refused_alone_and_hostile_ones_beside_are_only_counted() {
    let folder = changed(
        "DROP TABLE conversations; CREATE TABLE conversations (id, title);
         CREATE TABLE \"x\"\"; DROP TABLE contexts; --\" (a); INSERT INTO \"x\"\"; DROP TABLE contexts; --\" VALUES (1);
         CREATE TABLE expensive (a, b AS (hex(zeroblob(900000000))));
         CREATE TRIGGER t AFTER INSERT ON contexts BEGIN DELETE FROM contexts; END;
         CREATE VIEW v AS SELECT hex(zeroblob(900000000));",
    );
    let root = tempfile::tempdir().unwrap();
    let outcome = import(folder.path(), root.path()).await;
    assert_eq!((outcome.contexts.len(), outcome.presets.taken), (3, 6));
    assert_eq!(outcome.passed_over, 17);
    assert_eq!(outcome.refused, BTreeSet::from([("conversations".to_owned(), "corrupt")]));

    // Without row numbers there is no order.
    let folder = changed(
        "CREATE TABLE w (id PRIMARY KEY, context_id, role, content, created_at) WITHOUT ROWID;
         INSERT INTO w SELECT id, context_id, role, content, created_at FROM conversations;
         DROP TABLE conversations; ALTER TABLE w RENAME TO conversations;",
    );
    let outcome = import(folder.path(), root.path()).await;
    assert_eq!(outcome.refused, BTreeSet::from([("conversations".to_owned(), "corrupt")]));
}

#[test]
fn a_damaged_database_gives_what_can_be_read_or_is_an_error_and_never_hangs() {
    let whole = std::fs::read(database(&fixtures())).unwrap();
    let outcomes = within(Duration::from_secs(240), move || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let pages = whole.len() / 4096;
        let mut damaged: Vec<Vec<u8>> =
            (1..pages).map(|pages| whole[..pages * 4096].to_vec()).collect();
        for page in 1..pages {
            for fill in [0, 0xff] {
                let mut bytes = whole.clone();
                bytes[page * 4096..(page + 1) * 4096].fill(fill);
                damaged.push(bytes);
            }
        }
        let mut outcomes = BTreeSet::new();
        for bytes in damaged {
            std::fs::write(&path, bytes).unwrap();
            let read = block_on(LlmGeneratorDatabase::new(&path, now()).read(|_| {}));
            outcomes.insert(match read {
                Ok(found) if found.refused.is_empty() => "all",
                Ok(_) => "some",
                Err(Error::NotImportable { .. }) => "none",
                Err(error) => panic!("{error}"),
            });
        }
        outcomes
    });
    assert!(outcomes.contains("all") && outcomes.contains("some"), "{outcomes:?}");
}
