//! Settings, limits and snapshots with damage, backups, wrong clocks and bad timing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::expect_used
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::scripted::{Scripted, done, said};
use crate::common::{block_on, key, records};
use jiff::{SignedDuration, Timestamp};

use sottovoce::admin::RepairOptions;
use sottovoce::context::{Placement, RollingWindowProvider};
use sottovoce::store::{Profile, RestoreThreads, Retention, SavedMessage, Snapshot};
use sottovoce::{
    ChatMessage, ChatRole, Clock, Conversation, ConversationStore, FileConversationStore,
    ManualClock, StoreOptions,
};

fn start() -> Timestamp {
    "2026-02-12T14:30:00Z".parse().unwrap()
}

struct House {
    root: tempfile::TempDir,
    clock: Arc<ManualClock>,
    retention: Retention,
}

impl House {
    fn new() -> Self {
        Self::keeping(Retention::FOREVER)
    }

    fn keeping(retention: Retention) -> Self {
        let clock = Arc::new(ManualClock::at_utc(start()));
        Self { root: tempfile::tempdir().unwrap(), clock, retention }
    }

    async fn open(&self) -> FileConversationStore {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        StoreOptions::new(key())
            .clock(clock)
            .retention(self.retention)
            .open(self.root.path())
            .await
            .unwrap()
    }

    fn talk(&self, store: &Arc<FileConversationStore>, model: &Arc<Scripted>) -> Conversation {
        let builder = Conversation::builder(store.clone())
            .system("You are Mira.")
            .history(RollingWindowProvider::new());
        builder.last_n(99).model(model.clone()).build()
    }

    fn say(&self, role: ChatRole, words: impl ToString) -> ChatMessage {
        ChatMessage::at(role, words.to_string(), self.clock.now().timestamp())
    }

    async fn exchanges(
        &self,
        store: &FileConversationStore,
        numbers: std::ops::RangeInclusive<u32>,
    ) {
        for n in numbers {
            store.append_message(self.say(ChatRole::User, format!("q{n}"))).await.unwrap();
            store.append_message(self.say(ChatRole::Assistant, format!("a{n}"))).await.unwrap();
        }
    }

    fn snapshot(&self, messages: &[(u64, &str)]) -> Snapshot {
        let now = self.clock.now().timestamp();
        let saved = messages
            .iter()
            .map(|(seq, text)| SavedMessage::new(*seq, self.say(ChatRole::User, text)))
            .collect();
        Snapshot::new(now, (now, now), saved).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn damage(&self, name: &str) {
        let mut bytes = std::fs::read(self.path(name)).unwrap();
        let at = bytes.len() / 2;
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        std::fs::write(self.path(name), bytes).unwrap();
    }
}

fn timed<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

async fn words(store: &FileConversationStore) -> Vec<String> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    reading.messages.iter().map(|stored| stored.message.content.clone()).collect()
}

async fn recalled(talk: &Conversation) -> Vec<String> {
    let (prompt, _) = talk.prompt("And now?").await.unwrap();
    prompt.placed(Placement::History).map(|message| message.content.clone()).collect()
}

async fn findings(store: &FileConversationStore) -> Vec<String> {
    let report = store.verify(|_| {}).await.unwrap();
    report.findings.into_iter().map(|f| format!("{:?} {:?}", f.kind, f.file)).collect()
}

#[test]
fn a_head_that_is_renewed_knows_the_settings_still() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        house.exchanges(&store, 1..=5).await;
        let snap = house.snapshot(&[(1, "q1")]);
        store.save_snapshot(snap.clone()).await.unwrap();
        let keep = Retention::FOREVER.max_messages(6);
        store
            .change_profile(Box::new(move |p: &mut Profile| p.retention = Some(keep)))
            .await
            .unwrap();
        store.clear().await.unwrap();
        drop(store);
        std::fs::remove_file(house.path("head")).unwrap();
        let store = Arc::new(house.open().await);
        assert_eq!(store.profile().await.unwrap().retention, Some(keep), "before the repair");
        let repaired = store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        let left = format!("{:?}", repaired.report.findings);
        drop(store);
        let store = Arc::new(house.open().await);
        let profile = store.profile().await.unwrap();
        let talk = house.talk(&store, &model);
        let recalled = recalled(&talk).await;
        store.append_message(house.say(ChatRole::User, "next")).await.unwrap();
        let saved = store.snapshots().await.unwrap().0.len();
        let file = house.path("snapshots").join(&snap.id).exists();
        assert_eq!(
            (profile.retention, profile.cleared.is_some(), recalled.len(), saved, file, &*left),
            (Some(keep), true, 0, 1, true, "[]")
        );
    });
}

#[test]
fn settings_that_do_not_open_cost_no_snapshot() {
    block_on(async {
        for gone in [false, true] {
            let house = House::new();
            let store = house.open().await;
            house.exchanges(&store, 1..=2).await;
            let snap = house.snapshot(&[(1, "q1")]);
            store.save_snapshot(snap.clone()).await.unwrap();
            drop(store);
            if gone {
                std::fs::remove_file(house.path("profile")).unwrap();
            } else {
                house.damage("profile");
            }
            let store = house.open().await;
            assert!(store.clear().await.is_err(), "nobody knows what else the settings said");
            drop(store);
            let store = house.open().await;
            store.append_message(house.say(ChatRole::User, "next")).await.unwrap();
            let there = house.path("snapshots").join(&snap.id).exists();
            assert!(there, "gone {gone}: the sound file of an acknowledged snapshot was deleted");
        }
    });
}

#[test]
fn what_is_forgotten_under_damaged_settings_does_not_come_back_with_a_repair() {
    block_on(async {
        let mut bad = Vec::new();
        for gone in [false, true] {
            let house = House::new();
            let store = house.open().await;
            house.exchanges(&store, 1..=2).await;
            let snap = house.snapshot(&[(1, "q1"), (3, "q2")]);
            store.save_snapshot(snap.clone()).await.unwrap();
            drop(store);
            let sound = std::fs::read(house.path("profile")).unwrap();
            match gone {
                true => std::fs::remove_file(house.path("profile")).unwrap(),
                false => house.damage("profile"),
            }
            let store = house.open().await;
            let Ok(forgotten) = store.forget(&[1..=1]).await else { continue };
            assert_eq!(forgotten.removed, [1]);
            assert!(forgotten.left.is_empty(), "and it said nothing of what stayed");
            match gone {
                true => drop(store.repair(RepairOptions::default(), |_| {}).await.unwrap()),
                // The damaged file is restored from a backup of the same day.
                false => std::fs::write(house.path("profile"), sound).unwrap(),
            }
            let store = house.open().await;
            let (snapshots, _) = store.snapshots().await.unwrap();
            let seqs: Vec<_> =
                snapshots.iter().flat_map(|s| s.messages.iter().map(|m| m.seq)).collect();
            if seqs.contains(&1) {
                bad.push((gone, seqs));
            }
        }
        assert!(bad.is_empty(), "(the settings were gone, what snapshots show): {bad:?}");
    });
}

#[test]
fn copies_are_forgotten_after_settings_were_lost_and_repaired() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        let snap = house.snapshot(&[(1, "q1"), (3, "q2")]);
        store.save_snapshot(snap.clone()).await.unwrap();
        store.clear().await.unwrap();
        store
            .restore(&snap.id, Timestamp::MIN, RestoreThreads::default(), house.clock.now())
            .await
            .unwrap();
        drop(store);
        std::fs::remove_file(house.path("profile")).unwrap();
        let store = house.open().await;
        store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        let forgotten = store.forget(&[1..=1]).await.unwrap();
        assert!(forgotten.left.is_empty());
        let there = words(&store).await;
        assert!(!there.contains(&"q1".to_owned()), "{there:?}");
    });
}

#[test]
fn a_newest_message_that_is_damaged_does_not_make_the_others_expire() {
    block_on(async {
        let house = House::keeping(Retention::FOREVER.ttl_seconds(86_400));
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        house.clock.advance(SignedDuration::from_hours(20));
        store.append_message(house.say(ChatRole::User, "q3")).await.unwrap();
        house.clock.advance(SignedDuration::from_hours(20));
        assert_eq!(words(&store).await.len(), 5);
        drop(store);
        let newest = records(house.root.path()).pop().unwrap();
        house.damage(newest.file_name().unwrap().to_str().unwrap());
        let store = house.open().await;
        store.append_message(house.say(ChatRole::User, "q4")).await.unwrap();
        let there = words(&store).await;
        assert_eq!(there, ["q1", "a1", "q2", "a2", "q4"]);
    });
}

#[test]
fn what_was_hidden_stays_hidden_when_the_newest_are_forgotten() {
    block_on(async {
        let house = House::keeping(Retention::FOREVER.max_messages(4));
        let store = house.open().await;
        house.exchanges(&store, 1..=5).await;
        assert_eq!(words(&store).await, ["q4", "a4", "q5", "a5"]);
        store.forget(&[9..=10]).await.unwrap();
        assert_eq!(words(&store).await, ["q4", "a4"]);
    });
}

#[test]
fn what_is_forgotten_while_a_snapshot_is_summarized_is_not_in_it() {
    timed(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        let talk = house.talk(&store, &model);
        house.exchanges(&store, 1..=2).await;
        let hand = model.hand();
        let saving = tokio::spawn({
            let talk = talk.clone();
            async move { talk.save_snapshot(None).await }
        });
        while model.requests.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // While the model works, another task forgets the first message.
        let forgetting = tokio::spawn({
            let talk = talk.clone();
            async move { talk.forget(&[1..=1]).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        hand.send(said("They spoke of q1.")).unwrap();
        hand.send(done()).unwrap();
        let saved = saving.await.unwrap();
        assert_eq!(forgetting.await.unwrap().unwrap().removed, [1]);
        drop(saved);
        let fresh = house.open().await;
        for snapshot in fresh.snapshots().await.unwrap().0 {
            let seqs: Vec<_> = snapshot.messages.iter().map(|m| m.seq).collect();
            assert!(!seqs.contains(&1), "{seqs:?}, summary: {}", snapshot.summary);
        }
    });
}

#[test]
fn what_is_forgotten_before_a_restoring_has_its_turn_is_not_restored() {
    timed(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        let talk = house.talk(&store, &model);
        house.exchanges(&store, 1..=2).await;
        let snap = house.snapshot(&[(1, "q1"), (3, "q2")]);
        store.save_snapshot(snap.clone()).await.unwrap();
        store.clear().await.unwrap();
        // During a turn, forgetting and restoring wait for it, in this order.
        let hand = model.hand();
        let answer = talk.ask("Hm?").await.unwrap();
        let whole = tokio::spawn(answer.whole());
        let forgetting = tokio::spawn({
            let talk = talk.clone();
            async move { talk.forget(&[1..=1]).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let restoring = tokio::spawn({
            let (talk, id) = (talk.clone(), snap.id.clone());
            async move { talk.restore(&id).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        hand.send(said("Well.")).unwrap();
        hand.send(done()).unwrap();
        whole.await.unwrap().unwrap();
        forgetting.await.unwrap().unwrap();
        drop(restoring.await.unwrap());
        let there = words(&store).await;
        assert!(!there.contains(&"q1".to_owned()), "{there:?}");
    });
}

#[test]
fn a_snapshot_that_holds_a_message_and_its_copy_restores_it_once() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        let talk = house.talk(&store, &model);
        talk.prepare_turn("hello").await.unwrap();
        model.says("One.");
        let first = talk.save_snapshot(None).await.unwrap();
        let into = |thread: &str| Some(thread.to_owned());
        assert_eq!(talk.restore_into(&first.id, into("7")).await.unwrap().len(), 1);
        model.says("Two.");
        let second = talk.save_snapshot(None).await.unwrap();
        let eight = talk.clone().in_thread("8");
        talk.restore_into(&second.id, into("8")).await.unwrap();
        assert_eq!(recalled(&eight).await, ["hello"]);
    });
}

#[test]
fn a_snapshots_id_leads_nowhere_else() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        let snap = house.snapshot(&[(1, "q1")]);
        store.save_snapshot(snap).await.unwrap();
        let first = records(house.root.path()).remove(0);
        let name = first.file_name().unwrap().to_str().unwrap().to_owned();
        drop(store.delete_snapshot(&format!("../{name}")).await);
        let deleted = !first.exists();
        let mut snap = house.snapshot(&[(1, "q1")]);
        snap.id = "../head".into();
        let before = std::fs::read(house.path("head")).unwrap().len();
        drop(store.save_snapshot(snap).await);
        let fresh = house.open().await;
        let found = findings(&fresh).await;
        let after = std::fs::read(house.path("head")).unwrap().len();
        assert_eq!((deleted, after), (false, before), "{found:?}");
    });
}

#[test]
fn a_damaged_snapshot_that_is_named_in_part_is_not_said_to_be_deleted() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let talk = house.talk(&store, &Arc::new(Scripted::default()));
        house.exchanges(&store, 1..=1).await;
        let snap = house.snapshot(&[(1, "q1")]);
        store.save_snapshot(snap.clone()).await.unwrap();
        house.damage(&format!("snapshots/{}", snap.id));
        let outcome = talk.delete_snapshot(&snap.id[..8]).await;
        let there = house.path("snapshots").join(&snap.id).exists();
        assert!(outcome.is_err() || !there, "{outcome:?}, and it is still there");
    });
}

#[test]
fn an_unfinished_snapshot_is_swept_by_the_next_writer() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=1).await;
        store.save_snapshot(house.snapshot(&[(1, "q1")])).await.unwrap();
        drop(store);
        // As a process that is killed before the rename leaves it.
        std::fs::write(house.path("snapshots/.tmp-0123456789"), b"half of it").unwrap();
        let store = house.open().await;
        store.append_message(house.say(ChatRole::User, "next")).await.unwrap();
        store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert!(findings(&store).await.is_empty(), "{:?}", findings(&store).await);
    });
}

#[test]
fn a_damaged_snapshot_can_be_set_aside() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=1).await;
        let snap = house.snapshot(&[(1, "q1")]);
        store.save_snapshot(snap.clone()).await.unwrap();
        house.damage(&format!("snapshots/{}", snap.id));
        let options = RepairOptions { quarantine: true, ..RepairOptions::default() };
        for _ in 0..2 {
            drop(store.repair(options, |_| {}).await.unwrap());
        }
        let left = store.repair(options, |_| {}).await.unwrap().report.findings;
        assert!(left.iter().all(|f| !f.kind.is_problem()), "{left:?}");
    });
}

#[test]
fn a_retry_after_a_clear_asks_nothing_from_before_it() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        let talk = house.talk(&store, &model);
        talk.prepare_turn("my secret").await.unwrap();
        talk.clear().await.unwrap();
        model.says("Hm.");
        if let Ok(answer) = talk.retry().await {
            drop(answer.whole().await);
        }
        let requests = model.requests.lock().unwrap().clone();
        assert!(requests.iter().all(|r| !r.contains("my secret")), "{requests:?}");
    });
}

#[test]
fn hidden_messages_are_removed_at_last_however_many_may_stay_or_come_at_once() {
    block_on(async {
        let house = House::keeping(Retention::FOREVER.max_messages(40_000));
        let store = house.open().await;
        let many = (0..46_000).map(|n| house.say(ChatRole::User, n)).collect();
        store.append_all(many).await.unwrap();
        for n in 0..3 {
            store.append_message(house.say(ChatRole::User, n)).await.unwrap();
        }
        let hidden = store.stats().await.unwrap().hidden;
        assert!(hidden < 5_500, "{hidden} are hidden and stay on the disk");
    });
}

#[test]
fn a_damaged_snapshot_that_a_backup_mends_shows_nothing_forgotten() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        let snap = house.snapshot(&[(1, "q1"), (3, "q2")]);
        store.save_snapshot(snap.clone()).await.unwrap();
        let file = house.path("snapshots").join(&snap.id);
        let backup = std::fs::read(&file).unwrap();
        house.damage(&format!("snapshots/{}", snap.id));
        let forgotten = store.forget(&[1..=1]).await.unwrap();
        assert_eq!(forgotten.removed, [1]);
        std::fs::write(&file, backup).unwrap();
        let store = house.open().await;
        let (snapshots, _) = store.snapshots().await.unwrap();
        let seqs: Vec<_> =
            snapshots.iter().flat_map(|s| s.messages.iter().map(|m| m.seq)).collect();
        assert!(!seqs.contains(&1), "{seqs:?}");
    });
}

#[test]
fn an_import_after_a_clear_under_a_wrong_clock_is_not_hidden_for_ever_nor_cuts_what_is_older() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let talk = house.talk(&store, &Arc::new(Scripted::default()));
        house.clock.advance(SignedDuration::from_hours(24 * 365));
        store.clear().await.unwrap();
        house.clock.advance(SignedDuration::from_hours(-24 * 365));
        for n in 0..40 {
            store.append_message(house.say(ChatRole::User, format!("before {n}"))).await.unwrap();
            house.clock.advance(SignedDuration::from_secs(1));
        }
        let mut imported = Vec::new();
        for n in 0..80 {
            let message = house.say(ChatRole::User, format!("imported {n}"));
            let digest = format!("elara:{n:032x}");
            imported.push(message.with_metadata("importedFrom", digest));
            house.clock.advance(SignedDuration::from_secs(1));
        }
        store.import(imported).await.unwrap();
        store.append_message(house.say(ChatRole::User, "after")).await.unwrap();
        house.clock.advance(SignedDuration::from_secs(1));
        let recalled = recalled(&talk).await;
        assert!(recalled.iter().any(|w| w == "before 39"), "{recalled:?}");
    });
}

#[test]
fn forgetting_a_copy_that_the_limits_removed_reaches_the_words_in_other_snapshots() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        let talk = house.talk(&store, &model);
        talk.prepare_turn("hello").await.unwrap();
        model.says("One.");
        let first = talk.save_snapshot(None).await.unwrap();
        talk.clear().await.unwrap();
        talk.restore(&first.id).await.unwrap();
        model.says("Two.");
        let second = talk.save_snapshot(None).await.unwrap();
        let copy = second.messages[0].seq;
        let keep = Retention::FOREVER.max_messages(1);
        store
            .change_profile(Box::new(move |p: &mut Profile| p.retention = Some(keep)))
            .await
            .unwrap();
        talk.prepare_turn("later").await.unwrap();
        store.cleanup().await.unwrap();
        assert_eq!(words(&store).await, ["later"]);
        // The user sees the text in the second snapshot and forgets its number.
        talk.forget(&[copy..=copy]).await.unwrap();
        let left: usize = store.snapshots().await.unwrap().0.iter().map(|s| s.messages.len()).sum();
        assert_eq!(left, 0);
    });
}

#[test]
fn settings_that_do_not_open_can_be_repaired() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=1).await;
        store.clear().await.unwrap();
        drop(store);
        house.damage("profile");
        let store = house.open().await;
        let options = RepairOptions { quarantine: true, ..RepairOptions::default() };
        let left = store.repair(options, |_| {}).await.unwrap().report.findings;
        let again = store.repair(options, |_| {}).await.unwrap().report.findings;
        assert!(again.iter().all(|f| !f.kind.is_problem()), "{left:?}, then {again:?}");
    });
}

#[test]
fn a_snapshot_that_was_read_before_is_not_saved_with_what_was_forgotten_since() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        let snap = house.snapshot(&[(1, "q1"), (3, "q2")]);
        store.save_snapshot(snap.clone()).await.unwrap();
        let mut read = store.read_snapshot(&snap.id).await.unwrap().unwrap();
        store.forget(&[1..=1]).await.unwrap();
        read.description = Some("Before dinner".into());
        drop(store.save_snapshot(read).await);
        let (snapshots, _) = store.snapshots().await.unwrap();
        assert!(snapshots.iter().all(|s| s.messages.iter().all(|m| m.seq != 1)));
    });
}

#[test]
fn limits_can_be_set_though_a_message_is_from_the_future() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        let mut message = house.say(ChatRole::User, "from tomorrow");
        message.timestamp += SignedDuration::from_hours(24);
        store.append_message(message).await.unwrap();
        let keep = Retention::FOREVER.max_messages(6);
        let set =
            store.change_profile(Box::new(move |p: &mut Profile| p.retention = Some(keep))).await;
        assert!(set.is_ok(), "nothing was limited before, so there is nothing to remove: {set:?}");
    });
}

#[test]
fn a_number_that_is_forgotten_in_a_thread_stays_within_its_scope_and_threads_do_not_mix() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        let talk = house.talk(&store, &model);
        let seven = talk.clone().in_thread("7");
        seven.prepare_turn("aside").await.unwrap();
        talk.prepare_turn("main").await.unwrap();
        assert_eq!(recalled(&talk).await, ["main"]);
        assert_eq!(recalled(&seven).await, ["aside"]);
        talk.clear().await.unwrap();
        assert!(recalled(&talk).await.is_empty() && recalled(&seven).await.is_empty());
        let again = house.talk(&Arc::new(house.open().await), &model);
        assert!(recalled(&again).await.is_empty());
    });
}

#[test]
fn a_snapshot_of_one_scope_is_not_restored_or_saved_in_another() {
    block_on(async {
        let house = House::new();
        let scoped =
            |user: &str| StoreOptions::new(key()).scope(sottovoce::Scope::Dm { user: user.into() });
        let one = scoped("1").open(house.root.path()).await.unwrap();
        let two = scoped("2").open(house.root.path()).await.unwrap();
        house.exchanges(&one, 1..=1).await;
        let reading = one.read_tail(9).await.unwrap();
        let now = house.clock.now().timestamp();
        let saved = reading.messages.iter().map(|m| SavedMessage::new(m.seq, m.message.clone()));
        one.save_snapshot(Snapshot::new(now, (now, now), saved.collect()).unwrap()).await.unwrap();
        let snapshot = one.snapshots().await.unwrap().0.remove(0);
        drop(
            two.restore(&snapshot.id, Timestamp::MIN, RestoreThreads::default(), house.clock.now())
                .await,
        );
        assert!(words(&two).await.is_empty(), "words of dm/1 are in dm/2");
    });
}

#[test]
fn what_is_forgotten_or_cleared_is_not_asked_again_in_its_thread() {
    block_on(async {
        let mut bad = Vec::new();
        for forget in [true, false] {
            let house = House::new();
            let store = Arc::new(house.open().await);
            let model = Arc::new(Scripted::default());
            let talk = house.talk(&store, &model);
            let seven = talk.clone().in_thread("7");
            model.answers([said("Half of it")]);
            let answer = seven.ask("my secret").await.unwrap();
            drop(answer.whole().await);
            if forget {
                assert_eq!(talk.forget(&[1..=1]).await.unwrap().removed, [1]);
            } else {
                talk.clear().await.unwrap();
            }
            let before = model.requests.lock().unwrap().len();
            model.says("Hm.");
            if let Ok(answer) = seven.retry().await {
                drop(answer.whole().await);
            }
            let requests = model.requests.lock().unwrap()[before..].to_vec();
            if requests.iter().any(|r| r.contains("my secret")) {
                bad.push((forget, "retry"));
            }
        }
        assert!(bad.is_empty(), "{bad:?}");
    });
}

#[test]
fn a_clean_start_asks_nothing_again_from_before_it() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        let talk = house.talk(&store, &model);
        talk.prepare_turn("my secret").await.unwrap();
        let clean = talk.starting_clean().await.unwrap();
        model.says("Hm.");
        if let Ok(answer) = clean.retry().await {
            drop(answer.whole().await);
        }
        let requests = model.requests.lock().unwrap().clone();
        assert!(requests.iter().all(|r| !r.contains("my secret")), "{requests:?}");
    });
}

#[test]
fn a_backup_of_head_and_settings_costs_no_snapshot_that_was_saved_since() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        store.save_snapshot(house.snapshot(&[(1, "q1")])).await.unwrap();
        let old: Vec<_> = ["head", "profile"]
            .into_iter()
            .map(|name| (name, std::fs::read(house.path(name)).unwrap()))
            .collect();
        let second = house.snapshot(&[(3, "q2")]);
        store.save_snapshot(second.clone()).await.unwrap();
        drop(store);
        for (name, bytes) in old {
            std::fs::write(house.path(name), bytes).unwrap();
        }
        let store = house.open().await;
        store.append_message(house.say(ChatRole::User, "next")).await.unwrap();
        let there = house.path("snapshots").join(&second.id).exists();
        let aside =
            house.path("quarantine").exists() || house.path("snapshots/quarantine").exists();
        assert!(there || aside, "a snapshot that nobody deleted is gone for ever");
    });
}

#[test]
fn a_forgotten_copy_leaves_nothing_spoken_in_another_thread_to_be_kept() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        let model = Arc::new(Scripted::default());
        let talk = house.talk(&store, &model);
        let seven = talk.clone().in_thread("7");
        model.answers([said("Your secret is safe")]);
        let answer = seven.ask("my secret").await.unwrap();
        drop(answer.whole().await);
        talk.forget(&[1..=1]).await.unwrap();
        // "Spoken text that answers one of them and is not stored yet is dropped too."
        seven.prepare_turn("next").await.unwrap();
        let there = words(&store).await;
        assert_eq!(there, ["next"]);
    });
}

#[test]
fn debug_and_errors_show_no_words() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        store.append_message(crate::common::said("my secret")).await.unwrap();
        let mut snapshot = house.snapshot(&[(1, "my secret")]);
        snapshot.description = Some("my secret".into());
        snapshot.summary = "my secret".into();
        let mut shown = format!("{snapshot:?} {:?}", snapshot.messages);
        store.save_snapshot(snapshot.clone()).await.unwrap();
        house.damage(&format!("snapshots/{}", snapshot.id));
        let error = store.read_snapshot(&snapshot.id).await.unwrap_err();
        shown += &format!("{error} {error:?} {:?}", store.profile().await.unwrap());
        let talk = house.talk(&store, &Arc::new(Scripted::default()));
        let error = talk.snapshot("my secret").await.unwrap_err();
        shown += &format!("{error} {error:?}");
        assert!(!shown.contains("my secret"), "{shown}");
    });
}

#[test]
fn under_settings_that_do_not_open_no_prompt_recalls_anything() {
    block_on(async {
        let house = House::new();
        let store = Arc::new(house.open().await);
        house.exchanges(&store, 1..=5).await;
        let keep = Retention::FOREVER.max_messages(4);
        store
            .change_profile(Box::new(move |p: &mut Profile| p.retention = Some(keep)))
            .await
            .unwrap();
        store.clear().await.unwrap();
        house.damage("profile");
        let store = Arc::new(house.open().await);
        let talk = house.talk(&store, &Arc::new(Scripted::default()));
        let (shown, recalled) = (words(&store).await.len(), recalled(&talk).await.len());
        // Reading the store directly shows the messages, with the finding.
        assert_eq!((shown, recalled), (10, 0));
    });
}

#[test]
fn a_change_of_settings_that_do_not_open_keeps_what_they_said_or_is_refused() {
    block_on(async {
        let house = House::new();
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        let keep = Retention::FOREVER.ttl_seconds(60);
        store
            .change_profile(Box::new(move |p: &mut Profile| p.retention = Some(keep)))
            .await
            .unwrap();
        let sound = std::fs::read(house.path("profile")).unwrap();
        house.damage("profile");
        let store = house.open().await;
        if store.clear().await.is_err() {
            return;
        }
        // The limits are gone, no check reports it, and the sound file from a backup no longer counts.
        let found = findings(&store).await;
        drop(sound);
        assert_eq!(
            (store.profile().await.unwrap().retention, found.is_empty()),
            (Some(keep), true)
        );
    });
}
