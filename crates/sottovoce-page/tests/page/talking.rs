//! Turns: streamed, stopped, retried, off the record, and what the model sees.

use std::time::Duration;

use reqwest::header::{ACCEPT, ORIGIN};
use serde_json::Value;
use sottovoce::ConversationStore;

use crate::harness::{Served, named};
use crate::ollama::{Answer, Ask};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_streams_and_both_sides_are_stored() {
    let served = Served::start().await;
    let browser = served.enter().await;
    served.stub.next(Answer::saying(&["Sun", "ny."]));
    let form = browser.form(&[("say", "What's the weather?"), ("do", "say")]);
    let headers = [(ORIGIN, served.origin.as_str()), (ACCEPT, "application/x-ndjson")];
    let got = browser.send("/talk/named/kitchen", &headers, &form).await;
    let lines = lines(&got.text);
    assert!(lines[0]["turn"].is_u64());
    let text: String = lines.iter().filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(text, "Sunny.");
    assert!(lines.last().unwrap().get("done").is_some());
    let store = served.store(named("kitchen")).await;
    let said: Vec<_> = store
        .read_tail(9)
        .await
        .unwrap()
        .messages
        .iter()
        .map(|m| m.message.content.clone())
        .collect();
    assert_eq!(said, ["What's the weather?", "Sunny."]);
    let sees = browser.get("/sees/named/kitchen").await.text;
    assert!(sees.contains("message 1"), "the last turn is shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_scripts_waits_for_the_answer() {
    let served = Served::start().await;
    let browser = served.enter().await;
    served.stub.next(Answer::saying(&["Sunny."]));
    let got = browser.post("/talk/named/kitchen", &[("say", "And now?"), ("do", "say")]).await;
    assert_eq!((got.status, got.header("location")), (303, "/timeline/named/kitchen"));
    assert!(browser.get("/timeline/named/kitchen").await.text.contains("Sunny."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_answer_keeps_what_was_shown_and_can_be_retried() {
    let served = Served::start().await;
    let browser = served.enter().await;
    served.stub.next(Answer::saying(&["It is going to ", "rain "]).hold().text("all day."));
    let form = browser.form(&[("say", "What's the weather?"), ("do", "say")]);
    let headers = [(ORIGIN, served.origin.clone()), (ACCEPT, "application/x-ndjson".to_owned())];
    let asking = browser.clone();
    let streamed = tokio::spawn(async move {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.clone(), value.as_str())).collect();
        asking.send("/talk/named/kitchen", &headers, &form).await
    });
    tokio::time::sleep(Duration::from_millis(600)).await;
    let stopped = browser.post("/stop/named/kitchen", &[("turn", "1"), ("chars", "15")]).await;
    assert_eq!(stopped.status, 204);
    served.stub.release();
    let text = streamed.await.unwrap().text;
    assert!(lines(&text).last().unwrap()["done"].as_str().unwrap().contains("Stopped"), "{text}");
    let page = browser.get("/timeline/named/kitchen").await.text;
    assert!(
        page.contains("It is going to")
            && !page.contains("all day")
            && page.contains("interrupted")
    );
    served.stub.next(Answer::saying(&["Rain, all day."]));
    let again = browser.post("/talk/named/kitchen", &[("do", "retry")]).await;
    assert_eq!(again.status, 303);
    assert!(browser.get("/timeline/named/kitchen").await.text.contains("Rain, all day."));
    assert_eq!(
        browser.post("/stop/named/kitchen", &[("turn", "1"), ("chars", "1")]).await.status,
        410
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn off_the_record_nothing_is_stored() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["one", "two"]).await;
    let browser = served.enter().await;
    served.stub.next(Answer::saying(&["A secret answer."]));
    let got = browser
        .post("/talk/named/kitchen", &[("say", "A secret"), ("do", "say"), ("off", "1")])
        .await;
    assert!(got.text.contains("A secret answer."));
    assert!(!browser.get("/timeline/named/kitchen").await.text.contains("secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_answer_is_told_with_what_to_do() {
    let served = Served::with(&[("LANGUAGEMODEL__BASEURL", "http://127.0.0.1:9")]).await;
    let browser = served.enter().await;
    let form = browser.form(&[("say", "Hello?"), ("do", "say")]);
    let headers = [(ORIGIN, served.origin.as_str()), (ACCEPT, "application/x-ndjson")];
    served.stub.always_to(Ask::Reply, Answer::refusal(500, "out of order"));
    let got = browser.send("/talk/named/kitchen", &headers, &form).await;
    let last = lines(&got.text).pop().unwrap();
    assert!(!last["failed"]["what"].as_str().unwrap().is_empty(), "{last}");
    assert!(!last["failed"]["help"].as_str().unwrap().is_empty(), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_is_shown_with_reasons_and_nothing_is_stored_or_sent() {
    let served = Served::start().await;
    served.say(named("kitchen"), &["The soup needs lemon", "Noted."]).await;
    let browser = served.enter().await;
    let page =
        browser.post("/sees/named/kitchen", &[("say", "What goes into the soup?")]).await.text;
    for part in [
        "The prompt",
        "The soup needs lemon",
        "system prompt",
        "What goes into the soup?",
        "tokens",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(served.stub.seen(Ask::Reply).is_empty());
    let store = served.store(named("kitchen")).await;
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 2);
}
