//! An agent in front of a scripted model server, and a client of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sottovoce::config::OpenConversations;
use sottovoce::{
    Clock, Config, ConversationStore, EncryptionKey, FileConversationStore, Scope, StoredMessage,
    SystemClock,
};
use sottovoce_wyoming::{Access, Agent, Phrases, Rooms, listen, serve};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ollama::OllamaStub;

pub(crate) struct Served {
    pub(crate) stub: OllamaStub,
    pub(crate) ports: Vec<u16>,
    pub(crate) root: tempfile::TempDir,
    config: Config,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

pub(crate) fn named(id: &str) -> Scope {
    Scope::Named { id: id.into() }
}

fn keys() -> Vec<Arc<EncryptionKey>> {
    vec![Arc::new(EncryptionKey::from_secret("a long secret that only this house knows").unwrap())]
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::with(vec![None], Rooms::default()).await
    }

    /// Listens on a port for each of these, with its own conversation if it has one.
    pub(crate) async fn with(ports: Vec<Option<Scope>>, rooms: Rooms) -> Self {
        let root = tempfile::tempdir().unwrap();
        let stub = OllamaStub::start();
        let environment = vec![
            ("SOTTOVOCE__CONTEXT__STORAGEROOT".into(), root.path().as_os_str().to_owned()),
            ("SOTTOVOCE__LANGUAGEMODEL__BASEURL".into(), stub.url().into()),
        ];
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/none.json");
        let config = Config::load_with(Some(&file), environment).unwrap();
        let phrases = Phrases::default().with("pl", "Nie teraz.");
        let clock = Arc::new(SystemClock) as Arc<dyn Clock>;
        let agent =
            Agent::new(OpenConversations::new(config.clone(), keys(), clock).unwrap(), phrases);
        let addresses = ports.into_iter().map(|scope| ("127.0.0.1:0".parse().unwrap(), scope));
        let listening = listen(addresses, Access::default()).await.unwrap();
        let ports = listening.addresses().map(|address| address.port()).collect();
        let stop = CancellationToken::new();
        let serving = Some(tokio::spawn(serve(listening, agent, rooms, stop.clone())));
        Self { stub, ports, root, config, stop, serving }
    }

    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        self.serving.take().unwrap().await.unwrap();
    }

    pub(crate) async fn client(&self) -> Client {
        Client::at(self.ports[0]).await
    }

    pub(crate) async fn messages(&self, scope: &Scope) -> Vec<Arc<StoredMessage>> {
        let clock = Arc::new(SystemClock) as Arc<dyn Clock>;
        let store: FileConversationStore =
            self.config.open_store_with(keys(), scope.clone(), clock).await.unwrap();
        store.read_tail(1000).await.unwrap().messages
    }

    /// Waits until the conversation's last message is this one, since what was broken off is stored a little later.
    pub(crate) async fn ends_with(&self, scope: &Scope, text: &str, cut_off: Option<&str>) {
        for _ in 0..200 {
            let messages = self.messages(scope).await;
            let last = messages.last().map(|stored| &stored.message);
            if last.is_some_and(|last| last.content == text && last.cut_off() == cut_off) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{:?} does not end with {text}", self.messages(scope).await.len());
    }
}

/// A client, as Home Assistant is one.
pub(crate) struct Client {
    reader: BufReader<tokio::net::tcp::OwnedReadHalf>,
    pub(crate) writer: tokio::net::tcp::OwnedWriteHalf,
}

impl Client {
    pub(crate) async fn at(port: u16) -> Self {
        let (reader, writer) = TcpStream::connect(("127.0.0.1", port)).await.unwrap().into_split();
        Self { reader: BufReader::new(reader), writer }
    }

    pub(crate) async fn send(&mut self, kind: &str, data: Value) {
        let data = data.to_string();
        let header = json!({ "type": kind, "version": "1.10.2", "data_length": data.len() });
        self.writer.write_all(format!("{header}\n{data}").as_bytes()).await.unwrap();
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.send("transcript", json!({ "text": text, "language": "en" })).await;
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(20), self.reader.read_line(&mut line));
        if read.await.expect("an event comes").ok()? == 0 {
            return None;
        }
        let header: Value = serde_json::from_str(&line).unwrap();
        let mut data = vec![0; header["data_length"].as_u64().unwrap() as usize];
        self.reader.read_exact(&mut data).await.unwrap();
        let data = serde_json::from_slice(&data).unwrap();
        Some((header["type"].as_str().unwrap().to_owned(), data))
    }

    /// The kinds of the events up to the end of a turn, and what is spoken.
    pub(crate) async fn answer(&mut self) -> (Vec<String>, String) {
        let (mut kinds, mut spoken) = (Vec::new(), String::new());
        while let Some((kind, data)) = self.next().await {
            kinds.push(kind.clone());
            match kind.as_str() {
                "handled" | "not-handled" => spoken = data["text"].as_str().unwrap().to_owned(),
                _ => {}
            }
            if ["handled-stop", "not-handled"].contains(&kind.as_str()) {
                break;
            }
        }
        (kinds, spoken)
    }
}
