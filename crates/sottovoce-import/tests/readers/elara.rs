//! Imports of Elara's folders, including hostile ones.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{block_on, child, child_folder, open, options, said, snapshot, within};
use jiff::Timestamp;
use serde_json::{Value, json};
use sottovoce::context::{ContextRequest, LastNContextProvider};
use sottovoce::import::{ImportReport, ImportedMessages, RefusalReason};
use sottovoce::{
    ChatMessage, ChatRole, ContactRedactor, ContextProvider, ConversationStore, Error,
    FileConversationStore, ManualClock, StoredMessage,
};
use sottovoce_import::{ElaraFolder, Reader};

const FORMS: [&str; 5] = ["bare", "design", "plaintext", "v1", "v2"];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/elara")
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(fixtures().join("expected.json")).unwrap()).unwrap()
}

async fn read(folder: impl Into<PathBuf>, keys: &[&str]) -> ImportedMessages {
    let folder = keys.iter().fold(ElaraFolder::new(folder), |folder, key| folder.key(key));
    folder.read(|_| {}).await.unwrap()
}

async fn import(folder: &Path, store: &FileConversationStore) -> ImportReport {
    read(folder, &["test-key"]).await.import_into(store, |_| {}).await.unwrap()
}

async fn all(store: &FileConversationStore) -> Vec<Arc<StoredMessage>> {
    let reading = store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    reading.messages
}

async fn words(store: &FileConversationStore) -> Vec<String> {
    all(store).await.iter().map(|stored| stored.message.content.clone()).collect()
}

/// A message in the format of the expectations.
fn shown(message: &ChatMessage) -> Value {
    let mut metadata = message.metadata.clone();
    metadata.remove("importedFrom");
    json!([
        message.role.as_str(),
        message.content,
        message.timestamp.as_nanosecond() / 100,
        metadata
    ])
}

fn wanted(message: &Value) -> Value {
    let ticks: i64 = message["unix_100ns"].as_str().unwrap().parse().unwrap();
    let metadata = message["metadata"].as_object().cloned().unwrap_or_default();
    json!([message["role"], message["content"], ticks, metadata])
}

fn form_of(expected: &str) -> &'static str {
    match expected {
        "v1" => "v1",
        "v2" | "current" => "v2",
        "v2-plaintext" | "current-plaintext" => "plaintext",
        "bare-v1" | "bare-current" => "bare",
        "design" => "design",
        other => panic!("{other}"),
    }
}

/// A record without an envelope.
fn bare(role: &str, content: &str, time: &str) -> String {
    json!({"Role": role, "Content": content, "TimestampUtc": time, "Metadata": null}).to_string()
}

/// A folder with `n` messages, a second apart.
fn folder_of(n: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 0..n);
    folder
}

fn add(folder: &Path, numbers: std::ops::Range<usize>) {
    for at in numbers {
        let (hour, minute, second) = (at / 3600, at / 60 % 60, at % 60);
        let name = format!("20250824T{hour:02}{minute:02}{second:02}000Z_{at:04}_user.json");
        let time = format!("2025-08-24T{hour:02}:{minute:02}:{second:02}+00:00");
        std::fs::write(folder.join(name), bare("User", &format!("m{at}"), &time)).unwrap();
    }
}

#[tokio::test]
async fn every_generation_gives_exactly_what_its_program_wrote() {
    let expected = expected();
    let source = snapshot(&fixtures());
    let mut forms = BTreeSet::new();
    for conversation in expected["conversations"].as_array().unwrap() {
        let folder = conversation["scope"]["folder"].as_str().unwrap();
        let messages = conversation["messages"].as_array().unwrap();
        let rejects: Vec<_> = expected["rejects"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|reject| {
                let (of, file) = reject["source"].as_str().unwrap().split_once('/').unwrap();
                (of == folder).then(|| (file, reject["reason"].as_str().unwrap()))
            })
            .collect();
        let imported = read(fixtures().join(folder), &["test-key"]).await;
        let sources: Vec<_> =
            imported.messages.iter().map(|m| (format!("{folder}/{}", m.file), m.form)).collect();
        let wanted_sources: Vec<_> = messages
            .iter()
            .map(|m| {
                (m["source"].as_str().unwrap().to_owned(), form_of(m["form"].as_str().unwrap()))
            })
            .collect();
        assert_eq!(sources, wanted_sources);
        forms.extend(sources.iter().map(|(_, form)| *form));

        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let report = imported.import_into(&store, |_| {}).await.unwrap();
        assert_eq!((report.taken, report.already_there), (messages.len(), 0));
        let refused: Vec<_> =
            report.refused.iter().map(|r| (r.file.as_str(), r.reason.code())).collect();
        assert_eq!(refused, rejects, "{folder}");
        let stored: Vec<_> = all(&store).await.iter().map(|m| shown(&m.message)).collect();
        assert_eq!(stored, messages.iter().map(wanted).collect::<Vec<_>>(), "{folder}");
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
    }
    assert_eq!(forms.into_iter().collect::<Vec<_>>(), FORMS);
    assert_eq!(snapshot(&fixtures()), source, "the source was changed");
}

#[tokio::test]
async fn every_key_given_opens_its_part_of_a_mixed_folder() {
    let folder = fixtures().join("mixed");
    let files = |imported: &ImportedMessages| imported.messages.len();
    let with_one = read(&folder, &["test-key"]).await;
    let with_two = read(&folder, &["test-key", "kitchen-hub-2"]).await;
    assert_eq!((files(&with_one), with_one.refused.len()), (9, 4));
    assert_eq!((files(&with_two), with_two.refused.len()), (11, 2));
    assert_eq!(files(&read(&folder, &["kitchen-hub-2", "test-key"]).await), 11);
    let without = read(&folder, &[]).await;
    assert_eq!(files(&without), 3);
    let undecryptable = without.refused.iter().filter(|r| r.reason == RefusalReason::Undecryptable);
    assert_eq!(undecryptable.count(), 9);
    for wrong in ["Test-key", "test-key ", "test-key\n", ""] {
        assert_eq!(files(&read(&folder, &[wrong]).await), 3, "{wrong:?}");
    }
}

#[tokio::test]
async fn a_second_import_doubles_nothing_and_takes_only_what_is_new() {
    let (root, folder) = (tempfile::tempdir().unwrap(), folder_of(300));
    let store = open(root.path()).await;
    assert_eq!(import(folder.path(), &store).await.taken, 300);
    let before = words(&store).await;
    let again = import(folder.path(), &store).await;
    assert_eq!((again.taken, again.already_there), (0, 300));
    assert_eq!(words(&store).await, before);

    add(folder.path(), 300..310);
    // Another process, place and key: the same messages.
    let moved = tempfile::tempdir().unwrap();
    let moved = moved.path().join("backup");
    std::fs::rename(folder.path(), &moved).unwrap();
    let store = open(root.path()).await;
    let later = import(&moved, &store).await;
    assert_eq!((later.taken, later.already_there), (10, 300));
    assert_eq!(words(&store).await, (0..310).map(|n| format!("m{n}")).collect::<Vec<_>>());
    assert!(store.verify(|_| {}).await.unwrap().is_sound());
}

#[tokio::test]
async fn the_same_message_sealed_anew_is_the_same_and_the_same_name_with_other_words_is_not() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path()).await;
    let name = "20250824T110305560Z_0090_user.json";
    let volume = bare("User", "Volume 30 percent", "2025-08-24T11:03:05.56+00:00");
    let mut taken = Vec::new();
    for record in [
        volume.clone(),
        format!(r#"{{"Alg":"PLAINTEXT","Iv":null,"Content":{volume},"Tag":null}}"#),
        volume.replace("30", "40"),
        volume.replace(".56", ".5600001"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), record).unwrap();
        taken.push(import(folder.path(), &store).await.taken);
    }
    assert_eq!(taken, [1, 0, 1, 1]);
}

#[tokio::test]
async fn what_was_imported_and_forgotten_does_not_come_back() {
    let (root, folder) = (tempfile::tempdir().unwrap(), folder_of(200));
    let store = open(root.path()).await;
    store.append_message(said("own")).await.unwrap();
    import(folder.path(), &store).await;
    let stored = all(&store).await;
    let seq_of = |words: &str| stored.iter().find(|s| s.message.content == words).unwrap().seq;
    let gone = ["own", "m0", "m7", "m199"];
    let seqs: Vec<_> = gone.map(|words| seq_of(words)..=seq_of(words)).into();
    store.forget(&seqs[..2]).await.unwrap();
    let other = open(root.path()).await;
    other.forget(&seqs[2..]).await.unwrap();
    for store in [store, other, open(root.path()).await] {
        let again = import(folder.path(), &store).await;
        assert_eq!((again.taken, again.already_there, again.forgotten), (0, 197, 3));
        let left = words(&store).await;
        assert_eq!(left.len(), 197);
        assert!(gone.iter().all(|word| !left.iter().any(|left| left == word)));
    }
    let store = open(root.path()).await;
    store.forget(&[1..=u64::MAX]).await.unwrap();
    let again = import(folder.path(), &store).await;
    assert_eq!((again.taken, again.forgotten), (0, 200));
    assert!(store.verify(|_| {}).await.unwrap().is_sound());
}

#[tokio::test]
async fn two_imports_at_once_store_each_message_once() {
    let (root, folder) = (tempfile::tempdir().unwrap(), folder_of(400));
    let stores = [open(root.path()).await, open(root.path()).await, open(root.path()).await];
    let runs = stores.map(|store| {
        let path = folder.path().to_owned();
        tokio::spawn(async move { import(&path, &store).await.taken })
    });
    let mut taken = 0;
    for run in runs {
        taken += run.await.unwrap();
    }
    assert_eq!(taken, 400);
    assert_eq!(words(&open(root.path()).await).await.len(), 400);
}

#[tokio::test]
async fn older_messages_take_their_place_and_the_newest_stay_the_newest() {
    let (root, folder) = (tempfile::tempdir().unwrap(), folder_of(150));
    let store = open(root.path()).await;
    let own = |n: i64| {
        let role = if n % 2 == 0 { ChatRole::User } else { ChatRole::Assistant };
        let at = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        ChatMessage::at(role, format!("own{n}"), at + jiff::SignedDuration::from_secs(n))
    };
    store.append_all((0..20).map(own).collect()).await.unwrap();
    import(folder.path(), &store).await;
    let tail = |n| {
        let store = store.clone();
        async move {
            let reading = store.read_tail(n).await.unwrap();
            reading.messages.iter().map(|s| s.message.content.clone()).collect::<Vec<_>>()
        }
    };
    let newest: Vec<_> = (14..20).map(|n| format!("own{n}")).collect();
    assert_eq!(tail(6).await, newest);
    assert_eq!(
        open(root.path()).await.read_tail(1).await.unwrap().messages[0].message.content,
        "own19"
    );
    let expected: Vec<_> =
        (0..150).map(|n| format!("m{n}")).chain((0..20).map(|n| format!("own{n}"))).collect();
    assert_eq!(words(&store).await, expected);
    assert_eq!(tail(30).await, expected[140..]);

    // Prompts hold the newest messages in order, each once, whatever the numbers are.
    let shared: Arc<dyn ConversationStore> = Arc::new(store.clone());
    let provider = LastNContextProvider::in_blocks();
    for n in 20..60 {
        let stored = store.append_message(own(n)).await.unwrap();
        let mut request = ContextRequest::new(&shared, "x", 6);
        request.before = Some(stored.seq);
        let context = provider.get_context(&request).await.unwrap();
        let recalled: Vec<_> =
            context.messages.iter().map(|m| m.message().content.clone()).collect();
        assert!((5..=42).contains(&recalled.len()), "{} of them", recalled.len());
        let everything: Vec<_> =
            (0..150).map(|n| format!("m{n}")).chain((0..n).map(|n| format!("own{n}"))).collect();
        assert!(everything.ends_with(&recalled), "{recalled:?}");
    }
}

#[tokio::test]
async fn order_is_time_to_a_tick_then_the_counter_as_a_number_then_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |fraction: &str| format!("2025-08-24T05:43:19{fraction}+00:00");
    for (name, words, time) in [
        // The name's date is in another calendar and is ignored.
        ("25680824T054319000Z_0007_user.json", "1", at("")),
        ("20250824T054319000Z_9999_user.json", "3", at(".0000001")),
        ("20250824T054319000Z_10000_user.json", "4", at(".0000001")),
        ("20250824T054319000Z_10000_zuser.json", "5", at(".0000001")),
        ("notes.json", "2", at(".0000001")),
        ("14470301T054319000Z_0001_user.json", "7", "2025-08-24T07:43:19.0000003+02:00".into()),
        ("20250824T054319000Z_0001_user.json", "6", at(".0000002")),
    ] {
        std::fs::write(folder.path().join(name), bare("User", words, &time)).unwrap();
    }
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path()).await;
    import(folder.path(), &store).await;
    assert_eq!(words(&store).await.concat(), "1234567");
    let offsets: Vec<_> =
        all(&store).await.iter().filter_map(|s| s.message.offset_minutes).collect();
    assert_eq!(offsets, [120]);
}

#[tokio::test]
async fn what_the_store_would_refuse_is_refused_alone() {
    let folder = folder_of(3);
    let put = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    put("a_1_user.json", bare("User", "tomorrow", "2026-03-01T23:59:59+00:00"));
    put("a_2_user.json", bare("User", "in two days", "2026-03-03T00:00:01+00:00"));
    put("a_3_user.json", bare("User", &"long ".repeat(250_000), "2025-08-24T00:00:00+00:00"));
    put("a_4_user.json", bare("User", "never set", "0001-01-01T00:00:00+00:00"));
    put("a_5_user.json", bare("User", "too early", "0000-01-01T00:00:00+01:00"));
    let root = tempfile::tempdir().unwrap();
    let clock = ManualClock::at_utc("2026-03-01T12:00:00Z".parse().unwrap());
    let store = options().clock(Arc::new(clock)).open(root.path()).await.unwrap();
    let preview = read(folder.path(), &[]).await.preview(&store).await.unwrap();
    assert!(!root.path().join("vault").exists(), "a preview wrote something");
    let report = read(folder.path(), &[]).await.import_into(&store, |_| {}).await.unwrap();
    assert_eq!(report, preview);
    let refused: Vec<_> =
        report.refused.iter().map(|r| (r.file.as_str(), r.reason.code())).collect();
    let expected = [
        ("a_2_user.json", "from-the-future"),
        ("a_3_user.json", "too-large"),
        ("a_5_user.json", "unstorable"),
    ];
    assert_eq!(refused, expected);
    assert_eq!(words(&store).await, ["never set", "m0", "m1", "m2", "tomorrow"]);
    assert!(!format!("{:?} {report:?}", report.refused[1].to_string()).contains("long long"));
}

#[tokio::test]
async fn masking_applies_and_does_not_change_which_message_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let record = bare("User", "write to anna@example.org", "2025-08-24T00:00:00+00:00");
    std::fs::write(folder.path().join("a_1_user.json"), record).unwrap();
    let root = tempfile::tempdir().unwrap();
    let masking = || options().redactor(Arc::new(ContactRedactor::new().unwrap()));
    let store = masking().open(root.path()).await.unwrap();
    assert_eq!(import(folder.path(), &store).await.taken, 1);
    assert!(!words(&store).await.concat().contains("anna"));
    let plain = open(root.path()).await;
    assert_eq!(import(folder.path(), &plain).await.already_there, 1);
}

#[test]
fn hostile_files_are_refused_one_by_one_and_the_rest_is_taken() {
    let (root, folder) = (tempfile::tempdir().unwrap(), folder_of(2));
    let path = |name: &str| folder.path().join(name);
    let good = bare("User", "x", "2025-08-24T00:00:00+00:00");
    std::fs::write(path("deep.json"), "[".repeat(100_000)).unwrap();
    std::fs::write(path("deeper.json"), format!("{{\"Content\":{}", "[".repeat(100_000))).unwrap();
    std::fs::write(path("empty.json"), "").unwrap();
    std::fs::write(path("twice.json"), good.replace("{\"Content", "{\"Content\":\"y\",\"Content"))
        .unwrap();
    std::fs::write(path("array.json"), format!("[{good}]")).unwrap();
    std::fs::File::create(path("huge.json")).unwrap().set_len(17 << 20).unwrap();
    std::fs::create_dir(path("folder.json")).unwrap();
    std::fs::write(path("outside"), &good).unwrap();
    std::os::unix::fs::symlink(path("outside"), path("link.json")).unwrap();
    std::os::unix::fs::symlink("/nowhere", path("dangling.json")).unwrap();
    let fifo = Command::new("mkfifo").arg(path("pipe.json")).status().unwrap();
    assert!(fifo.success());
    std::fs::write(folder.path().join(OsStr::from_bytes(b"\xff\x1b[2J.json")), &good).unwrap();
    std::fs::write(path("line\nbreak.json"), "{").unwrap();
    std::fs::create_dir(path("subfolder")).unwrap();
    std::fs::write(path("subfolder/a_1_user.json"), &good).unwrap();

    let (folder, root) = (folder.path().to_owned(), root.path().to_owned());
    let before = snapshot(&folder);
    let looked_into = folder.clone();
    let (report, words) = within(Duration::from_secs(60), move || {
        block_on(async {
            let store = open(&root).await;
            (import(&looked_into, &store).await, words(&store).await)
        })
    });
    let refused: BTreeMap<_, _> =
        report.refused.iter().map(|r| (r.file.as_str(), r.reason.code())).collect();
    let expected = BTreeMap::from([
        ("array.json", "corrupt"),
        ("dangling.json", "not-plain"),
        ("deep.json", "corrupt"),
        ("deeper.json", "corrupt"),
        ("empty.json", "corrupt"),
        ("folder.json", "not-plain"),
        ("huge.json", "not-plain"),
        (r"line\nbreak.json", "corrupt"),
        ("link.json", "not-plain"),
        ("pipe.json", "not-plain"),
        ("twice.json", "corrupt"),
        ("\u{fffd}\\u{1b}[2J.json", "corrupt"),
    ]);
    assert_eq!(refused, expected);
    assert_eq!(report.passed_over.total(), 2);
    assert_eq!(words, ["m0", "m1"]);
    assert_eq!(snapshot(&folder), before);
}

#[tokio::test]
async fn no_folder_is_an_error_and_a_linked_one_is_read() {
    let folder = folder_of(2);
    let beside = tempfile::tempdir().unwrap();
    let link = beside.path().join("link");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    assert_eq!(read(&link, &[]).await.messages.len(), 2);
    for path in [beside.path().join("absent"), folder.path().join("outside.json")] {
        let missing = ElaraFolder::new(&path).read(|_| {}).await;
        assert!(matches!(missing, Err(Error::Io { .. })), "{}", path.display());
    }
    std::fs::write(beside.path().join("file"), "x").unwrap();
    let file = ElaraFolder::new(beside.path().join("file")).read(|_| {}).await;
    assert!(file.is_err());
}

#[tokio::test]
async fn neither_words_nor_keys_show_in_debug_output() {
    let folder = ElaraFolder::new(fixtures().join("v1")).key("test-key");
    assert!(!format!("{folder:?}").contains("test-key"));
    let imported = folder.read(|_| {}).await.unwrap();
    let shown = format!("{imported:?}");
    assert!(!shown.contains("weather") && !shown.contains("umbrella"));
}

/// The number of messages in the folder of the killed imports.
const MANY: usize = 4_000;

#[test]
#[ignore = "a process that another test kills"]
fn imports_until_killed() {
    let Some(folder) = child_folder() else { return };
    block_on(async {
        // Packs of 512, so that there are many moments to be killed at.
        let store = options().loose_files(1).open(&folder.join("store")).await.unwrap();
        import(&folder.join("elara"), &store).await;
    });
}

#[test]
fn an_import_that_is_killed_anywhere_is_gone_on_with_and_loses_and_doubles_nothing() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("elara")).unwrap();
    add(&place.path().join("elara"), 0..MANY);
    let root = place.path().join("store");
    let mut sizes = BTreeSet::new();
    for round in 0..10u64 {
        let mut import = child("imports_until_killed", place.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Killed once something is stored, and a little later each time.
        for _ in 0..6000 {
            let packs = std::fs::read_dir(root.join("packs")).map_or(0, Iterator::count);
            if packs > usize::try_from(round % 4).unwrap() || import.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(round * 7 % 40));
        let _ = import.kill();
        import.wait().unwrap();
        block_on(async {
            let stored = words(&open(&root).await).await;
            let distinct: BTreeSet<_> = stored.iter().collect();
            assert_eq!(distinct.len(), stored.len(), "doubled");
            sizes.insert(stored.len());
        });
    }
    block_on(async {
        let store = open(&root).await;
        let report = import(&place.path().join("elara"), &store).await;
        assert_eq!(report.taken + report.already_there, MANY);
        let expected: Vec<_> = (0..MANY).map(|n| format!("m{n}")).collect();
        assert_eq!(words(&store).await, expected);
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
    });
    assert!(sizes.iter().any(|size| (1..MANY).contains(size)), "never killed half-way: {sizes:?}");
}
