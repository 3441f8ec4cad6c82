//! The HTTP server with clients, and with strangers on raw sockets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::expect_used)]

#[path = "../../../tests/common/hostile_clients.rs"]
mod hostile_clients;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sottovoce::config::OpenConversations;
use sottovoce::{Clock, Config, EncryptionKey, ManualClock};
use sottovoce_mcp::{Hub, Server, http};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

const TOKEN: &str = "a-long-secret-for-tests";

struct Served {
    address: SocketAddr,
    stop: CancellationToken,
    _root: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(limits: impl FnOnce(&mut http::Limits)) -> Served {
    let root = tempfile::tempdir().unwrap();
    let environment =
        [("SOTTOVOCE__CONTEXT__STORAGEROOT".into(), root.path().as_os_str().to_owned())];
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/none.json");
    let config = Config::load_with(Some(&file), environment).unwrap();
    let key = EncryptionKey::from_secret("a long secret that only this house knows").unwrap();
    let now = "2025-08-24T05:31:01.123Z".parse().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at_utc(now));
    let hub =
        Hub::new(OpenConversations::new(config, vec![Arc::new(key)], clock).unwrap()).unwrap();
    let admission = http::Admission::new(Some(TOKEN.to_owned().into()));
    let listening = http::listen("127.0.0.1:0".parse().unwrap(), admission).await.unwrap();
    let (address, stop) = (listening.address(), CancellationToken::new());
    let mut those = http::Limits::default();
    limits(&mut those);
    let served =
        http::serve(listening.limits(those), move || Server::new(hub.clone()), stop.clone());
    tokio::spawn(served);
    Served { address, stop, _root: root }
}

impl Served {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// The head of a request without the body's length.
    fn head(&self, more: &str) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
Accept: application/json, text/event-stream\r\nAuthorization: Bearer {TOKEN}\r\n{more}",
            self.address
        )
    }

    /// A request of the newest revision, which needs no session.
    fn list(&self) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta },
        });
        let more = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
        whole(&self.head(more), &body)
    }

    fn in_session(&self, session: &str, body: &Value) -> String {
        let more = format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n");
        whole(&self.head(&more), body)
    }

    /// A request for the stream of a session.
    fn listen(&self, session: &str) -> String {
        format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nAuthorization: Bearer {TOKEN}\r\n\
MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n\r\n",
            self.address
        )
    }

    /// Begins a session, and returns its id.
    async fn session(&self) -> Option<String> {
        let client = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client });
        let answer = self.answer(&whole(&self.head("Connection: close\r\n"), &body)).await;
        let line = answer.lines().find(|line| line.starts_with("mcp-session-id: "))?;
        let id = line.split_once(": ").unwrap().1.to_owned();
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.status(&self.in_session(&id, &begun)).await, 202);
        Some(id)
    }

    /// The status of a request in a session.
    async fn ask(&self, session: &str) -> u16 {
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} });
        self.status(&self.in_session(session, &list)).await
    }

    async fn status(&self, request: &str) -> u16 {
        let mut socket = self.connect().await;
        socket.write_all(request.as_bytes()).await.unwrap();
        status(&mut socket).await.expect("an answer")
    }

    /// Everything until the server closes.
    async fn answer(&self, request: &str) -> String {
        let mut socket = self.connect().await;
        socket.write_all(request.as_bytes()).await.unwrap();
        rest(&mut socket, Duration::from_secs(10)).await.expect("closed")
    }
}

fn whole(head: &str, body: &Value) -> String {
    let body = body.to_string();
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

async fn status(socket: &mut TcpStream) -> Option<u16> {
    let mut begin = [0; 12];
    let read = socket.read_exact(&mut begin);
    tokio::time::timeout(Duration::from_secs(10), read).await.ok()?.ok()?;
    std::str::from_utf8(&begin[9..]).unwrap().parse().ok()
}

/// The data until the other end closes, if it does in time.
async fn rest(socket: &mut TcpStream, within: Duration) -> Option<String> {
    let mut all = Vec::new();
    let read = async {
        // Closing and resetting the connection both count.
        drop(socket.read_to_end(&mut all).await);
    };
    tokio::time::timeout(within, read).await.ok()?;
    Some(String::from_utf8(all).unwrap())
}

#[tokio::test]
async fn three_hundred_silent_strangers_keep_no_client_waiting() {
    let served = serve(|_| {}).await;
    let mut client = served.connect().await;
    client.write_all(served.list().as_bytes()).await.unwrap();
    assert_eq!(status(&mut client).await, Some(200));
    let mut strangers = Vec::new();
    for number in 0..300 {
        let mut stranger = served.connect().await;
        if number % 2 == 0 {
            stranger.write_all(b"POST /mcp HTTP/1.1\r\nHost: local").await.unwrap();
        }
        strangers.push(stranger);
    }
    for _ in 0..20 {
        assert_eq!(served.status(&served.list()).await, 200);
    }
    // Most strangers were closed, and the client's own connection stays.
    let mut closed = 0;
    for stranger in &mut strangers {
        closed += usize::from(rest(stranger, Duration::from_millis(5)).await.is_some());
    }
    assert!(closed >= 300 - 64, "{closed} of 300 are closed");
    drop(rest(&mut client, Duration::from_millis(50)).await);
    client.write_all(served.list().as_bytes()).await.unwrap();
    assert_eq!(status(&mut client).await, Some(200));
}

#[tokio::test]
async fn a_client_without_the_token_gets_an_error_and_is_cut_off() {
    let served = serve(|_| {}).await;
    for shown in ["", "Authorization: Bearer \r\n", "Authorization: Bearer wrong\r\n"] {
        let request =
            format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{shown}Content-Length: 9\r\n\r\n");
        let mut socket = served.connect().await;
        socket.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(&mut socket, Duration::from_secs(5)).await.expect("closed");
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn a_head_that_is_never_whole_ends() {
    let served = serve(|limits| limits.net.head = Duration::from_millis(300)).await;
    let mut slow = served.connect().await;
    let head = served.head("");
    // Without its limit it would have a minute.
    let is_cut = async {
        for byte in head.bytes().cycle() {
            if slow.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(sottovoce_net::Limits::default().head, is_cut).await.unwrap();
    assert_eq!(served.status(&served.list()).await, 200);
}

#[tokio::test]
async fn a_body_that_is_never_whole_ends() {
    let served = serve(|limits| limits.net.body = Duration::from_millis(300)).await;
    for length in
        ["Content-Length: 4000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"jso\r\n"]
    {
        let mut slow = served.connect().await;
        slow.write_all(served.head(length).as_bytes()).await.unwrap();
        slow.write_all(b"1").await.unwrap();
        assert_eq!(status(&mut slow).await, Some(408));
        let rest = rest(&mut slow, Duration::from_secs(5)).await.expect("closed");
        assert!(rest.contains("took too long"), "{rest}");
    }
    let mut long = served.connect().await;
    let head = format!("Content-Length: {}\r\n\r\n", 5 << 20);
    long.write_all(served.head(&head).as_bytes()).await.unwrap();
    assert_eq!(status(&mut long).await, Some(413));
}

#[tokio::test]
async fn clients_beyond_their_limit_get_an_error_unless_one_is_idle() {
    let served = serve(|limits| limits.net.connections = 2).await;
    let mut listening = Vec::new();
    for _ in 0..2 {
        let session = served.session().await.unwrap();
        let mut stream = served.connect().await;
        stream.write_all(served.listen(&session).as_bytes()).await.unwrap();
        assert_eq!(status(&mut stream).await, Some(200));
        listening.push(stream);
    }
    assert_eq!(served.status(&served.list()).await, 503);
    listening.pop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut client = served.connect().await;
        client.write_all(served.list().as_bytes()).await.unwrap();
        assert_eq!(status(&mut client).await, Some(200));
        drop(rest(&mut client, Duration::from_millis(50)).await);
        idle.push(client);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_hostile_clients_send_memory_stays_small_and_others_are_answered() {
    if !hostile_clients::is_alone(
        "whatever_hostile_clients_send_memory_stays_small_and_others_are_answered",
    ) {
        return;
    }
    let served = serve(|_| {}).await;
    let ask = async || assert_eq!(served.status(&served.list()).await, 200);
    let hostile = hostile_clients::Hostile::of(served.address, ask).await;
    hostile.silent(5000).await;
    hostile.endless_heads(100).await;
    hostile.unfinished(&served.head(""), 60, (4 << 20) - 2).await;
    let stranger = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
    hostile.unfinished(stranger, 255, (4 << 20) - 2).await;
}

#[tokio::test]
async fn a_flood_of_sessions_ends_its_own_and_not_those_in_use() {
    let served = serve(|limits| limits.sessions = 8).await;
    let used = served.session().await.unwrap();
    assert_eq!(served.ask(&used).await, 200);
    let listened = served.session().await.unwrap();
    let mut stream = served.connect().await;
    stream.write_all(served.listen(&listened).as_bytes()).await.unwrap();
    assert_eq!(status(&mut stream).await, Some(200));
    let mut flood = Vec::new();
    for _ in 0..40 {
        flood.push(served.session().await.unwrap());
    }
    assert_eq!((served.ask(&used).await, served.ask(&listened).await), (200, 200));
    assert_eq!(served.ask(&flood[0]).await, 404);
    assert_eq!(served.ask(flood.last().unwrap()).await, 200);
    let mut open = 0;
    for id in &flood {
        open += usize::from(served.ask(id).await == 200);
    }
    assert_eq!(open, 6);
}

#[tokio::test]
async fn a_session_that_idles_ends_and_one_that_is_listened_to_does_not() {
    let served = serve(|limits| limits.idle = Duration::from_millis(400)).await;
    let (idle, busy) = (served.session().await.unwrap(), served.session().await.unwrap());
    let mut stream = served.connect().await;
    stream.write_all(served.listen(&busy).as_bytes()).await.unwrap();
    assert_eq!(status(&mut stream).await, Some(200));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!((served.ask(&idle).await, served.ask(&busy).await), (404, 200));
}

#[tokio::test]
async fn clients_that_accept_less_or_write_otherwise_are_understood() {
    let served = serve(|_| {}).await;
    let session = served.session().await.unwrap();
    let begin = format!(
        "POST /mcp/ HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\
Authorization: Bearer {TOKEN}\r\nMCP-Protocol-Version: 2025-03-26\r\nMcp-Session-Id: {session}\r\n",
        served.address
    );
    let ask = async |more: &str, body: &str| {
        let head = format!("{begin}{more}Content-Length: {}\r\n\r\n{body}", body.len());
        let answer = served.answer(&head).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    };
    let ping = r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
    for accept in ["", "Accept: */*\r\n", "Accept: application/json\r\n"] {
        let (head, body) = ask(accept, ping).await;
        assert!(head.starts_with("http/1.1 200") && head.contains("application/json"), "{head}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["id"], 5, "{accept}");
    }
    let (head, _) = ask("Accept: text/html\r\n", ping).await;
    assert!(head.starts_with("http/1.1 406"), "{head}");
    let (head, body) = ask("Accept: application/json, text/event-stream\r\n", ping).await;
    assert!(head.contains("text/event-stream") && body.contains("\"id\":5"), "{head}");

    // Arguments as a text, with half a character in it.
    let call = r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"remember","arguments":"{\"text\":\"canary \\ud83d\"}"}}"#;
    let (_, body) = ask("", call).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert!(answer["error"].is_null() && answer["result"]["isError"] != true, "{body}");

    // A request that lacks something hears what.
    let handshake = r#"{"jsonrpc":"2.0","id":8,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    let (_, body) = ask("", handshake).await;
    assert!(body.contains("\"id\":8") && body.contains("missing field `clientInfo`"), "{body}");

    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let recall = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"recall","arguments":{"words":"canary"}}}"#;
    let (_, body) = ask("", &format!("[{ping},{note},{recall}]")).await;
    let answers: Vec<Value> = serde_json::from_str(&body).unwrap();
    assert_eq!(answers.iter().map(|a| &a["id"]).collect::<Vec<_>>(), [&json!(5), &json!(7)]);
    assert!(answers[1].to_string().contains("canary"), "{body}");
    let many = vec![ping; 101].join(",");
    assert!(ask("", &format!("[{many}]")).await.0.starts_with("http/1.1 400"));
    let (head, body) = ask("", &format!("[{note}]")).await;
    assert!(head.starts_with("http/1.1 202") && body.is_empty(), "{head} {body}");
}

#[tokio::test]
async fn a_page_of_this_machine_may_ask_and_a_foreign_one_is_told_the_setting() {
    let served = serve(|_| {}).await;
    let preflight = |origin: &str| {
        format!(
            "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nConnection: close\r\n\
Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n\r\n"
        )
    };
    let told = served.answer(&preflight("http://localhost:6274")).await.to_lowercase();
    assert!(told.starts_with("http/1.1 204"), "{told}");
    assert!(told.contains("access-control-allow-origin: http://localhost:6274"), "{told}");
    assert!(told.contains("access-control-allow-headers: authorization"), "{told}");
    let refused = served.answer(&preflight("https://evil.example")).await;
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("--allow-host"), "{refused}");
    assert!(!refused.to_lowercase().contains("access-control"), "{refused}");
}
