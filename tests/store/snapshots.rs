//! Snapshots: saved windows, from which forgotten messages disappear.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::Path;
use std::sync::Arc;

use crate::common::scripted::{Scripted, done, said};
use crate::common::{block_on, key, snapshot};
use jiff::{SignedDuration, Timestamp};
use sottovoce::admin::{Rekey, RepairKind, RepairOptions};
use sottovoce::context::{Placement, RollingWindowProvider};
use sottovoce::model::{ModelFailure, OllamaChatRenderer};
use sottovoce::store::FindingKind;
use sottovoce::{
    ChatRole, Clock, Conversation, ConversationStore, EncryptionKey, Error, FileConversationStore,
    ManualClock, ModelOptions, Scope, StoreOptions,
};

fn start() -> Timestamp {
    "2026-02-12T14:30:00Z".parse().unwrap()
}

/// A conversation with a rolling window and a scripted model.
struct House {
    root: tempfile::TempDir,
    clock: Arc<ManualClock>,
    store: Arc<FileConversationStore>,
    model: Arc<Scripted>,
    talk: Conversation,
}

impl House {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::at_utc(start()));
        Self::over(tempfile::tempdir().unwrap(), clock).await
    }

    async fn over(root: tempfile::TempDir, clock: Arc<ManualClock>) -> Self {
        let store = Arc::new(open(root.path(), &clock, key()).await);
        let builder = Conversation::builder(store.clone())
            .system("You are Mira.")
            .history(RollingWindowProvider::new());
        let model = Arc::new(Scripted::default());
        let talk = builder.last_n(99).model(model.clone()).build();
        Self { root, clock, store, model, talk }
    }

    async fn exchange(&self, talk: &Conversation, words: &str) {
        talk.prepare_turn(words).await.unwrap();
        talk.store_reply(format!("{words}!")).await.unwrap();
        self.clock.advance(SignedDuration::from_mins(1));
    }

    async fn findings(&self) -> Vec<FindingKind> {
        let report = self.store.verify(|_| {}).await.unwrap();
        report.findings.into_iter().map(|finding| finding.kind).collect()
    }

    fn folder(&self) -> std::path::PathBuf {
        self.root.path().join("dms/42")
    }
}

async fn open(root: &Path, clock: &Arc<ManualClock>, key: EncryptionKey) -> FileConversationStore {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    StoreOptions::new(key)
        .scope(Scope::Dm { user: "42".into() })
        .clock(clock)
        .open(root)
        .await
        .unwrap()
}

async fn recalled(talk: &Conversation) -> Vec<String> {
    let (prompt, _) = talk.prompt("And now?").await.unwrap();
    prompt.placed(Placement::History).map(|message| message.content.clone()).collect()
}

#[test]
fn a_snapshot_holds_the_window_of_all_threads_and_clears_nothing() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "too old").await;
        house.clock.advance(SignedDuration::from_hours(25));
        let thread = house.talk.clone().in_thread("7");
        house.exchange(&house.talk, "main").await;
        house.exchange(&thread, "aside").await;
        house.model.says(" They greeted each other. Nothing is open. ");
        let saved = house.talk.save_snapshot(Some("Before dinner".into())).await.unwrap();
        assert_eq!(saved.summary, "They greeted each other. Nothing is open.");
        assert_eq!(saved.description.as_deref(), Some("Before dinner"));
        assert_eq!(saved.messages.len(), 4);
        assert_eq!(saved.saved_at, house.clock.now().timestamp());
        assert_eq!((saved.window_end - saved.window_start).get_hours(), 0);
        let asked = &house.model.read(0)[0];
        assert!(asked.contains("User: main") && asked.contains("Assistant: aside!"), "{asked}");
        assert!(!asked.contains("too old"));
        assert_eq!(recalled(&house.talk).await, ["main", "main!"], "nothing was cleared");
        let again = house.talk.snapshot(&saved.id).await.unwrap();
        assert_eq!(again, saved);
        assert_eq!(house.talk.snapshot(&saved.id[..6]).await.unwrap().id, saved.id);
        assert!(house.findings().await.is_empty());
        assert!(
            !String::from_utf8_lossy(
                &std::fs::read(house.folder().join("snapshots").join(&saved.id)).unwrap()
            )
            .contains("main")
        );
    });
}

#[test]
fn a_snapshot_is_saved_though_the_model_fails_or_rambles() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "hello").await;
        house.model.refuses(ModelFailure::BrokeOff { reason: "gone".into() });
        let failed = house.talk.save_snapshot(None).await.unwrap();
        assert_eq!(failed.summary, "(summary generation failed)");
        house.model.answers([said("")]);
        let broken_off = house.talk.save_snapshot(None).await.unwrap();
        assert_eq!(broken_off.summary, "(summary generation failed)");
        let sentences: String = (0..40).map(|n| format!("One more sentence {n}. ")).collect();
        house.model.answers([said(&sentences), done()]);
        let rambling = house.talk.save_snapshot(None).await.unwrap();
        assert_eq!(rambling.summary.matches("sentence").count(), 4);
        house.model.answers([said(&"endless ".repeat(4000)), done()]);
        let endless = house.talk.save_snapshot(None).await.unwrap();
        assert!(endless.summary.chars().count() <= 1000);
        assert_eq!(house.store.snapshots().await.unwrap().0.len(), 4);
    });
}

#[test]
fn snapshots_are_listed_the_newest_first_and_outlive_a_restart() {
    block_on(async {
        let house = House::new().await;
        let mut ids = Vec::new();
        for words in ["one", "two", "three"] {
            house.exchange(&house.talk, words).await;
            house.model.says("Fine.");
            ids.push(house.talk.save_snapshot(None).await.unwrap().id.clone());
        }
        ids.reverse();
        let store = open(house.root.path(), &house.clock, key()).await;
        let (listed, findings) = store.snapshots().await.unwrap();
        assert!(findings.is_empty());
        let listed: Vec<_> = listed.iter().map(|snapshot| snapshot.id.clone()).collect();
        assert_eq!(listed, ids);
    });
}

#[test]
fn an_unknown_id_is_an_error_that_names_the_nearest() {
    block_on(async {
        let house = House::new().await;
        for id in ["", "x", "00000000-0000-4000-8000-000000000000"] {
            let error = house.talk.snapshot(id).await.unwrap_err();
            assert!(error.to_string().contains("none was saved"), "{error}");
        }
        house.exchange(&house.talk, "one").await;
        house.model.says("Fine.");
        let saved = house.talk.save_snapshot(None).await.unwrap();
        let last = if saved.id.ends_with('0') { "1" } else { "0" };
        let wrong = format!("{}{last}", &saved.id[..35]);
        for error in [
            house.talk.snapshot(&wrong).await.unwrap_err(),
            house.talk.restore(&wrong).await.unwrap_err(),
            house.talk.delete_snapshot(&wrong).await.unwrap_err(),
        ] {
            assert!(
                matches!(&error, Error::NoSuchSnapshot { nearest } if *nearest == [saved.id.clone()])
            );
        }
    });
}

#[test]
fn what_is_restored_is_seen_by_the_next_turn_and_says_when_it_was_said() {
    block_on(async {
        let house = House::new().await;
        let aside = house.talk.clone().in_thread("7");
        house.exchange(&house.talk, "main").await;
        house.exchange(&aside, "aside").await;
        house.model.says("Fine.");
        let saved = house.talk.save_snapshot(None).await.unwrap();
        house.talk.clear().await.unwrap();
        house.clock.advance(SignedDuration::from_hours(72));
        assert!(recalled(&house.talk).await.is_empty());
        let restored = house.talk.restore(&saved.id).await.unwrap();
        assert_eq!(restored.len(), 4);
        assert_eq!(recalled(&house.talk).await, ["main", "main!"]);
        assert_eq!(recalled(&aside).await, ["aside", "aside!"]);
        let first = &restored[0].message;
        assert_eq!(first.timestamp, house.clock.now().timestamp());
        assert_eq!(first.said_at(), start());
        assert_eq!(first.restored_from(), Some((saved.id.as_str(), 1)));
        assert_eq!(restored[2].message.thread_id.as_deref(), Some("7"));
        assert!(!restored[2].message.metadata.contains_key("saidIn"));
        // The model gets the original time, not that of the restore.
        let (prompt, _) = house.talk.prompt("And now?").await.unwrap();
        let body = sottovoce::model::PromptRenderer::render(
            &OllamaChatRenderer::new(ModelOptions::new("m")),
            &prompt,
        )
        .body;
        assert!(body.contains("[Thursday 12 February 2026 14:30 +00:00] main"), "{body}");
        // A second restore copies nothing into the same thread. Another thread may get copies too.
        assert!(house.talk.restore(&saved.id).await.unwrap().is_empty());
        assert!(aside.restore(&saved.id).await.unwrap().is_empty());
        let eight = Some("8".to_owned());
        let elsewhere = house.talk.restore_into(&saved.id, eight.clone()).await.unwrap();
        assert_eq!(elsewhere.len(), 4);
        assert!(elsewhere.iter().all(|stored| stored.message.thread_id == eight));
        assert_eq!(elsewhere[2].message.metadata["saidIn"], "7");
        assert!(house.talk.restore_into(&saved.id, eight).await.unwrap().is_empty());
        // A snapshot of restored messages holds the same messages.
        house.model.says("Fine.");
        let second = house.talk.save_snapshot(None).await.unwrap();
        assert!(house.talk.restore(&second.id).await.unwrap().is_empty());
        assert!(house.findings().await.is_empty());
    });
}

#[test]
fn each_restored_message_returns_to_its_own_thread() {
    block_on(async {
        let house = House::new().await;
        let [three, five] = ["3", "5"].map(|thread| house.talk.clone().in_thread(thread));
        house.exchange(&house.talk, "main").await;
        house.exchange(&three, "three").await;
        house.exchange(&five, "five").await;
        house.model.says("Fine.");
        let saved = house.talk.save_snapshot(None).await.unwrap();
        house.talk.clear().await.unwrap();
        // In a thread, only that thread's messages.
        let restored = three.restore(&saved.id).await.unwrap();
        assert_eq!(restored.len(), 2);
        assert!(restored.iter().all(|stored| stored.message.thread_id.as_deref() == Some("3")));
        assert!(recalled(&house.talk).await.is_empty() && recalled(&five).await.is_empty());
        assert_eq!(house.talk.restore(&saved.id).await.unwrap().len(), 4);
        for (talk, words) in [(&house.talk, "main"), (&three, "three"), (&five, "five")] {
            assert_eq!(recalled(talk).await, [words.to_owned(), format!("{words}!")]);
        }
        assert_eq!(five.restore_into(&saved.id, None).await.unwrap().len(), 2);
        assert_eq!(recalled(&house.talk).await, ["main", "main!", "five", "five!"]);
    });
}

#[test]
fn a_forgetting_deletes_what_it_announced_and_nothing_else() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "one").await;
        house.exchange(&house.talk, "two").await;
        house.model.says("Both.");
        let both = house.talk.save_snapshot(None).await.unwrap();
        house.clock.advance(SignedDuration::from_hours(48));
        house.exchange(&house.talk, "three").await;
        house.model.says("Three.");
        let third = house.talk.save_snapshot(None).await.unwrap();
        let copies = house.talk.restore(&both.id).await.unwrap();
        let copy = copies[0].seq;
        let plan = house.store.plan_forget(&[copy..=copy, 5..=6]).await.unwrap();
        assert_eq!((&plan.messages[..], &plan.originals[..]), (&[5, 6, copy][..], &[1][..]));
        assert!(plan.copies.is_empty() && plan.hidden.is_empty() && plan.lost == 0);
        assert_eq!(plan.changed_snapshots, std::slice::from_ref(&both.id));
        assert_eq!(plan.deleted_snapshots, std::slice::from_ref(&third.id));
        assert_eq!(house.store.plan_forget(&[1..=1]).await.unwrap().copies, [copy]);
        let before = house.store.read_tail(99).await.unwrap().messages.len();
        assert_eq!(before, 10, "looking changes nothing");

        // During the question, another copy is made.
        let again = house.talk.restore_into(&both.id, Some("7".into())).await.unwrap();
        assert_eq!(again.len(), 4);
        let refused = house.talk.forget_planned(&plan).await;
        assert!(matches!(refused, Err(Error::MoreThanAnnounced)), "{refused:?}");
        assert_eq!(house.store.read_tail(99).await.unwrap().messages.len(), before + 4);
        let plan = house.store.plan_forget(&[copy..=copy, 5..=6]).await.unwrap();
        assert_eq!(plan.copies, [again[0].seq]);
        // If less than announced is left, there is no new question.
        house.store.forget(&[6..=6]).await.unwrap();
        let forgotten = house.talk.forget_planned(&plan).await.unwrap();
        assert_eq!(forgotten.removed, [1, 5, copy, again[0].seq]);
        assert_eq!(forgotten.plan.message_count(), 4);
        assert!(house.findings().await.is_empty());
    });
}

#[test]
fn only_what_the_window_lacks_is_restored() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "one").await;
        house.clock.advance(SignedDuration::from_hours(20));
        house.exchange(&house.talk, "two").await;
        house.model.says("Fine.");
        let saved = house.talk.save_snapshot(None).await.unwrap();
        assert_eq!(saved.messages.len(), 4);
        assert!(house.talk.restore(&saved.id).await.unwrap().is_empty());
        house.clock.advance(SignedDuration::from_hours(10));
        assert_eq!(recalled(&house.talk).await, ["two", "two!"]);
        assert_eq!(house.talk.restore(&saved.id).await.unwrap().len(), 2);
        assert_eq!(recalled(&house.talk).await, ["two", "two!", "one", "one!"]);
    });
}

#[test]
fn what_is_forgotten_goes_from_files_packs_snapshots_and_copies() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "keep this").await;
        house.exchange(&house.talk, "canary one").await;
        house.exchange(&house.talk, "canary two").await;
        house.model.says("They spoke of a canary.");
        let saved = house.talk.save_snapshot(Some("Birds".into())).await.unwrap();
        house.clock.advance(SignedDuration::from_hours(48));
        house.talk.restore(&saved.id).await.unwrap();
        let many = (0..200).map(|n| house.talk.message(ChatRole::User, n.to_string()));
        house.store.append_all(many.collect()).await.unwrap();
        house.store.pack(|_| {}).await.unwrap();
        let running = open(house.root.path(), &house.clock, key()).await;
        assert_eq!(running.read_tail(300).await.unwrap().messages.len(), 212);

        let forgotten = house.talk.forget(&[3..=4]).await.unwrap();
        assert_eq!(forgotten.removed.len(), 4, "with their copies: {forgotten:?}");
        // A copy counts too.
        let copy = house.store.read_seqs(7..=12).await.unwrap().messages;
        let copy = copy.iter().find(|stored| stored.message.content == "canary two").unwrap().seq;
        assert_eq!(house.talk.forget(&[copy..=copy, 6..=6]).await.unwrap().removed.len(), 4);

        let left = house.talk.snapshot(&saved.id).await.unwrap();
        let words: Vec<_> =
            left.messages.iter().map(|saved| saved.message.content.as_str()).collect();
        assert_eq!(words, ["keep this", "keep this!"]);
        assert_eq!(left.summary, "(summary removed with the forgotten messages)");
        assert_eq!(left.description.as_deref(), Some("Birds"), "what the user called it stays");
        for store in [&running, &*house.store] {
            let read = store.read_tail(300).await.unwrap();
            assert!(read.skipped.is_empty());
            assert!(read.messages.iter().all(|stored| !stored.message.content.contains("canary")));
        }
        assert!(house.findings().await.is_empty());
        assert_eq!(residue(&house, "canary").await, Vec::<String>::new());

        // A snapshot without messages is deleted too.
        house.talk.forget(&[1..=2]).await.unwrap();
        assert!(matches!(house.talk.snapshot(&saved.id).await, Err(Error::NoSuchSnapshot { .. })));
        assert_eq!(std::fs::read_dir(house.folder().join("snapshots")).unwrap().count(), 0);
    });
}

/// Every sealed file below the root that opens and holds this text, and every file that holds it in plain text.
async fn residue(house: &House, words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (path, (bytes, ..)) in snapshot(house.root.path()) {
        if String::from_utf8_lossy(&bytes).contains(words) {
            found.push(path.display().to_string());
        }
    }
    let store = open(house.root.path(), &house.clock, key()).await;
    let messages = store.read_seqs(1..=u64::MAX).await.unwrap().messages;
    found.extend(
        messages.iter().filter(|m| m.message.content.contains(words)).map(|m| m.file_name()),
    );
    for snapshot in store.snapshots().await.unwrap().0 {
        let held = format!("{}{:?}", snapshot.summary, snapshot.description);
        let said = snapshot.messages.iter().any(|saved| saved.message.content.contains(words));
        if said || held.contains(words) {
            found.push(snapshot.id.clone());
        }
    }
    // All files that exist, whatever a reader with the key could open.
    let expected = ["head", "imports", "lock", "profile", "reserve", "vault"];
    for (path, ..) in snapshot(house.root.path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_known = path.is_dir()
            || expected.contains(&name.as_str())
            || name.ends_with(".json")
            || name.ends_with(".pack")
            || path.parent().unwrap().ends_with("snapshots");
        if !is_known {
            found.push(name);
        }
    }
    found
}

#[test]
fn a_snapshot_that_a_backup_brings_back_stays_deleted_and_one_without_a_message_stays_without_it() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "one").await;
        house.exchange(&house.talk, "two").await;
        house.model.says("Fine.");
        let saved = house.talk.save_snapshot(None).await.unwrap();
        let file = house.folder().join("snapshots").join(&saved.id);
        let backup = std::fs::read(&file).unwrap();
        house.talk.forget(&[1..=2]).await.unwrap();
        std::fs::write(&file, &backup).unwrap();
        assert_eq!(house.findings().await, [FindingKind::Outdated]);
        assert!(matches!(house.talk.snapshot(&saved.id).await, Err(Error::Damaged { .. })));
        assert!(matches!(house.talk.restore(&saved.id).await, Err(Error::Damaged { .. })));
        house.talk.delete_snapshot(&saved.id).await.unwrap();
        std::fs::write(&file, &backup).unwrap();
        assert_eq!(house.findings().await, [FindingKind::Resurrected]);
        assert!(house.store.snapshots().await.unwrap().0.is_empty());
        // It is never read. A repair removes it, because the settings may be an older copy.
        let repaired = house.store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert_eq!(repaired.repairs[0].kind, RepairKind::ForgetAgain);
        assert!(!file.exists());
        assert!(house.findings().await.is_empty());
    });
}

#[test]
fn a_lost_snapshot_is_reported_and_a_repair_goes_on_without_it() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "one").await;
        house.model.says("Fine.");
        let lost = house.talk.save_snapshot(None).await.unwrap();
        house.model.says("Fine.");
        let kept = house.talk.save_snapshot(None).await.unwrap();
        std::fs::remove_file(house.folder().join("snapshots").join(&lost.id)).unwrap();
        let (listed, findings) = house.store.snapshots().await.unwrap();
        assert_eq!((listed.len(), findings[0].kind.clone()), (1, FindingKind::Absent));
        let repaired = house.store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert_eq!(repaired.repairs[0].kind, RepairKind::Accept);
        assert!(repaired.report.findings.is_empty());
        // After the settings were lost, all readable snapshots are found again.
        std::fs::remove_file(house.folder().join("profile")).unwrap();
        let store = open(house.root.path(), &house.clock, key()).await;
        store.append_message(house.talk.message(ChatRole::User, "two")).await.unwrap();
        store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        let listed = store.snapshots().await.unwrap().0;
        assert_eq!(listed.iter().map(|snapshot| &snapshot.id).collect::<Vec<_>>(), [&kept.id]);
        assert!(house.findings().await.is_empty());
    });
}

#[test]
fn a_change_of_the_key_takes_settings_and_snapshots_with_it() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "one").await;
        house.model.says("Fine.");
        let saved = house.talk.save_snapshot(None).await.unwrap();
        let cleared = house.talk.clear().await.unwrap().cleared;
        let new = || EncryptionKey::from_secret("another secret of the tests").unwrap();
        let rekeyed = Rekey::new(key(), new())
            .run(house.root.path(), |_| std::ops::ControlFlow::Continue(()))
            .await
            .unwrap();
        assert!(rekeyed.left.is_empty(), "{:?}", rekeyed.left);
        assert_eq!(rekeyed.retired.len(), 1);
        let store = open(house.root.path(), &house.clock, new()).await;
        assert_eq!(store.read_snapshot(&saved.id).await.unwrap().unwrap(), saved);
        assert_eq!(store.profile().await.unwrap().cleared, cleared);
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    });
}

#[test]
fn a_snapshot_of_another_conversation_does_not_open_here() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "canary").await;
        house.model.says("Fine.");
        let saved = house.talk.save_snapshot(None).await.unwrap();
        let other = StoreOptions::new(key()).scope(Scope::Dm { user: "43".into() });
        let other = other.open(house.root.path()).await.unwrap();
        other.append_message(crate::common::said("hello")).await.unwrap();
        let folder = house.root.path().join("dms/43");
        std::fs::create_dir(folder.join("snapshots")).unwrap();
        std::fs::copy(
            house.folder().join("snapshots").join(&saved.id),
            folder.join("snapshots").join(&saved.id),
        )
        .unwrap();
        std::fs::copy(house.folder().join("profile"), folder.join("profile")).unwrap();
        assert!(other.read_snapshot(&saved.id).await.unwrap().is_none());
        assert!(!other.verify(|_| {}).await.unwrap().is_sound());
    });
}

#[test]
fn debug_shows_no_words_of_a_snapshot() {
    block_on(async {
        let house = House::new().await;
        house.exchange(&house.talk, "canary").await;
        house.model.says("A canary.");
        let saved = house.talk.save_snapshot(Some("canary".into())).await.unwrap();
        let shown =
            format!("{saved:?} {:?} {:?}", saved.messages, house.store.profile().await.unwrap());
        assert!(!shown.contains("canary"), "{shown}");
    });
}

#[test]
fn what_another_process_forgot_is_neither_asked_again_nor_answered() {
    block_on(async {
        let house = House::new().await;
        house.model.answers([said("A canary"), Err(crate::common::scripted::broke_off())]);
        let answer = house.talk.ask("canary?").await.unwrap();
        assert!(answer.whole().await.is_err());
        let other = open(house.root.path(), &house.clock, key()).await;
        other.forget(&[1..=1]).await.unwrap();
        assert!(matches!(house.talk.retry().await, Err(Error::NothingToRetry)));
        house.talk.close().await.unwrap();
        house.model.answers([said("Another canary"), Err(crate::common::scripted::broke_off())]);
        let answer = house.talk.ask("and another canary?").await.unwrap();
        assert!(answer.whole().await.is_err());
        other.forget(&[1..=9]).await.unwrap();
        house.talk.close().await.unwrap();
        assert!(house.store.read_tail(9).await.unwrap().messages.is_empty());
        assert_eq!(residue(&house, "canary").await, Vec::<String>::new());
    });
}
