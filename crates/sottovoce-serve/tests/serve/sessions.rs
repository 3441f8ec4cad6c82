//! Clients' sessions: what is sent again is not stored again.

use jiff::SignedDuration;
use serde_json::json;
use sottovoce::{ConversationStore, Scope};

use crate::harness::{Client, Served, named};
use crate::ollama::Answer;

const PATH: &str = "/s/kitchen/api/chat";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_failed_and_is_sent_again_is_one_utterance() {
    let served = Served::start().await;
    served.stub.next(Answer::refusal(500, "boom"));
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Hello." }));
    assert_eq!(served.post(PATH, client.body()).await.status, 500);
    assert_eq!(served.post(PATH, client.body()).await.status, 200);
    served.holds(&named("kitchen"), &[("user", "Hello."), ("assistant", "Fine.")]).await;
    // Answered: a new session that begins with the same words.
    assert_eq!(served.post(PATH, client.body()).await.status, 200);
    let twice = [("user", "Hello."), ("assistant", "Fine.")];
    served.holds(&named("kitchen"), &[twice, twice].concat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_two_utterances_on_a_second_day_are_stored_again_with_what_was_said_between() {
    let served = Served::start().await;
    for (day, answer) in ["Sunny.", "Rainy.", "Rainy."].into_iter().enumerate() {
        let mut client = Client::new();
        served.stub.next(Answer::saying(&[&format!("Morning, day {day}.")]));
        client.say(&served, PATH, "Good morning.").await;
        served.stub.next(Answer::saying(&[answer]));
        let got = client.say(&served, PATH, "What is the weather?").await;
        assert_eq!(got.header("x-sottovoce-history"), (6 * day).to_string());
        Client::new().say(&served, PATH, &format!("I moved on day {day}.")).await;
        served.clock.advance(SignedDuration::from_hours(24));
    }
    let stored = served.messages(&named("kitchen")).await;
    let said = |words: &str| stored.iter().filter(|(_, said)| said == words).count();
    assert_eq!((said("Good morning."), said("What is the weather?")), (3, 3));
    assert_eq!(stored.len(), 18, "{stored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_utterances_are_stored_again_after_a_restart_and_with_the_same_answers() {
    let mut served = Served::start().await;
    for restarts in [false, true] {
        for _ in 0..2 {
            let mut client = Client::new();
            client.say(&served, PATH, "Turn on the light.").await;
            if restarts {
                served.restart().await;
            }
            client.say(&served, PATH, "Yes.").await;
        }
    }
    let exchange = [("user", "Yes."), ("assistant", "Fine.")];
    let session =
        [("user", "Turn on the light."), ("assistant", "Fine."), exchange[0], exchange[1]];
    served.holds(&named("kitchen"), &[session; 4].concat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_got_no_answer_are_said_again_a_minute_later() {
    let served = Served::start().await;
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Next song." }));
    for _ in 0..2 {
        served.stub.next(Answer::refusal(500, "boom"));
        assert_eq!(served.post(PATH, client.body()).await.status, 500);
        served.clock.advance(SignedDuration::from_secs(61));
    }
    served.holds(&named("kitchen"), &[("user", "Next song."); 2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_made_again_replaces_the_older_one_in_prompts_and_both_stay_stored() {
    let served = Served::start().await;
    let mut client = Client::new();
    client.say(&served, PATH, "Hello.").await;
    client.say(&served, PATH, "How are you?").await;
    client.messages.pop();
    for words in ["Splendid.", "Marvellous."] {
        served.stub.next(Answer::saying(&[words]));
        served.post(PATH, client.body()).await;
        assert_eq!(served.get("/s/kitchen/receipt").await.json()["repeated"], true);
    }
    let wanted = [
        ("user", "Hello."),
        ("assistant", "Fine."),
        ("user", "How are you?"),
        ("assistant", "Fine."),
        ("assistant", "Splendid."),
        ("assistant", "Marvellous."),
    ];
    served.holds(&named("kitchen"), &wanted).await;
    Client::new().say(&served, PATH, "Good evening.").await;
    let system = served.last_forwarded()["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system.contains("Marvellous.") && !system.contains("Splendid."), "{system}");
    assert_eq!(system.matches("Fine.").count(), 1, "{system}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_utterance_replaces_the_older_one_and_what_followed_in_prompts() {
    let served = Served::start().await;
    let mut client = Client::new();
    client.say(&served, PATH, "Hello.").await;
    let before = client.clone();
    client.say(&served, PATH, "My cat is called Minka.").await;
    client.say(&served, PATH, "She is three.").await;
    // Until the edited one has its answer, nothing is hidden.
    let mut edited = before.clone();
    served.stub.next(Answer::refusal(500, "boom"));
    edited.messages.push(json!({ "role": "user", "content": "My cat is called Felix." }));
    served.post(PATH, edited.body()).await;
    assert_eq!(served.store(&named("kitchen")).await.profile().await.unwrap().pruned(), 0);
    edited.messages.pop();
    edited.say(&served, PATH, "My cat is called Felix.").await;
    edited.say(&served, PATH, "He is four.").await;
    assert_eq!(served.messages(&named("kitchen")).await.len(), 10, "nothing is deleted");
    Client::new().say(&served, PATH, "Good evening.").await;
    let system = served.last_forwarded()["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system.contains("Hello.") && system.contains("Felix") && system.contains("four"));
    assert!(!system.contains("Minka") && !system.contains("three"), "{system}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_this_server_was_restarted() {
    let mut served = Served::start().await;
    served.said_before(&named("kitchen"), "My cat is called Minka.", "Lovely.").await;
    let mut client = Client::new();
    client.say(&served, PATH, "Hello.").await;
    let before = served.last_forwarded();
    served.restart().await;
    client.say(&served, PATH, "How are you?").await;
    let after = served.last_forwarded();
    // What was said in the session itself does not join it a second time.
    assert_eq!(after["messages"][0], before["messages"][0]);
    let stored = served.messages(&named("kitchen")).await;
    assert_eq!(stored.len(), 6, "{stored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_at_once_do_not_mix() {
    let served = Served::start().await;
    let (mut one, mut other) = (Client::new(), Client::new());
    one.say(&served, PATH, "I am the first.").await;
    other.say(&served, PATH, "I am the second.").await;
    one.say(&served, PATH, "Go on.").await;
    other.say(&served, PATH, "Go on.").await;
    let receipt = served.get("/s/kitchen/receipt").await.json();
    assert_eq!(receipt["sessionSince"], 3);
    let body = served.last_forwarded();
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("I am the first.") && !system.contains("I am the second."));
    assert_eq!(served.messages(&named("kitchen")).await.len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_elsewhere_stays_in_the_session_and_is_not_recorded() {
    let served = Served::start().await;
    let mut client = Client::new();
    client.say(&served, PATH, "Hello.").await;
    client.messages.push(json!({ "role": "user", "content": "Light on." }));
    client.messages.push(json!({ "role": "assistant", "content": "Turned on the light." }));
    client.say(&served, PATH, "What did I do?").await;
    client.say(&served, PATH, "And then?").await;
    assert_eq!(served.get("/s/kitchen/receipt").await.json()["sessionSince"], 1);
    let stored = served.messages(&named("kitchen")).await;
    assert_eq!(stored.len(), 6, "{stored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_or_conversation_names_a_thread_if_that_is_set() {
    let threads = [("SERVE__THREADS", "true")];
    let served = Served::with(&threads, sottovoce_serve::Access::default(), |_| {}).await;
    let says = |words: &str, more: serde_json::Value| {
        let mut body =
            json!({ "model": "llama3.2", "messages": [{ "role": "user", "content": words }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let path = "/v1/chat/completions";
    served.post(path, says("My cat is called Minka.", json!({ "user": "a" }))).await;
    served.post(path, says("Hello.", json!({ "conversation": { "id": "b" } }))).await;
    assert!(!served.forwarded().last().unwrap().contains("Minka"));
    served.post(path, says("Hello.", json!({ "conversation": "a" }))).await;
    assert!(served.forwarded().last().unwrap().contains("Minka"));
    let read = served.store(&Scope::Default).await.read_tail(9).await.unwrap();
    let threads: Vec<_> =
        read.messages.iter().map(|m| m.message.thread_id.clone().unwrap()).collect();
    assert_eq!(threads, ["a", "a", "b", "b", "a", "a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_continue_by_their_id() {
    let served = Served::start().await;
    let answer = |id: &str| {
        Answer::body(200, &json!({ "id": id, "status": "completed", "output": [
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Fine." }] },
        ] }).to_string())
    };
    served.stub.next_to(crate::ollama::Ask::Other, answer("r1"));
    served.stub.next_to(crate::ollama::Ask::Other, answer("r2"));
    served.post("/v1/responses", r#"{"model":"llama3.2","input":"Hello."}"#).await;
    let next = r#"{"model":"llama3.2","previous_response_id":"r1","instructions":"Be brief.","input":"And you?"}"#;
    let got = served.post("/v1/responses", next).await;
    assert_eq!(got.status, 200, "{}", got.text);
    assert_eq!(served.get("/receipt").await.json()["sessionSince"], 1);
    let wanted =
        [("user", "Hello."), ("assistant", "Fine."), ("user", "And you?"), ("assistant", "Fine.")];
    served.holds(&Scope::Default, &wanted).await;
    let seen = served.stub.seen(crate::ollama::Ask::Other);
    assert_eq!(seen.last().unwrap().body, next);
}
