//! How long each view takes to its first byte, beside the same read of the library, in conversations of 100 to 1,000,000 messages,
//! and how many bytes are sent.
//!
//! `cargo bench -p sottovoce-page -- 100 100000` measures other sizes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "this is a benchmark"
)]

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sottovoce::admin::scopes;
use sottovoce::config::OpenConversations;
use sottovoce::context::recall::SearchQuery;
use sottovoce::store::StoreBackend;
use sottovoce::{
    ChatMessage, ChatRole, Config, Conversation, ConversationStore, FileConversationStore, Scope,
    SystemClock,
};
use sottovoce_page::Page;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// How often each is measured. The median counts.
const ROUNDS: usize = 21;
const PAGE: u64 = 40;

fn scope() -> Scope {
    Scope::Named { id: "kitchen".into() }
}

/// A year of short sentences, of which a few name a dentist.
fn message(number: u64) -> ChatMessage {
    const WORDS: [&str; 8] =
        ["soup", "light", "kitchen", "tomorrow", "music", "window", "timer", "lemon"];
    let role = if number.is_multiple_of(2) { ChatRole::User } else { ChatRole::Assistant };
    let word = |by: u64| WORDS[(number.wrapping_mul(by) >> 3) as usize % WORDS.len()];
    let rare = if number % 5_000 == 77 { " about the dentist" } else { "" };
    let text = format!("Something with {} and {} for number {number}{rare}.", word(7), word(13));
    let at = Timestamp::from_second(1_735_700_000 + number as i64 * 30).unwrap();
    ChatMessage::at(role, text, at)
        .with_metadata("speaker", ["Anna", "Ben"][number as usize / 2 % 2])
}

struct House {
    runtime: Runtime,
    conversations: Arc<OpenConversations>,
    conversation: Conversation,
    store: FileConversationStore,
    address: String,
    cookie: String,
    csrf: String,
    messages: u64,
    _root: tempfile::TempDir,
}

impl House {
    fn build(messages: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("settings.json");
        std::fs::write(&file, "{}").unwrap();
        let environment = [
            ("SOTTOVOCE__CONTEXT__STORAGEROOT".into(), root.path().join("store").into()),
            ("SOTTOVOCE__CONTEXT__KEYFILE".into(), root.path().join("key").into()),
            // Nothing answers there, at once.
            ("SOTTOVOCE__LANGUAGEMODEL__BASEURL".into(), "http://127.0.0.1:9".into()),
        ];
        let config = Config::load_with(Some(&file), environment).unwrap();
        config.make_key_file().unwrap();
        let runtime = Runtime::new().unwrap();
        let clock = Arc::new(SystemClock);
        let keys = config.encryption_keys().unwrap();
        let conversations = OpenConversations::new(config, keys, clock).unwrap();
        let (conversation, store) = runtime.block_on(async {
            let (conversation, store) = conversations.open_with_files(&scope()).await.unwrap();
            for first in (1..=messages).step_by(20_000) {
                let last = messages.min(first + 19_999);
                store.append_all((first..=last).map(message).collect()).await.unwrap();
            }
            store.pack(|_| {}).await.unwrap();
            (conversation, store)
        });
        let page = Page::shared(Arc::clone(&conversations));
        let listening = runtime.block_on(page.listen("127.0.0.1:0".parse().unwrap())).unwrap();
        let (address, link) = (listening.address().to_string(), listening.link().unwrap());
        runtime.spawn(listening.serve(CancellationToken::new()));
        let (_root, csrf) = (root, String::new());
        let mut house = Self {
            runtime,
            conversations,
            conversation,
            store,
            address,
            cookie: String::new(),
            csrf,
            messages,
            _root,
        };
        let path = link.split_once(&house.address).unwrap().1.to_owned();
        let (_, entered) = house.ask(&format!("GET {path}"), "");
        let (_, cookie) = entered.split_once("set-cookie: ").unwrap();
        house.cookie = cookie.split(';').next().unwrap().to_owned();
        let (_, first) = house.ask("GET /", "");
        let (_, csrf) = first.split_once("name=\"csrf\" value=\"").unwrap();
        house.csrf = csrf.split('"').next().unwrap().to_owned();
        house
    }

    /// Asks, and tells after which time the first byte came, and all of the answer.
    fn ask(&self, line: &str, form: &str) -> (Duration, String) {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        connection.set_nodelay(true).unwrap();
        let form =
            if form.is_empty() { String::new() } else { format!("{form}&csrf={}", self.csrf) };
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nCookie: {1}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {2}\r\nConnection: close\r\n\r\n{form}",
            self.address,
            self.cookie,
            form.len()
        );
        let begun = Instant::now();
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = vec![0];
        connection.read_exact(&mut answer).unwrap();
        let first = begun.elapsed();
        connection.read_to_end(&mut answer).unwrap();
        (first, String::from_utf8_lossy(&answer).into_owned())
    }

    async fn read(&self, seqs: std::ops::RangeInclusive<u64>) {
        black_box(self.store.state().await.unwrap());
        black_box(self.store.read_seqs(seqs).await.unwrap());
    }

    /// What the library takes for what a view shows.
    async fn library(&self, view: &str) {
        let (store, last, middle) = (&self.store, self.messages, self.messages / 2);
        match view {
            "conversations" => {
                let root = self.conversations.config().storage_root().unwrap();
                black_box(scopes(&root).unwrap());
                black_box((store.profile().await.unwrap(), store.stats().await.unwrap()));
            }
            "timeline, newest" => self.read(last - PAGE + 1..=last).await,
            "timeline, middle" => self.read(middle - PAGE..=middle).await,
            "message" => {
                let read = store.read_seqs(middle..=middle).await.unwrap();
                black_box(store.locate(&read.messages[0]).await.unwrap());
                black_box(store.plan_forget(&[middle..=middle]).await.unwrap());
            }
            "search" => {
                let query = SearchQuery::parse("dentist");
                black_box(self.conversation.index().search(&query, None, 40).await.unwrap());
            }
            "what the model sees" => {
                black_box(self.conversation.prompt("What about the soup?").await.unwrap());
            }
            "forget, 40 messages" => {
                black_box(store.plan_forget(&[middle - PAGE..=middle]).await.unwrap());
            }
            "settings" => {
                black_box(store.profile().await.unwrap());
            }
            _ => {
                black_box(store.state().await.unwrap());
            }
        }
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn main() {
    let sizes: Vec<u64> = std::env::args().filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100, 100_000, 1_000_000] } else { sizes };
    for messages in sizes {
        let house = House::build(messages);
        let middle = messages / 2;
        println!(
            "\n| {messages} messages | first byte, ms | library, ms | bytes |\n|---|---|---|---|"
        );
        let views = [
            ("conversations", "GET /".to_owned(), String::new()),
            ("timeline, newest", "GET /timeline/named/kitchen".to_owned(), String::new()),
            (
                "timeline, middle",
                format!("GET /timeline/named/kitchen?before={}", middle + 1),
                String::new(),
            ),
            ("message", format!("GET /message/named/kitchen?n={middle}"), String::new()),
            ("search", "GET /search?q=dentist&of=named/kitchen".to_owned(), String::new()),
            (
                "what the model sees",
                "POST /sees/named/kitchen".to_owned(),
                "say=What+about+the+soup%3F".to_owned(),
            ),
            (
                "forget, 40 messages",
                "POST /forget/named/kitchen".to_owned(),
                format!("what=numbers&numbers={}-{middle}", middle - PAGE),
            ),
            ("settings", "GET /settings/named/kitchen".to_owned(), String::new()),
            ("numbers", "GET /numbers/named/kitchen".to_owned(), String::new()),
            (
                "live, nothing new",
                format!("GET /live/timeline/named/kitchen?after={messages}&gone=0"),
                String::new(),
            ),
        ];
        for (view, line, form) in views {
            // The first time loads the index of the search; what a page costs is what it costs from then on.
            let (first, _) = house.ask(&line, &form);
            let (mut page, mut library, mut bytes) = (Vec::new(), Vec::new(), 0);
            for _ in 0..ROUNDS {
                let (time, answer) = house.ask(&line, &form);
                assert!(
                    answer.starts_with("HTTP/1.1 20"),
                    "{view}: {}",
                    answer.lines().next().unwrap()
                );
                page.push(time);
                bytes = answer.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
                let begun = Instant::now();
                house.runtime.block_on(house.library(view));
                library.push(begun.elapsed());
            }
            println!(
                "| {view} | {:.2} (the first time {:.1}) | {:.2} | {bytes} |",
                median(page),
                first.as_secs_f64() * 1000.0,
                median(library)
            );
        }
    }
}
