//! What the endpoint adds to the time of the first word, and how much of a prompt stays as it was.
//!
//! `cargo bench -p sottovoce-serve -- [MESSAGES…]`, 100 and 1,000,000 messages unless given. The model server is scripted and
//! answers at once, so that only the endpoint's own work shows. With `--session FILE`, only the second: of the requests in that
//! file, one a line, as a client sent them to a model that says `Fine.`

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is a measurement"
)]

#[path = "../../../tests/common/ollama.rs"]
mod ollama;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sottovoce::config::OpenConversations;
use sottovoce::{ChatMessage, ChatRole, Config, ConversationStore, EncryptionKey, SystemClock};
use sottovoce_serve::{Access, Hub, listen, serve};
use tokio_util::sync::CancellationToken;

use ollama::{Ask, OllamaStub};

/// What is asked: a command, which recalls nothing, and a question about the past, which does.
const ASKED: [(&str, &str); 2] = [
    ("command", "Turn the light on, please, number"),
    ("question", "What did I say about the garden, number"),
];
const ROUNDS: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some(at) = arguments.iter().position(|argument| argument == "--session") {
        let recorded = std::fs::read_to_string(&arguments[at + 1]).unwrap();
        runtime.block_on(unchanged(recorded.lines().map(str::to_owned).collect()));
        return;
    }
    let sizes: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100, 1_000_000] } else { sizes };
    for messages in sizes {
        runtime.block_on(measure(messages));
    }
    runtime.block_on(unchanged(session()));
}

/// A store, and the scripted model server.
struct Home {
    root: tempfile::TempDir,
    stub: OllamaStub,
}

impl Home {
    fn config(&self, recall: bool) -> Config {
        let mut environment: Vec<(OsString, OsString)> = vec![
            ("SOTTOVOCE__CONTEXT__STORAGEROOT".into(), self.root.path().as_os_str().to_owned()),
            ("SOTTOVOCE__LANGUAGEMODEL__BASEURL".into(), self.stub.url().into()),
        ];
        if !recall {
            environment.push(("SOTTOVOCE__CONTEXT__RECALL__TOKENS".into(), "0".into()));
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/none.json");
        Config::load_with(Some(&file), environment).unwrap()
    }

    /// A store with so many messages.
    async fn with(messages: u64) -> Self {
        let home = Self { root: tempfile::tempdir().unwrap(), stub: OllamaStub::start() };
        let (scope, clock) = (sottovoce::Scope::Default, Arc::new(SystemClock));
        let store = home.config(true).open_store_with(vec![key()], scope, clock).await.unwrap();
        let topics = ["the garden", "leek soup", "the train to town", "a birthday", "the news"];
        for part in 0..messages.div_ceil(10_000) {
            let numbers = part * 10_000..messages.min((part + 1) * 10_000);
            let said = numbers.map(|number| {
                let role = if number % 2 == 0 { ChatRole::User } else { ChatRole::Assistant };
                let topic = topics[usize::try_from(number).unwrap() / 2 % topics.len()];
                let words =
                    format!("Number {number} of what there is to say about {topic} on that day.");
                let at = 1_700_000_000 + i64::try_from(number).unwrap() * 30;
                ChatMessage::at(role, words, jiff::Timestamp::from_second(at).unwrap())
            });
            store.append_all(said.collect()).await.unwrap();
        }
        home
    }

    /// Serves the store. Returns the endpoint's address.
    async fn serve(&self, recall: bool) -> (String, CancellationToken) {
        let hub = Hub::new(
            OpenConversations::new(self.config(recall), vec![key()], Arc::new(SystemClock))
                .unwrap(),
        )
        .unwrap();
        let listening = listen("127.0.0.1:0".parse().unwrap(), Access::default()).await.unwrap();
        let (url, stop) = (format!("http://{}", listening.address()), CancellationToken::new());
        tokio::spawn(serve(listening, hub, stop.clone()));
        (url, stop)
    }
}

fn key() -> Arc<EncryptionKey> {
    Arc::new(EncryptionKey::from_secret("a long secret for measuring").unwrap())
}

fn body(messages: &[Value]) -> String {
    json!({ "model": "llama3.2", "messages": messages, "stream": true, "keep_alive": -1.0 })
        .to_string()
}

async fn first_word(client: &reqwest::Client, url: &str, words: &str) -> (Duration, String) {
    let messages = [
        json!({ "role": "system", "content": "You are a voice assistant." }),
        json!({ "role": "user", "content": words }),
    ];
    let request = client.post(format!("{url}/api/chat")).body(body(&messages)).build().unwrap();
    let begun = Instant::now();
    let mut response = client.execute(request).await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    let took = begun.elapsed();
    let header =
        |name: &str| response.headers().get(name).map_or("", |v| v.to_str().unwrap()).to_owned();
    let recalled = header("x-sottovoce-recalled");
    while response.chunk().await.unwrap().is_some() {}
    (took, recalled)
}

async fn measure(messages: u64) {
    let home = Home::with(messages).await;
    let client = sottovoce::http::client_builder(false).unwrap().no_proxy().build().unwrap();
    for recall in [false, true] {
        let (url, stop) = home.serve(recall).await;
        // Opens the conversation and loads the index, as a client that looks for models does.
        let begun = Instant::now();
        loop {
            first_word(&client, &url, "What did I say about the garden?").await;
            let receipt = client.get(format!("{url}/receipt")).send().await.unwrap();
            let receipt: Value = serde_json::from_str(&receipt.text().await.unwrap()).unwrap();
            if receipt["failed"].is_null() || begun.elapsed() > Duration::from_secs(120) {
                break;
            }
        }
        let with = if recall { "with" } else { "without" };
        println!("{messages} messages, {with} recall, ready after {:.1?}", begun.elapsed());
        for (kind, asked) in ASKED {
            let (mut direct, mut through, mut recalled) = (Vec::new(), Vec::new(), 0);
            for round in 0..ROUNDS {
                let words = format!("{asked} {round}?");
                direct.push(first_word(&client, &home.stub.url(), &words).await.0);
                let (took, found) = first_word(&client, &url, &words).await;
                through.push(took);
                recalled += usize::from(found != "0");
            }
            let of = |times: &mut Vec<Duration>| {
                times.sort();
                (times[ROUNDS / 2], times[ROUNDS * 95 / 100])
            };
            let (direct, through) = (of(&mut direct), of(&mut through));
            println!(
                "  {kind:8}  directly {:.2?} (95 %: {:.2?})  through the endpoint {:.2?} ({:.2?})  added {:.2?}; \
                 {recalled} of {ROUNDS} recalled something",
                direct.0,
                direct.1,
                through.0,
                through.1,
                through.0.saturating_sub(direct.0)
            );
        }
        stop.cancel();
    }
}

/// The requests of twenty turns of one session as Home Assistant sends them, with a time that changes.
fn session() -> Vec<String> {
    let (mut said, mut requests) = (Vec::new(), Vec::new());
    for turn in 0..20 {
        let rules = "You are a voice assistant for a house. Answer in plain sentences. ".repeat(12);
        let system =
            format!("{rules}\nCurrent time is 09:26:{turn:02}. Today's date is 2026-11-23.");
        let words =
            ["Turn the lamp on.", "What did I say about the garden?", "Thank you."][turn % 3];
        said.push(json!({ "role": "user", "content": format!("{words} That was number {turn}.") }));
        let all = [vec![json!({ "role": "system", "content": system })], said.clone()].concat();
        requests.push(body(&all));
        said.push(json!({ "role": "assistant", "content": "Fine." }));
    }
    requests
}

/// How much of each prompt is as it was in the one before, if the model is asked directly and through the endpoint.
async fn unchanged(requests: Vec<String>) {
    let home = Home::with(100).await;
    let (url, stop) = home.serve(true).await;
    let client = sottovoce::http::client_builder(false).unwrap().no_proxy().build().unwrap();
    for to in [&home.stub.url(), &url] {
        for request in &requests {
            let request = client.post(format!("{to}/api/chat")).body(request.clone());
            request.send().await.unwrap().bytes().await.unwrap();
        }
    }
    let seen: Vec<String> = home
        .stub
        .seen(Ask::Reply)
        .iter()
        .map(|seen| {
            let messages = seen.json()["messages"].as_array().unwrap().clone();
            messages.iter().map(|m| format!("{}: {}\n", m["role"], m["content"])).collect()
        })
        .collect();
    let (directly, through) = seen.split_at(requests.len());
    println!(
        "{} turns: {:.1} % of the characters of prompts are as they were directly, {:.1} % through the endpoint",
        requests.len(),
        share(directly),
        share(through)
    );
    stop.cancel();
}

/// The share of the prompts' characters, in percent, that stand at the same place as in the prompt before.
fn share(prompts: &[String]) -> f64 {
    let (mut same, mut whole) = (0_u32, 0_u32);
    for (one, next) in prompts.iter().zip(prompts.iter().skip(1)) {
        let alike = one.bytes().zip(next.bytes()).take_while(|(a, b)| a == b).count();
        same += u32::try_from(alike).unwrap();
        whole += u32::try_from(next.len()).unwrap();
    }
    f64::from(same) * 100.0 / f64::from(whole)
}
