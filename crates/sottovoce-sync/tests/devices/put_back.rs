//! What is put back, chosen later, or interrupted twice: combinations in which devices parted without a word

use std::collections::BTreeMap;
use std::io::Cursor;

use sottovoce::exchange::{Exchange, Incoming, Origin, SharedMessage};
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact};
use sottovoce::{ChatMessage, ChatRole, Clock, ConversationStore, Scope};
use sottovoce_remote::Action;
use sottovoce_sync::{Selection, SyncError};

use crate::house::{Fate, Machine, all_have, devices, named, problems};

fn kitchen() -> Scope {
    Scope::Named { id: "kitchen".to_owned() }
}

fn all() -> Selection {
    Selection { all: true, ..Selection::default() }
}

async fn rounds(machines: &[&Machine]) {
    for machine in machines.iter().cycle().take(4 * machines.len()) {
        machine.sync().await;
    }
}

#[tokio::test]
async fn a_remote_and_a_device_that_are_put_back_together_lose_nothing_that_another_heard() {
    for is_first in [false, true] {
        let [one, two] = devices().await;
        one.say("before").await;
        rounds(&[&one, &two]).await;
        let (backup, copy) = (one.back_up(), one.remote.objects.objects());
        one.say("between").await;
        one.sync().await;
        // A poll writes no head that would tell of it.
        two.syncer.poll().await.unwrap();
        one.remote.objects.restore(copy);
        one.restore(&backup);
        if is_first {
            two.sync().await;
        }
        one.say("after").await;
        one.sync().await;
        rounds(&[&two, &one]).await;
        let said = ["before", "between", "after"];
        for machine in [&one, &two] {
            let mut words = machine.words().await;
            words.sort_by_key(|word| said.iter().position(|said| said == word));
            assert_eq!(words, said);
        }
    }
}

#[tokio::test]
async fn what_was_forgotten_with_one_conversation_is_not_taken_for_another_ones() {
    let [one, two] = devices().await;
    two.say("the secret").await;
    two.say_in(&kitchen(), "something").await;
    rounds(&[&two, &one]).await;
    two.forget_all(&kitchen()).await;
    two.forget_all(&Scope::Default).await;
    let other = Selection { except: vec!["default".to_owned()], ..all() };
    two.syncer.select(other).await.unwrap();
    let seq = one.say_in(&kitchen(), "in the kitchen").await;
    one.sync().await;
    let report = two.sync().await;
    assert_eq!(report.forgotten, 1, "one message of the kitchen was forgotten");
    one.home.store(&kitchen()).await.forget(&[seq..=seq]).await.unwrap();
    two.syncer.select(all()).await.unwrap();
    rounds(&[&one, &two]).await;
    assert!(one.words().await.is_empty(), "what was forgotten is still there");
}

#[tokio::test]
async fn a_conversation_that_is_heard_of_between_two_interruptions_is_forgotten_everywhere() {
    let [one, two] = devices().await;
    two.say("own").await;
    two.remote.once(Action::Put, "/h/", Fate::LoseAnswer);
    two.try_sync().await.unwrap_err();
    one.say_in(&kitchen(), "the secret").await;
    one.sync().await;
    let device = two.syncer.status().await.unwrap().device.to_string();
    two.remote.decide(move |action, name| {
        let is_own = action == Action::Get && name.contains("/h/") && name.contains(&device);
        if is_own { Fate::Lose } else { Fate::Pass }
    });
    two.try_sync().await.unwrap_err();
    two.remote.decide(|_, _| Fate::Pass);
    two.forget_all(&kitchen()).await;
    rounds(&[&two, &one]).await;
    assert_eq!(one.words_in(&kitchen()).await, two.words_in(&kitchen()).await);
}

#[tokio::test]
async fn an_artifact_that_came_after_a_forgetting_stays_if_its_conversation_is_shared_no_more() {
    let [one, two] = devices().await;
    two.say_in(&kitchen(), "something").await;
    rounds(&[&two, &one]).await;
    two.forget_all(&kitchen()).await;
    let store = one.home.store(&kitchen()).await;
    let new = NewArtifact::new(ArtifactKind::File, "plan.txt");
    store.add_artifact(new, Box::new(Cursor::new(b"contents".to_vec()))).await.unwrap();
    one.sync().await;
    two.remote.decide(|action, _| if action == Action::Put { Fate::Lose } else { Fate::Pass });
    two.try_sync().await.unwrap_err();
    two.remote.decide(|_, _| Fate::Pass);
    let other = Selection { except: vec!["named/kitchen".to_owned()], ..all() };
    two.syncer.select(other).await.unwrap();
    rounds(&[&two, &one]).await;
    for machine in [&one, &two] {
        let (left, _) = machine.home.store(&kitchen()).await.artifacts().await.unwrap();
        assert_eq!(left.len(), 1, "an artifact was deleted that nobody has forgotten");
    }
}

#[tokio::test]
async fn an_artifact_that_had_not_arrived_goes_when_its_conversation_is_forgotten() {
    let [one, two] = devices().await;
    one.say_in(&kitchen(), "look at this").await;
    let store = one.home.store(&kitchen()).await;
    let new = NewArtifact::new(ArtifactKind::File, "plan.txt");
    store.add_artifact(new, Box::new(Cursor::new(b"contents".to_vec()))).await.unwrap();
    one.sync().await;
    let waiting = without_contents(&one, &two).await;
    waiting.forget_all(&kitchen()).await;
    rounds(&[&waiting, &one, &waiting]).await;
    let (left, _) = one.home.store(&kitchen()).await.artifacts().await.unwrap();
    assert!(left.is_empty(), "an artifact survives its conversation");
}

#[tokio::test]
async fn an_artifact_that_arrived_with_an_interrupted_sync_is_deleted_everywhere() {
    let [one, two] = devices().await;
    let store = one.home.store(&Scope::Default).await;
    let new = NewArtifact::new(ArtifactKind::File, "plan.txt");
    store.add_artifact(new, Box::new(Cursor::new(b"contents".to_vec()))).await.unwrap();
    one.sync().await;
    let waiting = without_contents(&one, &two).await;
    waiting.remote.once(Action::List, "/h", Fate::Lose);
    waiting.try_sync().await.unwrap_err();
    let there = waiting.home.store(&Scope::Default).await;
    let (arrived, _) = there.artifacts().await.unwrap();
    there.delete_artifacts(&[arrived[0].id.clone()]).await.unwrap();
    rounds(&[&waiting, &one]).await;
    assert!(store.artifacts().await.unwrap().0.is_empty(), "the other device keeps it");
}

/// A copy of the second device that has heard of the first one's artifact, whose contents have not arrived at the remote, as
/// with a folder that something else carries over.
async fn without_contents(one: &Machine, two: &Machine) -> Machine {
    let truth = one.remote.objects.objects();
    for name in named(&one.remote.objects, "/o/") {
        one.remote.objects.restore(without(&truth, &name));
        let waiting = two.copied();
        let outcome = waiting.try_sync().await;
        one.remote.objects.restore(truth.clone());
        if outcome.is_ok_and(|report| problems(&report) == ["artifact"]) {
            return waiting;
        }
    }
    panic!("no object has the contents");
}

#[tokio::test]
async fn an_artifact_that_had_not_arrived_is_not_deleted_when_a_device_is_shut_out() {
    let [one, two, three] = devices().await;
    one.say("look at this").await;
    let store = one.home.store(&Scope::Default).await;
    let new = NewArtifact::new(ArtifactKind::File, "plan.txt");
    store.add_artifact(new, Box::new(Cursor::new(b"contents".to_vec()))).await.unwrap();
    rounds(&[&three, &one]).await;
    let truth = one.remote.objects.objects();
    for name in named(&one.remote.objects, "/o/") {
        one.remote.objects.restore(without(&truth, &name));
        let waiting = two.copied();
        if !waiting.try_sync().await.is_ok_and(|report| problems(&report) == ["artifact"]) {
            continue;
        }
        waiting.syncer.remove_device("device 2", |_| {}).await.unwrap();
        assert!(matches!(one.try_sync().await, Err(SyncError::Closed)));
        let invitation = waiting.syncer.invitation().await.unwrap();
        one.syncer.join(&invitation, Default::default()).await.unwrap();
        rounds(&[&waiting, &one, &waiting]).await;
        for machine in [&one, &waiting] {
            let store = machine.home.store(&Scope::Default).await;
            assert_eq!(store.artifacts().await.unwrap().0.len(), 1);
        }
        return;
    }
    panic!("no object has the contents");
}

fn without<T: Clone>(objects: &BTreeMap<String, T>, name: &str) -> BTreeMap<String, T> {
    objects.iter().filter(|(key, _)| *key != name).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[tokio::test]
async fn what_others_said_reaches_a_new_remote_also_if_it_is_selected_later() {
    let [one, two] = devices().await;
    two.say_in(&kitchen(), "of the other one").await;
    rounds(&[&two, &one]).await;
    one.syncer.stop().await.unwrap();
    one.remote.objects.restore(Default::default());
    let usual = Selection { only: vec!["default".to_owned()], ..Selection::default() };
    let options =
        sottovoce_sync::DeviceOptions { name: "device 0".to_owned(), selection: usual.clone() };
    one.syncer.init("memory:", options).await.unwrap();
    one.sync().await;
    one.syncer.select(all()).await.unwrap();
    one.sync().await;
    let invitation = one.syncer.invitation().await.unwrap();
    let third = Machine::new(&one.remote.objects);
    third.syncer.join(&invitation, Default::default()).await.unwrap();
    third.sync().await;
    assert_eq!(third.words_in(&kitchen()).await, ["of the other one"]);
    // What is in the streams already is not published again.
    let objects = one.remote.objects.objects();
    for selection in [usual, all()] {
        one.syncer.select(selection).await.unwrap();
        assert_eq!(one.sync().await.published, 0);
    }
    assert!(one.remote.objects.objects().len() <= objects.len());
}

#[tokio::test]
async fn a_stream_stays_that_has_a_conversation_which_its_device_shares_no_more() {
    let [one, two] = devices().await;
    rounds(&[&one, &two]).await;
    let backup = two.back_up();
    two.say_in(&kitchen(), "published before").await;
    two.sync().await;
    two.restore(&backup);
    two.syncer
        .select(Selection { except: vec!["named/kitchen".to_owned()], ..all() })
        .await
        .unwrap();
    two.say("after").await;
    assert!(two.sync().await.began_again);
    rounds(&[&one, &two]).await;
    assert_eq!(one.words_in(&kitchen()).await, ["published before"]);
    two.syncer.select(all()).await.unwrap();
    rounds(&[&two, &one]).await;
    assert_eq!(two.words_in(&kitchen()).await, ["published before"]);
    let streams: std::collections::BTreeSet<String> = named(&one.remote.objects, "/h/")
        .iter()
        .map(|name| name.rsplit_once('/').unwrap().1.get(..32).unwrap().to_owned())
        .collect();
    assert_eq!(streams.len(), 2, "a stream that nobody writes is left: {streams:?}");
}

#[tokio::test]
async fn a_device_that_begins_again_and_is_interrupted_keeps_what_it_takes_over() {
    for after in 1..40 {
        let [one, two] = devices().await;
        rounds(&[&one, &two]).await;
        let backup = two.back_up();
        two.say("published before").await;
        two.sync().await;
        two.restore(&backup);
        let mut left: i32 = after;
        two.remote.decide(move |_, _| {
            left -= 1;
            if left <= 0 { Fate::Lose } else { Fate::Pass }
        });
        let is_over = two.try_sync().await.is_ok();
        two.remote.decide(|_, _| Fate::Pass);
        two.sync().await;
        let third = Machine::new(&one.remote.objects);
        let invitation = one.syncer.invitation().await.unwrap();
        third.syncer.join(&invitation, Default::default()).await.unwrap();
        third.sync().await;
        assert_eq!(third.words().await, ["published before"], "interrupted at request {after}");
        if is_over {
            return;
        }
    }
    panic!("the sync is never over");
}

#[tokio::test]
async fn of_two_removals_of_which_one_was_interrupted_the_finished_one_counts() {
    let [mut one, two, three] = devices().await;
    one.say("before").await;
    rounds(&[&one, &two, &three]).await;
    let old = named(&one.remote.objects, "/h/")[0].split('/').next().unwrap().to_owned();
    one.remote.decide(move |action, name| {
        let is_closing = action == Action::Put && name.starts_with(&old) && name.contains("/h/");
        if is_closing { Fate::Die } else { Fate::Pass }
    });
    let removing = std::sync::Arc::clone(&one.syncer);
    one.die_in(removing.remove_device("device 2", |_| {})).await;
    two.syncer.remove_device("device 2", |_| {}).await.unwrap();
    one.say("of the one").await;
    let outcome = one.try_sync().await;
    assert!(matches!(outcome, Err(SyncError::Closed)), "{outcome:?}");
    let invitation = two.syncer.invitation().await.unwrap();
    one.syncer.join(&invitation, Default::default()).await.unwrap();
    all_have(&[&one, &two], &["before", "of the one"]).await;
    assert_eq!(one.syncer.invitation().await.unwrap(), invitation);
}

#[tokio::test]
async fn a_new_device_is_found_by_the_next_poll() {
    let [one, _two] = devices().await;
    one.sync().await;
    let third = Machine::new(&one.remote.objects);
    let invitation = one.syncer.invitation().await.unwrap();
    third.syncer.join(&invitation, Default::default()).await.unwrap();
    third.say("of the third").await;
    third.sync().await;
    one.syncer.poll().await.unwrap();
    assert_eq!(one.words().await, ["of the third"]);
}

#[tokio::test]
async fn devices_that_have_different_messages_at_rest_say_so_and_mend_it_themselves() {
    let [one, two] = devices().await;
    one.say("known to both").await;
    rounds(&[&one, &two]).await;
    // A message of another device, whose stream is gone and of which nobody knows any more.
    let now = two.home.clock.now().timestamp();
    let message = ChatMessage::at(ChatRole::User, "known to one", now);
    let origin = Origin::at_home(&Scope::Default, 99, &message).unwrap();
    let messages = vec![SharedMessage { origin, at: now, copy_of: None, message }];
    let exchange = Exchange::new(two.home.store(&Scope::Default).await);
    exchange.receive(Incoming { messages, ..Incoming::default() }).await.unwrap();
    let report = two.sync().await;
    assert_eq!(problems(&report), ["differs"], "{report:?}");
    rounds(&[&two, &one]).await;
    assert!(one.words().await.contains(&"known to one".to_owned()));
    assert!(problems(&two.sync().await).is_empty() && problems(&one.sync().await).is_empty());
}

#[tokio::test]
async fn a_mending_that_was_interrupted_raises_no_alarm_about_the_stream_that_it_left() {
    for at in 0..3 {
        let [mut one, two] = devices().await;
        one.say("of one").await;
        rounds(&[&one, &two]).await;
        let mut seen = 0;
        one.remote.decide(move |action, _| {
            seen += usize::from(action == Action::Delete);
            if seen > at { Fate::Die } else { Fate::Pass }
        });
        let mending = std::sync::Arc::clone(&one.syncer);
        one.die_in(mending.mend(|_| {})).await;
        let report = one.sync().await;
        assert!(report.problems.is_empty(), "after {at}: {report:?}");
        all_have(&[&one, &two], &["of one"]).await;
    }
}
