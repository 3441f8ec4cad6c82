//! Requests and processes that end in the middle, and stores that are not what they were

use sottovoce_team::Level;

use crate::home::copy;
use crate::house::{House, PLANS, Person};
use crate::proxy::Fate;

/// The fate of one request of a sync: the n-th.
fn nth(fate: Fate, n: usize) -> impl FnMut(&str) -> Fate + Send + 'static {
    let mut count = 0;
    move |_| {
        count += 1;
        if count == n { fate } else { Fate::Pass }
    }
}

/// Has Ben say and forget something while each request in turn meets a fate, and checks that all is exchanged once.
async fn meets(fate: Fate) {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let mut expected = vec!["We meet on Monday".to_owned()];
    for n in 1..=6 {
        let (kept, gone) = (format!("kept {n}"), format!("gone {n}"));
        ben.says(PLANS, &kept).await;
        ben.says(PLANS, &gone).await;
        ben.sync().await;
        ben.forgets(PLANS, &gone).await;
        anna.says(PLANS, &format!("Anna's {n}")).await;
        anna.sync().await;
        ben.says(PLANS, &format!("late {n}")).await;
        house.proxy.decide(nth(fate, n));
        let _ = ben.sync_or_die().await;
        house.proxy.calm();
        for person in [&ben, &anna, &ben, &anna] {
            person.sync().await;
        }
        expected.extend([kept, format!("Anna's {n}"), format!("late {n}")]);
        expected.sort();
        assert_eq!(ben.words(PLANS).await, expected, "{fate:?} {n}");
        assert_eq!(anna.words(PLANS).await, expected, "{fate:?} {n}");
    }
}

#[tokio::test]
async fn a_lost_request_loses_and_doubles_nothing() {
    meets(Fate::Lose).await;
}

#[tokio::test]
async fn a_lost_answer_loses_and_doubles_nothing() {
    meets(Fate::LoseAnswer).await;
}

#[tokio::test]
async fn an_answer_that_is_cut_off_loses_and_doubles_nothing() {
    meets(Fate::CutAnswer).await;
}

#[tokio::test]
async fn a_process_that_is_killed_at_any_request_loses_and_doubles_nothing() {
    meets(Fate::Die).await;
}

#[tokio::test]
async fn a_store_that_was_put_back_to_an_older_state_gets_back_what_it_said_since() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    ben.save();
    ben.says(PLANS, "said and lost").await;
    ben.sync().await;
    anna.sync().await;
    ben.restore();
    ben.says(PLANS, "said after").await;
    ben.sync().await;
    anna.sync().await;
    ben.sync().await;
    for person in [&anna, &ben] {
        let words = person.words(PLANS).await;
        assert_eq!(words, ["We meet on Monday", "said after", "said and lost"], "{}", person.name);
    }
    assert_eq!(anna.sync().await, Default::default());
}

#[tokio::test]
async fn two_copies_of_a_store_go_on_as_two_devices() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let twin = house.person("Twin");
    copy(&ben.home.folder, &twin.home.folder);
    for n in 1..=3 {
        ben.says(PLANS, &format!("Ben {n}")).await;
        ben.sync().await;
        twin.says(PLANS, &format!("Twin {n}")).await;
        twin.sync().await;
    }
    for person in [&ben, &twin, &anna] {
        person.sync().await;
    }
    let words = anna.words(PLANS).await;
    assert_eq!(words.len(), 7, "{words:?}");
    assert_eq!(ben.words(PLANS).await, words);
    assert_eq!(twin.words(PLANS).await, words);
}

#[tokio::test]
async fn what_is_said_while_a_sync_goes_on_goes_out_with_the_next_one() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let talking = async {
        for n in 0..50 {
            anna.says(PLANS, &format!("word {n}")).await;
        }
    };
    let syncing = async {
        for _ in 0..10 {
            anna.sync().await;
        }
    };
    tokio::join!(talking, syncing);
    anna.sync().await;
    ben.sync().await;
    assert_eq!(ben.words(PLANS).await, anna.words(PLANS).await);
    assert_eq!(ben.words(PLANS).await.len(), 51);
}

#[tokio::test]
async fn two_processes_of_one_store_that_sync_at_once_double_nothing() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let other = house.person("Ben");
    for n in 0..5 {
        ben.says(PLANS, &format!("word {n}")).await;
        let (one, two): (_, _) = tokio::join!(both(&ben), both(&other));
        assert_eq!(one + two, 1);
    }
    anna.sync().await;
    assert_eq!(anna.words(PLANS).await, ben.words(PLANS).await);
    assert_eq!(anna.words(PLANS).await.len(), 6);
}

async fn both(person: &Person) -> usize {
    person.sync().await.published
}

#[tokio::test]
async fn a_wrong_clock_hides_and_moves_nothing_that_others_said() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let message = |words: &str, at: &str| {
        sottovoce::ChatMessage::at(sottovoce::ChatRole::User, words, at.parse().unwrap())
    };
    use sottovoce::ConversationStore;
    let store = ben.store(PLANS).await;
    store.append_message(message("from 1970", "1970-01-01T00:00:10Z")).await.unwrap();
    ben.sync().await;
    anna.sync().await;
    assert_eq!(anna.words(PLANS).await, ["We meet on Monday", "from 1970"]);
}
