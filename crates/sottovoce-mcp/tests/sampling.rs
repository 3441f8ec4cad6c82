//! Clients of the newest revision that ask their own model and call again with its answer.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use serde_json::{Value, json};
use sottovoce::config::OpenConversations;
use sottovoce::import::{Backup, OpenStore};
use sottovoce::persona::{PersonaConversationChange, PersonaRegistry};
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact};
use sottovoce::{
    ChatMessage, ChatRole, Clock, Config, ConversationStore, EncryptionKey, ManualClock,
    StoreOptions,
};
use sottovoce_mcp::{Hub, Server};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

fn hub(root: &Path, settings: &[(&str, &str)]) -> Arc<Hub> {
    let now = "2025-08-24T05:31:01.123Z".parse().unwrap();
    hub_at(root, ("always", settings), Arc::new(ManualClock::at_utc(now)))
}

fn hub_at(
    root: &Path,
    (sampling, settings): (&str, &[(&str, &str)]),
    clock: Arc<dyn Clock>,
) -> Arc<Hub> {
    let mut environment = vec![
        ("SOTTOVOCE__CONTEXT__STORAGEROOT", root.to_str().unwrap()),
        // No server listens there.
        ("SOTTOVOCE__LANGUAGEMODEL__BASEURL", "http://127.0.0.1:9"),
        ("SOTTOVOCE__MCP__PREFERSAMPLING", sampling),
    ];
    environment.extend_from_slice(settings);
    let environment = environment.into_iter().map(|(name, value)| (name.into(), value.into()));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/none.json");
    let config = Config::load_with(Some(&file), environment).unwrap();
    let key = EncryptionKey::from_secret("a long secret that only this house knows").unwrap();
    Hub::new(OpenConversations::new(config, vec![Arc::new(key)], clock).unwrap()).unwrap()
}

/// A client that sends raw lines and never retries by itself.
struct Client {
    lines: BufReader<DuplexStream>,
    id: u64,
}

impl Client {
    fn connect(hub: Arc<Hub>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let server = Server::new(hub).serve(ours).await.unwrap();
            drop(server.waiting().await);
        });
        Self { lines: BufReader::new(theirs), id: 0 }
    }

    async fn send(&mut self, tool: &str, arguments: &Value, with: Value) -> Value {
        self.id += 1;
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "sampling": {} },
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        });
        let mut params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let Value::Object(with) = with else { panic!("no object") };
        params.as_object_mut().unwrap().extend(with);
        let line = json!({
            "jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params,
        });
        self.lines.get_mut().write_all(format!("{line}\n").as_bytes()).await.unwrap();
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line);
            tokio::time::timeout(Duration::from_secs(30), read).await.unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.id {
                return answer;
            }
        }
    }

    async fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.send(tool, &arguments, json!({})).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    async fn create(&mut self, name: &str) -> String {
        let made = json!({ "action": "create", "name": name, "systemPrompt": "You are Mira." });
        let made = self.done("context-manage", made).await;
        made["contextId"].as_str().unwrap().to_owned()
    }

    /// Sends a message, and returns the state for the next call.
    async fn say(&mut self, say: &Value) -> Value {
        let round = self.send("context-chat", say, json!({})).await;
        let state = round["result"]["requestState"].clone();
        assert!(state.is_string(), "{round}");
        state
    }

    async fn answer(&mut self, say: &Value, state: &Value, words: &str) -> Value {
        let answer = json!({
            "role": "assistant", "content": { "type": "text", "text": words }, "model": "m",
        });
        let with = json!({ "requestState": state, "inputResponses": { "answer": answer } });
        self.send("context-chat", say, with).await
    }

    async fn kept(&mut self, id: &str) -> Vec<String> {
        let list = json!({ "action": "list", "contextId": id, "reverse": false });
        let listed = self.done("conversation-manage", list).await;
        let words = |said: &Value| said["content"].as_str().unwrap().to_owned();
        listed["conversations"].as_array().unwrap().iter().map(words).collect()
    }
}

#[tokio::test]
async fn the_clients_model_reads_a_short_artifact_and_is_offered_no_functions() {
    let root = tempfile::tempdir().unwrap();
    let mut client = Client::connect(hub(root.path(), &[]));
    let id = client.create("Mira").await;
    let key = EncryptionKey::from_secret("a long secret that only this house knows").unwrap();
    let now: jiff::Timestamp = "2025-08-24T05:31:01Z".parse().unwrap();
    let options = StoreOptions::new(key).clock(Arc::new(ManualClock::at_utc(now)));
    let store = PersonaRegistry::new(root.path(), options).open(&id).await.unwrap();
    let text = Box::new(std::io::Cursor::new(b"The key hangs behind the teapot.".to_vec()));
    let new = NewArtifact::new(ArtifactKind::File, "notes.md");
    let artifact = store.add_artifact(new, text).await.unwrap().artifact;
    let note = format!("Added {}: {}", artifact.description(), artifact.reference());
    let note = ChatMessage::new(ChatRole::System, note, &now.to_zoned(jiff::tz::TimeZone::UTC));
    store.append_message(note).await.unwrap();
    let say = json!({ "contextId": "Mira", "message": "Where is the key?" });
    let round = client.send("context-chat", &say, json!({})).await;
    let asked = &round["result"]["inputRequests"]["answer"]["params"];
    assert!(asked["messages"].to_string().contains("behind the teapot"), "{round}");
    assert!(asked["tools"].is_null(), "{round}");
}

#[tokio::test]
async fn the_clients_model_is_asked_at_the_very_temperature_that_is_set() {
    let root = tempfile::tempdir().unwrap();
    let mut client = Client::connect(hub(root.path(), &[]));
    let made = json!({
        "action": "create", "name": "Mira", "systemPrompt": "You are Mira.", "temperature": 0.7,
    });
    client.done("context-manage", made).await;
    let mut client = Client::connect(hub(root.path(), &[]));
    let call = json!({
        "name": "context-chat", "arguments": { "contextId": "Mira", "message": "Hello?" },
    });
    let opening = json!({
        "protocolVersion": "2025-06-18", "capabilities": { "sampling": {} },
        "clientInfo": { "name": "test", "version": "1" },
    });
    for line in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ] {
        client.lines.get_mut().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    let asked = loop {
        let mut line = String::new();
        let read = client.lines.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(30), read).await.unwrap().unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["method"] == "sampling/createMessage" {
            break line;
        }
    };
    assert_eq!(asked["params"]["temperature"], json!(0.7), "{asked}");
    let text = json!({ "type": "text", "text": "Hello." });
    let answer = json!({ "role": "assistant", "content": text, "model": "m" });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer });
    client.lines.get_mut().write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    while !line.contains("assistantResponse") {
        line.clear();
        let read = client.lines.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(30), read).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_answer_stays_in_its_context_also_where_another_has_the_name_meanwhile() {
    let root = tempfile::tempdir().unwrap();
    let mut client = Client::connect(hub(root.path(), &[]));
    let (one, other) = (client.create("Mira").await, client.create("Other").await);
    let keep = json!({ "contextId": other, "content": "Elsewhere" });
    client.done("context-remember", keep).await;
    let say = json!({ "contextId": "Mira", "message": "A secret?" });
    let state = client.say(&say).await;
    for (id, name) in [(&one, "Before"), (&other, "Mira")] {
        let rename = json!({ "action": "update", "contextId": id, "name": name });
        client.done("context-manage", rename).await;
    }
    let refused = client.answer(&say, &state, "The secret.").await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("requestState"), "{refused}");
    assert_eq!(client.kept(&other).await, ["Elsewhere"]);
    assert_eq!(client.kept(&one).await, ["A secret?"]);
}

#[tokio::test]
async fn each_utterance_gets_one_answer_however_often_and_alike_they_come() {
    let root = tempfile::tempdir().unwrap();
    let mut client = Client::connect(hub(root.path(), &[]));
    client.create("Mira").await;
    let one = json!({ "contextId": "Mira", "message": "One?" });
    let two = json!({ "contextId": "Mira", "message": "Two?" });
    let (first, second) = (client.say(&one).await, client.say(&two).await);
    client.answer(&two, &second, "Yes.").await;
    client.answer(&one, &first, "Yes.").await;
    let expected = ["One?", "Two?", "Yes.", "Yes."];
    assert_eq!(client.kept("Mira").await, expected);
    for words in ["Yes.", "No."] {
        let again = client.answer(&one, &first, words).await;
        assert_eq!(again["result"]["structuredContent"]["assistantResponse"]["id"], "conv-4");
    }
    assert_eq!(client.kept("Mira").await, expected);
    // The state of one call is not valid for another.
    let refused = client.answer(&two, &first, "No.").await;
    assert!(refused["error"].is_object(), "{refused}");
    let clear = json!({ "action": "clear", "contextId": "Mira" });
    client.done("conversation-manage", clear).await;
    let gone = client.answer(&one, &first, "Yes.").await;
    assert_eq!(gone["result"]["isError"], true, "{gone}");
    assert!(client.kept("Mira").await.is_empty());
}

#[tokio::test]
async fn the_last_utterance_that_a_context_has_room_for_is_answered() {
    let root = tempfile::tempdir().unwrap();
    let two = [("SOTTOVOCE__PERSONAS__MAXMESSAGES", "2")];
    let mut client = Client::connect(hub(root.path(), &two));
    client.create("Mira").await;
    let say = json!({ "contextId": "Mira", "message": "One?" });
    let state = client.say(&say).await;
    for _ in 0..2 {
        let answered = client.answer(&say, &state, "Yes.").await;
        assert_eq!(answered["result"]["isError"], false, "{answered}");
    }
    assert_eq!(client.kept("Mira").await, ["One?", "Yes."]);
    let more = client.send("context-chat", &say, json!({})).await;
    assert_eq!(more["result"]["isError"], true, "{more}");
    let forged = client.answer(&say, &json!("forged"), "No.").await;
    assert!(forged["error"].is_object(), "{forged}");
    assert_eq!(client.kept("Mira").await.len(), 2);
}

#[tokio::test]
async fn a_context_that_another_process_removed_and_brought_back_is_talked_to_as_before() {
    let root = tempfile::tempdir().unwrap();
    let mut client = Client::connect(hub(root.path(), &[]));
    let id = client.create("Mira").await;
    let say = json!({ "contextId": "Mira", "message": "One?" });
    let state = client.say(&say).await;
    client.answer(&say, &state, "Yes.").await;
    let options = || {
        let key = EncryptionKey::from_secret("a long secret that only this house knows").unwrap();
        let now = "2025-08-24T05:31:02Z".parse().unwrap();
        StoreOptions::new(key).clock(Arc::new(ManualClock::at_utc(now)))
    };
    let other = PersonaRegistry::new(root.path(), options());
    let backup = other.remove(&id).await.unwrap();
    let gone = client.send("context-chat", &say, json!({})).await;
    assert_eq!(gone["result"]["isError"], true, "{gone}");
    let path = root.path().to_owned();
    let open: OpenStore = Box::new(move |scope| {
        let (path, options) = (path.clone(), options());
        Box::pin(async move { options.scope(scope).open(path).await })
    });
    let key = EncryptionKey::from_secret("a long secret that only this house knows").unwrap();
    Backup::new(backup).key(Arc::new(key)).import(open, |_| {}, |_| {}).await.unwrap();
    let back =
        PersonaConversationChange { is_active: Some(true), ..PersonaConversationChange::default() };
    other.update(&id, back).await.unwrap();
    let say = json!({ "contextId": "Mira", "message": "Two?" });
    let state = client.say(&say).await;
    client.answer(&say, &state, "Yes.").await;
    assert_eq!(client.kept("Mira").await, ["One?", "Yes.", "Two?", "Yes."]);
}

#[tokio::test]
async fn what_is_cleared_while_the_client_asks_its_model_gets_no_answer() {
    let root = tempfile::tempdir().unwrap();
    let mut client = Client::connect(hub(root.path(), &[]));
    client.create("Mira").await;
    let say = json!({ "contextId": "Mira", "message": "My pin is 1234." });
    let state = client.say(&say).await;
    client.done("conversation-manage", json!({ "action": "clear", "contextId": "Mira" })).await;
    for _ in 0..2 {
        let refused = client.answer(&say, &state, "1234, I see.").await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let told = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert!(told.contains("forgotten meanwhile"), "{told}");
        assert!(client.kept("Mira").await.is_empty());
    }
}

#[tokio::test]
async fn where_no_model_answers_the_client_is_asked_and_what_was_said_is_kept_once() {
    let root = tempfile::tempdir().unwrap();
    let now = "2025-08-24T05:31:01.123Z".parse().unwrap();
    let clock = Arc::new(ManualClock::at_utc(now));
    let mut client = Client::connect(hub_at(root.path(), ("fallback", &[]), clock));
    client.create("Mira").await;
    let say = json!({ "contextId": "Mira", "message": "One?" });
    // The client disconnects during its call, and tries again.
    client.say(&say).await;
    let state = client.say(&say).await;
    assert_eq!(client.kept("Mira").await, ["One?"]);
    let answered = client.answer(&say, &state, "Yes.").await;
    assert_eq!(answered["result"]["structuredContent"]["response"], "Yes.", "{answered}");
    assert_eq!(client.kept("Mira").await, ["One?", "Yes."]);
    // After an answer, the same message is a new one.
    let state = client.say(&say).await;
    client.answer(&say, &state, "Still yes.").await;
    assert_eq!(client.kept("Mira").await, ["One?", "Yes.", "One?", "Still yes."]);
}

#[tokio::test]
async fn a_repeated_request_is_no_second_utterance() {
    let root = tempfile::tempdir().unwrap();
    let now = "2025-08-24T05:31:01.123Z".parse().unwrap();
    let clock = Arc::new(ManualClock::at_utc(now));
    let redacts = [("SOTTOVOCE__CONTEXT__REDACT", "true")];
    let hub = hub_at(root.path(), ("never", &redacts), clock.clone());
    let mut client = Client::connect(hub);
    client.create("Mira").await;
    let say = json!({ "contextId": "Mira", "message": "Write to bob@example.org" });
    for _ in 0..3 {
        let refused = client.send("context-chat", &say, json!({})).await;
        let told = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert!(told.contains("cannot be reached"), "{told}");
        assert_eq!(client.kept("Mira").await, ["Write to [e-mail address]"]);
    }
    // After ten minutes the same message is a new one, and a different message always is.
    clock.advance(jiff::SignedDuration::from_mins(11));
    client.send("context-chat", &say, json!({})).await;
    let other = json!({ "contextId": "Mira", "message": "Hello?" });
    client.send("context-chat", &other, json!({})).await;
    assert_eq!(client.kept("Mira").await.len(), 3);
}

#[tokio::test]
async fn a_history_that_the_window_limits_is_said_to_be_nearly_full_before_it_shrinks() {
    let root = tempfile::tempdir().unwrap();
    let mut client =
        Client::connect(hub(root.path(), &[("SOTTOVOCE__LANGUAGEMODEL__NUMCTX", "1024")]));
    client.create("Mira").await;
    let mut told = Vec::new();
    for number in 0..20 {
        let message =
            format!("This is number {number}, and there is a little more to be said about it.");
        let say = json!({ "contextId": "Mira", "message": message });
        let state = client.say(&say).await;
        let answered =
            client.answer(&say, &state, "Go on, I am listening to every word of it.").await;
        let metadata = &answered["result"]["structuredContent"]["metadata"];
        assert!(metadata["historyLimit"].as_u64().unwrap() < 512, "{metadata}");
        let warnings = metadata["warnings"].as_array().unwrap().iter();
        told.extend(warnings.map(|warning| warning.as_str().unwrap().to_owned()));
    }
    assert!(told[0].contains("over 80 % full"), "{told:?}");
    assert!(told.iter().any(|warning| warning.contains("left out; they stay stored")), "{told:?}");
}
