//! Imports of the Discord bot's folders, including hostile ones.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{block_on, options, snapshot, within};
use jiff::Timestamp;
use serde_json::{Value, json};
use sottovoce::context::{ContextRequest, LastNContextProvider};
use sottovoce::import::{ConversationReport, ImportedConversations, LeftOut};
use sottovoce::store::Retention;
use sottovoce::{
    ChatMessage, ContextProvider, ConversationStore, Error, FileConversationStore, Scope,
    StoredMessage,
};
use sottovoce_import::{DiscordFolder, Reader};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/discord")
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(fixtures().join("expected.json")).unwrap()).unwrap()
}

/// The time of the fixtures' expectations.
fn then() -> Timestamp {
    expected()["reference_now"].as_str().unwrap().parse().unwrap()
}

fn dm(user: &str) -> Scope {
    Scope::Dm { user: user.into() }
}

async fn read(folder: &Path) -> ImportedConversations {
    DiscordFolder::new(folder, then()).read(|_| {}).await.unwrap()
}

async fn store(root: &Path, scope: &Scope) -> FileConversationStore {
    options().scope(scope.clone()).open(root).await.unwrap()
}

/// The reports, by scope and thread.
type Reports = BTreeMap<(String, Option<String>), ConversationReport>;

async fn import(folder: &Path, root: &Path) -> Reports {
    let mut reports = Reports::new();
    for conversation in read(folder).await.conversations {
        let store = store(root, &conversation.scope).await;
        let place = (&conversation.scope, &conversation.thread);
        let mut others = read(folder).await.conversations.into_iter();
        let preview = others.find(|other| (&other.scope, &other.thread) == place).unwrap();
        let preview = preview.preview(&store).await.unwrap();
        let report = conversation.import_into(&store, |_| {}).await.unwrap();
        assert_eq!(report, preview);
        reports.insert((report.scope.to_string(), report.thread.clone()), report);
    }
    reports
}

fn taken(reports: &Reports) -> usize {
    reports.values().map(|report| report.messages.taken).sum()
}

async fn all(root: &Path, scope: &Scope) -> Vec<Arc<StoredMessage>> {
    let store = store(root, scope).await;
    let reading = store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    reading.messages
}

async fn words(root: &Path, scope: &Scope) -> Vec<String> {
    all(root, scope).await.iter().map(|stored| stored.message.content.clone()).collect()
}

/// The scope and thread that the expectations name.
fn place(conversation: &Value) -> (Scope, Option<String>) {
    let of = |key: &str| conversation["scope"][key].as_str().map(str::to_owned);
    let user = of("user").unwrap();
    let scope = match of("kind").as_deref() {
        Some("dm") => Scope::Dm { user },
        _ => Scope::Guild { guild: of("guild").unwrap(), channel: of("channel").unwrap(), user },
    };
    (scope, of("persona"))
}

fn shown(message: &ChatMessage) -> Value {
    let (role, at) = (message.role.as_str(), message.timestamp.as_nanosecond());
    json!([role, message.content, i64::try_from(at / 1_000).unwrap()])
}

fn wanted(message: &Value) -> Value {
    json!([message["role"], message["content"], message["unix_ms"].as_i64().unwrap() * 1000])
}

/// A file in the bot's format, with messages a second apart.
fn file(words: &[&str], expires_at: i64) -> String {
    let rows: Vec<Value> = (0i64..)
        .zip(words)
        .map(|(at, words)| json!({"role": "user", "content": words, "timestamp": at * 1000}))
        .collect();
    let file = json!({
        "version": 1, "createdAt": 0, "lastUpdated": 0, "expiresAt": expires_at, "messages": rows,
    });
    serde_json::to_string_pretty(&file).unwrap()
}

/// A folder of the bot with these files.
fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("dms")).unwrap();
    for (name, text) in files {
        put(folder.path(), name, text);
    }
    folder
}

fn put(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn every_conversation_is_what_the_bot_had() {
    let (expected, source) = (expected(), snapshot(&fixtures()));
    let root = tempfile::tempdir().unwrap();
    let found = read(&fixtures()).await;
    assert_eq!((found.system, found.passed_over.total(), found.refused.len()), ("discord", 0, 0));
    let conversations = expected["conversations"].as_array().unwrap();
    assert_eq!(found.conversations.len(), conversations.len());
    for conversation in conversations {
        let (scope, thread) = place(conversation);
        let read = found.conversations.iter().find(|c| c.scope == scope && c.thread == thread);
        let read = read.unwrap();
        assert_eq!(read.expired, conversation["expired_at_reference_now"].as_bool().unwrap());
        assert!(read.messages.refused.is_empty() && read.snapshots.is_empty());
        let path = conversation["source"].as_str().unwrap().strip_prefix("context/").unwrap();
        assert!(read.messages.messages.iter().all(|m| m.file.starts_with(&format!("{path}#"))));
    }
    let reports = import(&fixtures(), root.path()).await;
    assert_eq!((reports.len(), taken(&reports)), (7, 55));
    for conversation in conversations {
        let (scope, thread) = place(conversation);
        let stored = all(root.path(), &scope).await;
        let stored: Vec<_> = stored.iter().filter(|s| s.message.thread_id == thread).collect();
        let messages = conversation["messages"].as_array().unwrap();
        let shown: Vec<_> = stored.iter().map(|stored| shown(&stored.message)).collect();
        assert_eq!(shown, messages.iter().map(wanted).collect::<Vec<_>>());
        let expires_at: Timestamp = conversation["expires_at"].as_str().unwrap().parse().unwrap();
        for stored in stored {
            let metadata = &stored.message.metadata;
            assert_eq!(metadata["expiresAt"].parse::<Timestamp>().unwrap(), expires_at);
            assert!(metadata["importedFrom"].starts_with("discord:"));
            assert!(!stored.message.has_expired(expires_at));
            assert!(stored.message.has_expired(expires_at + Duration::from_millis(1)));
        }
    }
    assert_eq!(snapshot(&fixtures()), source);
}

#[tokio::test]
async fn a_second_import_takes_nothing_and_any_of_the_three_folders_may_be_named() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(taken(&import(&fixtures(), root.path()).await), 55);
    let link = root.path().join("link");
    std::os::unix::fs::symlink(fixtures().join("context"), &link).unwrap();
    for folder in [fixtures(), fixtures().join("context"), link] {
        let again = import(&folder, root.path()).await;
        let there: usize = again.values().map(|report| report.messages.already_there).sum();
        assert_eq!((taken(&again), there), (0, 55));
    }
    for conversation in read(&fixtures()).await.conversations {
        let store = store(root.path(), &conversation.scope).await;
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
    }
}

#[tokio::test]
async fn an_import_that_ended_early_is_gone_on_with() {
    let root = tempfile::tempdir().unwrap();
    let first = read(&fixtures()).await.conversations.into_iter().next().unwrap();
    let first_store = store(root.path(), &first.scope).await;
    assert_eq!(first.import_into(&first_store, |_| {}).await.unwrap().messages.taken, 12);
    assert_eq!(taken(&import(&fixtures(), root.path()).await), 43);
}

#[tokio::test]
async fn what_the_bot_adds_later_is_all_that_another_import_takes() {
    let folder = folder_of(&[("dms/1.json", &file(&["a", "b", "c"], 9000))]);
    let root = tempfile::tempdir().unwrap();
    import(folder.path(), root.path()).await;
    // The bot has dropped the oldest message and postponed the expiry of all.
    let rows = [("b", 1000), ("c", 2000), ("d", 3000)]
        .map(|(words, at)| json!({"role": "user", "content": words, "timestamp": at}));
    let later = json!({"version": 1, "expiresAt": 12_000, "messages": rows}).to_string();
    put(folder.path(), "dms/1.json", later);
    let again = import(folder.path(), root.path()).await;
    let messages = &again.values().next().unwrap().messages;
    assert_eq!((messages.taken, messages.already_there), (1, 2));
    assert_eq!(words(root.path(), &dm("1")).await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn two_messages_that_are_alike_in_everything_are_two() {
    let row = json!({"role": "user", "content": "yes", "timestamp": 5});
    let twins = json!({"messages": [row, row, row]}).to_string();
    let folder = folder_of(&[("dms/1.json", &twins)]);
    let root = tempfile::tempdir().unwrap();
    assert_eq!(taken(&import(folder.path(), root.path()).await), 3);
    assert_eq!(taken(&import(folder.path(), root.path()).await), 0);
    let store = store(root.path(), &dm("1")).await;
    store.forget(&[2..=2]).await.unwrap();
    let again = import(folder.path(), root.path()).await;
    assert_eq!(again.values().next().unwrap().messages.forgotten, 1);
    assert_eq!(words(root.path(), &dm("1")).await, ["yes", "yes"]);
}

#[tokio::test]
async fn what_was_forgotten_does_not_come_back() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    let scope = dm("1300000000000000009");
    store(root.path(), &scope).await.forget(&[1..=1, 3..=3]).await.unwrap();
    let again = import(&fixtures(), root.path()).await;
    let messages = &again[&(scope.to_string(), None)].messages;
    assert_eq!((messages.taken, messages.already_there, messages.forgotten), (0, 2, 2));
    assert_eq!(all(root.path(), &scope).await.len(), 2);
}

#[tokio::test]
async fn what_has_expired_can_be_left_out() {
    let mut found = read(&fixtures()).await;
    assert_eq!(found.skip_expired(), 1);
    assert_eq!(found.conversations.len(), 6);
    let expired = dm("1300000000000000009");
    assert!(found.conversations.iter().all(|conversation| conversation.scope != expired));
    // It expires after its time, not at that moment.
    let folder =
        folder_of(&[("dms/1.json", &file(&["a"], 5000)), ("dms/2.json", r#"{"messages":[]}"#)]);
    for (now, expected) in [(5000, 0), (5001, 1)] {
        let now = Timestamp::from_millisecond(now).unwrap();
        let mut found = DiscordFolder::new(folder.path(), now).read(|_| {}).await.unwrap();
        assert_eq!(found.skip_expired(), expected);
    }
}

#[tokio::test]
async fn prompts_see_a_personas_thread_alone_and_nothing_that_has_expired() {
    let root = tempfile::tempdir().unwrap();
    import(&fixtures(), root.path()).await;
    for conversation in expected()["conversations"].as_array().unwrap() {
        let (scope, thread) = place(conversation);
        let shared: Arc<dyn ConversationStore> = Arc::new(store(root.path(), &scope).await);
        let provider = LastNContextProvider::new();
        let expires_at: Timestamp = conversation["expires_at"].as_str().unwrap().parse().unwrap();
        let messages = conversation["messages"].as_array().unwrap();
        for (now, expected) in
            [(expires_at, messages.len()), (expires_at + Duration::from_secs(1), 0)]
        {
            let mut request = ContextRequest::new(&shared, "x", 100);
            (request.thread, request.now) = (thread.as_deref(), Some(now));
            let context = provider.get_context(&request).await.unwrap();
            assert_eq!(context.messages.len(), expected, "{scope} {thread:?}");
        }
    }
}

#[tokio::test]
async fn a_persona_stands_behind_a_number_alone_and_content_may_be_more_than_text() {
    let row = |content: Value| json!({"role": "system", "content": content, "timestamp": 1});
    let parts = r#"{"messages": [{"role": "user", "timestamp": 7,
        "content": [ {"type": "text", "b": 1,  "a": "x \" y"} , null ] }]}"#;
    let folder = folder_of(&[
        ("dms/1_a_b.json", &json!({"messages": [row(json!("one"))]}).to_string()),
        ("dms/anna_b.json", &format!("\u{feff}{}", json!({"messages": [row(json!("two"))]}))),
        ("dms/3.json", parts),
    ]);
    let root = tempfile::tempdir().unwrap();
    let reports = import(folder.path(), root.path()).await;
    let places: Vec<_> =
        reports.keys().map(|(scope, thread)| (scope.as_str(), thread.as_deref())).collect();
    assert_eq!(places, [("dm/1", Some("a_b")), ("dm/3", None), ("dm/anna_b", None)]);
    assert_eq!(words(root.path(), &dm("anna_b")).await, ["two"]);
    let content = r#"[{"type":"text","b":1,"a":"x \" y"},null]"#;
    assert_eq!(words(root.path(), &dm("3")).await, [content]);
    let message = &all(root.path(), &dm("3")).await[0].message;
    assert!(!message.metadata.contains_key("expiresAt") && !message.has_expired(Timestamp::MAX));
}

#[tokio::test]
async fn what_is_wrong_with_one_message_is_refused_alone() {
    let rows = json!([
        {"role": "user", "content": "good", "timestamp": 5},
        {"role": "developer", "content": "x", "timestamp": 5},
        {"role": 1, "content": "x", "timestamp": 5},
        {"content": "x", "timestamp": 5},
        {"role": "user", "timestamp": 5},
        {"role": "user", "content": "x"},
        {"role": "user", "content": "x", "timestamp": "5"},
        {"role": "user", "content": "x", "timestamp": 1.5},
        {"role": "user", "content": "x", "timestamp": 1e300},
        {"role": "user", "content": "x", "timestamp": i64::MAX},
        ["user", "x", 5],
        null,
        {"role": "user", "content": "x", "timestamp": 253_000_000_000_000_i64},
        {"role": "user", "content": "x".repeat(1_200_000), "timestamp": 5},
        {"role": "assistant", "content": "also good", "timestamp": 4},
    ]);
    let text = json!({"version": 1, "expiresAt": 5, "messages": rows}).to_string();
    let folder = folder_of(&[("dms/1.json", &text)]);
    let root = tempfile::tempdir().unwrap();
    let reports = import(folder.path(), root.path()).await;
    let messages = &reports.values().next().unwrap().messages;
    assert_eq!(messages.taken, 2);
    assert_eq!(words(root.path(), &dm("1")).await, ["good", "also good"]);
    let refused: Vec<_> =
        messages.refused.iter().map(|r| (r.file.as_str(), r.reason.code())).collect();
    let mut expected: Vec<_> = (2..=14)
        .map(|at| {
            let reason = match at {
                13 => "from-the-future",
                14 => "too-large",
                _ => "corrupt",
            };
            (format!("dms/1.json#{at}"), reason)
        })
        .collect();
    expected.sort();
    assert_eq!(
        refused,
        expected.iter().map(|(file, why)| (file.as_str(), *why)).collect::<Vec<_>>()
    );
    assert!(!format!("{messages:?}").contains("xxx"));
}

#[test]
fn hostile_files_are_refused_one_by_one_and_the_rest_is_taken() {
    let good = file(&["good"], 5);
    let folder = folder_of(&[("dms/1.json", &good), ("guilds/1/2/3.json", &good)]);
    let path = |name: &str| folder.path().join(name);
    for (name, text) in [
        ("dms/cut.json", good.get(..good.len() * 2 / 3).unwrap().to_owned()),
        ("dms/empty.json", String::new()),
        ("dms/array.json", "[]".into()),
        ("dms/deep.json", "[".repeat(100_000)),
        ("dms/deeper.json", format!(r#"{{"messages":[{{"content":{}"#, "[".repeat(100_000))),
        ("dms/version.json", good.replace(r#""version": 1"#, r#""version": 2"#)),
        ("dms/negative.json", good.replace(r#""version": 1"#, r#""version": -1"#)),
        ("dms/expiry.json", good.replace(r#""expiresAt": 5"#, r#""expiresAt": "soon""#)),
        ("dms/ages.json", good.replace(r#""expiresAt": 5"#, r#""expiresAt": 1e18"#)),
        ("dms/none.json", r#"{"version":1}"#.into()),
        ("dms/object.json", r#"{"messages":{}}"#.into()),
        ("dms/twice.json", r#"{"messages":[],"messages":[]}"#.into()),
        ("dms/control\n.json", good.clone()),
        ("outside.json", good.clone()),
        ("guilds/stray.json", good.clone()),
        ("guilds/1/stray.json", good.clone()),
        ("guilds/1/2/notes.txt", "x".into()),
        ("guilds/1/2/deeper/4.json", good.clone()),
    ] {
        put(folder.path(), name, text);
    }
    let long = format!("dms/{}.json", "é".repeat(100));
    put(folder.path(), &long, &good);
    std::fs::File::create(path("dms/huge.json")).unwrap().set_len(17 << 20).unwrap();
    std::fs::create_dir(path("dms/folder.json")).unwrap();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(path(to), path(name)).unwrap();
    link("outside.json", "dms/link.json");
    link("nowhere", "dms/dangling.json");
    link("dms", "guilds/linked");
    link("guilds/1/2", "guilds/1/linked");
    assert!(Command::new("mkfifo").arg(path("dms/pipe.json")).status().unwrap().success());
    let raw = folder.path().join("dms").join(OsStr::from_bytes(b"\xff.json"));
    std::fs::write(raw, &good).unwrap();

    let source = snapshot(folder.path());
    let root = tempfile::tempdir().unwrap();
    let (place, into) = (folder.path().to_owned(), root.path().to_owned());
    let (found, taken) = within(Duration::from_secs(60), move || {
        block_on(async { (read(&place).await, taken(&import(&place, &into).await)) })
    });
    assert_eq!(taken, 3);
    let passed_over: Vec<_> = found.passed_over.kinds().collect();
    assert_eq!(passed_over, [("files beside folders", 2), ("files of another kind", 1)]);
    let refused: BTreeMap<_, _> =
        found.refused.iter().map(|r| (r.file.as_str(), r.reason.code())).collect();
    let expected = BTreeMap::from([
        ("dms/ages.json", "corrupt"),
        ("dms/array.json", "corrupt"),
        (r"dms/control\n.json", "unstorable"),
        ("dms/cut.json", "corrupt"),
        ("dms/dangling.json", "not-plain"),
        ("dms/deep.json", "corrupt"),
        ("dms/deeper.json", "corrupt"),
        ("dms/empty.json", "corrupt"),
        ("dms/expiry.json", "corrupt"),
        ("dms/folder.json", "not-plain"),
        ("dms/huge.json", "not-plain"),
        ("dms/link.json", "not-plain"),
        ("dms/negative.json", "corrupt"),
        ("dms/none.json", "corrupt"),
        ("dms/object.json", "corrupt"),
        ("dms/pipe.json", "not-plain"),
        ("dms/twice.json", "corrupt"),
        ("dms/version.json", "corrupt"),
        ("dms/\u{fffd}.json", "corrupt"),
        (long.as_str(), "unstorable"),
        ("guilds/1/linked", "not-plain"),
        ("guilds/linked", "not-plain"),
    ]);
    assert_eq!(refused, expected);
    assert_eq!(snapshot(folder.path()), source);
}

#[tokio::test]
async fn answers_stay_behind_their_questions_where_the_clock_was_set_back() {
    let rows = [
        ("user", "a?", 9000),
        ("assistant", "a!", 2000),
        ("user", "b?", 2000),
        ("assistant", "b!", 1000),
    ]
    .map(|(role, words, at)| json!({"role": role, "content": words, "timestamp": at}));
    let folder = folder_of(&[("dms/1.json", &json!({"messages": rows}).to_string())]);
    let root = tempfile::tempdir().unwrap();
    import(folder.path(), root.path()).await;
    let stored = all(root.path(), &dm("1")).await;
    let order: Vec<_> = stored.iter().map(|stored| stored.message.content.as_str()).collect();
    assert_eq!(order, ["a?", "a!", "b?", "b!"]);
    // Each keeps the bot's time for it.
    let times: Vec<_> =
        stored.iter().map(|stored| stored.message.timestamp.as_millisecond()).collect();
    assert_eq!(times, [9000, 2000, 2000, 1000]);
    let again = import(folder.path(), root.path()).await;
    assert_eq!((taken(&again), words(root.path(), &dm("1")).await.len()), (0, 4));
}

#[tokio::test]
async fn a_users_id_with_a_slash_is_a_folder_of_the_bot_and_one_scope_here() {
    let folder = folder_of(&[
        ("dms/team/anna.json", &file(&["one"], 5)),
        ("dms/a/b/c.json", &file(&["two"], 5)),
        ("guilds/1/2/team/anna.json", &file(&["three"], 5)),
        ("dms/12/34_emma.json", &file(&["four"], 5)),
        ("dms/12_emma/x.json", &file(&["five"], 5)),
    ]);
    let root = tempfile::tempdir().unwrap();
    let reports = import(folder.path(), root.path()).await;
    let places: Vec<_> =
        reports.keys().map(|(scope, thread)| (scope.as_str(), thread.as_deref())).collect();
    assert_eq!(
        places,
        [
            ("dm/12", Some("emma/x")),
            ("dm/12%2f34_emma", None),
            ("dm/a%2fb%2fc", None),
            ("dm/team%2fanna", None),
            ("guild/1/2/team%2fanna", None),
        ]
    );
    assert_eq!(words(root.path(), &dm("team/anna")).await, ["one"]);
}

#[tokio::test]
async fn every_word_is_kept_unless_the_bots_limits_are_asked_for() {
    let said: Vec<String> = (0..20).map(|n| format!("words {n}")).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let folder = folder_of(&[("dms/1.json", &file(&said, 99_000))]);
    let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let reports = import(folder.path(), root.path()).await;
    let report = reports.values().next().unwrap();
    assert_eq!((report.messages.taken, report.hidden), (20, 0));
    assert_eq!(words(root.path(), &dm("1")).await.len(), 20);
    let store_here = store(root.path(), &dm("1")).await;
    assert_eq!(store_here.profile().await.unwrap().retention, None);
    let limits = Retention::FOREVER.max_messages(15).ttl_seconds(86_400);
    assert_eq!(report.left_out, [LeftOut::Limits(limits.into())]);

    // With the bot's limits, a conversation forgets as the bot does. Read before that happens.
    let at: Timestamp = "1970-01-01T00:01:00Z".parse().unwrap();
    let mut found = DiscordFolder::new(folder.path(), at).read(|_| {}).await.unwrap();
    assert_eq!(found.over_limits(), 5);
    found.with_limits();
    let clock = std::sync::Arc::new(sottovoce::ManualClock::at_utc(at));
    let there = options().clock(clock).scope(dm("1")).open(other.path()).await.unwrap();
    let report = found.conversations.remove(0).import_into(&there, |_| {}).await.unwrap();
    assert_eq!((report.messages.taken, report.hidden, report.limits), (20, 5, limits));
    assert!(report.left_out.is_empty());
    assert_eq!(there.profile().await.unwrap().retention, Some(limits));
    assert_eq!(there.read_tail(99).await.unwrap().messages.len(), 15);
}

#[tokio::test]
async fn no_folder_of_the_bot_is_an_error_and_another_scopes_store_too() {
    let empty = tempfile::tempdir().unwrap();
    for path in
        [empty.path().to_owned(), empty.path().join("absent"), fixtures().join("expected.json")]
    {
        let missing = DiscordFolder::new(&path, then()).read(|_| {}).await;
        assert!(missing.is_err(), "{}", path.display());
    }
    let other = store(empty.path(), &Scope::Default).await;
    let mut conversations = read(&fixtures()).await.conversations.into_iter();
    let kept = conversations.next().unwrap().import_into(&other, |_| {}).await;
    assert!(matches!(kept, Err(Error::OtherScope)));
    let looked = conversations.next().unwrap().preview(&other).await;
    assert!(matches!(looked, Err(Error::OtherScope)));
    assert!(!empty.path().join("vault").exists());
}
