//! A server that lies, or a member who does: others notice, keep what they have, and take nothing false

use serde_json::{Value, json};
use sottovoce::ConversationStore;
use sottovoce_team::Level;

use crate::house::{House, PLANS, Person};
use crate::mallory::{Mallory, Seen};

/// Changes the records of pages, of which the first is the last that was read before.
fn records(
    mut change: impl FnMut(&mut Vec<Value>) + Send + 'static,
) -> impl FnMut(&str, &mut Value) + Send + 'static {
    move |_, body| {
        if let Some(records) = body.get_mut("records").and_then(Value::as_array_mut) {
            change(records);
        }
    }
}

async fn pair() -> (House, Person, Person) {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    for words in ["one", "two", "three"] {
        anna.says(PLANS, words).await;
        anna.sync().await;
    }
    anna.sync().await;
    (house, anna, ben)
}

async fn finds(ben: &Person, part: &str) {
    let problems = ben.problems().await;
    assert!(problems.iter().any(|problem| problem.to_string().contains(part)), "{problems:?}");
}

/// Changes what is sealed, to what is base64 still: its last characters may not be any.
fn change(record: &mut Value) {
    let sealed = record["sealed"].as_str().unwrap();
    let (sealed, end) = sealed.split_at(sealed.len() - 4);
    record["sealed"] = json!(sealed.replace('A', "B") + end);
}

#[tokio::test]
async fn a_changed_record_is_noticed_and_not_taken_and_comes_in_once_it_is_right_again() {
    let (house, _, ben) = pair().await;
    house.proxy.lie(records(|records| {
        records.iter_mut().skip(2).for_each(change);
    }));
    finds(&ben, "was changed").await;
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday", "one"]);
}

#[tokio::test]
async fn a_record_under_another_records_name_is_noticed_and_not_taken() {
    let (house, _, ben) = pair().await;
    house.proxy.lie(records(|records| {
        if let [_, first, second, ..] = records.as_mut_slice() {
            std::mem::swap(&mut first["sealed"], &mut second["sealed"]);
        }
    }));
    finds(&ben, "was changed").await;
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday", "three"]);
}

/// Holds back a record, and moves the later ones up.
fn hold_back_the_third(_: &str, body: &mut Value) {
    let Some(records) = body.get_mut("records").and_then(Value::as_array_mut) else { return };
    if records.len() > 2 {
        records.remove(2);
        for record in records.iter_mut().skip(2) {
            record["pos"] = json!(record["pos"].as_u64().unwrap() - 1);
        }
        body["last"] = json!(body["last"].as_u64().unwrap() - 1);
    }
}

#[tokio::test]
async fn a_record_that_is_held_back_is_noticed_also_if_the_positions_have_no_hole() {
    let (house, anna, ben) = pair().await;
    house.proxy.lie(hold_back_the_third);
    finds(&ben, "holds back").await;
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday", "one", "three"]);
    assert_eq!(anna.words(PLANS).await.len(), 4);
}

#[tokio::test]
async fn a_hole_in_the_positions_is_noticed_and_nothing_behind_it_is_taken_for_read() {
    let (house, _, ben) = pair().await;
    house.proxy.lie(records(|records| {
        if records.len() > 2 {
            records.remove(1);
        }
    }));
    finds(&ben, "leaves records out").await;
    house.proxy.calm();
    ben.sync().await;
    assert_eq!(ben.words(PLANS).await.len(), 4);
}

#[tokio::test]
async fn repeated_and_reordered_records_are_noticed_and_change_nothing() {
    let (house, _, ben) = pair().await;
    house.proxy.lie(|_, body| {
        let Some(records) = body.get_mut("records").and_then(Value::as_array_mut) else { return };
        let Some(first) = records.first().cloned() else { return };
        records.push(first);
        records.reverse();
        let mut position =
            records.iter().filter_map(|record| record["pos"].as_u64()).min().unwrap();
        for record in records {
            record["pos"] = json!(position);
            position += 1;
        }
        body["last"] = json!(position - 1);
    });
    finds(&ben, "repeats").await;
    let words = ben.words(PLANS).await;
    assert!(words.len() <= 4, "{words:?}");
}

#[tokio::test]
async fn an_older_state_is_noticed_and_undoes_nothing() {
    let (house, _, ben) = pair().await;
    ben.sync().await;
    house.proxy.lie(|name, body| {
        if name.contains("/changes") {
            *body = json!({"records": [], "last": 1});
        } else if name.ends_with("/conversations") {
            body["conversations"][0]["last"] = json!(1);
        }
    });
    finds(&ben, "older state").await;
    assert_eq!(ben.words(PLANS).await.len(), 4);
    house.proxy.calm();
    ben.sync().await;
}

#[tokio::test]
async fn an_emptied_record_is_noticed_unless_a_member_has_forgotten_it() {
    let (house, _, ben) = pair().await;
    house.proxy.lie(records(|records| {
        if let Some(record) = records.get_mut(2) {
            record.as_object_mut().unwrap().remove("sealed");
        }
    }));
    finds(&ben, "emptied records").await;
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday", "one", "three"]);
}

#[tokio::test]
async fn a_forgetting_that_no_member_asked_for_forgets_nothing() {
    let (house, _, ben) = pair().await;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Value::Null));
    let keep = std::sync::Arc::clone(&seen);
    house.proxy.lie(records(move |records| {
        if let Some(record) = records.first() {
            *keep.lock().unwrap() = record["rid"].clone();
        }
    }));
    ben.sync().await;
    let victim = seen.lock().unwrap().clone();
    assert!(victim.is_string(), "a record that Ben has");
    house.proxy.lie(move |name, body| {
        if name.contains("/changes") {
            let last = body["last"].as_u64().unwrap() + 1;
            body["records"].as_array_mut().unwrap().push(json!({
                "pos": last, "rid": "ab".repeat(32), "device": "00".repeat(16), "kind": "forgetting",
                "forgets": [victim], "at": "2026-11-24T12:00:00Z"
            }));
            body["last"] = json!(last);
        } else if name.ends_with("/conversations") {
            let last = body["conversations"][0]["last"].as_u64().unwrap();
            body["conversations"][0]["last"] = json!(last + 1);
        }
    });
    finds(&ben, "emptied records").await;
    assert_eq!(ben.words(PLANS).await.len(), 4);
}

#[tokio::test]
async fn rows_of_another_conversation_are_not_taken() {
    let (house, anna, ben) = pair().await;
    anna.says("named/private", "for my eyes").await;
    let private = crate::house::scope("named/private");
    anna.teams.share(None, &private).await.unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let keep = std::sync::Arc::clone(&seen);
    house.proxy.lie(move |name, body| {
        if name.contains("/changes") && body["records"].as_array().is_some_and(|r| r.len() == 1) {
            *keep.lock().unwrap() = Some(body["records"][0]["sealed"].clone());
        }
    });
    anna.sync().await;
    let stolen: Option<Value> = seen.lock().unwrap().clone();
    let stolen = stolen.unwrap();
    house.proxy.lie(records(move |records| {
        if let Some(record) = records.get_mut(1) {
            record["sealed"] = stolen.clone();
        }
    }));
    finds(&ben, "was changed").await;
    assert!(!ben.words(PLANS).await.contains(&"for my eyes".to_owned()));
}

#[tokio::test]
async fn answers_that_are_none_endless_or_full_of_control_characters_fail_in_plain_words() {
    let (house, _, ben) = pair().await;
    house.proxy.lie(|_, body| *body = json!({"records": "x", "last": -1}));
    let error = ben.teams.sync(|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("not that of a team's server"), "{error}");
    house.proxy.lie(|name, body| {
        if name.contains("/changes") {
            *body = json!({"records": [], "last": 0, "more": "x".repeat(20 << 20)});
        }
    });
    let error = ben.teams.sync(|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday"]);
    house.proxy.calm();
    ben.sync().await;
}

#[tokio::test]
async fn a_list_of_ten_thousand_conversations_adds_none() {
    let (house, _, ben) = pair().await;
    house.proxy.lie(|name, body| {
        if name.ends_with("/conversations") {
            let one = body["conversations"][0].clone();
            let list = body["conversations"].as_array_mut().unwrap();
            for n in 0..10_000_u32 {
                let mut more = one.clone();
                more["id"] = json!(format!("{n:032x}"));
                list.push(more);
            }
        }
    });
    finds(&ben, "ask for its link").await;
    assert_eq!(ben.teams.status().await.unwrap()[0].conversations.len(), 1);
}

/// Has Ben read while the server lies, and checks that he gets everything once it is honest again.
async fn comes_in_after(lie: impl FnMut(&str, &mut Value) + Send + 'static) {
    let (house, _, ben) = pair().await;
    house.proxy.lie(lie);
    assert_ne!(ben.problems().await, []);
    house.proxy.calm();
    for _ in 0..2 {
        ben.problems().await;
    }
    assert_eq!(ben.sync().await, sottovoce_sync::SyncReport::default());
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday", "one", "three", "two"]);
}

#[tokio::test]
async fn a_record_that_was_changed_on_the_way_comes_in_once_the_server_is_honest() {
    comes_in_after(records(|records| {
        records.last_mut().into_iter().for_each(change);
    }))
    .await;
}

#[tokio::test]
async fn a_record_that_was_left_out_and_renumbered_comes_in_once_the_server_is_honest() {
    comes_in_after(hold_back_the_third).await;
}

#[tokio::test]
async fn a_record_that_was_emptied_on_the_way_comes_in_once_the_server_is_honest() {
    comes_in_after(records(|records| {
        if let Some(record) = records.get_mut(2) {
            record.as_object_mut().unwrap().remove("sealed");
        }
    }))
    .await;
}

/// A member, and the first record of Anna's that it sees.
async fn mallory(house: &House, anna: &Person) -> (Mallory, Seen) {
    let person = house.guest(anna, "Mallory", Level::Write).await;
    let mallory = Mallory::of(house, &person).await;
    let seen = mallory.log().await.into_iter().find(|seen| seen.words().is_some()).unwrap();
    (mallory, seen)
}

#[tokio::test]
async fn a_member_cannot_excuse_what_the_server_holds_back_of_another() {
    let (house, anna, ben) = pair().await;
    let (mallory, seen) = mallory(&house, &anna).await;
    let anna = &seen.contents.as_ref().unwrap()["device"];
    for n in [1, 1_000] {
        let void = json!({ "device": anna, "writer": seen.writer(), "n": n, "by": "Anna", "void": u64::MAX });
        assert_eq!(mallory.appends(&[mallory.record("setting", None, &void)]).await, 200);
    }
    house.proxy.lie(hold_back_the_third);
    finds(&ben, "holds back").await;
}

#[tokio::test]
async fn a_member_who_uses_up_anothers_numbers_keeps_nothing_of_it_from_the_others() {
    let (house, anna, ben) = pair().await;
    let (mallory, seen) = mallory(&house, &anna).await;
    let far = |what: &str, value: Value| {
        let mut contents = json!({ "writer": seen.writer(), "n": u64::MAX, "by": "Anna" });
        contents[what] = value;
        mallory.record("setting", None, &contents)
    };
    let title = json!({ "name": "title", "value": "Mallory's", "edition": u64::MAX });
    let records = [far("void", json!(0)), far("set", title)];
    assert_eq!(mallory.appends(&records).await, 200);
    anna.says(PLANS, "said after").await;
    anna.sets_title("Anna's").await;
    for person in [&anna, &ben] {
        finds(person, "holds back").await;
    }
    assert!(ben.words(PLANS).await.contains(&"said after".to_owned()));
    assert_eq!(ben.title().await.as_deref(), Some("Anna's"));
}

#[tokio::test]
async fn words_under_anothers_number_are_not_taken_for_that_ones_own() {
    let (house, anna, _ben) = pair().await;
    let (mallory, seen) = mallory(&house, &anna).await;
    let like = seen.contents.unwrap();
    assert_eq!(mallory.appends(&[mallory.words_like(&like, "I, Anna, agree")]).await, 200);
    anna.problems().await;
    let reading = anna.store(PLANS).await.read_tail(usize::MAX).await.unwrap();
    let found = reading.messages.iter().find(|stored| stored.message.content.contains("agree"));
    assert_eq!(found.unwrap().message.source_in_words(), "member Anna");
}

#[tokio::test]
async fn numbers_that_no_writer_can_have_reached_end_nothing() {
    let (house, anna, ben) = pair().await;
    let (mallory, _) = mallory(&house, &anna).await;
    let far = |n: u64| {
        let writer = sottovoce_team_server::api::Id::random();
        let contents = json!({ "writer": writer, "n": n, "by": "", "void": 0 });
        mallory.record("setting", None, &contents)
    };
    assert_eq!(mallory.appends(&[far(u64::MAX), far(u64::MAX)]).await, 200);
    anna.says(PLANS, "said after").await;
    finds(&anna, "holds back").await;
    finds(&ben, "holds back").await;
    assert!(ben.words(PLANS).await.contains(&"said after".to_owned()));
}
