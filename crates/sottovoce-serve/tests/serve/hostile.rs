//! Requests that are garbage, huge or slow, and words that appear nowhere.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use sottovoce::Scope;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Client, Served, http_client};
use crate::hostile_clients::{Hostile, is_alone};
use crate::ollama::{Answer, Ask};

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(address(served)).await.unwrap()
}

/// What comes until the server closes, or nothing comes for five seconds.
async fn rest(socket: &mut TcpStream) -> String {
    let mut got = Vec::new();
    let read = socket.read_to_end(&mut got);
    let ended = tokio::time::timeout(Duration::from_secs(5), read).await;
    assert!(ended.is_ok(), "it is still open");
    String::from_utf8_lossy(&got).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_servers_read_differently_go_nowhere_unsealed() {
    let served = Served::start().await;
    let remote = json!({ "capabilities": ["completion"], "remote_host": "https://ollama.com" });
    served.stub.always_to(Ask::Show, Answer::json(remote));
    let deep = "[".repeat(200_000);
    for body in [
        "",
        "null",
        "[]",
        r#"{"messages":{"a":1}}"#,
        r#"{"messages":[null,1,"x"]}"#,
        &deep,
        r#"{"model":"x-cloud","messages":[{"role":"user","content":"Hello."}]} x"#,
        r#"{"model":"x-cloud","messages":[{"role":"user","content":"Hello."}]}{}"#,
        r#"{"Model":"x-cloud","messages":[{"role":"user","content":"Hello."}]}"#,
        r#"{"model":"m","MODEL":"x-cloud","messages":[{"role":"user","content":"Hello."}]}"#,
        r#"{"model":"m","Messages":[{"role":"user","content":"Hello."}]}"#,
        r#"{"model":"m","messages":[{"role":"user","Content":"Hello."}]}"#,
        r#"{"model":"m","messages":[{"role":"User","content":"Hello."}]}"#,
        "\u{feff}{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello.\"}]}",
    ] {
        for path in ["/api/chat", "/v1/chat/completions", "/s/kitchen/api/chat"] {
            let got = served.post(path, body).await;
            assert_eq!(got.status, 400, "{body}");
            assert!(got.json()["error"].is_string() || got.json()["error"]["message"].is_string());
            assert!(!got.text.contains("Hello"), "{}", got.text);
        }
    }
    let latin = b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"caf\xe9\"}]}";
    let sent = http_client().post(format!("{}/api/chat", served.url)).body(latin.to_vec());
    assert_eq!(sent.send().await.unwrap().status(), 400);
    let zipped = [("content-encoding", "gzip")];
    assert_eq!(served.post_with("/api/chat", "\u{1f}", &zipped).await.status, 415);
    assert!(served.stub.all_seen().is_empty());
    assert!(served.messages(&Scope::Default).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_emoji_is_stored_and_forwarded_as_a_missing_character() {
    let served = Served::start().await;
    let body =
        r#"{"model":"llama3.2","messages":[{"role":"user","content":"My dog is Rex \ud83d"}]}"#;
    for path in ["/api/chat", "/v1/chat/completions"] {
        let got = served.post(path, body).await;
        assert_eq!((got.status, got.header("x-sottovoce-recorded")), (200, "yes"));
    }
    assert_eq!(served.forwarded()[0], body.replace("d83d", "fffd"));
    let said: Vec<_> = served.messages(&Scope::Default).await;
    assert_eq!(said.iter().filter(|(_, said)| said == "My dog is Rex \u{fffd}").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_of_a_client_leads_to_another_of_the_model_server() {
    let served = Served::start().await;
    for path in [
        "/v1/models/../../slots",
        "/v1/models/%2e%2e/%2e%2e/slots",
        "/v1/models/..%2f..%2fslots",
        "/v1/models/..%5c..%5cslots",
        "/v1/models/..\\..\\slots",
        "/s/kitchen/v1/models/.%2e/.%2e/metrics",
    ] {
        let mut socket = connect(&served).await;
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        let got = rest(&mut socket).await;
        assert!(
            got.starts_with("HTTP/1.1 404") || got.starts_with("HTTP/1.1 400"),
            "{path}: {got}"
        );
    }
    assert!(served.stub.all_seen().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_one_connection_and_of_this_server_do_not_pass() {
    let served = Served::start().await;
    let mut answer = Answer::saying(&["Fine."]);
    for (name, value) in [
        ("set-cookie", "sottovoce=evil; Path=/"),
        ("x-sottovoce-recalled", "99"),
        ("proxy-authenticate", "Basic"),
        ("connection", "x-of-connection"),
        ("x-of-connection", "1"),
        ("x-own", "yes"),
    ] {
        answer = answer.header(name, value);
    }
    served.stub.next(answer);
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Hello." }));
    let headers = [
        ("proxy-authorization", "Basic c2VjcmV0"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("connection", "keep-alive, X-Secret"),
        ("x-secret", "1"),
        ("x-plain", "1"),
    ];
    let got = served.post_with("/api/chat", client.body(), &headers).await;
    assert_eq!((got.header("x-own"), got.header("x-sottovoce-recalled")), ("yes", "0"));
    for name in ["set-cookie", "proxy-authenticate", "x-of-connection"] {
        assert_eq!(got.header(name), "", "{name}");
    }
    let seen = served.stub.all_seen().pop().unwrap();
    assert!(seen.headers.contains_key("x-plain"));
    for (name, _) in &headers[..5] {
        assert!(!seen.headers.contains_key(*name), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_requests_are_refused_and_the_server_goes_on() {
    let settings = [("SERVE__MAXREQUESTBYTES", "100000")];
    let served = Served::with(&settings, sottovoce_serve::Access::default(), |_| {}).await;
    let got = served.post("/api/chat", "x".repeat(100_001)).await;
    assert_eq!(got.status, 413);
    let mut socket = connect(&served).await;
    let head = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    assert!(rest(&mut socket).await.starts_with("HTTP/1.1 413"));
    let mut socket = connect(&served).await;
    let head =
        format!("POST /api/chat HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let _ = socket.write_all(head.as_bytes()).await;
    assert!(!rest(&mut socket).await.contains("200 OK"));
    assert_eq!(served.get("/api/version").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_are_ended() {
    let short = Duration::from_millis(300);
    let served = Served::with(&[], sottovoce_serve::Access::default(), |limits| {
        limits.head = short;
        limits.body = short;
    })
    .await;
    let begun = Instant::now();
    let mut silent = connect(&served).await;
    let mut slow_head = connect(&served).await;
    slow_head.write_all(b"POST /api/chat HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut slow_body = connect(&served).await;
    let head = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"mes";
    slow_body.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
    assert!(!rest(&mut slow_head).await.contains("200 OK"));
    assert!(rest(&mut slow_body).await.starts_with("HTTP/1.1 408"));
    assert!(begun.elapsed() < sottovoce_net::Limits::default().head);
}

/// A chat of so many bytes. The model server gets all of them.
fn long_chat(bytes: usize) -> String {
    let messages = json!([{ "role": "user", "content": "Rain?" }]);
    json!({ "model": "llama3.2", "messages": messages, "more": "x".repeat(bytes) }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_announced_and_do_not_come_take_no_memory_of_others() {
    let served = Served::with(&[], sottovoce_serve::Access::default(), |limits| {
        limits.memory = 1 << 20;
    })
    .await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        let mut socket = connect(&served).await;
        let head =
            "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{\"m";
        socket.write_all(head.as_bytes()).await.unwrap();
        silent.push(socket);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let got = served.post("/api/chat", long_chat(900_000)).await;
    assert_eq!(got.status, 200, "{}", got.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_for_the_model_takes_no_memory_of_others() {
    let served = Served::with(&[], sottovoce_serve::Access::default(), |limits| {
        limits.memory = 1 << 20;
    })
    .await;
    // One is recorded, and the other one passed on.
    for (room, more) in [("hall", ""), ("attic", r#""format":"json","#)] {
        served.stub.next(Answer::silent());
        let body = long_chat(900_000).replacen('{', &format!("{{{more}"), 1);
        let url = format!("{}/s/{room}/api/chat", served.url);
        let before = served.forwarded().len();
        tokio::spawn(http_client().post(url).body(body).send());
        served.stub.wait_for(Ask::Reply, before + 1);
        let begun = Instant::now();
        while served.post("/s/kitchen/api/chat", long_chat(900_000)).await.status != 200 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{room}: the memory is not free");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_keep_no_client_out() {
    let served = Served::with(&[], sottovoce_serve::Access::default(), |limits| {
        limits.connections = 4;
    })
    .await;
    served.stub.next(Answer::saying(&["It is "]).hold().text("fine."));
    let mut client = Client::new();
    client.messages.push(json!({ "role": "user", "content": "Rain?" }));
    let url = format!("{}/api/chat", served.url);
    let mut open = http_client().post(url).body(client.body()).send().await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(connect(&served).await);
    }
    assert_eq!(served.get("/api/version").await.status, 200);
    served.stub.release();
    while open.chunk().await.unwrap().is_some() {}
    served.holds(&Scope::Default, &[("user", "Rain?"), ("assistant", "It is fine.")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_on_the_wire_does_not_stop_the_server() {
    let served = Served::start().await;
    for nonsense in
        [&b"\x00\xff nonsense\r\n\r\n"[..], b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"]
    {
        let mut socket = connect(&served).await;
        socket.write_all(nonsense).await.unwrap();
        let _ = socket.shutdown().await;
        rest(&mut socket).await;
    }
    assert_eq!(served.get("/api/version").await.status, 200);
    assert_eq!(served.get("/s//api/version").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_ask_nothing_take_little_memory_and_no_time_of_others() {
    if !is_alone("hostile::connections_that_ask_nothing_take_little_memory_and_no_time_of_others") {
        return;
    }
    let served = Served::start().await;
    let ask = async || assert_eq!(served.get("/api/version").await.status, 200);
    let hostile = Hostile::of(address(&served), ask).await;
    hostile.endless_heads(100).await;
    hostile.silent(5000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_never_end_take_little_memory_and_no_time_of_others() {
    if !is_alone("hostile::bodies_that_never_end_take_little_memory_and_no_time_of_others") {
        return;
    }
    let served = Served::start().await;
    let ask = async || assert_eq!(served.get("/api/version").await.status, 200);
    let hostile = Hostile::of(address(&served), ask).await;
    for path in ["/v1/embeddings", "/api/chat"] {
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n");
        hostile.unfinished(&head, 20, 31 << 20).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_without_a_length_that_never_end_take_little_memory_and_no_time_of_others() {
    if !is_alone(
        "hostile::bodies_without_a_length_that_never_end_take_little_memory_and_no_time_of_others",
    ) {
        return;
    }
    let served = Served::start().await;
    let ask = async || assert_eq!(served.get("/api/version").await.status, 200);
    let hostile = Hostile::of(address(&served), ask).await;
    let chunked = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1f00000\r\n";
    hostile.unfinished_after(chunked, 20, 31 << 20).await;
}

fn address(served: &Served) -> SocketAddr {
    served.url.strip_prefix("http://").unwrap().parse().unwrap()
}
