//! Endless answers from servers and from host models.

#![cfg(feature = "ollama")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use serde_json::json;
use sottovoce::model::{AnswerLimit, AnswerLimits, ModelFailure, ModelRequest, Reply, ReplyPart};
use sottovoce::{Error, LanguageModel, ModelOptions, Ollama, OllamaModel, ToolCall};

use crate::common::scripted::{House, said};
use crate::ollama::PATIENCE;
use crate::stub::{Answer, OllamaStub};

fn limits(bytes: usize, calls: usize, time: Duration) -> AnswerLimits {
    let mut limits = AnswerLimits::default();
    (limits.bytes, limits.calls, limits.time) = (bytes, calls, time);
    limits
}

fn limit(error: Error) -> AnswerLimit {
    match error {
        Error::Model { failure: ModelFailure::TooMuch { limit }, .. } => limit,
        error => panic!("{error:?}"),
    }
}

/// The text before a limit was exceeded, and the limit.
async fn cut_off(reply: &mut dyn Reply) -> (String, AnswerLimit) {
    let mut words = String::new();
    loop {
        match reply.next().await {
            Ok(ReplyPart::Text(text)) => words.push_str(&text),
            Ok(ReplyPart::Done(_)) => panic!("it ended"),
            Ok(_) => {}
            Err(error) => return (words, limit(error)),
        }
    }
}

fn line(message: serde_json::Value) -> Vec<u8> {
    format!("{}\n", json!({ "message": message, "done": false })).into_bytes()
}

fn calls(arguments: &serde_json::Value) -> Vec<u8> {
    line(json!({ "tool_calls": [{ "function": { "name": "f", "arguments": arguments } }] }))
}

async fn against(answer: Answer, limits: AnswerLimits) -> (String, AnswerLimit) {
    let stub = OllamaStub::start();
    stub.next(answer);
    let server = Ollama::new(&stub.url(), PATIENCE).unwrap().answer_limits(limits);
    let request = ModelRequest::json("/api/chat", &json!({ "model": "m", "messages": [{}] }));
    let mut reply = server.send(&request).await.unwrap();
    let cut = cut_off(&mut reply).await;
    assert!(reply.next().await.is_err(), "it goes on");
    drop(reply);
    tokio::task::spawn_blocking(move || stub.wait_until_closed_early()).await.unwrap();
    cut
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut_off_whatever_it_consists_of() {
    let short = limits(1000, 5, PATIENCE);
    let forever = |bytes: &[u8]| Answer::saying(&[]).forever(bytes, Duration::ZERO);
    let (words, limit) = against(forever(&line(json!({ "content": "la lé " }))), short).await;
    assert_eq!((words.len(), limit), (1000, AnswerLimit::Bytes(1000)));
    let (words, limit) = against(forever(&line(json!({ "thinking": "hm " }))), short).await;
    assert_eq!((words.as_str(), limit), ("", AnswerLimit::Bytes(1000)));
    let (_, limit) = against(forever(&calls(&json!({}))), short).await;
    assert_eq!(limit, AnswerLimit::Calls(5));
    let (_, limit) = against(forever(&calls(&json!({ "a": "x".repeat(400) }))), short).await;
    assert_eq!(limit, AnswerLimit::Bytes(1000));
    let (_, limit) = against(forever(&[b'\n'; 1 << 16]), short).await;
    assert_eq!(limit, AnswerLimit::Received(512_000 + (1 << 20)));
}

#[tokio::test]
async fn one_line_is_counted_before_its_calls_become_values() {
    let nested = vec![json!([]); 300_000];
    let (_, limit) =
        against(Answer::saying(&[]).raw(&calls(&nested.into())).silence(), AnswerLimits::default())
            .await;
    assert_eq!(limit, AnswerLimit::Bytes(256 << 10));
}

#[tokio::test]
async fn an_answer_that_trickles_has_an_end_too() {
    let drop = line(json!({ "thinking": "." }));
    let answer = Answer::saying(&["Well"]).forever(&drop, Duration::from_millis(20));
    let limits = limits(1 << 20, 5, Duration::from_millis(400));
    assert_eq!(against(answer, limits).await, ("Well".to_owned(), AnswerLimit::Seconds(1)));
}

#[tokio::test]
async fn warming_a_model_up_has_an_end() {
    let stub = OllamaStub::start();
    stub.next_to(crate::stub::Ask::WarmUp, Answer::body(200, &"\n".repeat(2 << 20)));
    let short = limits(1000, 5, PATIENCE);
    let server = Ollama::new(&stub.url(), PATIENCE).unwrap().answer_limits(short);
    let model = OllamaModel::new(server, ModelOptions::new("m"));
    assert!(model.warm_up(&super::ollama::prompt().await).await.is_err());
}

fn endless_calls() -> ReplyPart {
    let call = ToolCall { id: String::new(), name: "f".into(), arguments: json!({}) };
    ReplyPart::ToolCalls(vec![call; 10])
}

#[tokio::test]
async fn a_model_of_a_hosts_own_is_held_to_the_limits_too() {
    let house = House::with(|c| c.answer_limits(limits(100, 5, PATIENCE))).await;
    let hand = house.model.hand();
    for _ in 0..30 {
        hand.send(said("la la ")).unwrap();
    }
    let (words, kept) = house.conversation.ask("Sing").await.unwrap().whole().await.unwrap();
    assert_eq!(words.len(), 100);
    assert_eq!(kept.report.usage.cut_at, Some(AnswerLimit::Bytes(100)));
    assert_eq!(kept.message.unwrap().message.cut_off(), Some("length"));
    assert!(hand.is_closed());

    for part in [ReplyPart::Thinking, endless_calls()] {
        let hand = house.model.hand();
        for _ in 0..200 {
            hand.send(Ok(part.clone())).unwrap();
        }
        limit(house.conversation.ask("Well?").await.unwrap().whole().await.unwrap_err());
        assert!(hand.is_closed());
    }
}

#[tokio::test]
async fn a_trickling_model_of_a_hosts_own_is_cut_off_in_time() {
    let soon = limits(100, 5, Duration::from_millis(200));
    let house = House::with(|c| c.answer_limits(soon)).await;
    let hand = house.model.hand();
    hand.send(said("It will ")).unwrap();
    let trickle = async {
        while hand.send(Ok(ReplyPart::Thinking)).is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let answer = house.conversation.ask("Weather?").await.unwrap();
    let (answer, ()) = tokio::join!(answer.whole(), trickle);
    let (words, kept) = answer.unwrap();
    assert_eq!(words, "It will ");
    assert_eq!(kept.report.usage.cut_at, Some(AnswerLimit::Seconds(1)));
}
