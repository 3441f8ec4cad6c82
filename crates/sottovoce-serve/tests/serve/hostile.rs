//! Requests that are garbage, huge or slow, and words that appear nowhere.

use std::time::{Duration, Instant};

use serde_json::json;
use sottovoce::Scope;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Client, Served, http_client};
use crate::ollama::Answer;

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap()
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
async fn garbage_is_the_model_servers_to_refuse() {
    let served = Served::start().await;
    let garbage = "[".repeat(200_000);
    for body in
        ["", "null", "[]", r#"{"messages":{"a":1}}"#, r#"{"messages":[null,1,"x"]}"#, &garbage]
    {
        served.stub.next_to(crate::ollama::Ask::Load, Answer::refusal(400, "bad"));
        let got = served.post("/api/chat", body).await;
        assert!(got.status == 400 || got.status == 200, "{}", got.status);
        assert_eq!(served.stub.all_seen().last().unwrap().body, body);
    }
    assert!(served.messages(&Scope::Default).await.is_empty());
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
    assert!(begun.elapsed() < Duration::from_secs(4));
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
