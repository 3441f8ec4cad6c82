//! Callers that leave, servers that break off, and the end of this server.

use std::time::{Duration, Instant};

use serde_json::json;
use sottovoce::Scope;

use crate::harness::{Client, Served, http_client};
use crate::ollama::{Answer, Ask};

async fn begin(served: &Served, client: &mut Client, words: &str) -> reqwest::Response {
    client.messages.push(json!({ "role": "user", "content": words }));
    let url = format!("{}/api/chat", served.url);
    let mut response = http_client().post(url).body(client.body()).send().await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_streamed_to_a_caller_that_leaves_is_kept_and_the_model_stops() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is raining "]).hold().text("cats."));
    let mut client = Client::new();
    drop(begin(&served, &mut client, "Rain?").await);
    served.stub.wait_until_closed_early();
    let cut = ("assistant interrupted", "It is raining ");
    served.holds(&Scope::Default, &[("user", "Rain?"), cut]).await;
    // The client goes on with what it has heard, as far as it has heard it.
    client.messages.push(json!({ "role": "assistant", "content": "It is" }));
    client.say(&served, "/api/chat", "Stop.").await;
    let wanted = [("user", "Rain?"), cut, ("user", "Stop."), ("assistant", "Fine.")];
    served.holds(&Scope::Default, &wanted).await;
    assert_eq!(served.get("/receipt").await.json()["sessionSince"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_before_the_first_word_stops_the_model_as_well() {
    let served = Served::start().await;
    served.stub.next(Answer::silent());
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Rain?" }));
    let url = format!("{}/api/chat", served.url);
    let asked = tokio::spawn(http_client().post(url).body(client.body()).send());
    served.stub.wait_for(Ask::Reply, 1);
    asked.abort();
    served.stub.wait_until_closed_early();
    // The second try is the same utterance.
    assert_eq!(served.post("/api/chat", client.body()).await.status, 200);
    served.holds(&Scope::Default, &[("user", "Rain?"), ("assistant", "Fine.")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    let served = Served::start().await;
    for (answer, why) in [
        (Answer::saying(&["It is "]).cut(), "(broken off)"),
        (Answer::saying(&["It is "]).error("boom"), "boom"),
    ] {
        served.stub.next(answer);
        let mut client = Client::new();
        client.messages.push(json!({ "role": "user", "content": "Rain?" }));
        let got = served.post("/api/chat", client.body()).await;
        assert!(got.text.contains(why), "{}", got.text);
    }
    // The second request was another try.
    let cut = ("assistant failed", "It is ");
    served.holds(&Scope::Default, &[("user", "Rain?"), cut, cut]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_end_keeps_what_had_come() {
    let grace = Duration::from_millis(300);
    let mut served =
        Served::with(&[], sottovoce_serve::Access::default(), |limits| limits.grace = grace).await;
    served.stub.next(Answer::saying(&["It is "]).hold());
    let mut client = Client::new();
    let mut open = begin(&served, &mut client, "Rain?").await;
    let begun = Instant::now();
    served.stop().await;
    assert!(begun.elapsed() < sottovoce_net::Limits::default().grace);
    // The client does not take it for the whole.
    assert!(open.chunk().await.is_err());
    let cut = ("assistant interrupted", "It is ");
    served.holds(&Scope::Default, &[("user", "Rain?"), cut]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_progress_may_end_in_the_grace_period() {
    let mut served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).wait(Duration::from_millis(300)).text("fine."));
    let mut client = Client::new();
    let mut open = begin(&served, &mut client, "Rain?").await;
    served.stop().await;
    let mut rest = String::new();
    while let Some(piece) = open.chunk().await.unwrap() {
        rest.push_str(&String::from_utf8_lossy(&piece));
    }
    assert!(rest.contains("fine."));
    served.holds(&Scope::Default, &[("user", "Rain?"), ("assistant", "It is fine.")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_model_is_waited_for() {
    // Longer than the limits of requests, and than the time for which a model server may be silent elsewhere.
    let short = Duration::from_millis(200);
    let settings = [("LANGUAGEMODEL__TIMEOUTSECONDS", "1")];
    let served = Served::with(&settings, sottovoce_serve::Access::default(), |limits| {
        limits.head = short;
        limits.body = short;
    })
    .await;
    let slow = Duration::from_millis(1500);
    served.stub.next(Answer::saying(&["It is "]).late(slow).wait(slow).text("fine."));
    let mut client = Client::new();
    client.say(&served, "/api/chat", "Rain?").await;
    served.holds(&Scope::Default, &[("user", "Rain?"), ("assistant", "It is fine.")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_forgotten_words_is_not_kept() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("fine."));
    let mut client = Client::new();
    let mut open = begin(&served, &mut client, "Rain?").await;
    let store = served.store(&Scope::Default).await;
    sottovoce::ConversationStore::forget(&store, &[1..=1]).await.unwrap();
    served.stub.release();
    while open.chunk().await.unwrap().is_some() {}
    assert!(served.messages(&Scope::Default).await.is_empty());
}
