//! The Ollama client against a misbehaving server.

#![cfg(feature = "ollama")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::error::Error as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::stub::{Answer, Ask, OllamaStub};
use serde_json::json;
use sottovoce::model::{
    ModelFailure, ModelRequest, OllamaChatRenderer, OllamaPromptRenderer, PromptRenderer, Reply,
    ReplyPart,
};
use sottovoce::prompt::Prompt;
use sottovoce::{
    Conversation, ConversationStore, Error, LanguageModel, ManualClock, ModelOptions, Ollama,
    OllamaModel,
};

/// Long enough for a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
const SYSTEM: &str = "Guard the Lebkuchenhaus.";
const UTTERANCE: &str = "Open the Pfefferkuchentür with passphrase Drosselbart 4711";
/// Words that no error may show.
const SECRET: [&str; 5] = ["lebkuchen", "pfefferkuchen", "passphrase", "drosselbart", "4711"];

fn server(stub: &OllamaStub) -> Ollama {
    Ollama::new(&stub.url(), PATIENCE).unwrap()
}

fn model(stub: &OllamaStub, options: ModelOptions) -> OllamaModel {
    OllamaModel::new(server(stub), options)
}

fn options() -> ModelOptions {
    ModelOptions::new("m")
}

pub(super) async fn prompt() -> Prompt {
    let clock = ManualClock::at("2025-08-25T09:00+02:00[Europe/Berlin]".parse().unwrap());
    let store = crate::common::options().clock(Arc::new(clock)).open_in_memory().await.unwrap();
    let builder = Conversation::builder(Arc::new(store)).system(SYSTEM);
    builder.last_n(0).build().prompt(UTTERANCE).await.unwrap().0
}

async fn rendered(renderer: impl PromptRenderer) -> ModelRequest {
    renderer.render(&prompt().await)
}

async fn chat() -> ModelRequest {
    rendered(OllamaChatRenderer::new(options())).await
}

/// The received parts, and the error if there was one.
pub(super) async fn read(reply: &mut dyn Reply) -> (Vec<ReplyPart>, Option<Error>) {
    let mut parts = Vec::new();
    loop {
        match reply.next().await {
            Ok(done @ ReplyPart::Done(_)) => {
                parts.push(done);
                return (parts, None);
            }
            Ok(part) => parts.push(part),
            Err(error) => return (parts, Some(error)),
        }
    }
}

pub(super) fn text(parts: &[ReplyPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ReplyPart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

pub(super) fn failure(error: Option<Error>) -> ModelFailure {
    match error.unwrap() {
        Error::Model { failure, .. } => failure,
        error => panic!("{error:?}"),
    }
}

/// The error of sending to a server that gives this answer.
async fn fails(answer: Answer) -> ModelFailure {
    let stub = OllamaStub::start();
    stub.next(answer);
    failure(match server(&stub).send(&chat().await).await {
        Ok(mut reply) => read(&mut reply).await.1,
        Err(error) => Some(error),
    })
}

/// Everything that an error shows.
fn shown(error: &Error) -> String {
    let mut shown = format!("{error} {error:?} {}", error.help());
    let mut source = error.source();
    while let Some(error) = source {
        shown.push_str(&format!(" {error} {error:?}"));
        source = error.source();
    }
    shown.to_lowercase()
}

#[tokio::test]
async fn an_answer_is_the_same_wherever_the_network_cuts_it() {
    let words = ["Schön", " ", "– 24 °C, ", "日本", "🌤"];
    for split in [1, 2, 3, 7, 64, 4096] {
        let stub = OllamaStub::start();
        let counts = json!({ "prompt_cached_count": 20, "eval_count": 5 });
        stub.next(Answer::saying(&words).done(counts).split_every(split));
        let mut reply = server(&stub).send(&chat().await).await.unwrap();
        let (parts, error) = read(&mut reply).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(text(&parts), words.concat());
        let Some(ReplyPart::Done(usage)) = parts.last() else { panic!("{parts:?}") };
        assert_eq!(usage.prompt_tokens, Some(26));
        assert_eq!(usage.cached_tokens, Some(20));
        assert_eq!(usage.answer_tokens, Some(5));
        assert_eq!(usage.load_time, Some(Duration::from_millis(1)));
        assert_eq!(usage.prompt_time, Some(Duration::from_millis(130)));
        assert_eq!(usage.answer_time, Some(Duration::from_millis(260)));
        assert!(!usage.cut);
    }
}

#[tokio::test]
async fn both_forms_of_request_are_answered_in_pieces_and_whole() {
    let stub = OllamaStub::start();
    for stream in [true, false] {
        let mut options = options();
        options.stream = stream;
        let chat = rendered(OllamaChatRenderer::new(options.clone())).await;
        let generate = rendered(OllamaPromptRenderer::new(options)).await;
        for request in [chat, generate] {
            stub.next(Answer::saying(&[]).thinking("Hm. ").text("It ").text("rains."));
            let mut reply = server(&stub).send(&request).await.unwrap();
            let (parts, error) = read(&mut reply).await;
            assert!(error.is_none(), "{error:?}");
            assert_eq!(parts[0], ReplyPart::Thinking);
            assert_eq!(text(&parts), "It rains.");
            let pieces = if stream { 2 } else { 1 };
            assert_eq!(parts.len(), 1 + pieces + 1, "{} {parts:?}", request.path);
        }
    }
}

#[tokio::test]
async fn thoughts_are_reported_once_a_run_and_never_in_words() {
    let stub = OllamaStub::start();
    let answer = Answer::saying(&[]).thinking("They want").thinking(" rain.").text("Yes");
    stub.next(answer.thinking("Or no?").text("."));
    let (parts, _) = read(&mut server(&stub).send(&chat().await).await.unwrap()).await;
    let thinks = |part: &ReplyPart| matches!(part, ReplyPart::Thinking);
    assert_eq!(parts.iter().map(thinks).collect::<Vec<_>>(), [true, false, true, false, false]);
    assert_eq!(text(&parts), "Yes.");
}

#[tokio::test]
async fn calls_of_tools_come_with_name_and_arguments() {
    let stub = OllamaStub::start();
    let named = json!({ "id": "c1", "function": { "name": "dim", "arguments": { "by": 3 } } });
    let bare = json!({ "function": { "index": 1, "name": "off" } });
    stub.next(Answer::saying(&[]).tools(json!([named, bare])));
    let (parts, _) = read(&mut server(&stub).send(&chat().await).await.unwrap()).await;
    let Some(ReplyPart::ToolCalls(calls)) = parts.first() else { panic!("{parts:?}") };
    assert_eq!((calls[0].id.as_str(), calls[0].name.as_str()), ("c1", "dim"));
    assert_eq!(calls[0].arguments, json!({ "by": 3 }));
    assert_eq!((calls[1].id.as_str(), calls[1].name.as_str()), ("", "off"));
    assert_eq!(parts.len(), 2);
}

#[tokio::test]
async fn an_answer_that_was_cut_at_its_greatest_length_says_so() {
    let stub = OllamaStub::start();
    stub.next(Answer::saying(&["On and on"]).cut_at_length());
    let (parts, _) = read(&mut server(&stub).send(&chat().await).await.unwrap()).await;
    assert!(matches!(parts.last(), Some(ReplyPart::Done(usage)) if usage.cut));
}

#[tokio::test]
async fn no_answer_is_lost_for_a_count_that_is_no_whole_number() {
    let stub = OllamaStub::start();
    let counts = json!({ "eval_count": 2.5, "prompt_eval_count": -1, "load_duration": "1.5s" });
    stub.next(Answer::saying(&["It rains."]).done(counts));
    let (parts, error) = read(&mut server(&stub).send(&chat().await).await.unwrap()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text(&parts), "It rains.");
    let Some(ReplyPart::Done(usage)) = parts.last() else { panic!("{parts:?}") };
    assert_eq!((usage.answer_tokens, usage.prompt_tokens, usage.load_time), (None, None, None));
}

#[tokio::test]
async fn words_in_the_last_line_are_not_lost() {
    let stub = OllamaStub::start();
    let last = json!({ "message": { "content": "Bye." }, "done": true, "done_reason": "stop" });
    stub.next(Answer::saying(&[]).line(last).unfinished());
    let mut reply = server(&stub).send(&chat().await).await.unwrap();
    assert_eq!(reply.next().await.unwrap(), ReplyPart::Text("Bye.".into()));
    assert!(matches!(reply.next().await.unwrap(), ReplyPart::Done(_)));
    assert!(matches!(failure(reply.next().await.err()), ModelFailure::BrokeOff { .. }));
}

#[tokio::test]
async fn a_call_for_the_next_piece_may_be_dropped_without_losing_any() {
    let stub = OllamaStub::start();
    let pause = Duration::from_millis(8);
    stub.next(Answer::saying(&["One, "]).wait(pause).text("two, ").wait(pause).text("three."));
    let mut reply = server(&stub).send(&chat().await).await.unwrap();
    let mut parts = Vec::new();
    while !matches!(parts.last(), Some(ReplyPart::Done(_))) {
        if let Ok(part) = tokio::time::timeout(Duration::from_millis(1), reply.next()).await {
            parts.push(part.unwrap());
        }
    }
    assert_eq!(text(&parts), "One, two, three.");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_an_answer_stops_the_server() {
    let stub = OllamaStub::start();
    stub.next(Answer::saying(&["One"]).silence());
    let mut reply = server(&stub).send(&chat().await).await.unwrap();
    assert_eq!(reply.next().await.unwrap(), ReplyPart::Text("One".into()));
    assert!(!stub.seen(Ask::Reply)[0].closed_early);
    drop(reply);
    stub.wait_until_closed_early();
}

#[tokio::test(flavor = "multi_thread")]
async fn giving_up_before_an_answer_begins_stops_the_server() {
    let stub = OllamaStub::start();
    stub.next(Answer::silent());
    let (server, request) = (server(&stub), chat().await);
    let asking = tokio::spawn(async move { server.send(&request).await.map(drop) });
    stub.wait_for(Ask::Reply, 1);
    asking.abort();
    stub.wait_until_closed_early();
}

#[tokio::test]
async fn a_turn_reads_its_answer_whatever_the_server_calls_it_and_wherever_it_cuts_it() {
    let lines = concat!(
        r#"{"message":{"content":"It rains \ud83c"},"done":false}"#,
        "\n",
        r#"{"message":{"content":"\udf27."},"done":true}"#,
        "\n"
    );
    for kind in ["application/json", "text/plain", "Application/X-NDJSON", "text/event-stream", ""]
    {
        let stub = OllamaStub::start();
        let answer = Answer::saying(&[]).header("content-type", kind).raw(lines.as_bytes());
        stub.next(answer.unfinished());
        let store = Arc::new(crate::common::options().open_in_memory().await.unwrap());
        let builder = Conversation::builder(store.clone()).model(model(&stub, options()));
        let (words, _) = builder.build().ask("Rain?").await.unwrap().whole().await.unwrap();
        assert_eq!(words, "It rains 🌧.", "{kind}");
        assert_eq!(store.read_tail(1).await.unwrap().messages[0].message.content, words);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_to_its_end_is_no_answer() {
    let begun = || Answer::saying(&["It will"]);
    for answer in [begun().cut(), begun().unfinished(), begun().error("out of memory")] {
        let stub = OllamaStub::start();
        stub.next(answer);
        let mut reply = server(&stub).send(&chat().await).await.unwrap();
        let (parts, error) = read(&mut reply).await;
        assert_eq!(text(&parts), "It will");
        let reason = match failure(error) {
            ModelFailure::BrokeOff { reason } => reason,
            other => panic!("{other:?}"),
        };
        assert!(
            [
                "the connection was cut",
                "it ended too early",
                "the server met an error: out of memory"
            ]
            .contains(&&*reason),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn half_a_line_at_the_end_is_no_answer() {
    let failure = fails(Answer::saying(&["It"]).raw(b"{\"message\":{\"conte").unfinished()).await;
    assert!(matches!(failure, ModelFailure::Unintelligible { .. }), "{failure:?}");
}

#[tokio::test]
async fn what_is_no_json_is_not_understood() {
    for answer in [
        Answer::saying(&[]).raw(b"<html>Welcome</html>\n"),
        Answer::saying(&[]).raw(b"\xff\xfe\n"),
        Answer::saying(&[]).raw(b"[1]\n"),
        Answer::saying(&[]).raw(&vec![b'x'; (1 << 20) + 1]).silence(),
        Answer::body(404, "404 page not found"),
    ] {
        let failure = fails(answer).await;
        assert!(matches!(failure, ModelFailure::Unintelligible { .. }), "{failure:?}");
    }
}

#[tokio::test]
async fn a_server_without_the_path_of_a_question_is_no_ollama() {
    let stub = OllamaStub::start();
    stub.next_to(Ask::Version, Answer::body(200, "<html>"));
    let error = server(&stub).version().await.err();
    assert!(matches!(failure(error), ModelFailure::Unintelligible { .. }));
}

#[tokio::test]
async fn silence_before_and_within_an_answer_is_noticed() {
    for answer in [Answer::silent(), Answer::saying(&["Well"]).silence()] {
        let stub = OllamaStub::start();
        stub.next(answer);
        let server = Ollama::new(&stub.url(), Duration::from_millis(200)).unwrap();
        let error = match server.send(&chat().await).await {
            Ok(mut reply) => read(&mut reply).await.1,
            Err(error) => Some(error),
        };
        assert!(matches!(failure(error), ModelFailure::TimedOut { seconds: 1 }));
    }
}

#[tokio::test]
async fn an_answer_may_be_slow_as_long_as_it_gives_signs() {
    let stub = OllamaStub::start();
    let pause = Duration::from_millis(150);
    let answer = Answer::saying(&["One "]).wait(pause).text("two ").wait(pause).text("three");
    stub.next(answer.late(pause));
    let server = Ollama::new(&stub.url(), Duration::from_millis(400)).unwrap();
    let (parts, error) = read(&mut server.send(&chat().await).await.unwrap()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text(&parts), "One two three");
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let stub = OllamaStub::start();
    stub.next(Answer::refusal(503, "server busy, please try again"));
    stub.next(Answer::refusal(503, "server busy, please try again"));
    let (parts, _) = read(&mut server(&stub).send(&chat().await).await.unwrap()).await;
    assert_eq!(text(&parts), "Fine.");
    assert_eq!(stub.seen(Ask::Reply).len(), 3);
}

#[tokio::test]
async fn a_server_that_stays_busy_is_not_asked_for_ever() {
    let stub = OllamaStub::start();
    stub.always_to(Ask::Reply, Answer::refusal(503, "server busy"));
    let error = server(&stub).send(&chat().await).await.err();
    assert!(matches!(failure(error), ModelFailure::Busy));
    assert_eq!(stub.seen(Ask::Reply).len(), 4);
}

#[tokio::test]
async fn a_missing_model_is_named() {
    match fails(Answer::refusal(404, "model 'm' not found")).await {
        ModelFailure::NoSuchModel { model } => assert_eq!(model, "m"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_distinguished() {
    for reason in [
        "the input length exceeds the context length",
        "prompt too long; exceeded max context length by 12 tokens",
        "input is LONGER THAN the window",
    ] {
        let failure = fails(Answer::refusal(400, reason)).await;
        assert!(matches!(failure, ModelFailure::PromptTooLong), "{failure:?}");
    }
    let stub = OllamaStub::start();
    let request = chat().await;
    stub.most_messages(2);
    assert!(server(&stub).send(&request).await.is_ok());
    stub.most_bytes(request.body.len() - 1);
    let error = server(&stub).send(&request).await.err();
    assert!(matches!(failure(error), ModelFailure::PromptTooLong));
}

#[tokio::test]
async fn another_refusal_keeps_its_status_and_reason() {
    match fails(Answer::refusal(400, "m does not support tools")).await {
        ModelFailure::Refused { status: 400, reason } => {
            assert_eq!(reason, "m does not support tools");
        }
        other => panic!("{other:?}"),
    }
    let failure = fails(Answer::body(502, "<html>Bad gateway</html>")).await;
    assert!(matches!(failure, ModelFailure::Refused { status: 502, .. }), "{failure:?}");
}

#[tokio::test]
async fn no_word_of_the_conversation_stands_in_any_error() {
    let quoting = format!("bad {SYSTEM} {UTTERANCE} {}", UTTERANCE.to_uppercase());
    let begun = || Answer::saying(&["It"]);
    for answer in [
        Answer::refusal(400, &quoting),
        Answer::refusal(400, &format!("too long: {quoting}")),
        Answer::refusal(404, &quoting),
        Answer::refusal(404, &format!("not found: {quoting}")),
        Answer::refusal(500, &quoting),
        Answer::body(500, &quoting),
        Answer::body(404, &quoting),
        begun().error(&quoting),
        begun().raw(quoting.as_bytes()).raw(b"\n"),
        Answer::hanging_up(),
        begun().cut(),
    ] {
        let stub = OllamaStub::start();
        stub.next(answer.clone());
        stub.next(answer);
        let error = match server(&stub).send(&chat().await).await {
            Ok(mut reply) => read(&mut reply).await.1.unwrap(),
            Err(error) => error,
        };
        let shown = shown(&error);
        assert!(!SECRET.iter().any(|word| shown.contains(word)), "{shown}");
    }
}

#[tokio::test]
async fn no_word_of_a_script_without_spaces_short_cut_or_decomposed_stands_in_any_error() {
    for (prompt, quoted) in [
        ("我的密码是龙凤", "cannot read 我的密码是龙凤"),
        ("รหัสผ่านของฉันคือช้าง", "bad text ผ่านของฉัน here"),
        ("my pin is o7x", "cannot read: pin o7x"),
        ("Drosselbart", "cannot read: rosselb"),
        ("Füchschen", "cannot read: Fu\u{308}chschen"),
        ("龙凤", "cannot read: \\u9f99\\u51e4"),
    ] {
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": prompt }] });
        let request = ModelRequest::json("/api/chat", &body);
        for answer in [
            Answer::refusal(400, quoted),
            Answer::refusal(500, quoted),
            Answer::body(500, &json!({ "error": { "message": quoted } }).to_string()),
            Answer::saying(&[]).error(quoted),
        ] {
            let stub = OllamaStub::start();
            stub.next(answer);
            let error = match server(&stub).send(&request).await {
                Ok(mut reply) => read(&mut reply).await.1.unwrap(),
                Err(error) => error,
            };
            let said = format!("a reason of {} bytes, not shown", quoted.len());
            assert!(error.to_string().contains(&said), "{error}");
            let shown = shown(&error);
            for word in [quoted, prompt, "o7x", "rosselb", "u9f99", "u{308}", "read", "text"] {
                assert!(!shown.contains(word), "{word} in {shown}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_dies_while_it_works_is_not_asked_again() {
    let stub = OllamaStub::start();
    stub.next(Answer::hanging_up());
    let error = server(&stub).send(&chat().await).await.err().unwrap();
    assert!(error.help().contains("ask again"), "{error}");
    assert!(matches!(failure(Some(error)), ModelFailure::Interrupted { .. }));
    assert_eq!(stub.seen(Ask::Reply).len(), 1);
}

#[tokio::test]
async fn what_only_reads_is_asked_again_when_the_connection_breaks() {
    let stub = OllamaStub::start();
    stub.next_to(Ask::Running, Answer::hanging_up());
    assert!(server(&stub).running().await.is_ok());
    assert_eq!(stub.seen(Ask::Running).len(), 2);
}

#[tokio::test]
async fn a_restarted_server_is_spoken_to_and_looked_at_anew() {
    let mut stub = OllamaStub::start();
    let model = model(&stub, options());
    assert_eq!(model.limits().await.unwrap().window, Some(4096));
    stub.stop();
    let error = model.reply(&prompt().await).await.err();
    assert!(matches!(failure(error), ModelFailure::Unreachable(_)));

    stub.restart();
    let show = json!({ "model_info": {
        "general.architecture": "qwen3", "qwen3.context_length": 2048,
    } });
    stub.always_to(Ask::Show, Answer::json(show));
    let mut reply = model.reply(&prompt().await).await.unwrap();
    assert_eq!(text(&read(&mut *reply).await.0), "Fine.");
    assert_eq!(model.limits().await.unwrap().window, Some(2048));
    assert_eq!(stub.seen(Ask::Show).len(), 2);
}

#[tokio::test]
async fn an_answer_that_broke_off_has_the_server_looked_at_anew() {
    let stub = OllamaStub::start();
    let model = model(&stub, options());
    stub.next(Answer::saying(&["It"]).cut());
    let mut reply = model.reply(&prompt().await).await.unwrap();
    assert!(read(&mut *reply).await.1.is_some());
    model.limits().await.unwrap();
    model.limits().await.unwrap();
    assert_eq!(stub.seen(Ask::Show).len(), 2);
}

#[tokio::test]
async fn the_window_is_the_least_that_anybody_speaks_of() {
    let trained = |tokens: u32| {
        Answer::json(json!({ "model_info": {
            "general.architecture": "llama", "llama.context_length": tokens,
        } }))
    };
    let runs = |name: &str, tokens: u32| {
        Answer::json(json!({ "models": [
            { "name": "other:latest", "context_length": 1 },
            { "name": name, "context_length": tokens },
        ] }))
    };
    let nothing = || Answer::json(json!({}));
    for (asked, show, running, window) in [
        (Some(4096), trained(8192), runs("m:latest", 4096), Some(4096)),
        (Some(16384), trained(8192), runs("m:latest", 16384), Some(8192)),
        (Some(16384), trained(131_072), runs("m", 2048), Some(2048)),
        (None, trained(131_072), runs("m:latest", 4096), Some(4096)),
        (None, nothing(), runs("m:latest", 4096), Some(4096)),
        (Some(512), nothing(), nothing(), Some(512)),
        (None, trained(8192), runs("m:7b", 4096), Some(8192)),
        (None, nothing(), nothing(), None),
    ] {
        let stub = OllamaStub::start();
        stub.next_to(Ask::Show, show);
        stub.next_to(Ask::Running, running);
        let mut options = options();
        options.num_ctx = asked;
        let model = model(&stub, options);
        assert_eq!(model.limits().await.unwrap().window, window);
    }
}

#[tokio::test]
async fn calls_at_the_same_time_look_at_the_server_once() {
    let stub = OllamaStub::start();
    stub.next_to(Ask::Load, Answer::saying(&[]).late(Duration::from_millis(30)));
    let model = model(&stub, options());
    let (request, other) = (prompt().await, prompt().await);
    let (one, two, three) =
        tokio::join!(model.limits(), model.reply(&request), model.reply(&other));
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    assert_eq!(stub.seen(Ask::Show).len(), 1);
    assert_eq!(stub.seen(Ask::Load).len(), 1);
}

#[tokio::test]
async fn a_failed_look_is_not_remembered() {
    let stub = OllamaStub::start();
    stub.next_to(Ask::Load, Answer::refusal(500, "out of memory"));
    let model = model(&stub, options());
    assert!(model.limits().await.is_err());
    assert_eq!(model.limits().await.unwrap().window, Some(4096));
}

#[tokio::test]
async fn a_model_is_loaded_exactly_as_its_requests_want_it() {
    let stub = OllamaStub::start();
    let mut options = options();
    options.num_ctx = Some(2048);
    options.strict = true;
    options.keep_alive = Some("30m".into());
    let model = model(&stub, options);
    let request = prompt().await;
    model.warm_up(&request).await.unwrap();
    read(&mut *model.reply(&request).await.unwrap()).await;
    let bodies: Vec<_> = [Ask::Load, Ask::WarmUp, Ask::Reply]
        .into_iter()
        .flat_map(|ask| stub.seen(ask))
        .map(|seen| seen.json())
        .collect();
    assert_eq!(bodies.len(), 3);
    for body in &bodies {
        assert_eq!(body["options"]["num_ctx"], 2048);
        assert_eq!(body["keep_alive"], "30m");
        assert_eq!((&body["shift"], &body["truncate"]), (&json!(false), &json!(false)));
    }
    assert_eq!(bodies[0]["messages"], json!([]));
    assert_eq!(bodies[1]["messages"], bodies[2]["messages"]);
}

#[tokio::test]
async fn a_warm_up_takes_one_token_and_no_more() {
    let stub = OllamaStub::start();
    let mut options = options();
    options.num_predict = Some(512);
    let model = model(&stub, options).renderer(OllamaPromptRenderer::new);
    model.warm_up(&prompt().await).await.unwrap();
    let body = stub.seen(Ask::WarmUp)[0].json();
    assert_eq!((&body["stream"], &body["options"]["num_predict"]), (&json!(false), &json!(1)));
}

#[tokio::test]
async fn a_model_thinks_only_if_it_can_and_was_asked_to() {
    let unset = serde_json::Value::Null;
    for (asked, can, sent) in [
        (None, true, json!(false)),
        (None, false, unset.clone()),
        (Some(true), true, json!(true)),
        (Some(true), false, unset),
        (Some(false), true, json!(false)),
    ] {
        let stub = OllamaStub::start();
        let capabilities = if can { json!(["completion", "thinking"]) } else { json!([]) };
        stub.always_to(Ask::Show, Answer::json(json!({ "capabilities": capabilities })));
        let mut options = options();
        options.think = asked;
        let request = prompt().await;
        let model = model(&stub, options);
        model.warm_up(&request).await.unwrap();
        model.reply(&request).await.unwrap();
        assert_eq!(stub.seen(Ask::WarmUp)[0].json()["think"], sent);
        assert_eq!(stub.seen(Ask::Reply)[0].json()["think"], sent);
    }
}

#[tokio::test]
async fn a_cloud_model_is_refused_before_anything_is_said_to_it() {
    for remote in [json!({ "remote_host": "https://far" }), json!({ "remote_model": "large" })] {
        let stub = OllamaStub::start();
        stub.always_to(Ask::Show, Answer::json(remote));
        let model = model(&stub, options());
        let request = prompt().await;
        for error in [
            model.limits().await.err(),
            model.reply(&request).await.err(),
            model.warm_up(&request).await.err(),
        ] {
            assert!(matches!(failure(error), ModelFailure::Cloud { .. }));
        }
        assert!(stub.all_seen().iter().all(|seen| seen.ask == Ask::Show));
    }
}

#[tokio::test]
async fn a_cloud_model_that_is_allowed_is_asked() {
    let stub = OllamaStub::start();
    stub.always_to(Ask::Show, Answer::json(json!({ "remote_host": "https://far" })));
    stub.next(Answer::saying(&["Hello"]).remote("https://far"));
    let model = model(&stub, options()).allow_cloud(true);
    let mut reply = model.reply(&prompt().await).await.unwrap();
    assert_eq!(text(&read(&mut *reply).await.0), "Hello");
    assert!(stub.seen(Ask::Load).is_empty());
}

#[tokio::test]
async fn an_answer_that_another_machine_wrote_is_not_handed_on() {
    let stub = OllamaStub::start();
    stub.next(Answer::saying(&["Hello"]).remote("https://far"));
    let model = model(&stub, options());
    let (parts, error) = read(&mut *model.reply(&prompt().await).await.unwrap()).await;
    assert!(parts.is_empty());
    assert!(matches!(failure(error), ModelFailure::Cloud { .. }));
}

#[tokio::test]
async fn a_redirect_carries_a_prompt_nowhere() {
    let elsewhere = OllamaStub::start();
    let stub = OllamaStub::start();
    stub.next(Answer::redirect(&format!("{}/api/chat", elsewhere.url())));
    let error = server(&stub).send(&chat().await).await.err();
    assert!(matches!(failure(error), ModelFailure::Refused { status: 307, .. }));
    assert!(elsewhere.all_seen().is_empty());
}

const CHILD: &str = "SOTTOVOCE_TEST_SERVER";

#[tokio::test]
async fn child_that_asks_for_the_version() {
    let Ok(url) = std::env::var(CHILD) else { return };
    let server = Ollama::new(&url, PATIENCE).unwrap();
    assert_eq!(server.version().await.unwrap(), "0.33.0");
}

#[test]
fn a_proxy_in_the_environment_is_not_asked() {
    let (stub, proxy) = (OllamaStub::start(), OllamaStub::start());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "ollama::child_that_asks_for_the_version"]).env(CHILD, stub.url());
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, proxy.url());
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    assert!(child.output().unwrap().status.success());
    assert!(proxy.all_seen().is_empty());
    assert_eq!(stub.seen(Ask::Version).len(), 1);
}

#[tokio::test]
async fn the_login_of_an_address_is_used_and_never_shown() {
    let mut stub = OllamaStub::start();
    let url = format!("http://alice:gehe%20im@127.0.0.1:{}/", stub.port());
    let server = Ollama::new(&url, PATIENCE).unwrap();
    server.version().await.unwrap();
    let sent = &stub.seen(Ask::Version)[0];
    assert_eq!(sent.headers["authorization"], "Basic YWxpY2U6Z2VoZSBpbQ==");

    stub.next_to(Ask::Version, Answer::refusal(401, "unauthorized"));
    let refused = server.version().await.unwrap_err();
    let reply = server.send(&chat().await).await.unwrap();
    let debug = format!("{server:?} {reply:?}");
    drop(reply);
    stub.stop();
    let unreachable = server.version().await.unwrap_err();
    let model = OllamaModel::new(server, options());
    let address = format!("http://127.0.0.1:{}", stub.port());
    assert!(unreachable.to_string().contains(&format!("{address}: ")), "{unreachable}");
    for text in [debug, format!("{model:?}"), shown(&refused), shown(&unreachable)] {
        assert!(text.contains(&address), "{text}");
        let text = text.to_lowercase();
        assert!(!["alice", "gehe", "ywxpy"].iter().any(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn an_address_that_cannot_work_is_refused_without_repeating_it() {
    let bad = [
        "",
        "127.0.0.1:11434",
        "localhost:11434",
        "ftp://alice:geheim@host",
        "http://alice:geheim@host:port",
        "http://alice:geheim@",
        "http://host/?geheim",
    ];
    for url in bad {
        let error = Ollama::new(url, PATIENCE).unwrap_err();
        assert!(matches!(&error, Error::Config { place, .. } if place == "LanguageModel.BaseUrl"));
        let shown = shown(&error);
        assert!(!shown.contains("geheim") && !shown.contains("alice"), "{shown}");
    }
}

#[test]
fn https_needs_the_feature_that_brings_it() {
    let made = Ollama::new("https://ollama.house", PATIENCE);
    assert_eq!(made.is_ok(), cfg!(feature = "tls"));
}

#[tokio::test]
async fn an_address_may_have_a_path() {
    let stub = OllamaStub::start();
    let server = Ollama::new(&format!("{}/ollama/", stub.url()), PATIENCE).unwrap();
    assert!(server.version().await.is_err());
    assert_eq!(stub.all_seen()[0].path, "/ollama/api/version");
}

#[tokio::test]
async fn the_models_that_the_server_has_and_runs_are_listed() {
    let stub = OllamaStub::start();
    let server = server(&stub);
    let models = server.models().await.unwrap();
    assert_eq!((models[0].name.as_str(), models[0].size), ("llama3.2:latest", Some(2_019_393_189)));
    assert_eq!(models[0].modified.unwrap().to_string(), "2025-08-24T16:36:25.123456789Z");
    assert_eq!(models[0].parameter_size.as_deref(), Some("3.2B"));
    assert_eq!(models[0].quantization.as_deref(), Some("Q4_K_M"));
    assert_eq!(models[0].family.as_deref(), Some("llama"));
    assert!(!models[0].remote);

    assert!(server.running().await.unwrap().is_empty());
    server.load(&options()).await.unwrap();
    let running = server.running().await.unwrap();
    assert_eq!((running[0].name.as_str(), running[0].context_length), ("m:latest", Some(4096)));

    let info = server.show("m").await.unwrap();
    assert_eq!(info.context_length, Some(8192));
    assert!(info.can("tools") && !info.can("thinking") && !info.remote);

    stub.always_to(Ask::Tags, Answer::json(json!({ "models": null })));
    assert!(server.models().await.unwrap().is_empty());
    stub.always_to(Ask::Tags, Answer::json(json!({ "models": [
        { "name": "x", "modified_at": "yesterday", "details": { "family": "" }, "remote_host": "h" },
    ] })));
    let models = server.models().await.unwrap();
    assert_eq!((models[0].modified, models[0].family.as_ref()), (None, None));
    assert!(models[0].remote);
}
