//! Turns of one conversation, one after the other, and what is done between them.

use std::time::Duration;

use serde_json::json;
use sottovoce::{ConversationStore, Scope};
use tokio::task::JoinHandle;

use crate::harness::{Client, Served, http_client};
use crate::ollama::{Answer, Ask};

const SUMMARY: &str = "The user counts. The assistant agrees with every number.";
const SUMMARIZING: [(&str, &str); 4] = [
    ("LANGUAGEMODEL__MODEL", "llama3.2"),
    ("LANGUAGEMODEL__NUMCTX", "1024"),
    ("CONTEXT__COMPACTAT", "0.05"),
    ("CONTEXT__LASTN", "2"),
];

async fn count(served: &Served) -> Client {
    let mut client = Client::new();
    for number in 1..=5 {
        client.say(served, "/api/chat", &format!("This is number {number}, is it not?")).await;
    }
    client
}

async fn summary(served: &Served) -> Option<String> {
    let profile = served.store(&Scope::Default).await.profile().await.unwrap();
    profile.summary(None).map(|summary| summary.text.clone())
}

fn asking(served: &Served, words: &str) -> reqwest::RequestBuilder {
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": words }));
    http_client().post(format!("{}/api/chat", served.url)).body(client.body())
}

fn ask(served: &Served, words: &str) -> JoinHandle<String> {
    let sent = asking(served, words).send();
    tokio::spawn(async { sent.await.unwrap().text().await.unwrap() })
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_ever_for_a_model_that_has_fallen_silent() {
    let settings = [("LANGUAGEMODEL__TIMEOUTSECONDS", "1")];
    let served = Served::with(&settings, Default::default(), |_| {}).await;
    for silent in [Answer::silent(), Answer::saying(&["It is "]).silence()] {
        served.stub.next(silent);
        let asked = served.forwarded().len();
        let first = ask(&served, "Rain?");
        served.stub.wait_for(Ask::Reply, asked + 1);
        let second = ask(&served, "Snow?");
        let second = tokio::time::timeout(Duration::from_secs(10), second).await;
        assert!(second.unwrap().unwrap().contains("Fine."));
        first.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_an_answer_without_an_end() {
    let settings = [("LANGUAGEMODEL__MAXANSWERSECONDS", "1")];
    let served = Served::with(&settings, Default::default(), |_| {}).await;
    let line = b"{\"message\":{\"content\":\"and \"},\"done\":false}\n";
    served.stub.next(Answer::saying(&["It is "]).forever(line, Duration::from_millis(10)));
    let first = ask(&served, "Rain?");
    served.stub.wait_for(Ask::Reply, 1);
    let second = ask(&served, "Snow?");
    let second = tokio::time::timeout(Duration::from_secs(10), second).await;
    assert!(second.unwrap().unwrap().contains("Fine."));
    first.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_its_answer_blocks_others_for_seconds_only() {
    let served = Served::start().await;
    let words = "and ".repeat(16 << 10);
    let line = format!("{{\"message\":{{\"content\":\"{words}\"}},\"done\":false}}\n");
    let answer = Answer::saying(&["It is "]).forever(line.as_bytes(), Duration::from_millis(1));
    served.stub.next(answer);
    let stalled = asking(&served, "Rain?").send().await.unwrap();
    let second = tokio::time::timeout(Duration::from_secs(30), ask(&served, "Snow?")).await;
    assert!(second.unwrap().unwrap().contains("Fine."));
    drop(stalled);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_others_no_longer_wait_for_is_recorded() {
    let settings = [("LANGUAGEMODEL__TIMEOUTSECONDS", "1")];
    let served = Served::with(&settings, Default::default(), |_| {}).await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("fine."));
    let first = ask(&served, "Rain?");
    served.stub.wait_for(Ask::Reply, 1);
    let second = tokio::time::timeout(Duration::from_secs(10), ask(&served, "Snow?")).await;
    second.unwrap().unwrap();
    served.stub.release();
    first.await.unwrap();
    let (rain, snow) = (("user", "Rain?"), ("user", "Snow?"));
    let wanted = [rain, snow, ("assistant", "Fine."), ("assistant", "It is fine.")];
    served.holds(&Scope::Default, &wanted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_conversation_wait_for_each_other_and_those_of_others_do_not() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("fine."));
    let first = ask(&served, "Rain?");
    served.stub.wait_for(Ask::Reply, 1);
    let second = ask(&served, "Snow?");
    tokio::time::sleep(Duration::from_millis(300)).await;
    Client::new().say(&served, "/s/hall/api/chat", "Hail?").await;
    assert_eq!(served.forwarded().len(), 2, "the second one waits");
    served.stub.release();
    first.await.unwrap();
    second.await.unwrap();
    let (rain, snow) = (("user", "Rain?"), ("user", "Snow?"));
    let wanted = [rain, ("assistant", "It is fine."), snow, ("assistant", "Fine.")];
    served.holds(&Scope::Default, &wanted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_conversation_is_summarized_when_nobody_speaks_and_later_sessions_get_it() {
    let served = Served::with(&SUMMARIZING, Default::default(), |_| {}).await;
    let mut client = count(&served).await;
    let asked = served.forwarded().len();
    served.stub.next(Answer::saying(&[SUMMARY]));
    served.stub.wait_for(Ask::Reply, asked + 1);
    assert!(served.forwarded()[asked].contains("You keep the memory"));
    for _ in 0..100 {
        if summary(&served).await.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(summary(&served).await.as_deref(), Some(SUMMARY));
    Client::new().say(&served, "/api/chat", "Which numbers were there?").await;
    assert!(served.forwarded().last().unwrap().contains(SUMMARY));
    // Nothing else says what was said before a session whose own beginning is summarized.
    client.say(&served, "/api/chat", "And the next one?").await;
    assert!(served.forwarded().last().unwrap().contains(SUMMARY));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_stops_the_summary() {
    let served = Served::with(&SUMMARIZING, Default::default(), |_| {}).await;
    count(&served).await;
    let asked = served.forwarded().len();
    served.stub.next(Answer::silent());
    served.stub.wait_for(Ask::Reply, asked + 1);
    Client::new().say(&served, "/api/chat", "Are you there?").await;
    served.stub.wait_until_closed_early();
    assert_eq!(summary(&served).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_model_that_nobody_configured_is_asked_for_a_summary() {
    let settings = &SUMMARIZING[1..];
    let served = Served::with(settings, Default::default(), |_| {}).await;
    count(&served).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(served.forwarded().len(), 5);
}
