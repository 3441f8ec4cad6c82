//! What joins a request: what was said before, beside what the client wrote.

use serde_json::json;
use sottovoce::{ConversationStore, Scope};

use crate::harness::{Client, Served, http_client, named};
use crate::ollama::{Answer, Ask};

#[tokio::test(flavor = "multi_thread")]
async fn an_utterance_is_sealed_before_anything_is_forwarded() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("fine."));
    let url = format!("{}/s/kitchen/api/chat", served.url);
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "How is it?" }));
    let asked = http_client().post(url).body(client.body()).send();
    let asked = tokio::spawn(asked);
    served.stub.wait_for(Ask::Reply, 1);
    assert_eq!(
        served.messages(&named("kitchen")).await,
        [("user".to_owned(), "How is it?".to_owned())]
    );
    served.stub.release();
    asked.await.unwrap().unwrap().text().await.unwrap();
    // What a client has the end of is stored.
    assert_eq!(served.messages(&named("kitchen")).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sealed_is_not_forwarded() {
    let served = Served::start().await;
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "x".repeat(3 << 20) }));
    let got = served.post("/api/chat", client.body()).await;
    assert_eq!(got.status, 413, "{}", got.text);
    assert!(got.json()["error"].as_str().unwrap().len() < 300);
    assert!(served.forwarded().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_the_session_follows_the_system_prompt_in_all_of_it() {
    let served = Served::start().await;
    let kitchen = named("kitchen");
    served.said_before(&kitchen, "My cat is called Minka.", "A lovely name.").await;
    let mut client = Client::new();
    client.most = 3;
    let mut forwarded = Vec::new();
    for turn in 0..8 {
        let got = client.say(&served, "/s/kitchen/api/chat", &format!("Turn number {turn}.")).await;
        assert_eq!(got.header("x-sottovoce-history"), "2");
        let body = served.last_forwarded();
        let (head, said) = body["messages"].as_array().unwrap().split_first().unwrap();
        let system = head["content"].as_str().unwrap().to_owned();
        assert_eq!(
            system,
            "You are a voice assistant.\n\nSaid before this conversation:\n\
             - [Wednesday 20 August 2025 10:00 +00:00] My cat is called Minka.\n\
             - [Wednesday 10:00, assistant] A lovely name."
        );
        // The session's own messages are in the request as the client sends them, and nowhere else.
        assert_eq!(said, &client.messages[client.messages.len() - 1 - said.len()..][..said.len()]);
        assert_eq!(said.len(), (2 * turn + 1).min(7));
        forwarded.push(system);
    }
    let all = served.messages(&kitchen).await;
    assert_eq!(all.len(), 2 + 16, "each utterance and each answer once: {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_long_message_cuts_off_nothing_that_was_said_before_it() {
    let served = Served::start().await;
    let kitchen = named("kitchen");
    served.said_before(&kitchen, "My cat is called Minka.", "A lovely name.").await;
    let article = "The article goes on and on. ".repeat(14_600 / 28);
    served.said_before(&kitchen, &article, "It goes on and on.").await;
    served.said_before(&kitchen, "The lamp is on.", "So it is.").await;
    let mut client = Client::new();
    client.say(&served, "/s/kitchen/api/chat", "What is my cat called?").await;
    let body = served.last_forwarded();
    let system = body["messages"][0]["content"].as_str().unwrap();
    let places =
        ["Minka", "The article goes on", "more characters are left out here)", "lamp is on"];
    let places = places.map(|words| system.find(words));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?} in {system}");
    assert!(system.len() < 1500, "{system}");
    let receipt = served.get("/s/kitchen/receipt").await.json();
    assert!(receipt["history"][2]["why"].as_str().unwrap().contains("shortened"), "{receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_session_knows_the_last_one() {
    let served = Served::start().await;
    let mut first = Client::new();
    first.say(&served, "/s/kitchen/api/chat", "My cat is called Minka.").await;
    let mut second = Client::new();
    second.say(&served, "/s/kitchen/api/chat", "What is my cat called?").await;
    let body = served.last_forwarded();
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("My cat is called Minka."));
    assert_eq!(body["messages"][1]["content"], "What is my cat called?");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_weeks_ago_stands_beside_the_question_and_stays_there() {
    let served =
        Served::with(&[("SERVE__HISTORYTOKENS", "0")], sottovoce_serve::Access::default(), |_| {})
            .await;
    let kitchen = named("kitchen");
    served.said_before(&kitchen, "My dog is called Bruno.", "What a nice name!").await;
    for number in 0..12 {
        let words = format!("Turn the lamp number {number} on.");
        served.said_before(&kitchen, &words, "Done.").await;
    }
    let store = served.store(&kitchen).await;
    let said_before = store.read_tail(1).await.unwrap().messages[0].seq;
    let (mut client, got) = loop {
        let mut client = Client::new();
        let got = client.say(&served, "/s/kitchen/api/chat", "What is my dog called?").await;
        if served.get("/s/kitchen/receipt").await.json()["failed"].is_null() {
            break (client, got);
        }
        // A busy machine searches for longer than a server waits. Then nobody has asked.
        let said = store.read_tail(2).await.unwrap().messages;
        let seqs = said.iter().map(|it| it.seq).filter(|seq| *seq > said_before);
        store.forget(&seqs.map(|seq| seq..=seq).collect::<Vec<_>>()).await.unwrap();
    };
    assert_ne!(
        got.header("x-sottovoce-recalled"),
        "0",
        "{}",
        served.get("/s/kitchen/receipt").await.text
    );
    assert_ne!(got.header("x-sottovoce-tokens"), "0");
    let first = served.last_forwarded();
    let question = first["messages"][1]["content"].as_str().unwrap().to_owned();
    assert!(question.contains("My dog is called Bruno."), "{question}");
    assert!(question.ends_with("\n\nWhat is my dog called?"), "{question}");
    assert_eq!(first["messages"][0]["content"], "You are a voice assistant.");
    // The account names it, with the words, for who may open the conversation.
    let receipt = served.get(got.header("x-sottovoce-receipt")).await.json();
    assert_eq!(receipt["recalled"][0]["text"], "My dog is called Bruno.");
    assert_eq!(served.get("/s/kitchen/receipt").await.json(), receipt);
    assert_eq!(served.get("/receipt").await.status, 404);

    client.say(&served, "/s/kitchen/api/chat", "Thank you.").await;
    let second = served.last_forwarded();
    assert_eq!(second["messages"][1]["content"], question, "the beginning stays the same");
    assert_eq!(second["messages"][3]["content"], "Thank you.");
    // No header holds words.
    assert!(!format!("{:?}", got.headers).contains("Bruno"));

    // What is forgotten is gone from the session as well.
    let seq = receipt["recalled"][0]["seq"].as_u64().unwrap();
    store.forget(&[seq..=seq]).await.unwrap();
    client.say(&served, "/s/kitchen/api/chat", "Good night.").await;
    assert!(!served.forwarded().last().unwrap().contains("Bruno"));
    let receipt = served.get(got.header("x-sottovoce-receipt")).await.text;
    assert!(!receipt.contains("Bruno"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_changes_moves_to_the_utterance_and_stays_with_it() {
    let served = Served::start().await;
    let mut client = Client::new();
    for second in 0..3 {
        client.system = format!(
            "You are a voice assistant.\nCurrent time is 09:26:5{second}. Today's date is 2026-11-23."
        );
        client.say(&served, "/api/chat", &format!("Turn number {second}.")).await;
    }
    let body = served.last_forwarded();
    assert_eq!(body["messages"][0]["content"], "You are a voice assistant.");
    for turn in 0..3 {
        assert_eq!(
            body["messages"][2 * turn + 1]["content"],
            format!(
                "Current time is 09:26:5{turn}. Today's date is 2026-11-23.\n\nTurn number {turn}."
            )
        );
    }
    assert_eq!(served.messages(&Scope::Default).await[4].1, "Turn number 2.");

    let off = [("SERVE__MOVETIME", "false")];
    let served = Served::with(&off, sottovoce_serve::Access::default(), |_| {}).await;
    let mut still = Client { messages: Vec::new(), ..client };
    still.messages.push(json!({ "role": "user", "content": "Hello." }));
    served.post("/api/chat", still.body()).await;
    assert_eq!(served.forwarded(), [still.body()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_that_comes_back_as_tokens_is_not_added_again() {
    let served = Served::start().await;
    served.said_before(&Scope::Default, "My cat is called Minka.", "A lovely name.").await;
    let first = r#"{"model":"llama3.2","prompt":"Hello again."}"#;
    served.post("/api/generate", first).await;
    assert!(served.forwarded()[0].contains("Minka"));
    for words in ["What is my cat called?", "And my cat?"] {
        let next = json!({ "model": "llama3.2", "prompt": words, "context": [1, 2, 3] });
        served.post("/api/generate", next.to_string()).await;
        assert_eq!(served.last_forwarded(), next);
    }
    let none = json!({ "model": "llama3.2", "prompt": "A new one.", "context": [] });
    served.post("/api/generate", none.to_string()).await;
    assert!(served.last_forwarded()["prompt"].as_str().unwrap().contains("Minka"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_system_prompt_the_model_keeps_its_own() {
    let served = Served::start().await;
    served.said_before(&Scope::Default, "My cat is called Minka.", "A lovely name.").await;
    let chat = r#"{"model":"llama3.2", "messages":[{"role":"user","content":"Hello \"you\"."}]}"#;
    served.post("/v1/chat/completions", chat).await;
    let body = served.last_forwarded();
    let content = body["messages"][0]["content"].as_str().unwrap();
    assert!(content.starts_with("Said before this conversation:\n- [Wednesday 20 August"));
    assert!(content.ends_with("A lovely name.\n\nHello \"you\"."), "{content}");
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);

    let generate = r#"{"model":"llama3.2","prompt":"Hello again."}"#;
    let got = served.post("/api/generate", generate).await;
    assert_eq!(got.status, 200, "{}", got.text);
    let prompt = served.last_forwarded()["prompt"].as_str().unwrap().to_owned();
    assert!(prompt.contains("Minka") && prompt.ends_with("\n\nHello again."), "{prompt}");
}
