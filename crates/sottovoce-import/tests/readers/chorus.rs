//! Imports of chorus databases, including hostile ones.

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
use sottovoce::context::{ContextRequest, LastNContextProvider};
use sottovoce::import::{ConversationReport, ImportedConversations};
use sottovoce::store::ArtifactStore;
use sottovoce::{
    ContextProvider, ConversationStore, Error, FileConversationStore, Scope, StoredMessage,
};
use sottovoce_import::{ChorusDatabase, Reader};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/chorus")
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(fixtures().join("expected.json")).unwrap()).unwrap()
}

fn named(id: &str) -> Scope {
    Scope::Named { id: id.into() }
}

async fn read(path: &Path) -> ImportedConversations {
    ChorusDatabase::new(path).read(|_| {}).await.unwrap()
}

async fn refusal(path: &Path) -> Error {
    ChorusDatabase::new(path).read(|_| {}).await.unwrap_err()
}

async fn store(root: &Path, agent: &str) -> FileConversationStore {
    options().scope(named(agent)).open(root).await.unwrap()
}

/// The reports, by agent.
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

fn taken(reports: &Reports) -> usize {
    reports.values().map(|report| report.messages.taken).sum()
}

async fn all(root: &Path, agent: &str) -> Vec<Arc<StoredMessage>> {
    let store = store(root, agent).await;
    let reading = store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    reading.messages
}

async fn words(root: &Path, agent: &str) -> Vec<String> {
    all(root, agent).await.iter().map(|stored| stored.message.content.clone()).collect()
}

/// A copy of the fixtures for changes.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_into(&fixtures(), folder.path());
    folder
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

fn database(folder: &Path) -> PathBuf {
    folder.join("db/chorus.db")
}

fn change(folder: &Path, sql: &str) {
    Connection::open(database(folder)).unwrap().execute_batch(sql).unwrap();
}

/// A copy of the fixtures with this change to its database.
fn changed(sql: &str) -> tempfile::TempDir {
    let folder = copy();
    change(folder.path(), sql);
    folder
}

const SESSION: &str = "6513270e-269e-4d37-b2a7-4de452e6b438";

fn session(folder: &Path) -> PathBuf {
    folder.join(format!("agents/mira/sessions/{SESSION}.json"))
}

fn shown(stored: &StoredMessage) -> Value {
    let message = &stored.message;
    let calls: Vec<Value> = message
        .tool_calls
        .iter()
        .map(|call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}))
        .collect();
    json!([
        message.role.as_str(),
        message.content,
        i64::try_from(message.timestamp.as_nanosecond()).unwrap(),
        if calls.is_empty() { Value::Null } else { calls.into() },
        message.tool_call_id,
        message.metadata.get("discordMessageId"),
    ])
}

fn wanted(message: &Value) -> Value {
    json!([
        message["role"],
        message["content"],
        message["unix_us"].as_i64().unwrap() * 1000,
        message["tool_calls"],
        message["tool_call_id"],
        message["discord_message_id"].as_i64().map(|id| id.to_string()),
    ])
}

/// An agent's expected messages by id.
fn by_id(expected: &Value, agent: &str) -> BTreeMap<i64, Value> {
    let mut found = BTreeMap::new();
    for conversation in expected["conversations"].as_array().unwrap() {
        if conversation["scope"]["agent"] == agent {
            let messages = conversation["messages"].as_array().unwrap();
            found.extend(messages.iter().map(|m| (m["source_id"].as_i64().unwrap(), m.clone())));
        }
    }
    found
}

#[tokio::test]
async fn every_conversation_is_what_chorus_had() {
    let (expected, source) = (expected(), snapshot(&fixtures()));
    let root = tempfile::tempdir().unwrap();
    let found = read(&fixtures()).await;
    assert_eq!((found.system, found.refused.len()), ("chorus", 0));
    let passed_over: Vec<_> = found.passed_over.kinds().collect();
    assert_eq!(passed_over, [("names and states of threads", 12), ("steps of threads", 1)]);
    let reports = import(&fixtures(), root.path()).await;
    assert_eq!(reports.keys().collect::<Vec<_>>(), ["kitchen-2", "mira"]);
    assert_eq!(taken(&reports), 43);
    for conversation in expected["conversations"].as_array().unwrap() {
        let agent = conversation["scope"]["agent"].as_str().unwrap();
        let thread = conversation["scope"]["thread_id"].as_i64().map(|thread| thread.to_string());
        let messages = conversation["messages"].as_array().unwrap();
        let stored = all(root.path(), agent).await;
        let stored: Vec<_> = stored.iter().filter(|s| s.message.thread_id == thread).collect();
        assert_eq!(
            stored.iter().map(|s| shown(s)).collect::<Vec<_>>(),
            messages.iter().map(wanted).collect::<Vec<_>>()
        );
        let store = store(root.path(), agent).await;
        let profile = store.profile().await.unwrap();
        let hidden: Vec<_> = stored.iter().map(|stored| profile.hides(stored)).collect();
        let cleared: Vec<_> =
            messages.iter().map(|m| m["before_clear"].as_bool().unwrap()).collect();
        assert_eq!(hidden, cleared);

        let provider = LastNContextProvider::new();
        let shared: Arc<dyn ConversationStore> = Arc::new(store.clone());
        let mut request = ContextRequest::new(&shared, "x", 100);
        request.thread = thread.as_deref();
        let context = provider.get_context(&request).await.unwrap();
        let recalled: Vec<_> =
            context.messages.iter().map(|m| m.message().content.as_str()).collect();
        let in_context: Vec<_> = messages
            .iter()
            .filter(|m| m["before_clear"] == false)
            .map(|m| m["content"].as_str().unwrap())
            .collect();
        assert_eq!(recalled, in_context);
    }
    assert_eq!(snapshot(&fixtures()), source);
}

#[tokio::test]
async fn an_agents_prompt_is_the_persona_and_its_documents_are_artifacts() {
    let folder = copy();
    let docs = folder.path().join("agents/mira/docs");
    std::fs::create_dir(docs.join("house")).unwrap();
    std::fs::write(docs.join("house/garden.txt"), "the leeks").unwrap();
    std::fs::create_dir_all(folder.path().join("agents/new")).unwrap();
    let new = r#"{"name":"new","system_prompt":"You are new.","created_at":"nonsense"}"#;
    std::fs::write(folder.path().join("agents/new/agent.json"), new).unwrap();
    let root = tempfile::tempdir().unwrap();
    let reports = import(folder.path(), root.path()).await;
    assert_eq!((reports["mira"].artifacts, reports["kitchen-2"].artifacts), (3, 1));
    let mira = store(root.path(), "mira").await;
    let assigned_persona = mira.profile().await.unwrap().assigned_persona.clone().unwrap();
    assert!(
        assigned_persona.persona.system_prompt.starts_with("You are Mira, the voice of the house")
    );
    assert_eq!(assigned_persona.persona.expiry_days, 36_500);
    let names: BTreeSet<String> = mira
        .artifacts()
        .await
        .unwrap()
        .0
        .into_iter()
        .map(|artifact| artifact.name.clone())
        .collect();
    let expected = ["README.md", "house/garden.txt", "household.md"].map(String::from);
    assert_eq!(names, BTreeSet::from(expected));
    // Nobody has talked to it yet.
    assert_eq!(reports["new"].messages.taken, 0);
    let new = store(root.path(), "new").await.profile().await.unwrap();
    assert_eq!(new.assigned_persona.as_ref().unwrap().persona.system_prompt, "You are new.");
    // Deleted messages stay deleted, and none is stored twice.
    let ids: Vec<_> =
        mira.artifacts().await.unwrap().0.into_iter().map(|artifact| artifact.id.clone()).collect();
    mira.delete_artifacts(&ids[..1]).await.unwrap();
    let again = import(folder.path(), root.path()).await;
    assert_eq!((taken(&again), again["mira"].artifacts), (0, 0));
}

#[tokio::test]
async fn a_session_that_no_row_names_is_a_snapshot_if_it_is_whole() {
    let folder = changed("DELETE FROM sessions");
    let sessions = folder.path().join("agents/mira/sessions");
    let whole = std::fs::read_to_string(sessions.join(format!("{SESSION}.json"))).unwrap();
    let other = "7513270e-269e-4d37-b2a7-4de452e6b438";
    let cut = whole.replace(SESSION, other);
    std::fs::write(sessions.join(format!("{other}.json")), &cut.as_bytes()[..cut.len() / 2])
        .unwrap();
    let renamed = "8513270e-269e-4d37-b2a7-4de452e6b438";
    std::fs::write(sessions.join(format!("{renamed}.json")), &whole).unwrap();
    let root = tempfile::tempdir().unwrap();
    let reports = import(folder.path(), root.path()).await;
    assert_eq!(reports["mira"].snapshots, 1);
    let refused: Vec<_> =
        reports["mira"].messages.refused.iter().map(|refusal| refusal.file.clone()).collect();
    assert_eq!(refused, [other, renamed].map(|id| format!("agents/mira/sessions/{id}.json")));
    let snapshots = store(root.path(), "mira").await.snapshots().await.unwrap().0;
    assert_eq!((snapshots[0].id.as_str(), snapshots[0].messages.len()), (SESSION, 15));
    assert_eq!(snapshots[0].description.as_deref(), Some("Before dinner – Zürich"));
}

#[tokio::test]
async fn a_conversation_that_another_one_has_here_gets_no_agents_prompt() {
    let root = tempfile::tempdir().unwrap();
    let mine = store(root.path(), "mira").await;
    mine.append_message(crate::common::said("mine")).await.unwrap();
    let reports = import(&fixtures(), root.path()).await;
    assert_eq!(reports["mira"].left_out, [sottovoce::import::LeftOut::Persona]);
    assert!(mine.profile().await.unwrap().assigned_persona.is_none());
    assert_eq!(words(root.path(), "mira").await.len(), 30);
}

#[tokio::test]
async fn a_saved_session_is_a_snapshot_of_the_same_messages() {
    let expected = expected();
    let root = tempfile::tempdir().unwrap();
    assert_eq!(import(&fixtures(), root.path()).await["mira"].snapshots, 1);
    let store = store(root.path(), "mira").await;
    let (snapshots, findings) = store.snapshots().await.unwrap();
    assert_eq!((snapshots.len(), findings.len()), (1, 0));
    let (snapshot, saved) = (&snapshots[0], &expected["snapshots"][0]);
    let time = |key: &str| saved[key].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert_eq!(snapshot.id, saved["session_id"].as_str().unwrap());
    assert_eq!(snapshot.description.as_deref(), saved["description"].as_str());
    assert_eq!(snapshot.summary, saved["summary"].as_str().unwrap());
    assert_eq!(snapshot.saved_at, time("saved_at"));
    assert_eq!(
        (snapshot.window_start, snapshot.window_end),
        (time("window_start"), time("window_end"))
    );

    let stored = all(root.path(), "mira").await;
    let messages = by_id(&expected, "mira");
    let ids = saved["message_source_ids"].as_array().unwrap();
    assert_eq!(snapshot.messages.len(), ids.len());
    for (saved, id) in snapshot.messages.iter().zip(ids) {
        let same = stored.iter().find(|stored| stored.seq == saved.seq).unwrap();
        assert_eq!(same.message, saved.message);
        assert_eq!(shown(same), wanted(&messages[&id.as_i64().unwrap()]));
    }
    assert!(store.verify(|_| {}).await.unwrap().is_sound());
}

#[tokio::test]
async fn a_second_import_takes_nothing_whichever_of_the_places_is_named() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let profile = store(root.path(), "mira").await.profile().await.unwrap();
    let beside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(fixtures(), beside.path().join("link")).unwrap();
    let link = beside.path().join("link");
    for path in [fixtures(), fixtures().join("db"), database(&fixtures()), link] {
        let again = import(&path, root.path()).await;
        assert_eq!((taken(&again), again["mira"].snapshots), (0, 0));
        assert_eq!(again["mira"].messages.already_there, 29);
        assert_eq!(again["kitchen-2"].messages.already_there, 14);
    }
    assert_eq!(store(root.path(), "mira").await.profile().await.unwrap(), profile);
}

#[tokio::test]
async fn a_database_by_itself_gives_its_messages_and_its_folder_the_sessions_later() {
    let (root, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = alone.path().join("backup.db");
    std::fs::copy(database(&fixtures()), &path).unwrap();
    let reports = import(&path, root.path()).await;
    assert_eq!((taken(&reports), reports["mira"].snapshots), (43, 0));
    let refused = &reports["mira"].messages.refused;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].file, format!("agents/mira/sessions/{SESSION}.json"));
    assert_eq!(refused[0].reason.code(), "unreadable");
    let later = import(&fixtures(), root.path()).await;
    assert_eq!((taken(&later), later["mira"].snapshots), (0, 1));
}

#[tokio::test]
async fn a_snapshot_that_was_deleted_does_not_come_back() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let store = options().scope(named("mira")).open(root.path()).await.unwrap();
    let id = store.snapshots().await.unwrap().0[0].id.clone();
    store.delete_snapshot(&id).await.unwrap();
    assert_eq!(import(&fixtures(), root.path()).await["mira"].snapshots, 0);
    assert!(store.snapshots().await.unwrap().0.is_empty());
    assert_eq!(store.profile().await.unwrap().snapshots().count(), 0);
    assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
}

#[tokio::test]
async fn what_was_forgotten_does_not_come_back_not_even_with_a_snapshot() {
    let (root, folder) = (tempfile::tempdir().unwrap(), copy());
    let hidden = folder.path().join("aside");
    std::fs::rename(folder.path().join("agents"), &hidden).unwrap();
    import(folder.path(), root.path()).await;
    let store = store(root.path(), "mira").await;
    let seq_of = |stored: &[Arc<StoredMessage>], words: &str| {
        stored.iter().find(|s| s.message.content == words).unwrap().seq
    };
    let stored = all(root.path(), "mira").await;
    let gone = [
        seq_of(&stored, "How do you say 'thank you' in Japanese?"),
        seq_of(&stored, "Good morning, Mira. What's the weather like in Zürich today?"),
    ];
    store.forget(&gone.map(|seq| seq..=seq)).await.unwrap();
    std::fs::rename(&hidden, folder.path().join("agents")).unwrap();
    let again = import(folder.path(), root.path()).await;
    let mira = &again["mira"];
    assert_eq!((mira.messages.taken, mira.messages.forgotten, mira.snapshots), (0, 2, 1));
    let (snapshots, _) = store.snapshots().await.unwrap();
    assert_eq!(snapshots[0].messages.len(), 14);
    assert!(!snapshots[0].messages.iter().any(|saved| gone.contains(&saved.seq)));

    // Nothing is left, so nothing is saved.
    store.delete_snapshot(SESSION).await.unwrap();
    store.forget(&[1..=u64::MAX]).await.unwrap();
    let empty = import(folder.path(), root.path()).await;
    assert_eq!((empty["mira"].messages.forgotten, empty["mira"].snapshots), (29, 0));
}

#[tokio::test]
async fn a_clear_marker_goes_forward_and_never_back() {
    let root = tempfile::tempdir().unwrap();
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let cleared =
        || async { store(root.path(), "mira").await.profile().await.unwrap().cleared.unwrap() };
    import(&fixtures(), root.path()).await;
    let first = cleared().await;
    assert_eq!((first.at, first.seq), (at("2025-08-24T06:05:03.5Z"), 0));
    let later = changed("UPDATE agents SET last_clear_time = '2025-08-24T12:00:00+00:00'");
    import(later.path(), root.path()).await;
    assert_eq!(cleared().await.at, at("2025-08-24T12:00:00Z"));
    import(&fixtures(), root.path()).await;
    assert_eq!(cleared().await.at, at("2025-08-24T12:00:00Z"));
    let wrong = changed("UPDATE agents SET last_clear_time = 'yesterday'");
    let reports = import(wrong.path(), root.path()).await;
    assert_eq!(reports["mira"].messages.refused[0].file, "agents");
    assert_eq!(cleared().await.at, at("2025-08-24T12:00:00Z"));
}

#[tokio::test]
async fn older_databases_and_destroyed_agents_are_taken_too() {
    for sql in [
        "DROP TABLE branches; DROP TABLE processes; DROP TABLE thread_steps; DROP TABLE settings;",
        "ALTER TABLE agents DROP COLUMN last_clear_time;",
        "DROP TABLE sessions; DROP TABLE agents; DROP TABLE audit_log;",
        "PRAGMA foreign_keys = OFF; DELETE FROM agents;",
        "ALTER TABLE messages DROP COLUMN discord_message_id;",
    ] {
        let (root, folder) = (tempfile::tempdir().unwrap(), changed(sql));
        let reports = import(folder.path(), root.path()).await;
        assert_eq!(taken(&reports), 43, "{sql}");
        assert!(reports.values().all(|report| report.messages.refused.is_empty()));
        // Whatever the table contains, it is the same message.
        assert_eq!(taken(&import(&fixtures(), root.path()).await), 0, "{sql}");
    }
}

#[tokio::test]
async fn order_is_time_to_the_microsecond_and_then_the_id() {
    let folder = changed(
        "DELETE FROM messages;
         INSERT INTO messages (id, agent_name, role, content, timestamp) VALUES
            (5, 'a', 'user', '4', '2025-08-24T05:43:19.000001+00:00'),
            (4, 'a', 'user', '3', '2025-08-24T05:43:19+00:00'),
            (9, 'a', 'tool_use', '5', '2025-08-24T05:43:19.000001+00:00'),
            (2, 'a', 'tool_result', '6', '2025-08-24T05:43:19.000002+00:00'),
            (3, 'a', 'user', '2', '2025-08-24T05:43:19+00:00'),
            (7, 'a', 'user', '1', '2025-08-24T07:43:18.999999+02:00'),
            (8, 'a', 'assistant', NULL, '2025-08-24T05:43:20+00:00');",
    );
    let root = tempfile::tempdir().unwrap();
    import(folder.path(), root.path()).await;
    assert_eq!(words(root.path(), "a").await, ["1", "2", "3", "4", "5", "6", ""]);
}

#[tokio::test]
async fn what_is_still_beside_the_database_counts_and_stays_there() {
    // In the write-ahead log of a running program.
    let folder = copy();
    let running = Connection::open(database(folder.path())).unwrap();
    running.pragma_update(None, "journal_mode", "WAL").unwrap();
    let row = "INSERT INTO messages (agent_name, role, content, timestamp)
               VALUES ('mira', 'user', 'just now', '2025-08-25T05:00:00+00:00')";
    running.execute(row, ()).unwrap();
    assert!(folder.path().join("db/chorus.db-wal").metadata().unwrap().len() > 0);
    let (root, source) = (tempfile::tempdir().unwrap(), snapshot(folder.path()));
    assert_eq!(taken(&import(folder.path(), root.path()).await), 44);
    assert_eq!(snapshot(folder.path()), source);
    drop(running);

    // Half written when the power failed.
    let folder = copy();
    let mut writing = Connection::open(database(folder.path())).unwrap();
    writing.execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1;").unwrap();
    let transaction = writing.transaction().unwrap();
    transaction.execute("UPDATE messages SET content = content || zeroblob(3000)", ()).unwrap();
    transaction.execute("UPDATE messages SET content = 'lost'", ()).unwrap();
    let crashed = tempfile::tempdir().unwrap();
    copy_into(folder.path(), crashed.path());
    drop(transaction);
    assert!(crashed.path().join("db/chorus.db-journal").metadata().unwrap().len() > 512);
    let source = snapshot(crashed.path());
    assert_ne!(source[&database(crashed.path())].0, std::fs::read(database(&fixtures())).unwrap());
    let root = tempfile::tempdir().unwrap();
    assert_eq!(taken(&import(crashed.path(), root.path()).await), 43);
    assert!(!words(root.path(), "mira").await.iter().any(|words| words == "lost"));
    assert_eq!(taken(&import(&fixtures(), root.path()).await), 0);
    assert_eq!(snapshot(crashed.path()), source);
}

#[tokio::test]
async fn a_database_that_is_written_to_all_the_time_is_read_as_of_one_moment_or_refused() {
    let folder = changed("DELETE FROM messages; CREATE TABLE filler (x); PRAGMA user_version = 1;");
    change(folder.path(), "DELETE FROM sessions");
    std::fs::remove_dir_all(folder.path().join("agents")).unwrap();
    let path = database(folder.path());
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        let mut connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            // Always two at once.
            let transaction = connection.transaction().unwrap();
            for _ in 0..2 {
                let row = "INSERT INTO messages (agent_name, role, content, timestamp)
                           VALUES ('a', 'user', 'x', '2025-08-25T05:00:00+00:00')";
                transaction.execute(row, ()).unwrap();
                transaction.execute("INSERT INTO filler VALUES (zeroblob(9000))", ()).unwrap();
            }
            transaction.commit().unwrap();
            std::thread::sleep(Duration::from_millis(3));
        }
    });
    for _ in 0..30 {
        match ChorusDatabase::new(folder.path()).read(|_| {}).await {
            Ok(found) => {
                let read: usize =
                    found.conversations.iter().map(|c| c.messages.messages.len()).sum();
                assert_eq!(read % 2, 0);
                assert!(found.refused.is_empty());
            }
            Err(Error::NotImportable { reason, .. }) => {
                assert!(reason.contains("keeps changing"), "{reason}")
            }
            Err(error) => panic!("{error}"),
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
    assert!(read(folder.path()).await.conversations[0].messages.messages.len() > 1);
}

#[tokio::test]
async fn what_is_wrong_with_one_row_is_refused_alone() {
    let deep = format!("[{{\"name\":\"f\",\"arguments\":{}{}}}]", "[".repeat(100), "]".repeat(100));
    let large = "x".repeat(1_200_000);
    let folder = copy();
    change(folder.path(), "UPDATE messages SET discord_message_id = NULL;");
    let connection = Connection::open(database(folder.path())).unwrap();
    let columns = "id, agent_name, thread_id, role, content, tool_calls, tool_call_id, timestamp, discord_message_id";
    let rows = [
        ("'mira', 1, 'developer', 'x', NULL, NULL, ?1, NULL", "corrupt"),
        ("'mira', 1, 'user', 'x', NULL, NULL, 'yesterday', NULL", "corrupt"),
        ("'mira', 1, 'user', 'x', NULL, NULL, '2025-08-24T05:43:19', NULL", "corrupt"),
        ("'mira', 1, 'user', 'x', NULL, NULL, 1756013462, NULL", "corrupt"),
        (
            "'mira', 1, 'user', 'x', NULL, NULL, '9998-01-01T00:00:00+00:00', NULL",
            "from-the-future",
        ),
        ("'mira', 1, 'user', x'00ff', NULL, NULL, ?1, NULL", "corrupt"),
        ("'mira', 1, 'user', CAST(x'ff' AS TEXT), NULL, NULL, ?1, NULL", "corrupt"),
        ("'mira', 'one', 'user', 'x', NULL, NULL, ?1, NULL", "corrupt"),
        ("'mira', 1e300, 'user', 'x', NULL, NULL, ?1, NULL", "corrupt"),
        ("'mira', 1, 'user', 'x', NULL, NULL, ?1, 1e300", "corrupt"),
        ("'mira', 1, 'assistant', 'x', '[{\"name\":', NULL, ?1, NULL", "corrupt"),
        ("'mira', 1, 'assistant', 'x', '[1]', NULL, ?1, NULL", "corrupt"),
        (
            "'mira', 1, 'assistant', 'x', '[{\"name\":\"f\",\"arguments\":{\"n\":1e999}}]', NULL, ?1, NULL",
            "corrupt",
        ),
        ("'mira', 1, 'user', 'x', '[{\"name\":\"f\"}]', NULL, ?1, NULL", "corrupt"),
        ("'mira', 1, 'assistant', 'x', ?2, NULL, ?1, NULL", "unstorable"),
        ("'mira', 1, 'user', ?3, NULL, NULL, ?1, NULL", "too-large"),
    ];
    let time = "2025-08-24T05:43:19+00:00";
    for (at, (row, _)) in rows.iter().enumerate() {
        let sql = format!("INSERT INTO messages ({columns}) VALUES ({}, {row})", 900 + at);
        let mut statement = connection.prepare(&sql).unwrap();
        let values = [time, &deep, &large];
        for (index, value) in values.iter().enumerate().take(statement.parameter_count()) {
            statement.raw_bind_parameter(index + 1, value).unwrap();
        }
        statement.raw_execute().unwrap();
    }
    // Agents whose names are not valid scopes, and huge but valid numbers.
    connection
        .execute_batch(
            "INSERT INTO messages (id, agent_name, role, content, timestamp) VALUES
                (950, '', 'user', 'x', '2025-08-24T05:43:19+00:00'),
                (951, 'a' || char(10), 'user', 'x', '2025-08-24T05:43:19+00:00'),
                (952, hex(zeroblob(200)), 'user', 'x', '2025-08-24T05:43:19+00:00');
             INSERT INTO messages (id, agent_name, thread_id, role, content, timestamp, discord_message_id) VALUES
                (-9223372036854775808, '../x', 9223372036854775807, 'user', 'far', '0001-01-01T00:00:00+00:00', -1);",
        )
        .unwrap();
    drop(connection);
    let source = snapshot(folder.path());
    let root = tempfile::tempdir().unwrap();
    let reports = import(folder.path(), root.path()).await;
    assert_eq!(taken(&reports), 44);
    // Messages of which nothing could be read belong to no agent.
    let found = read(folder.path()).await;
    let refused: BTreeMap<_, _> = reports["mira"]
        .messages
        .refused
        .iter()
        .chain(&found.refused)
        .map(|refusal| (refusal.file.clone(), refusal.reason.code()))
        .collect();
    let mut expected: BTreeMap<_, _> = rows
        .iter()
        .enumerate()
        .map(|(at, (_, why))| (format!("messages/{}", 900 + at), *why))
        .collect();
    expected.extend([950, 951, 952].map(|id| (format!("messages/{id}"), "unstorable")));
    assert_eq!(refused, expected);
    assert_eq!(words(root.path(), "../x").await, ["far"]);
    let far = &all(root.path(), "../x").await[0].message;
    assert_eq!(far.thread_id.as_deref(), Some("9223372036854775807"));
    let folders = std::fs::read_dir(root.path().join("conversations")).unwrap();
    let folders: BTreeSet<_> = folders.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(folders, BTreeSet::from(["%2e%2e%2fx", "kitchen-2", "mira"].map(Into::into)));
    assert_eq!(snapshot(folder.path()), source);
}

#[tokio::test]
async fn sessions_that_lead_elsewhere_or_are_damaged_are_refused_alone() {
    let good = std::fs::read_to_string(session(&fixtures())).unwrap();
    let cut = good.get(..good.len() / 2).unwrap();
    let one_bad = good.replacen("\"role\": \"user\"", "\"role\": \"nobody\"", 1);
    for (text, code, snapshots) in [
        (cut, "corrupt", 0),
        ("", "corrupt", 0),
        ("[]", "corrupt", 0),
        (r#"{"messages": 1}"#, "corrupt", 0),
        (&one_bad, "corrupt", 1),
    ] {
        let (root, folder) = (tempfile::tempdir().unwrap(), copy());
        std::fs::write(session(folder.path()), text).unwrap();
        let mira = &import(folder.path(), root.path()).await["mira"];
        assert_eq!((mira.messages.taken, mira.snapshots), (29, snapshots));
        let codes: Vec<_> = mira.messages.refused.iter().map(|r| r.reason.code()).collect();
        assert_eq!(codes, [code], "{text:.40}");
    }

    let (root, folder) = (tempfile::tempdir().unwrap(), copy());
    let outside = folder.path().join("outside.json");
    std::fs::rename(session(folder.path()), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, session(folder.path())).unwrap();
    let id = |at: u32| format!("00000000-0000-4000-8000-{at:012}");
    for (at, row) in [
        ("'../../../outside', 'mira', 'd', 's', '2025-08-24T11:04:05+00:00'"),
        ("'6513270E-269E-4D37-B2A7-4DE452E6B438', 'mira', 'd', 's', '2025-08-24T11:04:05+00:00'"),
        (&format!("'{}', 'mira', 'd', 's', 'then'", id(1))),
        (&format!("'{}', 'mira', 'd', 's', x'00'", id(2))),
        (&format!("'{}', '../mira', 'd', 's', '2025-08-24T11:04:05+00:00'", id(3))),
        (&format!("'{}', 'nobody', 'd', 's', '2025-08-24T11:04:05+00:00'", id(4))),
        (&format!("'{}', 'mira', NULL, NULL, '2025-08-24T11:04:05+00:00'", id(5))),
    ]
    .into_iter()
    .enumerate()
    {
        let insert = format!(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO sessions (id, agent_name, description, summary, saved_at, message_count, file_path)
             VALUES ({row}, {at}, '/etc/passwd')"
        );
        change(folder.path(), &insert);
    }
    change(
        folder.path(),
        "INSERT INTO messages (agent_name, role, content, timestamp)
         VALUES ('../mira', 'user', 'x', '2025-08-24T05:43:19+00:00')",
    );
    std::fs::copy(&outside, folder.path().join(format!("agents/mira/sessions/{}.json", id(5))))
        .unwrap();
    let source = snapshot(folder.path());
    let reports = import(folder.path(), root.path()).await;
    assert_eq!((taken(&reports), reports["mira"].snapshots), (44, 1));
    let codes: BTreeMap<_, _> = reports
        .values()
        .flat_map(|report| &report.messages.refused)
        .map(|refusal| (refusal.file.clone(), refusal.reason.code()))
        .collect();
    let file = |agent: &str, id: &str| format!("agents/{agent}/sessions/{id}.json");
    let expected = BTreeMap::from([
        (file("mira", "../../../outside"), "unstorable"),
        (file("mira", &SESSION.to_uppercase()), "unstorable"),
        (file("mira", &id(1)), "corrupt"),
        (file("mira", &id(2)), "corrupt"),
        (file("../mira", &id(3)), "unstorable"),
        (file("mira", SESSION), "not-plain"),
    ]);
    assert_eq!(codes, expected);
    let (snapshots, _) = store(root.path(), "mira").await.snapshots().await.unwrap();
    assert_eq!(snapshots[0].id, id(5));
    assert_eq!((snapshots[0].messages.len(), &snapshots[0].description), (15, &None));
    assert_eq!(snapshot(folder.path()), source);
}

#[tokio::test]
async fn what_is_no_database_of_chorus_is_an_error() {
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
    for sql in [
        "DROP TABLE messages",
        "ALTER TABLE messages RENAME TO kept; CREATE VIEW messages AS SELECT * FROM kept",
        "ALTER TABLE messages RENAME COLUMN agent_name TO name",
        "DROP TABLE messages; CREATE TABLE messages (id, agent_name, role, timestamp,
            content AS (hex(zeroblob(900000000))))",
    ] {
        let folder = changed(sql);
        assert!(matches!(refusal(folder.path()).await, Error::NotImportable { .. }), "{sql}");
    }
    for path in [folder.path().join("absent"), folder.path().to_owned()] {
        assert!(matches!(refusal(&path).await, Error::Io { .. }), "{}", path.display());
    }
    let linked = copy();
    std::fs::rename(database(linked.path()), linked.path().join("kept")).unwrap();
    std::os::unix::fs::symlink(linked.path().join("kept"), database(linked.path())).unwrap();
    assert!(matches!(refusal(linked.path()).await, Error::NotPlain { .. }));
}

#[test]
fn a_damaged_database_gives_what_can_be_read_or_is_an_error_and_never_hangs() {
    let whole = std::fs::read(database(&fixtures())).unwrap();
    let outcomes = within(Duration::from_secs(240), move || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut damaged: Vec<Vec<u8>> =
            (1..21).map(|pages| whole[..pages * 4096].to_vec()).collect();
        for page in 1..21 {
            for fill in [0, 0xff] {
                let mut bytes = whole.clone();
                bytes[page * 4096..(page + 1) * 4096].fill(fill);
                damaged.push(bytes);
            }
        }
        let mut outcomes = BTreeSet::new();
        for bytes in damaged {
            std::fs::write(&path, bytes).unwrap();
            let read = block_on(ChorusDatabase::new(&path).read(|_| {}));
            outcomes.insert(match read {
                Ok(found) if found.refused.iter().any(|refusal| refusal.file == "messages") => {
                    "some"
                }
                Ok(_) => "all",
                Err(Error::NotImportable { .. }) => "none",
                Err(error) => panic!("{error}"),
            });
        }
        outcomes
    });
    assert_eq!(outcomes, BTreeSet::from(["all", "none", "some"]));
}
