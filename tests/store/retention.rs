//! Limits: what they hide and what they delete.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::Path;
use std::sync::Arc;

use crate::common::{block_on, key, records, snapshot};
use jiff::{SignedDuration, Timestamp};
use sottovoce::admin::{RepairKind, RepairOptions};
use sottovoce::store::{FindingKind, HiddenMessages, Profile, Retention};
use sottovoce::{
    ChatMessage, ChatRole, Clock, ConversationStore, EncryptionKey, Error, FileConversationStore,
    ManualClock, StoreOptions,
};

fn start() -> Timestamp {
    "2025-08-24T16:00:00Z".parse().unwrap()
}

const DAY: u64 = 86_400;

struct House {
    root: tempfile::TempDir,
    clock: Arc<ManualClock>,
    retention: Retention,
}

impl House {
    fn keeping(messages: u32, ttl: u64) -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            clock: Arc::new(ManualClock::at_utc(start())),
            retention: Retention::FOREVER.max_messages(messages).ttl_seconds(ttl),
        }
    }

    fn options(&self, key: EncryptionKey) -> StoreOptions {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        StoreOptions::new(key).clock(clock).retention(self.retention)
    }

    async fn open(&self) -> FileConversationStore {
        self.options(key()).open(self.root.path()).await.unwrap()
    }

    fn wait(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
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
            store.append_message(self.say(ChatRole::User, format!("question {n}"))).await.unwrap();
            store
                .append_message(self.say(ChatRole::Assistant, format!("answer {n}")))
                .await
                .unwrap();
        }
    }
}

async fn words(store: &FileConversationStore) -> Vec<String> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    reading.messages.iter().map(|stored| stored.message.content.clone()).collect()
}

async fn findings(store: &FileConversationStore) -> Vec<FindingKind> {
    let report = store.verify(|_| {}).await.unwrap();
    report.findings.into_iter().map(|finding| finding.kind).collect()
}

fn all_bytes(root: &Path) -> Vec<u8> {
    snapshot(root).into_values().flat_map(|(bytes, ..)| bytes).collect()
}

#[test]
fn the_newest_messages_are_kept_as_whole_exchanges_and_the_rest_is_hidden_at_once() {
    block_on(async {
        let house = House::keeping(15, 0);
        let store = house.open().await;
        house.exchanges(&store, 1..=7).await;
        assert_eq!(words(&store).await.len(), 14);
        house.exchanges(&store, 8..=8).await;
        let shown = words(&store).await;
        assert_eq!(
            (shown.len(), shown[0].as_str()),
            (14, "question 2"),
            "15 would cut an exchange"
        );
        assert!(store.read_seqs(1..=2).await.unwrap().messages.is_empty());
        assert!(
            store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap().messages.len() == 14
        );
        assert_eq!(records(house.root.path()).len(), 16, "files go in batches");
        let stats = store.stats().await.unwrap();
        assert_eq!((stats.message_count, stats.hidden), (14, 2));
        // Another process, and a new one, hide the same messages.
        assert_eq!(words(&house.open().await).await, shown);
        assert!(findings(&store).await.is_empty());
    });
}

#[test]
fn files_over_the_limit_go_in_batches_and_verify_sees_no_gap() {
    block_on(async {
        let house = House::keeping(15, 0);
        let store = house.open().await;
        house.exchanges(&store, 1..=100).await;
        assert_eq!(words(&store).await[0], "question 94");
        let files = records(house.root.path()).len();
        assert!((15..=32).contains(&files), "{files}");
        assert!(findings(&store).await.is_empty());
        let hidden = store.stats().await.unwrap().hidden as usize;
        assert!(hidden > 0);
        assert_eq!(store.cleanup().await.unwrap().removed, hidden);
        assert_eq!(store.cleanup().await.unwrap().removed, 0, "there is no more to remove");
        assert_eq!(words(&store).await.len(), 14);
        assert!(findings(&store).await.is_empty());
    });
}

#[test]
fn a_conversation_expires_a_day_after_its_last_message_whole() {
    block_on(async {
        let house = House::keeping(0, DAY);
        let store = house.open().await;
        house.exchanges(&store, 1..=1).await;
        house.wait(20 * 3600);
        house.exchanges(&store, 2..=2).await;
        house.wait(24 * 3600);
        let stats = store.stats().await.unwrap();
        assert_eq!((stats.message_count, stats.expires_in), (4, Some(0)), "to the moment it lasts");
        assert_eq!(words(&store).await.len(), 4, "each message prolongs it");
        house.clock.advance(SignedDuration::from_millis(1));
        assert!(words(&store).await.is_empty(), "from the next moment on nothing is shown");
        assert!(store.read_seqs(1..=4).await.unwrap().messages.is_empty());
        let stats = store.stats().await.unwrap();
        assert_eq!((stats.exists, stats.message_count, stats.hidden), (false, 0, 4));
        let cleaned = store.cleanup().await.unwrap();
        assert_eq!((cleaned.removed, cleaned.expired), (4, true));
        assert!(findings(&store).await.is_empty());
        assert_eq!(records(house.root.path()).len(), 1, "the record of the removal");
    });
}

#[test]
fn what_has_expired_does_not_come_back_with_the_next_message() {
    block_on(async {
        let house = House::keeping(0, DAY);
        let store = house.open().await;
        house.exchanges(&store, 1..=3).await;
        house.wait(2 * DAY as i64);
        house.exchanges(&store, 4..=4).await;
        assert_eq!(words(&store).await, ["question 4", "answer 4"]);
        assert_eq!(words(&house.open().await).await, ["question 4", "answer 4"]);
        assert_eq!(records(house.root.path()).len(), 3, "the others are removed");
        assert!(findings(&store).await.is_empty());
        // The result is the same for a batch and for an import.
        for import in [false, true] {
            house.wait(2 * DAY as i64);
            let many = vec![house.say(ChatRole::User, "anew")];
            match import {
                false => drop(store.append_all(many).await.unwrap()),
                true => drop(store.import(many).await.unwrap()),
            }
            assert_eq!(words(&store).await, ["anew"]);
        }
    });
}

#[test]
fn a_backup_does_not_bring_back_what_has_expired() {
    block_on(async {
        let house = House::keeping(0, DAY);
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        let backup: Vec<_> = records(house.root.path())
            .into_iter()
            .map(|file| (file.clone(), std::fs::read(file).unwrap()))
            .collect();
        house.wait(2 * DAY as i64);
        store.cleanup().await.unwrap();
        house.exchanges(&store, 3..=3).await;
        for (file, bytes) in backup {
            std::fs::write(file, bytes).unwrap();
        }
        assert_eq!(words(&store).await, ["question 3", "answer 3"]);
        assert_eq!(words(&house.open().await).await, ["question 3", "answer 3"]);
        assert!(findings(&store).await.iter().all(|kind| *kind == FindingKind::Resurrected));
        house.exchanges(&store, 4..=4).await;
        assert!(findings(&store).await.is_empty(), "the next append removes it again");
    });
}

#[test]
fn a_conversations_own_limits_go_before_those_for_all() {
    block_on(async {
        let house = House::keeping(6, DAY);
        let store = house.open().await;
        house.exchanges(&store, 1..=5).await;
        assert_eq!(words(&store).await.len(), 6);
        limit(&store, Some(Retention::FOREVER), HiddenMessages::Delete).await;
        assert_eq!(words(&store).await.len(), 6, "what was hidden is gone");
        house.wait(9 * DAY as i64);
        assert_eq!(words(&store).await.len(), 6, "and nothing expires any more");
        house.exchanges(&store, 6..=9).await;
        assert_eq!(words(&store).await.len(), 14);
        let as_all = |profile: &mut Profile| profile.retention = None;
        store.change_profile(Box::new(as_all)).await.unwrap();
        assert_eq!(words(&store).await.len(), 6);
        assert!(findings(&store).await.is_empty());
    });
}

async fn limit(store: &FileConversationStore, to: Option<Retention>, hidden: HiddenMessages) {
    let effect = store.limits_effect(to).await.unwrap();
    store.change_limits(to, hidden, &effect).await.unwrap();
}

#[test]
fn loosened_limits_neither_delete_nor_show_what_they_hid_until_asked_to() {
    block_on(async {
        let house = House::keeping(0, 0);
        let store = house.open().await;
        house.exchanges(&store, 1..=5).await;
        let most = |messages| Some(Retention::FOREVER.max_messages(messages));
        let effect = store.limits_effect(most(4)).await.unwrap();
        assert_eq!((effect.hides.messages, effect.returns.messages), (6, 0));
        assert_eq!((effect.hides.first, effect.hides.last), (Some(start()), Some(start())));
        assert_eq!(words(&store).await.len(), 10, "looking changes nothing");
        limit(&store, most(4), HiddenMessages::Keep).await;
        assert_eq!(words(&store).await.len(), 4);

        for (to, returns) in [(most(6), 2), (most(0), 6), (None, 6)] {
            let effect = store.limits_effect(to).await.unwrap();
            assert_eq!((effect.hides.messages, effect.returns.messages), (0, returns));
            let loosen = move |profile: &mut Profile| profile.retention = to;
            let refused = store.change_profile(Box::new(loosen)).await;
            assert!(matches!(refused, Err(Error::HiddenMessages)), "{refused:?}");
        }
        assert_eq!(words(&store).await.len(), 4, "nobody said that they are to come back");
        assert_eq!(records(house.root.path()).len(), 10, "nor that they are to go");
        let other = |profile: &mut Profile| profile.title = Some("Kitchen".into());
        store.change_profile(Box::new(other)).await.unwrap();

        limit(&store, most(6), HiddenMessages::Keep).await;
        assert_eq!(words(&store).await.len(), 6);
        limit(&store, None, HiddenMessages::Keep).await;
        assert_eq!(words(&store).await.len(), 10);
        limit(&store, most(4), HiddenMessages::Keep).await;
        limit(&store, None, HiddenMessages::Delete).await;
        assert_eq!(words(&house.open().await).await.len(), 4);
        assert!(findings(&store).await.is_empty());
    });
}

#[test]
fn limits_do_nothing_that_was_not_announced() {
    block_on(async {
        let house = House::keeping(0, 0);
        let store = house.open().await;
        house.exchanges(&store, 1..=2).await;
        let day = Some(Retention::FOREVER.ttl_seconds(DAY));
        let nothing = store.limits_effect(day).await.unwrap();
        assert_eq!(nothing.hides.messages, 0);
        house.wait(2 * DAY as i64);
        let refused = store.change_limits(day, HiddenMessages::Keep, &nothing).await;
        assert!(matches!(refused, Err(Error::MoreThanAnnounced)), "they have expired since");
        let two = Some(Retention::FOREVER.max_messages(2));
        let some = store.limits_effect(two).await.unwrap();
        assert_eq!(some.hides.messages, 2);
        house.exchanges(&house.open().await, 3..=3).await;
        let refused = store.change_limits(two, HiddenMessages::Keep, &some).await;
        assert!(matches!(refused, Err(Error::MoreThanAnnounced)), "there are more to hide now");
        assert_eq!(words(&store).await.len(), 6);
        let fresh = House::keeping(0, 0);
        let store = fresh.open().await;
        assert_eq!(
            store.limits_effect(two).await.unwrap(),
            sottovoce::store::LimitsEffect::default()
        );
        assert!(!fresh.root.path().join("head").exists(), "looking makes no conversation");
        limit(&store, two, HiddenMessages::Keep).await;
        assert_eq!(store.profile().await.unwrap().retention, two);
    });
}

#[test]
fn under_a_wrong_key_or_a_clock_that_is_behind_nothing_is_removed() {
    block_on(async {
        let house = House::keeping(4, DAY);
        let store = house.open().await;
        house.exchanges(&store, 1..=5).await;
        house.wait(-8 * DAY as i64);
        assert!(matches!(store.cleanup().await, Err(Error::ClockBehind { .. })));
        assert_eq!(records(house.root.path()).len(), 10);
        house.wait(11 * DAY as i64);
        let before = snapshot(house.root.path());
        let other = EncryptionKey::from_secret("another secret of the tests").unwrap();
        let opened = house.options(other).open(house.root.path()).await;
        assert!(matches!(opened, Err(Error::WrongKey { .. })));
        assert_eq!(snapshot(house.root.path()), before);
        assert_eq!(store.cleanup().await.unwrap().removed, 10);
    });
}

#[test]
fn another_devices_clock_that_is_ahead_keeps_no_cleanup_from_its_work() {
    block_on(async {
        let house = House::keeping(0, DAY);
        let store = house.open().await;
        house.exchanges(&store, 1..=5).await;
        house.wait(-6 * DAY as i64);
        assert_eq!(store.cleanup().await.unwrap().removed, 0);
        house.wait(8 * DAY as i64);
        assert_eq!(store.cleanup().await.unwrap().removed, 10);
    });
}

#[test]
fn settings_that_are_gone_or_put_back_are_reported_and_nothing_is_removed_by_them() {
    block_on(async {
        let house = House::keeping(0, 0);
        let store = house.open().await;
        house.exchanges(&store, 1..=5).await;
        let keep = |most: u32| {
            move |profile: &mut Profile| {
                profile.retention = Some(Retention::FOREVER.max_messages(most));
            }
        };
        store.change_profile(Box::new(keep(8))).await.unwrap();
        let profile = house.root.path().join("profile");
        let old = std::fs::read(&profile).unwrap();
        store.change_profile(Box::new(keep(6))).await.unwrap();
        let newest = std::fs::read(&profile).unwrap();
        let mut damaged = newest.clone();
        damaged[120] ^= 1;
        for (bytes, kind) in [
            (Some(old), FindingKind::Outdated),
            (Some(damaged), FindingKind::Unopenable),
            (None, FindingKind::Absent),
        ] {
            match bytes {
                Some(bytes) => std::fs::write(&profile, bytes).unwrap(),
                None => std::fs::remove_file(&profile).unwrap(),
            }
            let store = house.open().await;
            assert_eq!(findings(&store).await, std::slice::from_ref(&kind));
            let reading = store.read_tail(9).await.unwrap();
            assert!(reading.skipped.iter().any(|finding| finding.kind == kind), "readers are told");
            assert!(matches!(store.cleanup().await, Err(Error::Damaged { .. })));
            // The assistant continues to listen.
            house.exchanges(&store, 6..=6).await;
        }
        let repaired = house.open().await.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert_eq!(repaired.repairs[0].kind, RepairKind::Accept);
        assert!(repaired.report.findings.is_empty());
        let store = house.open().await;
        assert_eq!(store.profile().await.unwrap().retention, None);
        store.cleanup().await.unwrap();
        std::fs::write(&profile, newest).unwrap();
        assert_eq!(
            findings(&house.open().await).await,
            [FindingKind::Outdated],
            "nor is it put back after"
        );
    });
}

#[test]
fn changes_of_the_settings_by_several_at_once_are_all_kept() {
    block_on(async {
        let house = House::keeping(0, 0);
        let (one, two) = (house.open().await, house.open().await);
        one.append_message(house.say(ChatRole::User, "Hello")).await.unwrap();
        let window = std::num::NonZeroU64::new(60);
        let ttl = Retention::FOREVER.ttl_seconds(DAY);
        let (a, b, c) = tokio::join!(
            one.change_profile(Box::new(move |profile| profile.window_seconds = window)),
            two.change_profile(Box::new(move |profile| profile.retention = Some(ttl))),
            one.clear(),
        );
        for changed in [a, b, c] {
            changed.unwrap();
        }
        for store in [&one, &two, &house.open().await] {
            let profile = store.profile().await.unwrap();
            assert_eq!((profile.window_seconds, profile.retention), (window, Some(ttl)));
            assert_eq!(profile.cleared.unwrap().seq, 1);
        }
        let refused = one.write_document(sottovoce::store::Document::Profile, b"{}").await;
        assert!(matches!(refused, Err(Error::InvalidMessage { .. })));
    });
}

#[test]
fn a_conversation_with_limits_costs_no_more_files_the_longer_it_lasts() {
    block_on(async {
        let house = House::keeping(20, 0);
        let store = house.open().await;
        let mut bytes = Vec::new();
        for part in 0..6 {
            house.exchanges(&store, part * 60..=part * 60 + 59).await;
            store.cleanup().await.unwrap();
            bytes.push(all_bytes(house.root.path()).len());
        }
        let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
        assert!(most - least < 2000, "{bytes:?}");
        let many = (0..5000).map(|n| house.say(ChatRole::User, n)).collect();
        store.append_all(many).await.unwrap();
        assert_eq!(words(&store).await.len(), 20);
        // The append itself removes 4,096 of what is over the limit.
        assert_eq!(store.cleanup().await.unwrap().removed, 5000 - 4096);
        assert!(all_bytes(house.root.path()).len() < 3 * most);
    });
}
