//! Forgetting in two steps, and others who forget at the same time.

use sottovoce::{ConversationStore, Scope};

use crate::harness::{Served, named};

#[tokio::test]
async fn what_was_announced_goes_once_and_only_after_the_second_step() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two", "three", "four"]).await;
    let browser = served.enter().await;
    let planned =
        browser.post("/forget/named/kitchen", &[("what", "numbers"), ("numbers", "2-3")]).await;
    assert!(planned.text.contains("2 messages") && planned.text.contains("three"));
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 4, "nothing has gone");
    let plan = planned.field("plan");
    let unsure = browser.post("/forgotten/named/kitchen", &[("plan", &plan)]).await;
    assert_eq!(unsure.status, 422);
    let planned =
        browser.post("/forget/named/kitchen", &[("what", "numbers"), ("numbers", "2-3")]).await;
    let plan = planned.field("plan");
    let elsewhere =
        browser.post("/forgotten/named/hall", &[("plan", &plan), ("sure", "yes")]).await;
    assert_eq!(elsewhere.status, 422);
    let gone = browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await;
    assert!(gone.text.contains("Gone") && gone.text.contains("2–3"), "{}", gone.text);
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 2);
    let again = browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await;
    assert_eq!(again.status, 422, "done already");
    assert!(browser.get("/timeline/named/kitchen").await.text.contains("2 messages forgotten"));
}

#[tokio::test]
async fn a_day_a_person_a_search_and_a_whole_conversation_can_be_forgotten() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["about leeks", "two", "leeks again", "four"]).await;
    let message = |words: &str| {
        let at = "2025-08-26T12:00:00Z".parse().unwrap();
        sottovoce::ChatMessage::at(sottovoce::ChatRole::User, words, at)
            .with_metadata("speaker", "Ann")
    };
    store.append_message(message("by Ann")).await.unwrap();
    let browser = served.enter().await;
    for (fields, left) in [
        ([("what", "found"), ("q", "leeks")], 3),
        ([("what", "person"), ("speaker", "Ann")], 2),
        ([("what", "day"), ("day", "2025-08-24")], 0),
    ] {
        let planned = browser.post("/forget/named/kitchen", &fields).await;
        let plan = planned.field("plan");
        browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await;
        assert_eq!(store.read_tail(9).await.unwrap().messages.len(), left, "{fields:?}");
    }
    store.append_message(message("the last")).await.unwrap();
    let planned = browser.post("/forget/named/kitchen", &[("what", "whole")]).await;
    let plan = planned.field("plan");
    let gone = browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await;
    assert!(gone.text.contains("folder is gone"), "{}", gone.text);
    assert!(!served.root.path().join("store/conversations/kitchen").exists());
    let again = browser.get("/timeline/named/kitchen").await;
    assert_eq!(again.status, 200);
    assert!(!again.text.contains("the last"));
}

#[tokio::test]
async fn a_selection_of_which_a_part_is_not_understood_plans_nothing() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["leek one", "leek two", "leek three"]).await;
    let browser = served.enter().await;
    for fields in [
        vec![("what", "found"), ("q", "leek before:lastyear")],
        vec![("what", "found"), ("q", "leek before:2025-13")],
        vec![("what", "found"), ("q", "leek before:2026 before:lastyear")],
        vec![("what", "found"), ("q", " ")],
        vec![("what", "picked"), ("seq", "1"), ("seq", "2x")],
        vec![("what", "picked")],
        vec![("what", "numbers"), ("numbers", "1, x")],
        vec![("what", "person")],
        vec![("what", "day"), ("day", "lastyear")],
        vec![("what", "everything")],
        vec![],
    ] {
        let got = browser.post("/forget/named/kitchen", &fields).await;
        assert_eq!(got.status, 422, "{fields:?}");
        assert!(!got.text.contains("name=\"plan\""), "{fields:?}");
    }
    let understood = [("what", "found"), ("q", "leek before:2026")];
    assert!(browser.post("/forget/named/kitchen", &understood).await.text.contains("3 messages"));
    let picked = [("what", "picked"), ("seq", "1"), ("seq", "3")];
    assert!(browser.post("/forget/named/kitchen", &picked).await.text.contains("2 messages"));
}

#[tokio::test]
async fn a_search_with_a_day_that_is_none_offers_nothing_to_forget() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["leek one", "leek two"]).await;
    let browser = served.enter().await;
    assert!(browser.get("/search?q=leek&until=2026-01-01").await.text.contains("value=\"found\""));
    for filter in ["until=lastyear", "since=2025-13-01"] {
        let got = browser.get(&format!("/search?q=leek&{filter}")).await;
        assert!(got.text.contains("is not understood"), "{filter}");
        assert!(
            !got.text.contains("leek one") && !got.text.contains("value=\"found\""),
            "{filter}"
        );
    }
}

#[tokio::test]
async fn if_more_would_go_than_was_announced_nothing_goes_and_the_owner_sees_it_anew() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two"]).await;
    let browser = served.enter().await;
    let planned = browser.post("/forget/named/kitchen", &[("what", "whole")]).await;
    served.say(named("kitchen"), &["said meanwhile"]).await;
    let plan = planned.field("plan");
    let anew = browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await;
    assert!(anew.text.contains("has changed meanwhile") && anew.text.contains("said meanwhile"));
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 3);
    let plan = anew.field("plan");
    browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await;
    assert!(!browser.get("/timeline/named/kitchen").await.text.contains("said meanwhile"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pages_and_another_program_that_forget_at_once_each_forget_what_they_announced() {
    let served = Served::start().await;
    let words: Vec<String> = (1..=30).map(|number| format!("words {number}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let store = served.say(named("kitchen"), &words).await;
    let browser = served.enter().await;
    let forget = |numbers: &'static str| {
        let browser = browser.clone();
        async move {
            let planned = browser
                .post("/forget/named/kitchen", &[("what", "numbers"), ("numbers", numbers)])
                .await;
            let plan = planned.field("plan");
            browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await
        }
    };
    let other = served.store(named("kitchen")).await;
    let (one, two, three) = tokio::join!(forget("1-10"), forget("8-20"), other.forget(&[18..=25]));
    three.unwrap();
    assert_eq!((one.status, two.status), (200, 200));
    let left: Vec<u64> =
        store.read_tail(99).await.unwrap().messages.iter().map(|m| m.seq).collect();
    assert_eq!(left, [26, 27, 28, 29, 30]);
    assert!(store.verify(|_| {}).await.unwrap().is_sound());
    assert_eq!(**store.scope(), Scope::Named { id: "kitchen".into() });
}

#[tokio::test]
async fn an_export_has_everything_before_it_goes() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["one", "two"]).await;
    let browser = served.enter().await;
    let json = browser.post("/export/named/kitchen", &[("form", "json")]).await;
    assert!(json.header("content-disposition").starts_with("attachment"));
    assert!(
        json.text.contains("one") && serde_json::from_str::<serde_json::Value>(&json.text).is_ok()
    );
    let markdown = browser.post("/export/named/kitchen", &[("form", "markdown")]).await;
    assert!(markdown.text.contains("two"));
}

#[tokio::test]
async fn a_plan_whose_messages_another_program_has_forgotten_meanwhile_says_so() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["one", "two", "three"]).await;
    let browser = served.enter().await;
    let fields = [("what", "numbers"), ("numbers", "2")];
    let plan = browser.post("/forget/named/kitchen", &fields).await.field("plan");
    store.forget(&[2..=2]).await.unwrap();
    let done = browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await;
    assert!(done.text.contains("another program has forgotten it already"), "{}", done.text);
    assert!(!done.text.contains("folder") && !done.text.contains("Deleted"), "{}", done.text);
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 2);
}

#[tokio::test]
async fn answers_go_along_while_their_box_is_ticked_and_what_has_the_same_words_is_shown() {
    let served = Served::start().await;
    let store = served.say(named("kitchen"), &["My PIN is 4711."]).await;
    let answer = |words: &str| {
        let at = "2025-08-26T12:00:00Z".parse().unwrap();
        sottovoce::ChatMessage::at(sottovoce::ChatRole::Assistant, words, at)
    };
    store.append_message(answer("Noted: 4711.")).await.unwrap();
    served.say(named("hall"), &["Was it 4711?", "Or 47110?"]).await;
    let browser = served.enter().await;
    let numbers = [("what", "numbers"), ("numbers", "1")];
    let planned = browser.post("/forget/named/kitchen", &numbers).await;
    assert!(planned.text.contains("name=\"answers\" value=\"yes\" checked"), "{}", planned.text);
    assert!(planned.text.contains("1 message with the same words, in"), "{}", planned.text);
    let plan = planned.field("plan");
    browser.post("/forgotten/named/kitchen", &[("plan", &plan), ("sure", "yes")]).await;
    let left = store.read_tail(9).await.unwrap().messages;
    assert_eq!(left[0].message.content, "Noted: 4711.", "the box was not ticked");
    store.forget(&[2..=2]).await.unwrap();
    let store = served.say(named("kitchen"), &["My PIN is 4711."]).await;
    store.append_message(answer("Noted: 4711.")).await.unwrap();
    let picked = [("what", "found"), ("q", "PIN")];
    let plan = browser.post("/forget/named/kitchen", &picked).await.field("plan");
    let ticked = [("plan", &*plan), ("sure", "yes"), ("answers", "yes")];
    browser.post("/forgotten/named/kitchen", &ticked).await;
    assert!(store.read_tail(9).await.unwrap().messages.is_empty());
}
