//! Conversations and keys: no words of one reach another.

use serde_json::json;
use sottovoce::persona::{NewPersonaConversation, Persona};
use sottovoce::{ConversationStore, Scope};
use sottovoce_serve::Access;

use crate::harness::{Client, SECRET, Served, http_client, named};

fn ann() -> Scope {
    Scope::Dm { user: "ann".into() }
}

fn keyed() -> Access {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, "named/kitchen kitchen-key\ndm/ann ann-key\n").unwrap();
    Access::new(Some("master-key".to_owned().into())).keys_file(&file).unwrap()
}

fn hello() -> String {
    json!({ "model": "llama3.2", "messages": [{ "role": "user", "content": "What do you know?" }] })
        .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_carries_the_scope_and_no_words_cross() {
    let served = Served::start().await;
    let paths = [("", Scope::Default), ("/s/kitchen", named("kitchen")), ("/u/ann", ann())];
    for (prefix, scope) in &paths {
        let words = format!("The secret of {scope} is here.");
        Client::new().say(&served, &format!("{prefix}/api/chat"), &words).await;
    }
    for (prefix, scope) in &paths {
        for path in ["/api/chat", "/v1/chat/completions"] {
            served.post(&format!("{prefix}{path}"), hello()).await;
            let body = served.forwarded().pop().unwrap();
            for (_, other) in &paths {
                let words = format!("The secret of {other} is here.");
                assert_eq!(body.contains(&words), other == scope, "{prefix}: {body}");
            }
        }
        let receipt = served.get(&format!("{prefix}/receipt")).await.text;
        assert!(receipt.contains(&format!("The secret of {scope} is here.")), "{receipt}");
        for (_, other) in paths.iter().filter(|(_, other)| other != scope) {
            assert!(!receipt.contains(&format!("The secret of {other} is here.")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_session_in_two_scopes_is_two_sessions() {
    let served = Served::start().await;
    let mut client = Client::new();
    client.say(&served, "/s/kitchen/api/chat", "Hello.").await;
    client.say(&served, "/s/hall/api/chat", "And you?").await;
    let fine = ("assistant", "Fine.");
    served.holds(&named("kitchen"), &[("user", "Hello."), fine]).await;
    served.holds(&named("hall"), &[("user", "And you?"), fine]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_its_own_conversation_and_no_other() {
    let served = Served::with(&[], keyed(), |_| {}).await;
    let ask = async |path: &str, key: Option<&str>| {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<_> =
            bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        served.post_with(path, hello(), &headers).await.status
    };
    for (path, key, status) in [
        ("/s/kitchen/api/chat", Some("kitchen-key"), 200),
        ("/api/chat", Some("kitchen-key"), 200),
        ("/u/ann/v1/chat/completions", Some("ann-key"), 200),
        ("/u/ann/api/chat", Some("kitchen-key"), 403),
        ("/s/kitchen/api/chat", Some("ann-key"), 403),
        ("/s/hall/api/tags", Some("ann-key"), 403),
        ("/s/kitchen/receipt", Some("ann-key"), 403),
        ("/s/kitchen/api/chat", Some("wrong"), 401),
        ("/s/kitchen/api/chat", None, 401),
        ("/receipt", None, 401),
        ("/s/hall/api/chat", Some("master-key"), 200),
        ("/api/chat", Some("master-key"), 200),
    ] {
        assert_eq!(ask(path, key).await, status, "{path} {key:?}");
    }
    // A path without a scope is the key's own conversation.
    assert_eq!(served.messages(&named("kitchen")).await.len(), 4);
    assert_eq!(served.messages(&Scope::Default).await.len(), 2);
    // The client's key is for this server alone.
    for seen in served.stub.all_seen() {
        assert!(!seen.headers.contains_key("authorization"), "{seen:?}");
        assert!(!seen.body.contains("-key"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_name_the_key_that_brought_them_and_no_client_can_say_otherwise() {
    let served = Served::with(&[], keyed(), |_| {}).await;
    let claim = json!({ "cameFrom": "spoken", "device": "hall" });
    let message = json!({ "role": "user", "content": "What do you know?", "metadata": claim });
    let body = json!({ "model": "llama3.2", "messages": [message], "metadata": claim,
        "cameFrom": "spoken", "source": "spoken" });
    for (path, key, scope, source) in [
        ("/s/kitchen/api/chat", "kitchen-key", named("kitchen"), "client named/kitchen"),
        ("/u/ann/v1/chat/completions", "ann-key", ann(), "client dm/ann"),
        ("/s/hall/api/chat", "master-key", named("hall"), "client"),
    ] {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str())];
        assert_eq!(served.post_with(path, body.to_string(), &headers).await.status, 200);
        let read = served.store(&scope).await.read_tail(9).await.unwrap().messages;
        let sources: Vec<String> =
            read.iter().map(|stored| stored.message.source_in_words()).collect();
        assert_eq!(sources, [source, "assistant"], "{path}");
        let grown: usize = read[0].message.metadata.iter().map(|(k, v)| k.len() + v.len()).sum();
        assert!(grown <= 30, "{grown} bytes");
        assert!(
            read.iter().all(|stored| !format!("{:?}", stored.message.metadata).contains("-key"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_of_open_webui_keeps_its_people_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, "dm/* everyone\n").unwrap();
    let access = Access::default().keys_file(&file).unwrap();
    let served = Served::with(&[], access, |_| {}).await;
    // What Open WebUI sends, as it sends it.
    let headers = |id: &'static str, name: &'static str| {
        [
            ("authorization", "Bearer everyone"),
            ("x-openwebui-user-name", name),
            ("x-openwebui-user-id", id),
            ("x-openwebui-user-email", "someone@example.org"),
            ("x-openwebui-user-role", "user"),
            ("x-openwebui-chat-id", "the same for both"),
        ]
    };
    let people = [
        ("8f14e45f-ceea-467f-a9ba-6f2d41d2ae6c", "Ann%C3%A9", "Ann's diary"),
        ("45c48cce-2e2d-4fbd-aa1a-fc51c7c6ad26", "Ben", "Ben's hobby"),
    ];
    let said = |words: &str| {
        json!({ "model": "llama3.2", "messages": [{ "role": "user", "content": words }] })
            .to_string()
    };
    for turn in 0..12 {
        for (id, name, words) in people {
            let path = if turn % 2 == 0 { "/api/chat" } else { "/v1/chat/completions" };
            let body = said(&format!("{words}, page {turn}."));
            let got = served.post_with(path, body, &headers(id, name)).await;
            assert_eq!(got.status, 200, "{}", got.text);
            let (_, _, other) = people.iter().find(|person| person.0 != id).unwrap();
            assert!(!served.forwarded().pop().unwrap().contains(other));
        }
    }
    for (id, name, words) in people {
        let messages = served.messages(&Scope::Dm { user: id.into() }).await;
        let user: Vec<_> = messages.iter().filter(|(role, _)| role == "user").collect();
        assert_eq!(user.len(), 12);
        assert!(user.iter().all(|(_, said)| said.starts_with(words)), "{user:?}");
        let receipt = served
            .ask(reqwest::Method::GET, "/receipt", String::new(), &headers(id, name))
            .await
            .text;
        assert!(people.iter().all(|other| receipt.contains(other.2) == (other.0 == id)));
    }
    let key = ("authorization", "Bearer everyone");
    let ann = ("x-openwebui-user-id", people[0].0);
    let before = served.forwarded().len();
    for refused in [&[key][..], &[key, ann, ann], &[key, ("x-openwebui-user-id", "../ben")]] {
        let got = served.post_with("/api/chat", hello(), refused).await;
        assert_eq!(got.status, 403, "{refused:?}");
        assert!(got.text.contains("X-OpenWebUI-User-Id"), "{}", got.text);
        assert_eq!(
            served.ask(reqwest::Method::GET, "/receipt", String::new(), refused).await.status,
            403
        );
    }
    let path = format!("/u/{}/api/chat", people[1].0);
    assert_eq!(served.post_with(&path, hello(), &[key, ann]).await.status, 403);
    assert_eq!(served.forwarded().len(), before, "the model got nothing of it");
    assert_eq!(
        served.ask(reqwest::Method::GET, "/api/tags", String::new(), &[key]).await.status,
        200
    );
    for seen in served.stub.all_seen() {
        assert!(!seen.headers.keys().any(|name| name.as_str().starts_with("x-openwebui")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_openai_server_that_is_not_nearby_gets_nothing() {
    let settings = [
        ("LANGUAGEMODEL__KIND", "openai"),
        ("LANGUAGEMODEL__BASEURL", "http://models.example.com/v1"),
    ];
    let served = Served::with(&settings, Access::default(), |_| {}).await;
    let got = served.post("/v1/chat/completions", hello()).await;
    assert_eq!(got.status, 403, "{}", got.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_is_deleted_hears_nothing() {
    let served = Served::start().await;
    let contexts = served.contexts();
    let persona = Persona::new("You are Mira.");
    let id = contexts.create(NewPersonaConversation::new("Mira", persona)).await.unwrap().id;
    let path = format!("/s/{id}/api/chat");
    assert_eq!(served.post(&path, hello()).await.status, 200);
    contexts.delete(&id).await.unwrap();
    assert_eq!(served.post(&path, hello()).await.status, 403);
    assert_eq!(served.forwarded().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_cannot_ask() {
    let served = Served::start().await;
    for (header, status) in [
        (("host", "evil.example"), 421),
        (("origin", "https://evil.example"), 403),
        (("origin", "null"), 403),
        (("origin", "chrome-extension://abc"), 403),
    ] {
        let got = served.post_with("/api/chat", hello(), &[header]).await;
        assert_eq!(got.status, status, "{header:?}");
    }
    let port = served.url.rsplit_once(':').unwrap().1;
    let own = format!("localhost:{port}");
    assert_eq!(served.post_with("/api/chat", hello(), &[("host", &own)]).await.status, 200);
    assert_eq!(served.forwarded().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_or_a_page_of_this_machine_can_ask_and_read_the_answer() {
    let served = Served::start().await;
    for origin in ["http://localhost:3000", "app://obsidian.md", "vscode-webview://abc"] {
        let request =
            http_client().request(http::Method::OPTIONS, format!("{}/api/chat", served.url));
        let request =
            request.header("origin", origin).header("access-control-request-method", "POST");
        let told = request.send().await.unwrap();
        assert_eq!(
            (told.status().as_u16(), &told.headers()["access-control-allow-methods"]),
            (204, &"POST".parse().unwrap())
        );
        assert_eq!(told.headers()["access-control-allow-origin"], origin);
        let answered = http_client().post(format!("{}/api/chat", served.url));
        let answered = answered.header("origin", origin).body(hello()).send().await.unwrap();
        assert_eq!(answered.status(), 200);
        assert_eq!(answered.headers()["access-control-allow-origin"], origin);
        assert_eq!(answered.headers()["access-control-expose-headers"], "*");
    }
}

#[tokio::test]
async fn an_address_that_others_reach_is_not_served_without_a_key() {
    let address = "0.0.0.0:0".parse().unwrap();
    let refused = sottovoce_serve::listen(address, Access::default()).await.unwrap_err();
    assert!(matches!(refused, sottovoce_serve::ListenError::NoKey { .. }));
    sottovoce_serve::listen(address, keyed()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_under_another_key_is_not_ready_and_clients_learn_neither_its_path_nor_its_key() {
    let mut served = Served::start().await;
    let ready = async |secret: &str| {
        let url = served.health(secret).await;
        let got = http_client().get(format!("{url}/readyz")).send().await.unwrap();
        (got.status().as_u16(), got.text().await.unwrap())
    };
    assert_eq!(ready("some other secret").await.0, 200, "there is no store yet");
    Client::new().say(&served, "/api/chat", "Hello.").await;
    assert_eq!(ready(SECRET).await.0, 200);
    let (status, said) = ready("some other secret").await;
    assert_eq!((status, said.as_str()), (503, "the store cannot be used\n"));

    served.stop().await;
    let root = served.root.path().display().to_string();
    std::fs::write(served.root.path().join("vault"), "damaged").unwrap();
    served.restart_stopped().await;
    let got = served.post("/api/chat", hello()).await;
    assert_eq!(got.status, 500);
    assert!(!got.text.contains(&root) && !got.text.contains("vault"), "{}", got.text);
    assert!(got.text.contains("the server's log says why"), "{}", got.text);
}
