//! Each fault by itself: what ends a sync in the middle, and what happens to requests, stores, remotes and clocks

use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sottovoce::exchange::{self, Sharing};
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::Backup;
use sottovoce::store::Retention;
use sottovoce::{
    ChatMessage, ChatRole, Clock, ConversationStore, EncryptionKey, Scope, StoreOptions,
};
use sottovoce_remote::Action;
use sottovoce_sync::SyncError;

use crate::home::SECRET;
use crate::house::{Fate, Machine, all_have, devices, named, problems};

#[tokio::test]
async fn a_process_that_dies_while_it_publishes_publishes_everything_once_afterwards() {
    for (action, part, fate) in [
        (Action::Put, "/o/", Fate::Die),
        (Action::Put, "/o/", Fate::DieAfter),
        // By now the journal tells of the head.
        (Action::Put, "/h/", Fate::Die),
        (Action::Put, "/h/", Fate::DieAfter),
        (Action::Delete, "/o/", Fate::Die),
    ] {
        let [mut one, two] = devices().await;
        one.say("first").await;
        one.sync().await;
        one.say("second").await;
        if action == Action::Delete {
            // The segment before the last one goes with the publish after it.
            one.sync().await;
            one.say("third").await;
        }
        one.remote.once(action, part, fate);
        one.die().await;
        let report = one.sync().await;
        assert!(
            !report.began_again && report.problems.is_empty(),
            "{action:?} {fate:?}: {report:?}"
        );
        let all = ["first", "second", "third"];
        let said = if action == Action::Delete { &all[..] } else { &all[..2] };
        all_have(&[&one, &two], said).await;
        // What nobody lists is gone.
        assert!(named(&one.remote.objects, "/o/").len() <= 3, "{action:?} {fate:?}");
    }
}

#[tokio::test]
async fn a_process_that_dies_after_storing_and_before_noting_that_stores_nothing_twice() {
    let [one, two] = devices().await;
    one.say("heard").await;
    one.sync().await;
    let root = two.home.store(&Scope::Default).await;
    let before = exchange::read_state(&root, Sharing::Devices).await.unwrap().unwrap();
    two.sync().await;
    assert_eq!(two.words().await, ["heard"]);
    exchange::write_state(&root, Sharing::Devices, &before).await.unwrap();
    let report = two.sync().await;
    assert_eq!(report.received, 0, "{report:?}");
    all_have(&[&one, &two], &["heard"]).await;
}

#[tokio::test]
async fn requests_that_fail_in_any_way_lose_and_double_nothing() {
    for fate in [Fate::Lose, Fate::LoseAnswer, Fate::Truncate, Fate::Delay, Fate::Double] {
        for part in ["/o/", "/h/"] {
            let [one, two] = devices().await;
            one.say("first").await;
            one.sync().await;
            one.say("second").await;
            one.remote.once(Action::Put, part, fate);
            let outcome = one.try_sync().await;
            assert_eq!(outcome.is_ok(), fate == Fate::Double, "{part} {fate:?}: {outcome:?}");
            two.sync().await;
            one.say("third").await;
            one.sync().await;
            // An object or a head of before.
            one.remote.arrive().await;
            two.sync().await;
            all_have(&[&one, &two], &["first", "second", "third"]).await;
        }
    }
}

#[tokio::test]
async fn an_object_that_arrives_cut_off_is_read_again_with_the_next_sync() {
    for part in ["/o/", "/h/"] {
        let [one, two] = devices().await;
        one.say("heard").await;
        one.sync().await;
        two.remote.once(Action::Get, part, Fate::Truncate);
        two.sync().await;
        all_have(&[&one, &two], &["heard"]).await;
    }
}

#[tokio::test]
async fn a_torn_head_leaves_the_one_before_it_and_the_next_sync_writes_it_again() {
    let [one, two] = devices().await;
    one.say("first").await;
    one.sync().await;
    one.say("second").await;
    one.remote.once(Action::Put, "/h/", Fate::Truncate);
    one.try_sync().await.unwrap_err();
    let report = two.sync().await;
    assert_eq!(two.words().await, ["first"], "{report:?}");
    all_have(&[&one, &two], &["first", "second"]).await;
    assert!(two.sync().await.problems.is_empty());
}

#[tokio::test]
async fn a_late_write_of_an_old_head_undoes_nothing() {
    let [one, two] = devices().await;
    one.say("first").await;
    one.remote.once(Action::Put, "/h/", Fate::Delay);
    one.try_sync().await.unwrap_err();
    one.sync().await;
    for text in ["second", "third", "fourth"] {
        one.say(text).await;
        one.sync().await;
        two.sync().await;
    }
    one.remote.arrive().await;
    two.sync().await;
    one.say("fifth").await;
    all_have(&[&one, &two], &["first", "second", "third", "fourth", "fifth"]).await;
}

#[tokio::test]
async fn a_remote_that_was_rolled_back_is_reported_and_gets_everything_again() {
    let [one, two] = devices().await;
    one.say("first").await;
    one.sync().await;
    two.sync().await;
    let copy = one.remote.objects.objects();
    one.say("second").await;
    one.sync().await;
    two.sync().await;
    one.remote.objects.restore(copy);
    let report = two.sync().await;
    assert_eq!(problems(&report), ["rolled back"], "{report:?}");
    assert_eq!(two.words().await, ["first", "second"], "nothing is undone");
    assert!(one.sync().await.began_again);
    let third = one.copied();
    all_have(&[&one, &two], &["first", "second"]).await;
    drop(third);
}

#[tokio::test]
async fn a_remote_that_was_wiped_gets_everything_again() {
    let [one, two] = devices().await;
    one.say("of one").await;
    one.sync().await;
    two.say("of two").await;
    two.sync().await;
    one.sync().await;
    one.remote.objects.restore(Default::default());
    for machine in [&one, &two] {
        // It may as well be a folder that is not mounted.
        let outcome = machine.try_sync().await;
        assert!(matches!(outcome, Err(SyncError::Absent { .. })), "{outcome:?}");
    }
    assert!(named(&one.remote.objects, "").is_empty());
    one.syncer.mend(|_| {}).await.unwrap();
    assert!(two.sync().await.began_again);
    all_have(&[&one, &two], &["of one", "of two"]).await;
    let invitation = one.syncer.invitation().await.unwrap();
    let third = Machine::new(&one.remote.objects);
    third.syncer.join(&invitation, Default::default()).await.unwrap();
    all_have(&[&third], &["of one", "of two"]).await;
}

#[tokio::test]
async fn a_device_remembers_of_each_other_one_no_more_the_more_there_are() {
    let machines: [Machine; 6] = devices().await;
    for machine in machines.iter().cycle().take(18) {
        machine.say("news").await;
        machine.sync().await;
    }
    for machine in machines.iter().cycle().take(12) {
        machine.sync().await;
    }
    for machine in &machines {
        let root = machine.home.store(&Scope::Default).await;
        let state = exchange::read_state(&root, Sharing::Devices).await.unwrap().unwrap();
        let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
        let peers = state["peers"].as_object().unwrap();
        assert_eq!(peers.len(), 5);
        assert!(
            peers.values().all(|peer| peer["seen"].as_object().unwrap().len() == 1),
            "{peers:?}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_is_withheld_from_one_device_shows_there() {
    let [one, two, three] = devices().await;
    one.say("first").await;
    for machine in [&one, &two, &three] {
        machine.sync().await;
    }
    let device = one.syncer.status().await.unwrap().device.to_string();
    // The remote returns what it had to the third device, and the newest to the second.
    let old = one.remote.objects.objects();
    one.say("second").await;
    one.sync().await;
    two.sync().await;
    let newest = one.remote.objects.objects();
    let mut mixed = newest.clone();
    mixed.retain(|name, _| !name.contains(&device));
    mixed.extend(old.into_iter().filter(|(name, _)| name.contains(&device)));
    one.remote.objects.restore(mixed);
    let report = three.sync().await;
    assert!(problems(&report).contains(&"withheld"), "{report:?}");
    one.remote.objects.restore(newest);
    all_have(&[&one, &two, &three], &["first", "second"]).await;
}

#[tokio::test]
async fn a_store_that_was_restored_from_a_backup_gets_back_what_it_had_published() {
    let [one, two] = devices().await;
    one.say("first").await;
    one.sync().await;
    let backup = one.back_up();
    one.say("second").await;
    one.sync().await;
    one.restore(&backup);
    assert_eq!(one.words().await, ["first"]);
    one.say("after the restore").await;
    assert!(one.sync().await.began_again);
    all_have(&[&one, &two], &["first", "second", "after the restore"]).await;
}

#[tokio::test]
async fn a_conversation_whose_folder_was_restored_gets_back_what_it_had_published() {
    let [one, two] = devices().await;
    let kitchen = Scope::Named { id: "kitchen".to_owned() };
    one.say_in(&kitchen, "first").await;
    one.sync().await;
    let backup = one.back_up();
    one.say_in(&kitchen, "second").await;
    one.sync().await;
    one.restore_scope(&backup, &kitchen);
    assert_eq!(one.words_in(&kitchen).await, ["first"]);
    one.say_in(&kitchen, "after the restore").await;
    one.sync().await;
    two.sync().await;
    one.sync().await;
    let all = ["first", "second", "after the restore"];
    assert_eq!(one.words_in(&kitchen).await, all);
    assert_eq!(two.words_in(&kitchen).await, all);
}

#[tokio::test]
async fn a_conversation_that_was_restored_and_forgot_something_gets_back_the_rest() {
    let [one, two] = devices().await;
    let kitchen = Scope::Named { id: "kitchen".to_owned() };
    let first = one.say_in(&kitchen, "first").await;
    let backup = one.back_up();
    one.say_in(&kitchen, "second").await;
    one.sync().await;
    one.restore_scope(&backup, &kitchen);
    // The record of that gets the number that the second message had.
    one.home.store(&kitchen).await.forget(&[first..=first]).await.unwrap();
    for machine in [&one, &two, &one] {
        machine.sync().await;
        assert_eq!(machine.words_in(&kitchen).await, ["second"]);
    }
}

#[tokio::test]
async fn two_copies_of_a_store_that_publish_at_once_lose_nothing() {
    let [one, two] = devices().await;
    one.say("before").await;
    one.sync().await;
    let clone = one.copied();
    one.say("of one").await;
    clone.home.clock.advance(SignedDuration::from_secs(10));
    clone.say("of the copy").await;
    let (a, b) = tokio::join!(one.try_sync(), clone.try_sync());
    // Either may find the other's head in its place.
    for outcome in [a, b] {
        assert!(
            matches!(outcome, Ok(_) | Err(SyncError::Contested | SyncError::Object { .. })),
            "{outcome:?}"
        );
    }
    all_have(&[&one, &clone, &two], &["before", "of one", "of the copy"]).await;
}

#[tokio::test]
async fn devices_that_were_both_restored_from_one_backup_become_two() {
    let [one, two] = devices().await;
    one.say("before").await;
    one.sync().await;
    let backup = one.back_up();
    let new = one.copied();
    one.say("lost with the first device").await;
    one.restore(&backup);
    one.say("of the first").await;
    new.home.clock.advance(SignedDuration::from_secs(10));
    new.say("of the new one").await;
    all_have(&[&one, &new, &two], &["before", "of the first", "of the new one"]).await;
}

#[tokio::test]
async fn the_same_import_on_two_devices_is_there_once() {
    let [one, two] = devices().await;
    let said = || {
        let at: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        ChatMessage::at(ChatRole::User, "imported", at)
    };
    let export = one.folder().join("export.json");
    let store = one.home.store(&Scope::Default).await;
    store.import(vec![said()]).await.unwrap();
    let mut exporter = Exporter::to_file(ExportForm::Json, &export).unwrap();
    exporter.add(&store, ExportRange::default(), |_| {}).await.unwrap();
    exporter.finish().await.unwrap();
    for machine in [&one, &two] {
        let home = Arc::clone(&machine.home);
        let open = Box::new(move |scope: Scope| {
            let home = Arc::clone(&home);
            Box::pin(async move { Ok(home.store(&scope).await) }) as _
        });
        Backup::new(&export).import(open, |_| {}, |_| {}).await.unwrap();
    }
    all_have(&[&one, &two], &["imported"]).await;
}

#[tokio::test]
async fn a_forgetting_that_arrives_before_its_message_keeps_it_away() {
    let [one, two, three] = devices().await;
    one.say("kept").await;
    one.say("forgotten").await;
    one.sync().await;
    two.sync().await;
    two.forget("forgotten").await;
    two.sync().await;
    // The third reads the second's stream while the first's cannot be reached.
    let device = one.syncer.status().await.unwrap().device.to_string();
    three
        .remote
        .decide(move |_, name| if name.contains(&device) { Fate::Lose } else { Fate::Pass });
    three.try_sync().await.unwrap_err();
    three.remote.decide(|_, _| Fate::Pass);
    all_have(&[&three, &two, &one], &["kept"]).await;
}

#[tokio::test]
async fn clocks_that_are_wrong_by_decades_change_no_more_than_the_order() {
    let [one, two] = devices().await;
    let set = |machine: &Machine, text: &str| {
        let at: Timestamp = text.parse().unwrap();
        machine.home.clock.set(at.to_zoned(TimeZone::UTC));
    };
    set(&one, "1970-01-02T00:00:00Z");
    set(&two, "2035-01-01T00:00:00Z");
    one.say("in 1970").await;
    two.say("in 2035").await;
    for machine in [&one, &two, &one] {
        machine.sync().await;
    }
    for machine in [&one, &two] {
        let mut words = machine.words().await;
        words.sort();
        assert_eq!(words, ["in 1970", "in 2035"]);
    }
    set(&one, "2026-01-01T00:00:00Z");
    set(&two, "2026-01-01T00:00:00Z");
    one.say("now").await;
    one.forget("in 2035").await;
    all_have(&[&one, &two], &["in 1970", "now"]).await;
}

/// Three devices talk, of which the second has a clock that is wrong by so many hours.
async fn talk_of_three(hours: i64) -> [Machine; 3] {
    let machines: [Machine; 3] = devices().await;
    machines[0].say("before").await;
    for machine in &machines {
        machine.sync().await;
    }
    machines[1].home.clock.advance(SignedDuration::from_hours(hours));
    for round in 0..4 {
        for (at, machine) in machines.iter().enumerate() {
            machine.home.clock.advance(SignedDuration::from_millis(1500 + 70 * at as i64));
            machine.say(&format!("{round} by {at}")).await;
            machine.say(&format!("{round} more by {at}")).await;
            if (round + at) % 2 == 0 {
                machine.sync().await;
            }
        }
    }
    for machine in machines.iter().cycle().take(9) {
        machine.sync().await;
    }
    machines
}

#[tokio::test]
async fn a_clock_that_is_days_off_gives_all_devices_one_order() {
    for hours in [72, 150, -72, -24 * 365 * 50] {
        let [one, two, three] = talk_of_three(hours).await;
        let mut words = one.words().await;
        assert_eq!(words.len(), 25);
        assert_eq!(two.words().await, words);
        assert_eq!(three.words().await, words);
        // Whoever speaks next has the last word, though its clock is behind.
        three.say("and then").await;
        for machine in [&three, &one, &two] {
            machine.sync().await;
        }
        words.push("and then".to_owned());
        for machine in [&one, &two, &three] {
            assert_eq!(machine.words().await, words, "{hours}");
        }
    }
}

#[tokio::test]
async fn a_clock_that_is_decades_ahead_moves_nobody_elses_words() {
    let [one, _, three] = talk_of_three(24 * 365 * 30).await;
    let by_others = async |machine: &Machine| {
        let mut words = machine.words().await;
        words.retain(|word| !word.ends_with("by 1"));
        words
    };
    assert_eq!(by_others(&one).await, by_others(&three).await);
    assert_eq!(by_others(&one).await.len(), 17);
    for machine in [one, three] {
        let tail = machine.home.store(&Scope::Default).await.read_tail(99).await.unwrap().messages;
        let now = machine.home.clock.now().timestamp();
        assert!(
            tail.iter().all(|stored| stored.ordered_at() <= now + SignedDuration::from_secs(9))
        );
    }
}

#[tokio::test]
async fn what_limits_remove_on_one_device_stays_on_the_others() {
    let [one, two] = devices().await;
    for text in ["first", "second", "third"] {
        one.say(text).await;
    }
    one.sync().await;
    two.sync().await;
    let key = EncryptionKey::from_secret(SECRET).unwrap();
    let mut retention = Retention::FOREVER;
    retention.max_messages = NonZeroU32::new(1);
    let options = StoreOptions::new(key).clock(Arc::clone(&one.home.clock) as _);
    let tight = options.retention(retention).open(&one.home.folder).await.unwrap();
    let now = one.home.clock.now().timestamp();
    tight.append_message(ChatMessage::at(ChatRole::User, "fourth", now)).await.unwrap();
    tight.cleanup().await.unwrap();
    drop(tight);
    assert_eq!(one.words().await, ["fourth"]);
    for machine in [&one, &two, &one, &two] {
        machine.sync().await;
    }
    assert_eq!(one.words().await, ["fourth"], "what limits removed does not come back");
    assert_eq!(two.words().await, ["first", "second", "third", "fourth"]);
}

#[tokio::test]
async fn a_device_that_was_removed_cannot_publish_and_reads_nothing_new() {
    let [one, two, three] = devices().await;
    one.say("before").await;
    all_have(&[&one, &two, &three], &["before"]).await;
    three.say("of the lost one").await;
    let old = one.syncer.invitation().await.unwrap();
    one.syncer.remove_device("device 2", |_| {}).await.unwrap();
    let joining = Machine::new(&one.remote.objects);
    let outcome = joining.syncer.join(&old, Default::default()).await;
    assert!(matches!(outcome, Err(SyncError::Closed)), "{outcome:?}");
    assert!(matches!(three.try_sync().await, Err(SyncError::Closed)));
    assert!(matches!(two.try_sync().await, Err(SyncError::Closed)));
    let invitation = one.syncer.invitation().await.unwrap();
    two.syncer.join(&invitation, Default::default()).await.unwrap();
    one.say("after").await;
    all_have(&[&one, &two], &["before", "after"]).await;
    assert!(matches!(three.try_sync().await, Err(SyncError::Closed)));
    assert_eq!(three.words().await, ["before", "of the lost one"]);
}

#[tokio::test]
async fn a_device_that_begins_anew_loses_nothing_of_its_stream_that_it_could_not_read() {
    // Every answer, or all but each third one, is cut off: always at the same place, as a torn write is.
    for (part, spared) in [("/o/", 3), ("/h/", 0), ("/h/", 1), ("/h/", 2), ("/h/", 3)] {
        let [one, two] = devices().await;
        one.say("first").await;
        one.sync().await;
        let backup = one.back_up();
        one.say("second").await;
        one.sync().await;
        one.restore(&backup);
        let device = one.syncer.status().await.unwrap().device.to_string();
        let mut asked = 0;
        one.remote.decide(move |action, name| {
            asked += 1;
            match action == Action::Get && name.contains(part) && name.contains(&device) {
                true if asked % 3 != spared => Fate::Truncate,
                _ => Fate::Pass,
            }
        });
        drop(one.try_sync().await);
        one.remote.decide(|_, _| Fate::Pass);
        all_have(&[&two, &one], &["first", "second"]).await;
    }
}
