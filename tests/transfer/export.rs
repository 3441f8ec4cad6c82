//! Exports and imports: exact into an empty store, without duplicates into any other.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::io::{Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{block_on, key, open, options, said, texts};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use sottovoce::context::{LastNContextProvider, OldestStrategy};
use sottovoce::export::{ExportForm, ExportRange, Exported, Exporter};
use sottovoce::import::{Backup, ConversationReport};
use sottovoce::model::{OllamaChatRenderer, PromptRenderer};
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact, SavedMessage, Snapshot};
use sottovoce::{
    ChatMessage, ChatRole, Conversation, ConversationStore, EncryptionKey, Error,
    FileConversationStore, ManualClock, ModelOptions, Scope, StoreOptions, ToolCall,
};

fn start() -> Timestamp {
    "2025-08-24T16:00:00Z".parse().unwrap()
}

async fn export(store: &FileConversationStore, path: &Path) -> Exported {
    let mut exporter = Exporter::to_file(ExportForm::Json, path).unwrap();
    exporter.add(store, ExportRange::default(), |_| {}).await.unwrap();
    exporter.finish().await.unwrap()
}

async fn import(path: &Path, root: &Path) -> sottovoce::Result<Vec<ConversationReport>> {
    let root = root.to_owned();
    let open: sottovoce::import::OpenStore = Box::new(move |scope| {
        let root = root.clone();
        Box::pin(async move { options().scope(scope).open(root).await })
    });
    Backup::new(path).key(key()).import(open, |_| {}, |_| {}).await
}

/// The prompt for an utterance that is not stored.
async fn prompt(store: &FileConversationStore) -> String {
    let store: Arc<dyn ConversationStore> = Arc::new(store.clone());
    let builder = Conversation::builder(store.clone())
        .system("You are a voice.")
        .history(LastNContextProvider::in_blocks());
    let conversation = builder.last_n(4).build();
    let prompt = conversation.prompt("And now?").await.unwrap().0;
    OllamaChatRenderer::new(ModelOptions::new("x")).render(&prompt).body
}

async fn all(store: &FileConversationStore) -> Vec<(u64, String, ChatMessage)> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    assert!(reading.skipped.is_empty());
    let row = |m: &Arc<sottovoce::StoredMessage>| (m.seq, m.file_name(), m.message.clone());
    reading.messages.iter().map(row).collect()
}

async fn is_sound(store: &FileConversationStore) {
    let report = store.verify(|_| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

/// A conversation with one of everything.
async fn rich(root: &Path) -> FileConversationStore {
    let scope = Scope::Dm { user: "ann/42".into() };
    let store = options().scope(scope).open(root).await.unwrap();
    for n in 0..40i64 {
        let role = if n % 2 == 0 { ChatRole::User } else { ChatRole::Assistant };
        let at = start() + SignedDuration::from_mins(n) + SignedDuration::from_nanos(n * 100);
        let mut message = ChatMessage::at(role, format!("words {n} é\u{1}\n👩‍👩‍👧‍👦"), at);
        message.thread_id = (n % 5 == 0).then(|| "7".into());
        message.offset_minutes = (n % 3 == 0).then_some(120);
        if n == 21 {
            message.tool_calls = vec![ToolCall {
                id: "c".into(),
                name: "light".into(),
                arguments: serde_json::json!({"on": [1.5, null]}),
            }];
        }
        store.append_message(message.with_metadata("lang", "en")).await.unwrap();
    }
    store.forget(&[3..=4, 9..=9]).await.unwrap();
    store.forget(&[30..=30]).await.unwrap();
    for n in 40..44i64 {
        let at = start() + SignedDuration::from_mins(n);
        store
            .append_message(ChatMessage::at(ChatRole::User, format!("later {n}"), at))
            .await
            .unwrap();
    }
    for (name, text) in [("a.txt", "some text\n".repeat(20_000)), ("b", String::new())] {
        let new = NewArtifact::new(ArtifactKind::File, name).with_metadata("k", "v");
        store.add_artifact(new, Box::new(Cursor::new(text.into_bytes()))).await.unwrap();
    }
    let saved = store.read_seqs(10..=12).await.unwrap().messages;
    let saved = saved.iter().map(|m| SavedMessage::new(m.seq, m.message.clone())).collect();
    store.save_snapshot(Snapshot::new(start(), (start(), start()), saved).unwrap()).await.unwrap();
    store
        .change_profile(Box::new(|profile| {
            profile.rename(Some("A title".into()));
            profile.tags.insert("tag".into());
            profile.prune([35, 36]);
        }))
        .await
        .unwrap();
    store
}

#[test]
fn an_export_into_an_empty_store_is_the_same_conversation_to_the_byte() {
    block_on(async {
        let (root, other, out) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let store = rich(root.path()).await;
        let (first, second) = (out.path().join("1.json"), out.path().join("2.json"));
        let exported = export(&store, &first).await;
        assert_eq!((exported.messages, exported.artifacts, exported.snapshots), (40, 2, 1));
        assert_eq!(std::fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
        let _: serde_json::Value = serde_json::from_slice(&std::fs::read(&first).unwrap()).unwrap();
        let reports = import(&first, other.path()).await.unwrap();
        let [report] = &reports[..] else { panic!() };
        assert_eq!((report.messages.taken, report.artifacts, report.snapshots), (40, 2, 1));
        let back = options().scope(Scope::clone(store.scope())).open(other.path()).await.unwrap();
        assert_eq!(all(&back).await, all(&store).await);
        assert_eq!(prompt(&back).await, prompt(&store).await);
        is_sound(&back).await;
        export(&back, &second).await;
        assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
        // The next numbers are the same too.
        let next = |store: FileConversationStore| async move {
            store.append_message(said("next")).await.unwrap().seq
        };
        assert_eq!(next(store).await, next(back).await);
    });
}

#[test]
fn a_second_import_takes_nothing_and_what_was_forgotten_since_stays_so() {
    block_on(async {
        let (root, other, out) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let store = rich(root.path()).await;
        let file = out.path().join("1.json");
        export(&store, &file).await;
        for root in [root.path(), other.path()] {
            import(&file, root).await.unwrap();
            let reports = import(&file, root).await.unwrap();
            let report = &reports[0].messages;
            assert_eq!((report.taken, report.already_there, report.forgotten), (0, 40, 0));
        }
        let before = all(&store).await;
        let artifacts = store.artifacts().await.unwrap().0;
        store.forget(&[1..=2]).await.unwrap();
        store.delete_artifacts(&[artifacts[0].id.clone()]).await.unwrap();
        store.append_message(said("gone on since")).await.unwrap();
        let reports = import(&file, root.path()).await.unwrap();
        let report = &reports[0];
        assert_eq!((report.messages.taken, report.messages.forgotten), (0, 2));
        assert_eq!((report.artifacts, report.snapshots), (0, 0));
        assert_eq!(all(&store).await.len(), before.len() - 2 + 1);
        is_sound(&store).await;
    });
}

#[test]
fn an_import_into_another_conversation_adds_what_is_new_once_and_loses_nothing_there() {
    block_on(async {
        let (root, other, out) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let store = rich(root.path()).await;
        let file = out.path().join("1.json");
        export(&store, &file).await;
        let there = options().scope(Scope::clone(store.scope())).open(other.path()).await.unwrap();
        for n in 0..5 {
            there.append_message(said(format!("other {n}"))).await.unwrap();
        }
        let reports = import(&file, other.path()).await.unwrap();
        assert_eq!((reports[0].messages.taken, reports[0].artifacts), (40, 2));
        assert_eq!(reports[0].snapshots, 1);
        let words: Vec<String> =
            all(&there).await.into_iter().map(|(_, _, m)| m.content.clone()).collect();
        assert_eq!(words.len(), 45);
        assert_eq!(there.profile().await.unwrap().title.as_deref(), Some("A title"));
        let again = import(&file, other.path()).await.unwrap();
        assert_eq!((again[0].messages.taken, again[0].messages.already_there), (0, 40));
        assert_eq!((again[0].artifacts, again[0].snapshots), (0, 0));
        is_sound(&there).await;
        // Messages forgotten here do not come back either.
        let some =
            all(&there).await.iter().find(|(_, _, m)| m.content.starts_with("words 5")).unwrap().0;
        there.forget(&[some..=some]).await.unwrap();
        assert_eq!(import(&file, other.path()).await.unwrap()[0].messages.forgotten, 1);
    });
}

#[test]
fn an_import_that_was_broken_off_goes_on_where_it_was() {
    block_on(async {
        let (root, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = rich(root.path()).await;
        let file = out.path().join("1.json");
        export(&store, &file).await;
        let whole = std::fs::read(&file).unwrap();
        for share in 1..20 {
            let other = tempfile::tempdir().unwrap();
            let cut = out.path().join(format!("cut{share}.json"));
            std::fs::write(&cut, &whole[..whole.len() * share / 20]).unwrap();
            let broken = import(&cut, other.path()).await;
            assert!(matches!(broken, Err(Error::NotImportable { .. })), "{share}: {broken:?}");
            import(&file, other.path()).await.unwrap();
            let back =
                options().scope(Scope::clone(store.scope())).open(other.path()).await.unwrap();
            assert_eq!(all(&back).await, all(&store).await, "{share}");
            is_sound(&back).await;
            let again = out.path().join(format!("again{share}.json"));
            export(&back, &again).await;
            assert!(std::fs::read(&again).unwrap() == whole, "{share}");
        }
    });
}

#[test]
fn a_sealed_backup_outlives_its_store_and_opens_with_its_key_alone() {
    block_on(async {
        let (root, other, out) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let store = rich(root.path()).await;
        let second = open(root.path()).await;
        second.append_message(said("of the default conversation")).await.unwrap();
        let file = out.path().join("backup");
        let mut exporter = Exporter::sealed(&file, &store).unwrap();
        for store in [&store, &second] {
            exporter.add(store, ExportRange::default(), |_| {}).await.unwrap();
        }
        exporter.finish().await.unwrap();
        let bytes = std::fs::read(&file).unwrap();
        for canary in ["words 5", "some text", "A title", "of the default"] {
            assert!(!bytes.windows(canary.len()).any(|part| part == canary.as_bytes()), "{canary}");
        }
        let (before, bytes_before) = (all(&store).await, prompt(&store).await);
        drop((store, second));
        std::fs::remove_dir_all(root.path()).unwrap();
        let reports = import(&file, other.path()).await.unwrap();
        assert_eq!(reports.len(), 2);
        let scope = reports[0].scope.clone();
        let back = options().scope(scope).open(other.path()).await.unwrap();
        assert_eq!((all(&back).await, prompt(&back).await), (before, bytes_before));
        is_sound(&back).await;
        let default = open(other.path()).await;
        assert_eq!(texts(&default.read_tail(9).await.unwrap()), ["of the default conversation"]);
        // No other key opens it, and every changed byte is noticed.
        let none: sottovoce::import::OpenStore = Box::new(|_| panic!("nothing is opened"));
        let wrong = EncryptionKey::from_secret("another secret, long enough").unwrap();
        let refused = Backup::new(&file).key(wrong).import(none, |_| {}, |_| {}).await;
        assert!(matches!(refused, Err(Error::WrongKey { .. })));
        for at in [0, 5, 40, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let path = out.path().join(format!("changed{at}"));
            std::fs::write(&path, changed).unwrap();
            let somewhere = tempfile::tempdir().unwrap();
            assert!(import(&path, somewhere.path()).await.is_err(), "{at}");
        }
    });
}

#[test]
fn a_part_is_exported_alone_and_is_never_taken_for_the_whole() {
    block_on(async {
        let (root, other, out) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let store = rich(root.path()).await;
        let file = out.path().join("part.json");
        let mut exporter = Exporter::to_file(ExportForm::Json, &file).unwrap();
        exporter.add(&store, ExportRange::default().seqs(10..=15), |_| {}).await.unwrap();
        assert_eq!(exporter.finish().await.unwrap().messages, 6);
        let reports = import(&file, other.path()).await.unwrap();
        assert_eq!(reports[0].messages.taken, 6);
        assert_eq!(import(&file, other.path()).await.unwrap()[0].messages.already_there, 6);
        assert_eq!(import(&file, root.path()).await.unwrap()[0].messages.already_there, 6);
        let times =
            (start() + SignedDuration::from_mins(5))..=(start() + SignedDuration::from_mins(7));
        let file = out.path().join("times.json");
        let mut exporter = Exporter::to_file(ExportForm::Json, &file).unwrap();
        exporter.add(&store, ExportRange::default().times(times), |_| {}).await.unwrap();
        assert_eq!(exporter.finish().await.unwrap().messages, 3);
    });
}

#[test]
fn markdown_is_as_people_read_it_and_no_words_pass_for_a_heading() {
    block_on(async {
        let (root, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = rich(root.path()).await;
        store.append_message(said("### user (spoofed)\nmore")).await.unwrap();
        let file = out.path().join("talk.md");
        let mut exporter = Exporter::to_file(ExportForm::Markdown, &file).unwrap();
        exporter.add(&store, ExportRange::default(), |_| {}).await.unwrap();
        exporter.finish().await.unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# A title\n\n**Conversation:** dm/ann%2f42\n**Created:** "));
        for part in [
            "**Messages:** 41\n",
            "\n## Messages\n",
            "### user (2025-08-24T16:00:00Z)\n\nwords 0",
            "\n## Artifacts\n",
            "a.txt (file, 20000 lines)",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(
            text.contains("\n\\### user (spoofed)\nmore\n")
                && !text.contains("\n### user (spoofed)")
        );
        // An existing file is never replaced.
        assert!(matches!(Exporter::to_file(ExportForm::Markdown, &file), Err(Error::Io { .. })));
    });
}

#[test]
fn an_export_that_is_given_up_leaves_nothing_behind() {
    block_on(async {
        let (root, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = rich(root.path()).await;
        let path: PathBuf = out.path().join("x.json");
        let mut exporter = Exporter::to_file(ExportForm::Json, &path).unwrap();
        exporter.add(&store, ExportRange::default(), |_| {}).await.unwrap();
        assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0, "it has no name yet");
        drop(exporter);
        assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
    });
}

#[derive(Debug, Clone)]
enum Step {
    Say(u8, String),
    Many(u8),
    Forget(u64, u64),
    Artifact(String, usize),
    Unartifact,
    Snapshot,
    Clear,
    Prune,
    Title(String),
    Pack,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..4, "\\PC{0,12}").prop_map(|(role, text)| Step::Say(role, text)),
        1 => (2u8..200).prop_map(Step::Many),
        2 => (1u64..60, 0u64..4).prop_map(|(first, more)| Step::Forget(first, more)),
        1 => ("\\PC{0,8}", 0usize..100_000).prop_map(|(text, times)| Step::Artifact(text, times)),
        1 => Just(Step::Unartifact),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Clear),
        1 => Just(Step::Prune),
        1 => "\\PC{0,12}".prop_map(Step::Title),
        1 => Just(Step::Pack),
    ];
    prop::collection::vec(step, 1..25)
}

async fn take(store: &FileConversationStore, clock: &Arc<ManualClock>, step: Step) {
    use sottovoce::Clock;
    clock.advance(SignedDuration::from_secs(7));
    let now = clock.now().timestamp();
    match step {
        Step::Say(role, text) => {
            let message = ChatMessage::at(ChatRole::ALL[usize::from(role)], text, now);
            store.append_message(message).await.unwrap();
        }
        Step::Many(count) => {
            let many = (0..count).map(|n| ChatMessage::at(ChatRole::User, n.to_string(), now));
            store.append_all(many.collect()).await.unwrap();
        }
        Step::Forget(first, more) => drop(store.forget(&[first..=first + more]).await.unwrap()),
        Step::Artifact(text, times) => {
            let content = text.repeat(times % 9000);
            let new = NewArtifact::new(ArtifactKind::Other(text.clone()), text);
            store.add_artifact(new, Box::new(Cursor::new(content.into_bytes()))).await.unwrap();
        }
        Step::Unartifact => {
            let there = store.artifacts().await.unwrap().0;
            if let Some(artifact) = there.first() {
                store.delete_artifacts(std::slice::from_ref(&artifact.id)).await.unwrap();
            }
        }
        Step::Snapshot => {
            let saved = store.read_tail(3).await.unwrap().messages;
            let saved = saved.iter().map(|m| SavedMessage::new(m.seq, m.message.clone()));
            let snapshot = Snapshot::new(now, (now, now), saved.collect()).unwrap();
            store.save_snapshot(snapshot).await.unwrap();
        }
        Step::Clear => drop(store.clear().await.unwrap()),
        Step::Prune => {
            let shared: Arc<dyn ConversationStore> = Arc::new(store.clone());
            let builder = Conversation::builder(shared);
            let talk = builder.last_n(4).build();
            let plan = talk.plan_pruning(&OldestStrategy, 40, 2).await.unwrap();
            talk.prune(&plan).await.unwrap();
        }
        Step::Title(title) => {
            store
                .change_profile(Box::new(move |profile| profile.rename(Some(title.clone()))))
                .await
                .unwrap();
        }
        Step::Pack => drop(store.pack(|_| {}).await.unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("SOTTOVOCE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
    ))]

    #[test]
    fn export_import_export_gives_equal_bytes_and_equal_prompts(steps in steps()) {
        block_on(async {
            let (root, other, out) =
                (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let clock = Arc::new(ManualClock::at_utc(start()));
            let time: Arc<dyn sottovoce::Clock> = clock.clone();
            let options = || StoreOptions::new(key()).clock(Arc::clone(&time));
            let store = options().loose_files(4).open(root.path()).await.unwrap();
            for step in steps {
                take(&store, &clock, step).await;
            }
            let (first, second) = (out.path().join("1"), out.path().join("2"));
            export(&store, &first).await;
            import(&first, other.path()).await.unwrap();
            let back = options().open(other.path()).await.unwrap();
            export(&back, &second).await;
            assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
            assert_eq!(all(&back).await, all(&store).await);
            assert_eq!(prompt(&back).await, prompt(&store).await);
            is_sound(&back).await;
            // In the other direction it imports nothing.
            let reports = import(&second, root.path()).await.unwrap();
            assert_eq!(reports[0].messages.taken, 0);
            let mut text = String::new();
            for artifact in back.artifacts().await.unwrap().0 {
                let mut contents = back.open_artifact(&artifact.id).await.unwrap().unwrap();
                contents.read_to_string(&mut text).unwrap();
            }
        });
    }
}
