//! A server that was put back to an older state: members notice, and what it lost is there again

use sottovoce_sync::SyncReport;
use sottovoce_team::Level;

use crate::house::{House, PLANS, Person};
use crate::proxy::Fate;

/// Exchanges until nothing changes any more, and checks that all hold these words and nothing is wrong in the end.
async fn all_hold(people: &[&Person], words: &[&str]) {
    for _ in 0..3 {
        for person in people {
            person.teams.sync(|_| {}).await.unwrap();
        }
    }
    let mut expected: Vec<String> = words.iter().map(|&words| words.to_owned()).collect();
    expected.sort();
    for person in people {
        assert_eq!(person.sync().await, SyncReport::default(), "{}", person.name);
        assert_eq!(person.words(PLANS).await, expected, "{}", person.name);
    }
}

async fn say(person: &Person, words: &[&str]) {
    for words in words {
        person.says(PLANS, words).await;
    }
}

async fn family() -> (House, Person, Person) {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    anna.sync().await;
    house.save_server().await;
    (house, anna, ben)
}

#[tokio::test]
async fn what_members_say_after_the_server_was_put_back_reaches_those_who_had_read_further() {
    let (mut house, anna, ben) = family().await;
    say(&anna, &["anna 2", "anna 3"]).await;
    anna.sync().await;
    house.restore_server().await;
    say(&ben, &["ben 2", "ben 3"]).await;
    ben.sync().await;
    // The server's last position is the one that Anna has read: only the record there is another.
    let problems = anna.problems().await;
    assert!(problems.iter().any(|p| p.to_string().contains("older state")), "{problems:?}");
    let dora = house.guest(&anna, "Dora", Level::Write).await;
    let all = ["We meet on Monday", "anna 2", "anna 3", "ben 2", "ben 3"];
    all_hold(&[&anna, &ben, &dora], &all).await;
}

#[tokio::test]
async fn a_server_that_was_put_back_gets_again_what_only_others_than_the_writer_have() {
    let (mut house, anna, ben) = family().await;
    say(&anna, &["anna 2"]).await;
    anna.sync().await;
    ben.sync().await;
    house.restore_server().await;
    // Anna's device is gone.
    let problems = ben.problems().await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    let dora = house.guest(&anna, "Dora", Level::Write).await;
    assert!(dora.holds(PLANS).await.contains(&"Anna: anna 2".to_owned()));
}

#[tokio::test]
async fn what_was_forgotten_after_the_copy_is_forgotten_again_also_by_those_who_come_later() {
    let (mut house, anna, ben) = family().await;
    say(&anna, &["the secret"]).await;
    anna.sync().await;
    ben.sync().await;
    house.save_server().await;
    anna.forgets(PLANS, "the secret").await;
    anna.forgets(PLANS, "We meet on Monday").await;
    say(&anna, &["after"]).await;
    anna.sync().await;
    house.restore_server().await;
    anna.problems().await;
    let dora = house.guest(&anna, "Dora", Level::Write).await;
    all_hold(&[&anna, &ben, &dora], &["after"]).await;
}

#[tokio::test]
async fn what_another_member_forgot_after_the_copy_is_told_again_by_whoever_heard_of_it() {
    let (mut house, anna, ben) = family().await;
    anna.forgets(PLANS, "We meet on Monday").await;
    anna.sync().await;
    ben.sync().await;
    house.restore_server().await;
    ben.problems().await;
    let dora = house.guest(&anna, "Dora", Level::Write).await;
    assert!(dora.words(PLANS).await.is_empty());
}

#[tokio::test]
async fn what_was_appended_and_never_read_back_is_appended_again() {
    let (mut house, anna, ben) = family().await;
    say(&anna, &["anna 2"]).await;
    // The list, the log, the append, and then the network fails.
    let mut appended = false;
    house.proxy.decide(move |name| match (appended, name.ends_with("/messages")) {
        (true, _) => Fate::Lose,
        (false, is_append) => {
            appended = is_append;
            Fate::Pass
        }
    });
    anna.teams.sync(|_| {}).await.unwrap_err();
    house.proxy.calm();
    house.restore_server().await;
    say(&ben, &["ben 2"]).await;
    ben.sync().await;
    all_hold(&[&anna, &ben], &["We meet on Monday", "anna 2", "ben 2"]).await;
}

#[tokio::test]
async fn a_title_that_was_set_after_the_copy_holds_and_an_older_one_does_not_return() {
    let (mut house, anna, ben) = family().await;
    anna.sets_title("first").await;
    anna.sync().await;
    house.save_server().await;
    anna.sets_title("second").await;
    anna.sync().await;
    house.restore_server().await;
    ben.sync().await;
    all_hold(&[&anna, &ben], &["We meet on Monday"]).await;
    for person in [&anna, &ben] {
        assert_eq!(person.title().await.as_deref(), Some("second"), "{}", person.name);
    }
}

#[tokio::test]
async fn a_title_that_only_some_had_read_holds_whoever_notices_first_that_the_server_was_put_back()
{
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (mut house, anna, ben) = family().await;
        let carl = house.guest(&anna, "Carl", Level::Write).await;
        house.save_server().await;
        anna.sets_title("first").await;
        for person in [&anna, &ben, &carl] {
            person.sync().await;
        }
        ben.sets_title("second").await;
        ben.sync().await;
        anna.sync().await;
        house.restore_server().await;
        let people = [&anna, &ben, &carl];
        for n in order {
            people[n].problems().await;
        }
        all_hold(&people, &["We meet on Monday"]).await;
        let dora = house.guest(&anna, "Dora", Level::Read).await;
        for person in [&anna, &ben, &carl, &dora] {
            assert_eq!(
                person.title().await.as_deref(),
                Some("second"),
                "{} {order:?}",
                person.name
            );
        }
        // What somebody sets now is newer than what was there before.
        carl.sets_title("third").await;
        all_hold(&people, &["We meet on Monday"]).await;
        for person in people {
            assert_eq!(person.title().await.as_deref(), Some("third"), "{} {order:?}", person.name);
        }
    }
}

#[tokio::test]
async fn a_title_that_was_set_and_not_shared_yet_holds_when_the_server_is_put_back() {
    let (mut house, anna, ben) = family().await;
    anna.sets_title("first").await;
    anna.sync().await;
    ben.sync().await;
    house.restore_server().await;
    ben.sets_title("second").await;
    for person in [&anna, &ben] {
        person.problems().await;
    }
    all_hold(&[&anna, &ben], &["We meet on Monday"]).await;
    for person in [&anna, &ben] {
        assert_eq!(person.title().await.as_deref(), Some("second"), "{}", person.name);
    }
}

#[tokio::test]
async fn a_member_who_was_shut_out_after_the_copy_is_shut_out_again() {
    let (mut house, anna, ben) = family().await;
    anna.teams.revoke(None, "Ben", None).await.unwrap();
    say(&anna, &["without Ben"]).await;
    anna.sync().await;
    assert!(ben.teams.sync(|_| {}).await.is_err());
    house.restore_server().await;
    ben.teams.sync(|_| {}).await.unwrap();
    anna.problems().await;
    assert!(ben.teams.sync(|_| {}).await.is_err());
}

#[tokio::test]
async fn who_has_just_got_a_new_key_notices_too_that_the_server_was_put_back() {
    let (mut house, anna, ben) = family().await;
    house.guest(&anna, "Carl", Level::Write).await;
    house.save_server().await;
    let link = anna.teams.revoke(None, "Carl", None).await.unwrap().unwrap();
    say(&anna, &["with the new key"]).await;
    anna.sync().await;
    say(&ben, &["ben 2"]).await;
    ben.problems().await;
    ben.teams.join(&link, "Ben").await.unwrap();
    house.restore_server().await;
    let problems = ben.problems().await;
    assert!(problems.iter().any(|p| p.to_string().contains("older state")), "{problems:?}");
    let all = ["We meet on Monday", "with the new key", "ben 2"];
    all_hold(&[&anna, &ben], &all).await;
    let dora = house.guest(&anna, "Dora", Level::Read).await;
    all_hold(&[&dora], &all).await;
}

#[tokio::test]
async fn reading_from_the_start_brings_back_nothing_and_doubles_nothing() {
    let (_house, anna, ben) = family().await;
    say(&anna, &["two", "three"]).await;
    anna.forgets(PLANS, "two").await;
    anna.sync().await;
    ben.sync().await;
    for person in [&anna, &ben] {
        person.teams.begin_again().await.unwrap();
        assert_eq!(person.sync().await, SyncReport::default(), "{}", person.name);
    }
    all_hold(&[&anna, &ben], &["We meet on Monday", "three"]).await;
}
