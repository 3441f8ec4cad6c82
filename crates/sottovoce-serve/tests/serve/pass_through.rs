//! What needs no memory passes byte for byte, in both directions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use sottovoce::Scope;
use sottovoce::context::recall::{Recall, SearchQuery};

use crate::harness::{Client, Served, http_client, named};
use crate::ollama::{Answer, Ask};

/// As a client may write it: spaces, an order of its own, floats, unknown fields, escapes.
const ODD: &str = "{ \"stream\":true,\t\"keep_alive\": -1.0, \"x-unknown\": [1e300, 0.10, {\"a\" : null}],\n\
    \"messages\" : [ {\"content\":\"caf\\u00e9 \\/ \\ud83d\\ude00\", \"role\" : \"user\", \"more\":1.0} ], \
    \"options\":{\"num_ctx\": 8192.0, \"seed\": 12345678901234567890123}, \"model\":\"llama3.2\", \"think\":false }";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_memory_is_forwarded_byte_for_byte() {
    for path in ["/api/chat", "/s/kitchen/api/chat", "/v1/chat/completions"] {
        let served = Served::start().await;
        let got = served.post(path, ODD).await;
        assert_eq!(got.status, 200, "{}", got.text);
        assert_eq!(served.forwarded(), [ODD]);
        let scope = if path.starts_with("/s/") { named("kitchen") } else { Scope::Default };
        assert_eq!(served.messages(&scope).await[0].1, "café / 😀");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_memory_only_what_memory_adds_is_new() {
    let served = Served::start().await;
    served.said_before(&Scope::Default, "My cat is called Minka.", "Lovely.").await;
    let body = ODD.replace(
        "[ {\"content\"",
        "[ {\"role\":\"system\",\"content\":\"Be \\u0062rief.\"}, {\"content\"",
    );
    served.post("/api/chat", body.as_str()).await;
    let added = "\\n\\nSaid before this conversation:\\n- [Wednesday 20 August 2025 10:00 +00:00] My cat is called \
        Minka.\\n- [Wednesday 10:00, assistant] Lovely.";
    let expected = body.replace("Be \\u0062rief.", &format!("Be \\u0062rief.{added}"));
    assert_eq!(served.forwarded(), [expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_probes_pass_untouched_and_are_not_recorded() {
    let served = Served::start().await;
    served.said_before(&Scope::Default, "My cat is called Minka.", "Lovely.").await;
    let mut sent = Vec::new();
    let asks = |more: serde_json::Value| {
        let mut body = json!({ "model": "llama3.2", "messages": [
            { "role": "system", "content": "Current time is 09:26:57." },
            { "role": "user", "content": "What is my cat called?" },
        ] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } } });
    let test = json!([{ "type": "function", "function": { "name": "test_function" } }]);
    for (path, body) in [
        ("/api/chat", asks(json!({ "format": schema }))),
        ("/api/chat", asks(json!({ "format": "json", "stream": false }))),
        ("/v1/chat/completions", asks(json!({ "response_format": { "type": "json_object" } }))),
        ("/v1/chat/completions", asks(json!({ "max_tokens": 3 }))),
        ("/v1/chat/completions", asks(json!({ "tools": test }))),
        ("/api/generate", json!({ "model": "llama3.2", "prompt": "x", "raw": true }).to_string()),
    ] {
        let got = served.post(path, body.as_str()).await;
        assert_eq!(got.status, 200, "{}", got.text);
        assert_eq!(got.header("x-sottovoce-receipt"), "");
        assert!(got.header("x-sottovoce-recorded").starts_with("no; "));
        sent.push(body);
    }
    let probe = json!({ "model": "llama3.2", "messages": [
        { "role": "user", "content": "What is the capital of France?" },
    ] });
    for _ in 0..2 {
        served.post("/v1/chat/completions", probe.to_string()).await;
        sent.push(probe.to_string());
    }
    assert_eq!(served.forwarded(), sent);
    assert_eq!(served.messages(&Scope::Default).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_a_programs_task_is_kept_aside_and_comes_into_no_prompt_by_itself() {
    for system in [
        "You are a Home Assistant expert and help users with their tasks.\nCurrent time is 09:26:57.",
        "Answer with JSON only.",
        "Give the conversation a title of five words.",
    ] {
        let served = Served::start().await;
        let kitchen = named("kitchen");
        let task = json!({ "model": "llama3.2", "messages": [
            { "role": "system", "content": system },
            { "role": "user", "content": "My parcel from Oslo is at the door." },
        ] });
        let got = served.post("/s/kitchen/api/chat", task.to_string()).await;
        let told = got.header("x-sottovoce-recorded");
        assert!(told.starts_with("aside; it "), "{told}");
        let kept = served.messages(&kitchen).await;
        assert_eq!(kept[0], ("user aside".into(), "My parcel from Oslo is at the door.".into()));
        assert_eq!((kept.len(), kept[1].0.as_str()), (2, "assistant aside"));

        let got = Client::new().say(&served, "/s/kitchen/api/chat", "Where is my parcel?").await;
        assert_eq!(got.header("x-sottovoce-recorded"), "yes");
        assert_eq!(got.header("x-sottovoce-history"), "0");
        assert_eq!(got.header("x-sottovoce-recalled"), "0");
        let asked = served.forwarded().pop().unwrap();
        assert!(!asked.contains("Oslo"), "{asked}");
        let index = Recall::new(Arc::new(served.store(&kitchen).await));
        let found = index.search(&SearchQuery::of_words("Oslo"), None, 9).await.unwrap();
        assert_eq!(found.hits.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_without_words_is_kept_as_what_can_be_told_of_it_and_forwarded_as_it_is() {
    let served = Served::start().await;
    let part = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,eA==" } });
    for (path, body) in [
        (
            "/api/chat",
            json!({ "messages": [{ "role": "user", "content": "", "images": ["eA=="] }] }),
        ),
        ("/api/generate", json!({ "prompt": " ", "images": ["eA==", "eA=="] })),
        ("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": [part] }] })),
    ] {
        served.post(path, body.to_string()).await;
        assert_eq!(served.last_forwarded(), body);
    }
    let said = served.messages(&Scope::Default).await;
    let said: Vec<_> =
        said.iter().filter(|(who, _)| who == "user").map(|(_, words)| words).collect();
    assert_eq!(said, ["[an image]", "[2 images]", "[an image]"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_errors_come_back_unchanged() {
    let served = Served::start().await;
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Hello." }));
    for (status, body) in [
        (404, "{\"error\":\"model 'x' not found\"}"),
        (500, "{ \"error\" : \"boom\" }"),
        (503, "server busy, please try again"),
    ] {
        served.stub.next(Answer::body(status, body).header("x-own", "yes"));
        let got = served.post("/api/chat", client.body()).await;
        assert_eq!((got.status, got.text.as_str(), got.header("x-own")), (status, body, "yes"));
    }
    // One utterance, however often it was tried, and no answer.
    assert_eq!(served.messages(&Scope::Default).await, [("user".to_owned(), "Hello.".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_named_in_the_form_of_the_client() {
    let mut served = Served::start().await;
    served.stub.stop();
    let chat = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello." }] });
    let got = served.post("/api/chat", chat.to_string()).await;
    assert_eq!(got.status, 502);
    assert!(got.json()["error"].is_string());
    let got = served.post("/v1/chat/completions", chat.to_string()).await;
    assert_eq!(got.status, 502);
    assert!(got.json()["error"]["message"].is_string());
    assert!(!got.text.contains("Hello"));
    let got = served.get("/api/tags").await;
    assert_eq!(got.status, 502);
    assert_eq!(served.messages(&Scope::Default).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_home_assistant_learns_that_the_model_server_is_away() {
    let mut served = Served::start().await;
    served.stub.stop();
    let agent = [("user-agent", "ollama-python/0.6.2 (x86_64 linux) Python/3.14.0")];
    let begun = Instant::now();
    let got = served.ask(Method::GET, "/s/kitchen/api/tags", String::new(), &agent).await;
    // It takes five seconds of silence for a server that cannot be reached, and any answer for an unexpected error.
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(5), "after {waited:?}");
    assert_eq!(got.status, 502);
    assert!(got.text.contains("cannot be reached"), "{}", got.text);
    let begun = Instant::now();
    assert_eq!(served.get("/api/tags").await.status, 502);
    assert!(begun.elapsed() < waited, "others waited {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_come_back_byte_for_byte_as_they_come() {
    let served = Served::start().await;
    let odd = "{\"message\":{\"role\":\"assistant\",\"content\":\"It\"}, \"done\":false}\r\n\n{\"x\":1}\n";
    let last = "{\"done\" : true,\"message\":{\"content\":\" is.\"}}";
    served.stub.next(Answer::saying(&[]).raw(odd.as_bytes()).raw(last.as_bytes()).unfinished());
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Hello." }));
    let got = served.post("/api/chat", client.body()).await;
    assert_eq!(got.text, format!("{odd}{last}"));
    assert_eq!(got.header("content-type"), "application/x-ndjson");
    assert_eq!(served.messages(&Scope::Default).await[1], ("assistant".into(), "It is.".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_piece_is_there_before_the_second_is_made() {
    let served = Served::start().await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("fine."));
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "How is it?" }));
    let url = format!("{}/api/chat", served.url);
    let mut response = http_client().post(url).body(client.body()).send().await.unwrap();
    let first = response.chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("It is "));
    served.stub.release();
    while response.chunk().await.unwrap().is_some() {}
}

/// Each stream is passed on as it comes, and stored whole, whatever the server calls it.
#[tokio::test(flavor = "multi_thread")]
async fn an_odd_stream_is_passed_on_at_once_and_stored_whole() {
    let line = |words: &str, end: bool| {
        format!("{{\"message\":{{\"content\":\"{words}\"}},\"done\":{end}}}\n")
    };
    let event = |words: &str, reason: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{words}\"}},\"finish_reason\":{reason}}}]}}\n\n"
        )
    };
    let done = "data: [DONE]\n\n";
    let (chat, completions) = ("/api/chat", "/v1/chat/completions");
    let lines = (line("It ", false), line("rains.", true));
    let thought = "The user asks.\\n</think>\\n\\nIt ";
    let channels =
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>It ";
    let odd = [
        (chat, "application/json", lines.clone()),
        (chat, "text/plain", lines.clone()),
        (chat, "Application/X-NDJSON", lines.clone()),
        (chat, "text/event-stream", lines),
        (chat, "application/x-ndjson", (line("It \\ud83c", false), line("\\udf27 rains.", true))),
        (chat, "application/x-ndjson", (line(thought, false), line("rains.", true))),
        (
            chat,
            "application/x-ndjson",
            (line("<thinking>Hm.</thinking>It ", false), line("rains.", true)),
        ),
        (
            completions,
            "text/event-stream",
            (event("It ", "\"\""), event("rains.", "\"stop\"") + done),
        ),
        (
            completions,
            "text/event-stream",
            (event("It ", "\"null\""), event("rains.", "null") + done),
        ),
        (
            completions,
            "text/event-stream",
            (event("It ", "\"stop\""), event("rains.", "\"stop\"") + done),
        ),
        (completions, "application/json", (event("It ", "null"), event("rains.", "\"stop\""))),
        (
            completions,
            "text/event-stream",
            (event(channels, "null"), event("rains.", "\"stop\"") + done),
        ),
    ];
    for (path, kind, (first, rest)) in odd {
        let served = Served::start().await;
        let answer = Answer::saying(&[]).header("content-type", kind).raw(first.as_bytes()).hold();
        served.stub.next(answer.raw(rest.as_bytes()).unfinished());
        let mut client = Client::new();
        client.messages.push(json!({ "role": "user", "content": "Rain?" }));
        let url = format!("{}{path}", served.url);
        let mut response = http_client().post(url).body(client.body()).send().await.unwrap();
        // The model has not made the rest.
        let mut got = response.chunk().await.unwrap().unwrap().to_vec();
        assert_eq!(got, first.as_bytes(), "{kind}");
        served.stub.release();
        while let Some(piece) = response.chunk().await.unwrap() {
            got.extend_from_slice(&piece);
        }
        assert_eq!(String::from_utf8_lossy(&got), first.clone() + &rest);
        let words = if first.contains("ud83c") { "It 🌧 rains." } else { "It rains." };
        served.holds(&Scope::Default, &[("user", "Rain?"), ("assistant", words)]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_while_it_works_is_asked_once() {
    let served = Served::start().await;
    served.stub.next(Answer::hanging_up());
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Hello." }));
    let got = served.post("/api/chat", client.body()).await;
    assert_eq!(got.status, 502);
    assert!(got.text.contains("interrupted"), "{}", got.text);
    assert_eq!(served.forwarded().len(), 1);
    assert_eq!(served.messages(&Scope::Default).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_versions_and_embeddings_pass_with_and_without_a_scope() {
    let served = Served::start().await;
    for prefix in ["", "/s/kitchen", "/u/ann"] {
        assert!(served.get(&format!("{prefix}/api/version")).await.json()["version"].is_string());
        assert!(served.get(&format!("{prefix}/api/tags")).await.json()["models"].is_array());
        assert!(served.get(&format!("{prefix}/api/ps")).await.json()["models"].is_array());
        assert!(served.get(&format!("{prefix}/v1/models?x=1")).await.status < 500);
        let show = served.post(&format!("{prefix}/api/show"), r#"{"model": "llama3.2"}"#).await;
        assert!(show.json()["capabilities"].is_array());
        let embed = r#"{"model":"m", "input":["a","b"]}"#;
        let embedded = served.post(&format!("{prefix}/api/embed"), embed).await;
        assert_eq!(embedded.json()["embeddings"].as_array().unwrap().len(), 2);
        assert_eq!(embedded.header("x-sottovoce-recorded"), "no; embeddings are no conversation");
        assert_eq!(served.stub.seen(Ask::Embed).last().unwrap().body, embed);
        // Loading a model is no conversation.
        served.post(&format!("{prefix}/api/chat"), r#"{"model":"llama3.2","messages":[]}"#).await;
    }
    assert_eq!(served.stub.seen(Ask::Load).len(), 3);
    assert_eq!(served.get("/api/delete").await.status, 404);
    assert_eq!(served.post("/api/pull", r#"{"model":"x"}"#).await.status, 404);
    assert_eq!(served.get("/api/chat").await.status, 405);
    assert!(!served.root.path().join("conversations").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_on_other_peoples_machines_gets_nothing() {
    let served = Served::start().await;
    let remote = json!({ "capabilities": ["completion"], "remote_host": "https://ollama.com", "remote_model": "x" });
    served.stub.always_to(Ask::Show, Answer::json(remote));
    let chat =
        json!({ "model": "big-cloud", "messages": [{ "role": "user", "content": "Hello." }] });
    let got = served.post("/api/chat", chat.to_string()).await;
    assert_eq!(got.status, 403, "{}", got.text);
    assert!(served.forwarded().is_empty());
    for (path, body) in [
        ("/api/embed", r#"{"model":"big-cloud","input":"Hello."}"#),
        ("/api/embeddings", r#"{"model":"big-cloud","prompt":"Hello."}"#),
        ("/v1/embeddings", r#"{"model":"big-cloud","input":"Hello."}"#),
        ("/api/show", r#"{"model":"big-cloud"}"#),
        (
            "/api/chat",
            r####"{"model":"big-cloud","messages":[{"role":"user","content":"### Task: x ### Output:"}]}"####,
        ),
        ("/api/generate", r#"{"model":"big-cloud","prompt":"Hello.","raw":true}"#),
    ] {
        assert_eq!(served.post(path, body).await.status, 403, "{path}");
        // A second model, of which a server might take either.
        for twice in [r#"{"model":"m","#, r#"{"Model":"m","#] {
            assert_eq!(served.post(path, body.replacen('{', twice, 1)).await.status, 400, "{path}");
        }
    }
    assert_eq!(served.post("/api/show", r#"{"name":"big-cloud"}"#).await.status, 403);
    assert!(served.stub.all_seen().iter().all(|seen| seen.ask == Ask::Show));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_says_it_comes_from_a_cloud_is_refused_and_not_stored() {
    let served = Served::start().await;
    let from = |host: &str| {
        let line = json!({ "message": { "content": "Hi." }, "remote_host": host, "done": true });
        Answer::saying(&[]).raw(format!("{line}\n").as_bytes()).unfinished()
    };
    let asks = |words: &str| {
        json!({ "model": "llama3.2", "messages": [{ "role": "user", "content": words }] })
            .to_string()
    };
    for words in ["Hello.", "### Task: a title ### Output:"] {
        served.stub.next(from("https://ollama.com:443"));
        let got = served.post("/api/chat", asks(words)).await;
        assert_eq!(got.status, 403, "{}", got.text);
        assert!(!got.text.contains("Hi."));
    }
    assert_eq!(served.messages(&Scope::Default).await, [("user".to_owned(), "Hello.".to_owned())]);
    served.stub.next(from(""));
    assert_eq!(served.post("/api/chat", asks("Hello.")).await.status, 200);
    served.holds(&Scope::Default, &[("user", "Hello."), ("assistant", "Hi.")]).await;
    // Where clouds are allowed, it passes.
    let allowed = [("LANGUAGEMODEL__ALLOWCLOUD", "true")];
    let served = Served::with(&allowed, sottovoce_serve::Access::default(), |_| {}).await;
    served.stub.next(from("https://ollama.com:443"));
    assert!(served.post("/api/chat", asks("Hello.")).await.text.contains("Hi."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_server_that_switches_protocols_is_refused() {
    let served = Served::start().await;
    served.stub.next(Answer::refusal(101, "").header("upgrade", "websocket"));
    let chat =
        json!({ "model": "llama3.2", "messages": [{ "role": "user", "content": "Hello." }] });
    assert_eq!(served.post("/api/chat", chat.to_string()).await.status, 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ollama_behind_a_key_gets_it_with_every_request() {
    let settings = [("LANGUAGEMODEL__APIKEY", "key1")];
    let served = Served::with(&settings, sottovoce_serve::Access::default(), |_| {}).await;
    Client::new().say(&served, "/api/chat", "Hello.").await;
    served.get("/api/tags").await;
    let seen = served.stub.all_seen();
    assert!(seen.iter().any(|seen| seen.ask == Ask::Show) && seen.len() == 3, "{seen:?}");
    assert!(seen.iter().all(|seen| seen.headers["authorization"] == "Bearer key1"));
}
