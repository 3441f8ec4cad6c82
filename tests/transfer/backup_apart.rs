//! Backups merged into a copy that has gone its own way: what has one number here may have another there.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use jiff::Timestamp;
use sottovoce::store::{SavedMessage, Snapshot};
use sottovoce::{ChatMessage, ChatRole, ConversationStore};
use tempfile::tempdir;

use crate::backup_merge::{export, import, is_sound, prompt, talk, twins, words};
use crate::common::{block_on, open, options, said};
use crate::exchange::{Device, clock, send, time};

fn at(text: &str, at: &str) -> ChatMessage {
    ChatMessage::at(ChatRole::User, text, time(at))
}

#[test]
fn a_snapshot_holds_the_numbers_that_its_messages_get_here() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b", "c"]).await;
        talk(&one, ["d", "secret"]).await;
        one.forget(&[4..=4]).await.unwrap();
        talk(&one, ["f"]).await;
        let now = Timestamp::UNIX_EPOCH;
        let saved = vec![SavedMessage::new(5, said("secret")), SavedMessage::new(7, said("f"))];
        let saved = Snapshot::new(now, (now, now), saved).unwrap();
        one.save_snapshot(saved.clone()).await.unwrap();
        let file = export(&one, &dirs[2], "2.json").await;
        for _ in 0..2 {
            import(&file, dirs[1].path()).await.unwrap();
            let there = two.read_snapshot(&saved.id).await.unwrap().unwrap();
            let there: Vec<_> = there
                .messages
                .iter()
                .map(|saved| (saved.seq, saved.message.content.as_str()))
                .collect();
            assert_eq!(there, [(4, "secret"), (5, "f")]);
        }
        assert_eq!(words(&two).await, ["a", "b", "c", "secret", "f"]);
        two.forget(&[4..=4]).await.unwrap();
        let there = two.read_snapshot(&saved.id).await.unwrap().unwrap();
        let there: Vec<_> =
            there.messages.iter().map(|saved| saved.message.content.as_str()).collect();
        assert_eq!(there, ["f"]);
        is_sound(&two).await;
    });
}

#[test]
fn a_message_keeps_its_place_though_the_clock_was_set_back() {
    block_on(async {
        let (dirs, one, two) = twins(["a"]).await;
        talk(&two, ["mine"]).await;
        one.append_message(at("question", "2025-08-24T17:00:05Z")).await.unwrap();
        one.append_message(at("answer", "2025-08-24T17:00:02Z")).await.unwrap();
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        assert_eq!(words(&two).await, ["a", "mine", "question", "answer"]);
        is_sound(&two).await;
    });
}

#[test]
fn a_message_from_the_future_that_was_placed_once_is_taken_with_a_backup() {
    block_on(async {
        let (wrong, right) = (Device::at("2035-01-01T00:00:00Z"), Device::new());
        let (a, b) = (wrong.open().await, right.open().await);
        a.store().append_message(at("future", "2035-01-01T00:00:00Z")).await.unwrap();
        assert_eq!(send(&a, &b).await.taken, 1);
        let (other, out) = (tempdir().unwrap(), tempdir().unwrap());
        let there = open(other.path()).await;
        talk(&there, ["mine"]).await;
        let file = export(b.store(), &out, "1.json").await;
        let options = options().clock(clock("2025-08-25T17:00:00Z"));
        let report = crate::backup_merge::import_with(&file, other.path(), options).await.unwrap();
        assert_eq!(report.messages.refused, []);
        assert_eq!(words(&there).await, ["mine", "future"]);
    });
}

#[test]
fn a_pruned_message_of_a_backup_moves_no_clear_marker() {
    block_on(async {
        let [one, two, out] = [(); 3].map(|()| tempdir().unwrap());
        let (a, b) = (open(one.path()).await, open(two.path()).await);
        a.append_message(at("pruned", "2025-08-24T17:00:00Z")).await.unwrap();
        a.append_message(at("shown", "2025-08-24T17:01:00Z")).await.unwrap();
        a.change_profile(Box::new(|profile| profile.prune([1]))).await.unwrap();
        b.append_message(at("mine", "2025-08-24T16:00:00Z")).await.unwrap();
        import(&export(&a, &out, "1.json").await, two.path()).await.unwrap();
        assert_eq!(b.profile().await.unwrap().cleared, None);
        let prompt = prompt(&b).await;
        assert!(prompt.contains("mine") && prompt.contains("shown"), "{prompt}");
        assert!(!prompt.contains("pruned"), "{prompt}");
    });
}

#[test]
fn newer_settings_of_another_conversation_prune_nothing_here() {
    block_on(async {
        let [one, two, out] = [(); 3].map(|()| tempdir().unwrap());
        let (a, b) = (open(one.path()).await, open(two.path()).await);
        talk(&a, ["a", "b"]).await;
        talk(&b, ["mine"]).await;
        import(&export(&a, &out, "1.json").await, two.path()).await.unwrap();
        b.forget(&[1..=1]).await.unwrap();
        a.change_profile(Box::new(|profile| profile.prune([1]))).await.unwrap();
        for n in 0..9 {
            let rename = move |profile: &mut sottovoce::store::Profile| {
                profile.rename(Some(n.to_string()));
            };
            a.change_profile(Box::new(rename)).await.unwrap();
        }
        import(&export(&a, &out, "2.json").await, two.path()).await.unwrap();
        assert_eq!(b.profile().await.unwrap().pruned(), 0);
    });
}

#[test]
fn a_message_is_not_dropped_because_its_number_was_forgotten_here() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b", "c"]).await;
        talk(&two, ["x", "y"]).await;
        two.forget(&[4..=4]).await.unwrap();
        talk(&one, ["d", "e"]).await;
        let file = export(&one, &dirs[2], "2.json").await;
        for taken in [2, 0] {
            let report = import(&file, dirs[1].path()).await.unwrap();
            assert_eq!((report.messages.taken, report.messages.forgotten), (taken, 0));
            assert_eq!(words(&two).await, ["a", "b", "c", "y", "d", "e"]);
        }
        is_sound(&two).await;
    });
}

#[test]
fn a_backup_with_a_received_message_of_the_greatest_length_can_be_restored() {
    /// Of the store that restores.
    const LIMIT: usize = 2000;
    block_on(async {
        let (from, to) = (Device::new(), Device::new());
        let (a, b) = (from.open().await, to.open().await);
        a.store().append_message(at(&"x".repeat(1900), "2025-08-24T17:00:00Z")).await.unwrap();
        assert_eq!(send(&a, &b).await.taken, 1);
        let out = tempdir().unwrap();
        let file = export(b.store(), &out, "1.json").await;
        for is_merged in [false, true] {
            let other = tempdir().unwrap();
            let options = || options().max_message_bytes(LIMIT);
            let there = options().open(other.path()).await.unwrap();
            if is_merged {
                talk(&there, ["mine"]).await;
            }
            let report = crate::backup_merge::import_with(&file, other.path(), options()).await;
            let report = report.unwrap().messages;
            assert_eq!((report.taken, report.refused), (1, Vec::new()));
            is_sound(&there).await;
        }
    });
}

#[test]
fn a_restore_that_broke_off_leaves_no_settings_that_hide_another_conversation() {
    block_on(async {
        let [one, two, other, out] = [(); 4].map(|()| tempdir().unwrap());
        let (a, b) = (open(one.path()).await, open(two.path()).await);
        talk(&a, ["a", "b", "c"]).await;
        a.change_profile(Box::new(|profile| profile.prune([2]))).await.unwrap();
        let whole = std::fs::read_to_string(export(&a, &out, "1.json").await).unwrap();
        let (begun, _) = whole.rsplit_once("\"c\"").unwrap();
        let cut = out.path().join("cut.json");
        std::fs::write(&cut, begun).unwrap();
        import(&cut, other.path()).await.unwrap_err();
        talk(&b, ["first", "second", "third"]).await;
        import(&export(&b, &out, "2.json").await, other.path()).await.unwrap();
        let prompt = prompt(&open(other.path()).await).await;
        assert!(prompt.contains("second"), "{prompt}");
    });
}

#[test]
fn what_was_forgotten_completely_does_not_come_back_with_an_older_backup() {
    block_on(async {
        let [one, two, out] = [(); 3].map(|()| tempdir().unwrap());
        let scope: sottovoce::Scope = "named/kitchen".parse().unwrap();
        let in_kitchen = || options().scope(scope.clone());
        talk(&open(one.path()).await, ["a"]).await;
        let kitchen = in_kitchen().open(one.path()).await.unwrap();
        talk(&kitchen, ["secret", "later words"]).await;
        let now = Timestamp::UNIX_EPOCH;
        let saved = vec![SavedMessage::new(1, said("secret"))];
        let saved = Snapshot::new(now, (now, now), saved).unwrap();
        kitchen.save_snapshot(saved.clone()).await.unwrap();
        let older = export(&kitchen, &out, "kitchen.json").await;
        kitchen.forget_all().await.unwrap();
        assert!(kitchen.clone().remove_forgotten().await.unwrap());
        let newest = export(&open(one.path()).await, &out, "default.json").await;
        import(&newest, two.path()).await.unwrap();
        for _ in 0..2 {
            let report = import(&older, two.path()).await.unwrap().messages;
            assert_eq!((report.taken, report.forgotten), (0, 2));
            let there = in_kitchen().open(two.path()).await.unwrap();
            assert_eq!(words(&there).await, Vec::<String>::new());
            assert!(there.read_snapshot(&saved.id).await.unwrap().is_none());
            is_sound(&there).await;
        }
    });
}
