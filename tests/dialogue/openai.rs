//! The chat-completions client against a misbehaving server.

#![cfg(feature = "ollama")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use serde_json::{Value, json};
use sottovoce::model::{AnswerLimit, AnswerLimits, ModelFailure, ModelRequest, ReplyPart, Usage};
use sottovoce::{Error, LanguageModel, ModelOptions, OpenAi, OpenAiModel};

use crate::ollama::{PATIENCE, failure, prompt, read, text};
use crate::stub::{Answer, Ask, OllamaStub};

const KEY: &str = "sk-Drosselbart-4711";

fn server(stub: &OllamaStub) -> OpenAi {
    OpenAi::new(&stub.url(), PATIENCE).unwrap()
}

fn with_key(server: OpenAi) -> sottovoce::Result<OpenAi> {
    server.api_key(KEY.to_owned().into())
}

fn model(stub: &OllamaStub) -> OpenAiModel {
    OpenAiModel::new(server(stub), ModelOptions::new("llama3.2"))
}

fn request(stream: bool) -> ModelRequest {
    let messages = json!([{ "role": "user", "content": "Open the Pfefferkuchentür" }]);
    let body = json!({ "model": "llama3.2", "messages": messages, "stream": stream });
    ModelRequest::json("/v1/chat/completions", &body)
}

/// The result of one scripted answer.
async fn answered(answer: Answer) -> (Vec<ReplyPart>, Option<Error>) {
    let stub = OllamaStub::start();
    stub.next(answer);
    read(&mut server(&stub).send(&request(true)).await.unwrap()).await
}

fn usage(parts: &[ReplyPart]) -> &Usage {
    let Some(ReplyPart::Done(usage)) = parts.last() else { panic!("{parts:?}") };
    usage
}

fn event(delta: Value, finish: Option<&str>) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

#[tokio::test]
async fn an_answer_in_events_is_the_same_wherever_the_network_cuts_it() {
    let words = ["Schön", " ", "– 24 °C, ", "日本", "🌤"];
    for split in [1, 2, 3, 7, 64, 4096] {
        let stub = OllamaStub::start();
        let counts = json!({ "prompt_cached_count": 20, "eval_count": 5 });
        stub.next(Answer::saying(&words).done(counts).split_every(split));
        let (parts, error) = read(&mut server(&stub).send(&request(true)).await.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(text(&parts), words.concat());
        let usage = usage(&parts);
        assert_eq!(
            (usage.prompt_tokens, usage.cached_tokens, usage.answer_tokens, usage.cut),
            (Some(26), Some(20), Some(5), false)
        );
    }
}

#[tokio::test]
async fn a_whole_answer_may_be_set_in_lines() {
    let stub = OllamaStub::start();
    stub.next(Answer::saying(&[]).thinking("Hm.").text("It rains.").cut_at_length());
    let (parts, error) = read(&mut server(&stub).send(&request(false)).await.unwrap()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(parts[..2], [ReplyPart::Thinking, ReplyPart::Text("It rains.".into())]);
    assert!(usage(&parts).cut);
}

#[tokio::test]
async fn the_times_of_llama_cpp_are_taken_over() {
    let done = json!({ "choices": [], "usage": { "prompt_tokens": 31, "completion_tokens": 3 },
        "timings": { "cache_n": 30, "prompt_ms": 101.5, "predicted_ms": 263.0 } });
    let answer = Answer::saying(&["Hi"]).line(event(json!({}), Some("stop"))).line(done);
    let (parts, _) = answered(answer.raw(b"data: [DONE]\n\n").unfinished()).await;
    let usage = usage(&parts);
    assert_eq!((usage.prompt_tokens, usage.cached_tokens), (Some(31), Some(30)));
    assert_eq!(usage.prompt_time, Some(Duration::from_micros(101_500)));
    assert_eq!(usage.answer_time, Some(Duration::from_millis(263)));
}

#[tokio::test]
async fn no_answer_is_lost_for_a_count_that_is_no_whole_number() {
    let done = json!({ "choices": [], "usage": { "prompt_tokens": 31.5, "completion_tokens": "3" },
        "timings": { "cache_n": -1, "prompt_ms": "a second" } });
    let answer = Answer::saying(&["Hi"]).line(event(json!({}), Some("stop"))).line(done);
    let (parts, error) = answered(answer.raw(b"data: [DONE]\n\n").unfinished()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text(&parts), "Hi");
    let usage = usage(&parts);
    assert_eq!((usage.prompt_tokens, usage.answer_tokens, usage.prompt_time), (None, None, None));
}

#[tokio::test]
async fn calls_are_put_together_however_a_server_sends_them() {
    let piece = |index: Value, id: Value, name: Value, arguments: Value| {
        let call = json!({ "index": index, "id": id, "type": "function",
            "function": { "name": name, "arguments": arguments } });
        event(json!({ "tool_calls": [call] }), None)
    };
    let null = Value::Null;
    // Numbered and in fragments, as OpenAI, llama.cpp and vLLM send them.
    let numbered = [
        piece(json!(0), json!("a"), json!("dim"), json!("")),
        piece(json!(0), null.clone(), null.clone(), json!("{\"by\"")),
        piece(json!(1), json!("b"), json!("off"), json!("")),
        piece(json!(0), null.clone(), null.clone(), json!(": 3}")),
    ];
    // All numbered 0; unnumbered; by id alone; as JSON instead of a string.
    let zeros = [
        piece(json!(0), json!("a"), json!("dim"), json!("{\"by\": 3}")),
        piece(json!(0), json!("b"), json!("off"), json!("{}")),
    ];
    let bare = [
        piece(null.clone(), json!(""), json!("dim"), json!("{\"by\":")),
        piece(null.clone(), null.clone(), null.clone(), json!("3}")),
        piece(null.clone(), json!(""), json!("off"), json!("{}")),
    ];
    let named = [
        piece(null.clone(), json!("a"), json!("dim"), json!("{\"by\":")),
        piece(null.clone(), json!("a"), null.clone(), json!("3}")),
        piece(null.clone(), json!("b"), json!("off"), json!("")),
    ];
    let values = [
        piece(json!(0), json!("a"), json!("dim"), json!({ "by": 3 })),
        piece(json!(1), json!("b"), json!("off"), null),
    ];
    for pieces in [&numbered[..], &zeros, &bare, &named, &values] {
        let answer = pieces.iter().fold(Answer::saying(&["Well. "]), |a, p| a.line(p.clone()));
        let (parts, error) =
            answered(answer.cut_at_length().done(json!({ "done_reason": "tool_calls" }))).await;
        assert!(error.is_none(), "{error:?}");
        let Some(ReplyPart::ToolCalls(calls)) = parts.get(1) else { panic!("{parts:?}") };
        assert_eq!(calls.len(), 2, "{pieces:?}");
        assert_eq!((calls[0].name.as_str(), &calls[0].arguments), ("dim", &json!({ "by": 3 })));
        assert_eq!((calls[1].name.as_str(), &calls[1].arguments), ("off", &json!({})));
    }
    let broken = piece(json!(0), json!("a"), json!("dim"), json!("{\"by\": Drossel"));
    let (_, error) = answered(Answer::saying(&[]).line(broken)).await;
    assert!(matches!(failure(error), ModelFailure::Unintelligible { .. }));
}

#[tokio::test]
async fn an_answer_in_events_that_does_not_come_to_its_end_is_no_answer() {
    let begun = || Answer::saying(&["It will"]);
    for answer in [
        begun().cut(),
        begun().unfinished(),
        begun().error("out of memory"),
        begun().line(json!({ "error": { "message": "out of memory", "code": 500 } })).unfinished(),
    ] {
        let (parts, error) = answered(answer).await;
        assert_eq!(text(&parts), "It will");
        assert!(matches!(failure(error), ModelFailure::BrokeOff { .. }));
    }
    // The stop reason ends the answer too: some servers send nothing after it.
    let (parts, error) = answered(begun().line(event(json!({}), Some("stop"))).unfinished()).await;
    assert!(error.is_none() && !usage(&parts).cut, "{error:?}");
}

#[tokio::test]
async fn what_is_no_event_is_not_understood() {
    for answer in [
        Answer::saying(&[]).raw(b"<html>Welcome</html>\n"),
        Answer::saying(&[]).raw(b"data: [1]\n\n"),
        Answer::saying(&[]).raw(b"data: Drosselbart\n\n"),
        Answer::body(200, "\"Drosselbart\""),
    ] {
        let (_, error) = answered(answer).await;
        let error = error.unwrap();
        assert!(!format!("{error} {error:?}").contains("Drossel"), "{error:?}");
        assert!(matches!(failure(Some(error)), ModelFailure::Unintelligible { .. }));
    }
}

#[tokio::test]
async fn an_endless_answer_in_events_is_cut_off_too() {
    let mut limits = AnswerLimits::default();
    (limits.bytes, limits.calls) = (1000, 5);
    let line = |delta: Value| format!("data: {}\n\n", event(delta, None)).into_bytes();
    let call =
        |name: Value| json!([{ "index": 0, "function": { "name": name, "arguments": "[[[" } }]);
    for (bytes, limit) in [
        (line(json!({ "content": "la " })), AnswerLimit::Bytes(1000)),
        (line(json!({ "reasoning_content": "hm " })), AnswerLimit::Bytes(1000)),
        (line(json!({ "tool_calls": call(Value::Null) })), AnswerLimit::Bytes(1000)),
        (b": ping\n".repeat(9000), AnswerLimit::Received(512_000 + (1 << 20))),
    ] {
        let stub = OllamaStub::start();
        stub.next(Answer::saying(&[]).forever(&bytes, Duration::ZERO));
        let server = server(&stub).answer_limits(limits);
        let (_, error) = read(&mut server.send(&request(true)).await.unwrap()).await;
        match failure(error) {
            ModelFailure::TooMuch { limit: passed } => assert_eq!(passed, limit),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn refusals_of_every_server_are_distinguished() {
    let refused = |status, message: &str| {
        let body = json!({ "error": { "message": message, "type": "x", "code": status } });
        Answer::body(status, &body.to_string())
    };
    let failures = |answer: Answer| async {
        let stub = OllamaStub::start();
        stub.next(answer);
        failure(server(&stub).send(&request(true)).await.err())
    };
    for too_long in [
        "request (9031 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "The number of tokens to keep from the initial prompt is greater than the context length",
    ] {
        assert!(matches!(failures(refused(400, too_long)).await, ModelFailure::PromptTooLong));
    }
    for absent in [
        "The model `x` does not exist.",
        "No models loaded. Please load a model in the developer page",
    ] {
        let failure = failures(refused(404, absent)).await;
        assert!(matches!(failure, ModelFailure::NoSuchModel { .. }), "{failure:?}");
    }
    match failures(refused(401, "Invalid API Key")).await {
        failure @ ModelFailure::Refused { status: 401, .. } => {
            assert!(failure.to_string().contains("Invalid API Key"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_window_is_what_the_server_tells_and_never_more_than_is_asked_for() {
    let window = |num_ctx: Option<u32>, models: Value, props: Option<u32>, listed: Value| async move {
        let stub = OllamaStub::start();
        stub.always_to(Ask::Models, Answer::json(json!({ "data": [models] })));
        if let Some(n_ctx) = props {
            let settings = json!({ "default_generation_settings": { "n_ctx": n_ctx } });
            stub.always_to(Ask::Props, Answer::json(settings));
        } else {
            stub.always_to(Ask::Props, Answer::refusal(404, "File Not Found"));
        }
        if !listed.is_null() {
            stub.always_to(Ask::Listed, Answer::json(json!({ "data": [listed] })));
        }
        let mut options = ModelOptions::new("m");
        options.num_ctx = num_ctx;
        OpenAiModel::new(server(&stub), options).limits().await.unwrap().window
    };
    let llama =
        || json!({ "id": "/models/x.gguf", "owned_by": "llamacpp", "meta": { "n_ctx": 16384 } });
    let null = || Value::Null;
    assert_eq!(window(None, llama(), Some(4096), null()).await, Some(4096));
    assert_eq!(window(None, llama(), None, null()).await, Some(16384));
    assert_eq!(window(Some(2048), llama(), None, null()).await, Some(2048));
    let vllm = json!({ "id": "m", "owned_by": "vllm", "max_model_len": 8192 });
    assert_eq!(window(None, vllm, None, null()).await, Some(8192));
    let studio = json!({ "id": "m", "max_context_length": 32768, "loaded_context_length": 6000 });
    assert_eq!(window(None, json!({ "id": "m" }), None, studio).await, Some(6000));
    assert_eq!(window(Some(4096), json!({ "id": "m" }), None, null()).await, Some(4096));
    assert_eq!(window(None, json!({ "id": "other" }), None, null()).await, None);
}

#[tokio::test]
async fn a_server_that_is_not_nearby_gets_nothing_unless_allowed() {
    // The address is from a documentation range, so nobody listens there. No request is sent.
    let far = OpenAi::new("http://192.0.2.1:9/v1", Duration::from_millis(300)).unwrap();
    assert!(!far.is_near());
    let options = ModelOptions::new("gpt");
    let model = OpenAiModel::new(far.clone(), options.clone());
    for error in [
        model.reply(&prompt().await).await.err(),
        model.warm_up(&prompt().await).await.err(),
        model.limits().await.err(),
    ] {
        assert!(matches!(failure(error), ModelFailure::Cloud { .. }));
    }
    let allowed = OpenAiModel::new(far, options).allow_cloud(true);
    assert!(!matches!(failure(allowed.limits().await.err()), ModelFailure::Cloud { .. }));
}

#[tokio::test]
async fn the_key_goes_with_every_request_and_is_never_shown() {
    let stub = OllamaStub::start();
    let server = with_key(server(&stub)).unwrap();
    let model = OpenAiModel::new(server.clone(), ModelOptions::new("m"));
    model.warm_up(&prompt().await).await.unwrap();
    read(&mut server.send(&request(true)).await.unwrap()).await;
    for seen in stub.all_seen() {
        assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"), "{}", seen.path);
    }
    stub.next(Answer::refusal(401, &format!("Incorrect API key provided: {KEY}. Find yours")));
    let error = server.send(&request(true)).await.unwrap_err();
    let shown = format!("{server:?} {model:?} {error} {error:?}");
    assert!(
        !shown.contains("Drosselbart") && shown.contains("Incorrect API key provided: …"),
        "{shown}"
    );
    assert!(error.help().contains("ApiKeyFile"), "{}", error.help());
}

#[test]
fn a_key_that_cannot_be_sent_safely_is_refused_without_repeating_it() {
    let near = || OpenAi::new("http://127.0.0.1:1", PATIENCE).unwrap();
    for key in ["", "Dros sel", "Dross\nel", "Drössel"] {
        let error = near().api_key(key.to_owned().into()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("Dr"), "{error:?}");
    }
    let far = OpenAi::new("http://api.example.com/v1", PATIENCE).unwrap();
    assert!(with_key(far).unwrap_err().to_string().contains("without encryption"));
}

#[tokio::test]
async fn a_warm_up_asks_for_one_token_in_one_piece() {
    let stub = OllamaStub::start();
    model(&stub).warm_up(&prompt().await).await.unwrap();
    let body = stub.seen(Ask::WarmUp)[0].json();
    assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(1), &json!(false)));
    assert!(body.get("stream_options").is_none());
}

#[tokio::test]
async fn a_server_with_a_template_is_asked_not_to_think_by_default() {
    for (owner, think, told) in [
        ("llamacpp", None, json!({ "enable_thinking": false })),
        ("vllm", None, json!({ "enable_thinking": false })),
        ("llamacpp", Some(true), json!({ "enable_thinking": true })),
        ("someone", None, Value::Null),
    ] {
        let stub = OllamaStub::start();
        let listed = json!({ "data": [{ "id": "m", "owned_by": owner }] });
        stub.always_to(Ask::Models, Answer::json(listed));
        let mut options = ModelOptions::new("m");
        options.think = think;
        let model = OpenAiModel::new(server(&stub), options);
        model.reply(&prompt().await).await.unwrap();
        assert_eq!(stub.seen(Ask::Reply)[0].json()["chat_template_kwargs"], told, "{owner}");
    }
}

#[tokio::test]
async fn a_base_address_may_end_in_v1_and_have_a_path() {
    for end in ["", "/", "/v1", "/v1/", "/v1/chat/completions"] {
        let stub = OllamaStub::start();
        let server = OpenAi::new(&format!("{}{end}", stub.url()), PATIENCE).unwrap();
        server.models().await.unwrap();
        assert_eq!(stub.all_seen()[0].path, "/v1/models");
    }
}

#[tokio::test]
async fn the_models_that_the_server_lists_are_returned() {
    let stub = OllamaStub::start();
    let models = server(&stub).models().await.unwrap();
    let (entry, info) = &models[0];
    assert_eq!((entry.name.as_str(), entry.size), ("llama3.2", Some(2_011_539_712)));
    assert_eq!(entry.parameter_size.as_deref(), Some("3.2B"));
    assert_eq!(entry.quantization.as_deref(), Some("Q4_K_M"));
    assert_eq!((info.context_length, info.remote), (Some(131_072), false));
    let running = server(&stub).running().await.unwrap();
    assert_eq!((running.len(), running[0].context_length), (1, Some(8192)));
    let two = json!({ "data": [{ "id": "a" }, { "id": "b" }] });
    stub.always_to(Ask::Models, Answer::json(two));
    let error = server(&stub).show("llama3.2").await.err();
    assert!(matches!(failure(error), ModelFailure::NoSuchModel { .. }));
}
