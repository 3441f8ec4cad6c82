//! How long each view takes to its first and to its last byte, beside the same read of the library, in conversations of 100 to 1,000,000
//! messages and in a store of 1,000 conversations, how many bytes are sent, and how long others wait while it is searched.
//!
//! `cargo bench -p sottovoce-page -- 100 100000` measures other sizes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
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
use sottovoce_page::{Check, CheckState, Checks, Page};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// How often each is measured, unless it takes long. The median counts.
const ROUNDS: usize = 21;
const LONG: Duration = Duration::from_secs(5);
/// How many conversations a store of many has.
const CONVERSATIONS: u64 = 1000;
/// How long the checks of the set-up take that the page of health shows. One of the program's own asks the model server.
const CHECKS: Duration = Duration::from_millis(300);
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
    /// A store with one conversation of so many messages.
    fn build(messages: u64) -> Self {
        Self::of(messages, async |store| {
            for first in (1..=messages).step_by(20_000) {
                let last = messages.min(first + 19_999);
                store.append_all((first..=last).map(message).collect()).await.unwrap();
            }
            store.pack(|_| {}).await.unwrap();
        })
    }

    /// Many conversations of a few messages beside it.
    fn of_many() -> Self {
        let house = Self::of(4, async |store| {
            store.append_all((1..=4).map(message).collect()).await.unwrap();
        });
        house.runtime.block_on(async {
            for number in 1..CONVERSATIONS {
                let scope = Scope::Named { id: format!("room-{number}") };
                let store = house.conversations.store(&scope).await.unwrap();
                store.append_all((1..=4).map(message).collect()).await.unwrap();
            }
        });
        house
    }

    fn of(messages: u64, fill: impl AsyncFn(&FileConversationStore)) -> Self {
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
        // As on the smallest machine.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.unwrap();
        let clock = Arc::new(SystemClock);
        let keys = config.encryption_keys().unwrap();
        let conversations = OpenConversations::new(config, keys, clock).unwrap();
        let (conversation, store) = runtime.block_on(async {
            let (conversation, store) = conversations.open_with_files(&scope()).await.unwrap();
            fill(&store).await;
            (conversation, store)
        });
        let checks: Checks = Arc::new(|| {
            Box::pin(async {
                tokio::time::sleep(CHECKS).await;
                vec![Check::new("model", CheckState::Bad, "nothing answers", None)]
            })
        });
        let page = Page::shared(Arc::clone(&conversations)).checks(checks);
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

    /// Asks, and tells after which times the first and the last byte came, and all of the answer.
    fn ask(&self, line: &str, form: &str) -> ([Duration; 2], String) {
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
        ([first, begun.elapsed()], String::from_utf8_lossy(&answer).into_owned())
    }

    async fn read(&self, seqs: std::ops::RangeInclusive<u64>) {
        black_box(self.store.state().await.unwrap());
        black_box(self.store.read_seqs(seqs).await.unwrap());
    }

    /// What the library takes for what a view shows.
    async fn library(&self, view: &str) {
        let (store, last, middle) = (&self.store, self.messages, self.messages / 2);
        match view {
            "conversations" | "numbers of all" => {
                let root = self.conversations.config().storage_root().unwrap();
                for scope in scopes(&root).unwrap() {
                    let own = scope == self::scope();
                    let one = match own {
                        true => store.clone(),
                        false => self.conversations.store(&scope).await.unwrap(),
                    };
                    black_box(one.profile().await.unwrap());
                    if view == "conversations" {
                        black_box(one.stats().await.unwrap());
                    } else {
                        black_box(one.state().await.unwrap());
                    }
                }
            }
            "health" => {}
            "settings of the store" => {
                black_box(self.conversations.config().settings());
            }
            "timeline, newest" => self.read(last - PAGE + 1..=last).await,
            "timeline, middle" => self.read(middle - PAGE..=middle).await,
            "message" => {
                let read = store.read_seqs(middle..=middle).await.unwrap();
                black_box(store.locate(&read.messages[0]).await.unwrap());
                black_box(store.plan_forget(&[middle..=middle]).await.unwrap());
            }
            "search" | "search by filters" | "search by filters, half of all" => {
                let query = SearchQuery::parse(match view {
                    "search" => "dentist",
                    "search by filters" => "speaker:Anna after:2024-12-31 before:2025-01-02",
                    _ => "speaker:Anna",
                })
                .unwrap();
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

/// What a view is called, how it is asked for, and its form.
type View = (&'static str, String, String);

fn views(messages: u64) -> Vec<View> {
    let middle = messages / 2;
    let get = |name, path: String| (name, format!("GET {path}"), String::new());
    let of = "/search?of=named/kitchen";
    vec![
        get("conversations", "/".to_owned()),
        get("timeline, newest", "/timeline/named/kitchen".to_owned()),
        get("timeline, middle", format!("/timeline/named/kitchen?before={}", middle + 1)),
        get("message", format!("/message/named/kitchen?n={middle}")),
        get("search", format!("{of}&q=dentist")),
        get("search by filters", format!("{of}&speaker=Anna&since=2025-01-01&until=2025-01-01")),
        get("search by filters, half of all", format!("{of}&speaker=Anna")),
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
        get("settings", "/settings/named/kitchen".to_owned()),
        get("settings of the store", "/settings".to_owned()),
        get("numbers", "/numbers/named/kitchen".to_owned()),
        get("numbers of all", "/numbers".to_owned()),
        get("health", "/health".to_owned()),
        get("live, nothing new", format!("/live/timeline/named/kitchen?after={messages}&gone=0")),
    ]
}

fn measure(house: &House, (view, line, form): View) {
    // The first time loads the index of the search; what a page costs is what it costs from then on.
    let (cold, _) = house.ask(&line, &form);
    let (mut first, mut whole, mut library, mut bytes) = (vec![], vec![], vec![], 0);
    let all = Instant::now();
    while first.len() < ROUNDS && (first.len() < 3 || all.elapsed() < LONG) {
        let ([begun, ended], answer) = house.ask(&line, &form);
        assert!(answer.starts_with("HTTP/1.1 20"), "{view}: {}", answer.lines().next().unwrap());
        first.push(begun);
        whole.push(ended);
        bytes = answer.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
        let begun = Instant::now();
        house.runtime.block_on(house.library(view));
        library.push(begun.elapsed());
    }
    println!(
        "| {view} | {:.2} (the first time {:.1}) | {:.2} | {:.2} | {bytes} |",
        median(first),
        cold[0].as_secs_f64() * 1000.0,
        median(whole),
        median(library)
    );
}

/// How long others wait for two quick views while two at once search or build prompts.
fn held_up(house: &House, name: &str, line: &str, form: &str) {
    let busy = std::sync::atomic::AtomicUsize::new(2);
    let mut waited = Vec::new();
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                for _ in 0..3 {
                    house.ask(line, form);
                }
                busy.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        while busy.load(std::sync::atomic::Ordering::SeqCst) > 0 {
            for quick in ["GET /live/entry", "GET /timeline/named/kitchen"] {
                waited.push(house.ask(quick, "").0[1]);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let longest = waited.iter().max().unwrap().as_secs_f64() * 1000.0;
    println!("| {name} | {:.2} | {longest:.2} | {} |", median(waited.clone()), waited.len());
}

fn table(title: &str) {
    eprintln!("built: {title}");
    println!(
        "\n| {title} | first byte, ms | whole page, ms | library, ms | bytes |\n|---|---|---|---|---|"
    );
}

fn main() {
    let sizes: Vec<u64> = std::env::args().filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![100, 100_000, 1_000_000] } else { sizes };
    for messages in sizes {
        let house = House::build(messages);
        table(&format!("{messages} messages"));
        for view in views(messages) {
            measure(&house, view);
        }
        println!(
            "\n| meanwhile, others wait | median, ms | longest, ms | requests |\n|---|---|---|---|"
        );
        for (name, line, form) in [
            ("two search by words", "GET /search?q=dentist", ""),
            ("two search by fit", "GET /search?q=what+about+the+dentist", ""),
            ("two see a prompt", "POST /sees/named/kitchen", "say=What+about+the+soup%3F"),
            ("two talk", "POST /talk/named/kitchen", "do=say&off=1&say=What+about+the+soup%3F"),
        ] {
            held_up(&house, name, line, form);
        }
    }
    let house = House::of_many();
    table(&format!("{CONVERSATIONS} conversations"));
    let views = views(4).into_iter();
    let of_all = ["conversations", "numbers of all"];
    for view in views.filter(|(name, ..)| of_all.contains(name)) {
        measure(&house, view);
    }
}
