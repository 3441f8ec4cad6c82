//! A server in front of a scripted model server, and a client of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sottovoce::config::OpenConversations;
use sottovoce::persona::PersonaRegistry;
use sottovoce::{
    ChatMessage, ChatRole, Clock, Config, ConversationStore, EncryptionKey, FileConversationStore,
    ManualClock, Scope,
};
use sottovoce_serve::{Access, Hub, Limits, listen, serve, serve_health};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ollama::OllamaStub;

/// When a conversation is summarized, if a test names a model.
const IDLE: Duration = Duration::from_secs(1);

pub(crate) const NOW: &str = "2025-08-24T16:36:25.123Z";

pub(crate) struct Served {
    pub(crate) stub: OllamaStub,
    pub(crate) url: String,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) root: tempfile::TempDir,
    config: Config,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

/// What a client gets.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

pub(crate) fn named(id: &str) -> Scope {
    Scope::Named { id: id.into() }
}

pub(crate) const SECRET: &str = "a long secret that only this house knows";

fn key() -> Arc<EncryptionKey> {
    Arc::new(EncryptionKey::from_secret(SECRET).unwrap())
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::with(&[], Access::default(), |_| {}).await
    }

    pub(crate) async fn with(
        settings: &[(&str, &str)],
        access: Access,
        limits: impl FnOnce(&mut Limits),
    ) -> Self {
        // A server waits 0.3 s for what is recalled. Loading the encoder, once a process, may take longer.
        sottovoce_encoder::Encoder::shared().unwrap();
        let root = tempfile::tempdir().unwrap();
        let stub = OllamaStub::start();
        let mut environment = vec![
            ("SOTTOVOCE__CONTEXT__STORAGEROOT".into(), root.path().as_os_str().to_owned()),
            ("SOTTOVOCE__LANGUAGEMODEL__BASEURL".into(), stub.url().into()),
        ];
        for (name, value) in settings {
            let name: std::ffi::OsString = format!("SOTTOVOCE__{name}").into();
            environment.retain(|(known, _)| *known != name);
            environment.push((name, (*value).into()));
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/none.json");
        let config = Config::load_with(Some(&file), environment).unwrap();
        let clock = Arc::new(ManualClock::at_utc(NOW.parse().unwrap()));
        let mut served = Self {
            stub,
            url: String::new(),
            clock,
            root,
            config,
            stop: CancellationToken::new(),
            serving: None,
        };
        let mut those = Limits::default();
        limits(&mut those);
        served.begin(access, those).await;
        served
    }

    async fn begin(&mut self, access: Access, limits: Limits) {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let hub =
            Hub::new(OpenConversations::new(self.config.clone(), vec![key()], clock).unwrap())
                .unwrap()
                .idle(IDLE);
        let listening = listen("127.0.0.1:0".parse().unwrap(), access).await.unwrap();
        self.url = format!("http://{}", listening.address());
        self.stop = CancellationToken::new();
        let serving = serve(listening.limits(limits), hub, self.stop.clone());
        self.serving = Some(tokio::spawn(serving));
    }

    /// Where the health of a process with this key for the store is told.
    pub(crate) async fn health(&self, secret: &str) -> String {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let keys = vec![Arc::new(EncryptionKey::from_secret(secret).unwrap())];
        let conversations = OpenConversations::new(self.config.clone(), keys, clock).unwrap();
        let listening = listen("127.0.0.1:0".parse().unwrap(), Access::default()).await.unwrap();
        let url = format!("http://{}", listening.address());
        let (ending, stop) = Default::default();
        let more = Arc::new(|_: &mut sottovoce_serve::OpenMetrics| {});
        tokio::spawn(serve_health(listening, conversations, more, ending, stop));
        url
    }

    /// A server that speaks TLS.
    #[cfg(feature = "tls")]
    pub(crate) async fn with_tls(certificate: &Path, key: &Path) -> Self {
        let mut served = Self::start().await;
        served.stop().await;
        let clock: Arc<dyn Clock> = served.clock.clone();
        let hub = Hub::new(
            OpenConversations::new(served.config.clone(), vec![self::key()], clock).unwrap(),
        )
        .unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        let listening = listen(address, Access::default()).await.unwrap();
        let listening = listening.tls(certificate, key).unwrap();
        served.url = format!("http://{}", listening.address());
        served.stop = CancellationToken::new();
        served.serving = Some(tokio::spawn(serve(listening, hub, served.stop.clone())));
        served
    }

    /// Stops the server as a signal does, and waits for its end.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        self.serving.take().unwrap().await.unwrap();
    }

    /// Stops the server and starts another one on the same store.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.restart_stopped().await;
    }

    pub(crate) async fn restart_stopped(&mut self) {
        self.begin(Access::default(), Limits::default()).await;
    }

    pub(crate) async fn store(&self, scope: &Scope) -> FileConversationStore {
        let clock: Arc<dyn Clock> = self.clock.clone();
        self.config.open_store_with(vec![key()], scope.clone(), clock).await.unwrap()
    }

    pub(crate) fn contexts(&self) -> PersonaRegistry {
        self.config.contexts(vec![key()], self.clock.clone()).unwrap()
    }

    /// Stores an exchange of an earlier day.
    pub(crate) async fn said_before(&self, scope: &Scope, user: &str, assistant: &str) {
        let at = "2025-08-20T10:00:00Z".parse().unwrap();
        let said = [(ChatRole::User, user), (ChatRole::Assistant, assistant)];
        let said = said.map(|(role, words)| ChatMessage::at(role, words, at));
        self.store(scope).await.append_all(said.into()).await.unwrap();
    }

    /// What a conversation holds: who said it and the words, with why an answer is cut off, or that it is aside.
    pub(crate) async fn messages(&self, scope: &Scope) -> Vec<(String, String)> {
        let read = self.store(scope).await.read_tail(1000).await.unwrap();
        assert!(read.skipped.is_empty());
        let shown = |message: &ChatMessage| {
            let aside = message.aside().and(Some("aside"));
            let who = match message.cut_off().or(aside) {
                Some(why) => format!("{} {why}", message.role.as_str()),
                None => message.role.as_str().to_owned(),
            };
            (who, message.content.clone())
        };
        read.messages.iter().map(|stored| shown(&stored.message)).collect()
    }

    /// Waits until a conversation holds these messages, since what was broken off is stored a little later.
    pub(crate) async fn holds(&self, scope: &Scope, wanted: &[(&str, &str)]) {
        let wanted: Vec<_> =
            wanted.iter().map(|(who, words)| ((*who).to_owned(), (*words).to_owned())).collect();
        for _ in 0..100 {
            if self.messages(scope).await == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(self.messages(scope).await, wanted);
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<String>) -> Got {
        self.post_with(path, body, &[]).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        body: impl Into<String>,
        headers: &[(&str, &str)],
    ) -> Got {
        self.ask(reqwest::Method::POST, path, body.into(), headers).await
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.ask(reqwest::Method::GET, path, String::new(), &[]).await
    }

    pub(crate) async fn ask(
        &self,
        method: reqwest::Method,
        path: &str,
        body: String,
        headers: &[(&str, &str)],
    ) -> Got {
        let mut request = http_client().request(method, format!("{}{path}", self.url)).body(body);
        request = request.header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap_or_else(|_| "(broken off)".into());
        Got { status, headers, text }
    }

    /// The bodies that the model server got for answers.
    pub(crate) fn forwarded(&self) -> Vec<String> {
        self.stub.seen(crate::ollama::Ask::Reply).into_iter().map(|seen| seen.body).collect()
    }

    /// The newest of these.
    pub(crate) fn last_forwarded(&self) -> Value {
        serde_json::from_str(self.forwarded().last().unwrap()).unwrap()
    }
}

/// A client that sends its whole session with every request, as Home Assistant does.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) system: String,
    pub(crate) messages: Vec<Value>,
    /// The most exchanges that it sends before the newest utterance.
    pub(crate) most: usize,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self { system: "You are a voice assistant.".into(), messages: Vec::new(), most: 20 }
    }

    /// The request for the messages so far.
    pub(crate) fn body(&self) -> String {
        let dropped = self.messages.len().saturating_sub(2 * self.most + 1);
        let system = json!({ "role": "system", "content": self.system });
        let mut messages = vec![system];
        messages.extend_from_slice(&self.messages[dropped..]);
        let tool = json!({ "name": "HassTurnOn", "description": "Turns on", "parameters": {} });
        let tool = json!({ "type": "function", "function": tool });
        json!({
            "model": "llama3.2", "messages": messages, "tools": [tool], "stream": true,
            "options": { "num_ctx": 8192.0 }, "keep_alive": -1.0, "think": false,
        })
        .to_string()
    }

    /// Says something, and takes the answer into the session. Returns the answer's head.
    pub(crate) async fn say(&mut self, served: &Served, path: &str, words: &str) -> Got {
        self.messages.push(json!({ "role": "user", "content": words }));
        let got = served.post(path, self.body()).await;
        assert_eq!(got.status, 200, "{}", got.text);
        let answer: String = got
            .text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter_map(|line| line["message"]["content"].as_str().map(str::to_owned))
            .collect();
        self.messages.push(json!({ "role": "assistant", "content": answer }));
        got
    }
}

/// A client that asks these servers.
pub(crate) fn http_client() -> reqwest::Client {
    sottovoce::http::client_builder(false).unwrap().no_proxy().build().unwrap()
}
