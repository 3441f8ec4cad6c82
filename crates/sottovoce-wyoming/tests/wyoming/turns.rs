//! Turns: what is said is stored in its room, and answered with what that room remembers.

use serde_json::json;
use sottovoce::Scope;
use sottovoce_wyoming::Rooms;
use tokio::io::AsyncWriteExt;

use crate::harness::{Client, Served, named};
use crate::ollama::{Answer, Ask};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_in_pieces_and_both_sides_are_stored() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is ", "raining."]));
    let mut client = served.client().await;
    let context = json!({ "conversation_id": "01M8", "device_id": "d1", "satellite_id": "assist_satellite.kitchen" });
    let said = json!({ "text": " Is it raining?", "language": "en-GB", "context": context });
    client.send("transcript", said).await;
    let (kind, data) = client.next().await.unwrap();
    assert_eq!((kind.as_str(), &data["context"]), ("handled-start", &context));
    let mut pieces = String::new();
    let whole = loop {
        match client.next().await.unwrap() {
            (kind, data) if kind == "handled-chunk" => pieces += data["text"].as_str().unwrap(),
            other => break other,
        }
    };
    assert_eq!((pieces.as_str(), whole.0.as_str()), ("It is raining.", "handled"));
    assert_eq!(whole.1, json!({ "text": "It is raining.", "context": context }));
    assert_eq!(client.next().await.unwrap().0, "handled-stop");
    let messages = served.messages(&Scope::Default).await;
    let said: Vec<_> = messages.iter().map(|stored| stored.message.content.as_str()).collect();
    assert_eq!(said, ["Is it raining?", "It is raining."]);
    let metadata = &messages[0].message.metadata;
    assert_eq!((&*metadata["device"], &*metadata["lang"]), ("assist_satellite.kitchen", "en-GB"));
    assert!(messages[0].message.speaker().is_none());
    let sources: Vec<_> = messages.iter().map(|stored| stored.message.source_in_words()).collect();
    assert_eq!(sources, ["spoken", "assistant"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_room_remembers_its_own_by_satellite_device_or_port() {
    let rooms = Rooms::default()
        .with("assist_satellite.kitchen", named("kitchen"))
        .with("d2", named("office"));
    let served = Served::with(vec![None, Some(named("attic"))], rooms).await;
    let places = [
        (0, json!({ "satellite_id": "assist_satellite.kitchen", "device_id": "d2" }), "kitchen"),
        (0, json!({ "satellite_id": "assist_satellite.x", "device_id": "d2" }), "office"),
        (1, json!({ "conversation_id": "x" }), "attic"),
        (0, json!(null), ""),
    ];
    for (port, context, room) in &places {
        let mut client = Client::at(served.ports[*port]).await;
        let text = format!("My cat lives in the {room} room.");
        client.send("transcript", json!({ "text": text, "context": context })).await;
        client.answer().await;
    }
    for (port, context, room) in &places {
        let mut client = Client::at(served.ports[*port]).await;
        client.send("transcript", json!({ "text": "Where is my cat?", "context": context })).await;
        client.answer().await;
        let seen = served.stub.seen(Ask::Reply);
        let prompt = &seen.last().unwrap().body;
        for other in ["kitchen", "office", "attic"] {
            assert_eq!(prompt.contains(&format!("the {other} room")), other == *room, "{prompt}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_describes_itself_and_answers_pings_during_a_turn() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("raining."));
    let mut client = served.client().await;
    client.say("Rain?").await;
    assert_eq!(client.next().await.unwrap().0, "handled-start");
    assert_eq!(client.next().await.unwrap().0, "handled-chunk");
    client.send("describe", json!({})).await;
    let (kind, info) = client.next().await.unwrap();
    assert_eq!(kind, "info");
    let handle = &info["handle"][0];
    assert_eq!(handle["supports_handled_streaming"], true);
    assert_eq!(
        (&handle["installed"], &handle["models"][0]["languages"]),
        (&json!(true), &json!([]))
    );
    client.send("ping", json!({ "text": "x" })).await;
    assert_eq!(client.next().await.unwrap(), ("pong".to_owned(), json!({ "text": "x" })));
    served.stub.release();
    let (kinds, spoken) = client.answer().await;
    assert_eq!(kinds.last().unwrap(), "handled-stop");
    assert_eq!(spoken, "It is raining.");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_callers_input_is_a_barge_in() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("raining."));
    let mut client = served.client().await;
    client.say("Rain?").await;
    client.next().await.unwrap();
    client.next().await.unwrap();
    client.writer.shutdown().await.unwrap();
    served.stub.wait_until_closed_early();
    served.ends_with(&Scope::Default, "It is ", Some("interrupted")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_again_interrupts_the_answer_and_gets_another() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("raining."));
    served.stub.next(Answer::saying(&["Fine."]));
    let mut client = served.client().await;
    client.say("Rain?").await;
    client.next().await.unwrap();
    client.next().await.unwrap();
    client.say("Stop.").await;
    let (_, spoken) = client.answer().await;
    assert_eq!(spoken, "Fine.");
    let said: Vec<_> = served.messages(&Scope::Default).await;
    let said: Vec<_> = said.iter().map(|stored| stored.message.content.as_str()).collect();
    assert_eq!(said, ["Rain?", "It is ", "Stop.", "Fine."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_spoken_in_the_language_of_the_turn() {
    let served = Served::start().await;
    for (language, words) in [
        ("de", "Mir fällt gerade keine Antwort ein"),
        ("pt-BR", "I cannot think of an answer"),
        ("pl", "Nie teraz."),
    ] {
        served.stub.next(Answer::refusal(500, "boom"));
        let mut client = served.client().await;
        client.send("transcript", json!({ "text": "Hallo?", "language": language })).await;
        let (kinds, spoken) = client.answer().await;
        assert_eq!(kinds, ["not-handled"]);
        assert!(spoken.starts_with(words), "{spoken}");
    }
    served.stub.next(Answer::saying(&["It is "]).error("boom"));
    let mut client = served.client().await;
    client.say("Rain?").await;
    let (kinds, spoken) = client.answer().await;
    assert_eq!(kinds.last().unwrap(), "handled-stop");
    assert!(spoken.starts_with("It is  I cannot think"), "{spoken}");
    let mut client = served.client().await;
    client.say("  ").await;
    assert_eq!(client.answer().await.1, "I did not hear anything.");
    assert_eq!(served.stub.seen(Ask::Reply).len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_is_not_answered() {
    let served = Served::with(vec![Some(named("kitchen"))], Rooms::default()).await;
    // A file stands where the folder of named conversations would.
    std::fs::write(served.root.path().join("conversations"), b"").unwrap();
    let mut client = served.client().await;
    client.say("Rain?").await;
    let (kinds, spoken) = client.answer().await;
    assert_eq!(kinds, ["not-handled"]);
    assert!(spoken.starts_with("I cannot reach my memory"), "{spoken}");
    assert!(served.stub.seen(Ask::Reply).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_server_stores_what_was_spoken() {
    let mut served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("raining."));
    let mut client = served.client().await;
    client.say("Rain?").await;
    client.next().await.unwrap();
    client.next().await.unwrap();
    served.stop().await;
    let messages = served.messages(&Scope::Default).await;
    let last = &messages.last().unwrap().message;
    assert_eq!((last.content.as_str(), last.cut_off()), ("It is ", Some("interrupted")));
}
