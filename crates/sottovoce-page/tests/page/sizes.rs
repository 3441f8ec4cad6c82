//! What a page weighs, whatever a store holds, and that it says what it leaves out.

use sottovoce::persona::{Persona, PersonaChange, assign};
use sottovoce::store::Summary;
use sottovoce::{ChatMessage, ChatRole, ConversationStore, FileConversationStore, Scope, ToolCall};

use crate::harness::{Got, Served};
use crate::ollama::{Answer, Ask};

const LIMIT: usize = 100_000;
/// What takes the most bytes as markup.
const WIDE: &str = "&";

fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_756_000_000 + second).unwrap()
}

fn light(path: &str, got: &Got) {
    assert_eq!(got.status, 200, "{path}");
    assert!(got.text.len() < LIMIT, "{path}: {} bytes", got.text.len());
}

/// A name as long as a folder can have, of characters that addresses encode.
fn scope(letter: &str) -> Scope {
    Scope::Named { id: format!("{letter}{}", "&".repeat(60)) }
}

/// A conversation in which everything is as long as it may be.
async fn fill(store: &FileConversationStore) {
    for number in 0..8 {
        let words = ["x", "é", "👩‍👩‍👧", "<", WIDE, "\n"][number % 6].repeat(40_000);
        let mut message = ChatMessage::at(ChatRole::User, words, at(number as i64))
            .with_metadata("speaker", format!("{number}{}", WIDE.repeat(3000)));
        for entry in 0..100 {
            message =
                message.with_metadata(format!("{}{entry}", WIDE.repeat(200)), WIDE.repeat(500));
        }
        message.thread_id = Some(WIDE.repeat(900));
        store.append_message(message).await.unwrap();
        let mut call = ChatMessage::at(ChatRole::Assistant, WIDE.repeat(2000), at(number as i64));
        call.tool_calls = (0..20)
            .map(|call| ToolCall {
                id: call.to_string(),
                name: WIDE.repeat(300),
                arguments: serde_json::json!({ WIDE.repeat(50): WIDE.repeat(9000) }),
            })
            .collect();
        store.append_message(call).await.unwrap();
        let references: String =
            (0..400).map(|id| format!("artifact://00000000-0000-4000-8000-{id:012} ")).collect();
        store
            .append_message(ChatMessage::at(ChatRole::Tool, references, at(number as i64)))
            .await
            .unwrap();
    }
    // Short ones after that, of which many fit into a prompt.
    let short = (0..1500).map(|number| {
        ChatMessage::at(ChatRole::User, "ok", at(100 + number))
            .with_metadata("speaker", format!("{number}{}", WIDE.repeat(90)))
    });
    store.append_all(short.collect()).await.unwrap();
    let newest = store.read_tail(12).await.unwrap().messages;
    let summary = Summary::of_messages(None, at(2000), &newest[..2], WIDE.repeat(60_000));
    let mut persona = Persona::new(WIDE.repeat(60_000)).personality(WIDE.repeat(15_000));
    persona.max_history_tokens = 1 << 24;
    assign(store, (persona, None), &PersonaChange::default(), None).await.unwrap();
    store
        .change_profile(Box::new(move |profile| {
            profile.rename(Some(WIDE.repeat(50_000)));
            profile.tags = (0..300).map(|tag| format!("{tag}{}", WIDE.repeat(1500))).collect();
            profile.rolling_window = Some(true);
            profile.window_seconds = std::num::NonZeroU64::new(1 << 40);
        }))
        .await
        .unwrap();
    assert!(store.install_summary(summary, None, false).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_stays_under_a_hundred_kilobytes_and_says_what_it_leaves_out() {
    let served = Served::start().await;
    let long = scope("a");
    let store = served.store(long.clone()).await;
    fill(&store).await;
    let browser = served.enter().await;
    let of = browser.get("/").await.text;
    let (_, of) = of.split_once("href=\"/timeline/").unwrap();
    let of = of.split_once('"').unwrap().0.to_owned();
    for (path, says) in [
        ("/".to_owned(), "And 288 more"),
        ("/?q=ok".to_owned(), "No conversation"),
        (format!("/timeline/{of}"), "58.3 KiB more"),
        (format!("/timeline/{of}?at=20"), "KiB more"),
        (format!("/timeline/{of}?after=0"), "20 tool calls"),
        (format!("/timeline/{of}?day=2025-08-24"), "KiB more"),
        (format!("/live/timeline/{of}?after=1&gone=0"), "KiB more"),
        (format!("/message/{of}?n=1"), "15.1 KiB more"),
        (format!("/message/{of}?n=2"), "more."),
        (format!("/message/{of}?n=3"), "artifact://"),
        (format!("/message/{of}?n=7&part=1"), "KiB more"),
        ("/search?q=x*".to_owned(), "KiB more"),
        ("/search?q=ok".to_owned(), "of 1,500 messages"),
        ("/search?from=me".to_owned(), "messages"),
        (format!("/search?from=tool&of={of}"), "8 messages"),
        ("/search?q=what+is+ok+nowhere".to_owned(), "What fits best"),
        (format!("/numbers/{of}"), "Messages a day"),
        ("/numbers".to_owned(), "1,524 messages"),
        (format!("/settings/{of}"), "too long to be changed here"),
        ("/settings".to_owned(), "LanguageModel"),
        ("/knows".to_owned(), "What it knows"),
        (format!("/snapshots/{of}"), "No snapshot"),
        ("/health".to_owned(), "Every file"),
        (format!("/forget/{of}"), "And "),
    ] {
        let got = browser.get(&path).await;
        light(&path, &got);
        assert!(got.text.contains(says), "{path} does not say “{says}”: {}", got.text);
    }
    let sees = format!("/sees/{of}");
    for words in ["what?".to_owned(), WIDE.repeat(1_000_000)] {
        let got = browser.post(&sees, &[("say", &words)]).await;
        light(&sees, &got);
        assert!(got.text.contains("KiB more"));
    }
    let forget = format!("/forget/{of}");
    for fields in [[("what", "whole"), ("q", "")], [("what", "found"), ("q", "ok")]] {
        let got = browser.post(&forget, &fields).await;
        light(&forget, &got);
        assert!(got.text.contains(" of 1,5"), "{}", got.text);
    }
    let scattered: Vec<String> = (25..750).map(|number| (number * 2).to_string()).collect();
    let fields = [("what", "numbers"), ("numbers", &scattered.join(","))];
    let planned = browser.post(&forget, &fields).await;
    light(&forget, &planned);
    let fields = [("plan", planned.field("plan")), ("sure", "yes".to_owned())];
    let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
    let gone = browser.post(&format!("/forgotten/{of}"), &fields).await;
    light("/forgotten", &gone);
    // All of what is cut is one link away.
    let whole = browser.get(&format!("/words/{of}?what=system")).await;
    assert_eq!(whole.text, WIDE.repeat(60_000));
    let summary = browser.get(&format!("/words/{of}?what=summary")).await;
    assert_eq!(summary.text, WIDE.repeat(60_000));
    let record = browser.get(&format!("/words/{of}?n=2&what=record")).await;
    let record: serde_json::Value = serde_json::from_str(&record.text).unwrap();
    assert_eq!(record["toolCalls"].as_array().unwrap().len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_turns_stay_small_too() {
    let served = Served::start().await;
    let long = scope("a");
    let store = served.store(long).await;
    let short = (0..600).map(|number| ChatMessage::at(ChatRole::User, "ok", at(number)));
    store.append_all(short.collect()).await.unwrap();
    store
        .change_profile(Box::new(|profile| {
            profile.rolling_window = Some(true);
            profile.window_seconds = std::num::NonZeroU64::new(1 << 40);
        }))
        .await
        .unwrap();
    let browser = served.enter().await;
    let of = browser.get("/").await.text;
    let (_, of) = of.split_once("href=\"/timeline/").unwrap();
    let of = of.split_once('"').unwrap().0.to_owned();
    served.stub.always_to(Ask::Reply, Answer::saying(&["Yes."]));
    for _ in 0..8 {
        let got = browser.post(&format!("/talk/{of}"), &[("say", "Hello?"), ("do", "say")]).await;
        assert_eq!(got.status, 303);
    }
    let sees = format!("/sees/{of}");
    let got = browser.get(&sees).await;
    light(&sees, &got);
    assert!(got.text.matches("details class=\"turn\"").count() >= 4, "{}", got.text);
    let got = browser.post(&sees, &[("say", "And now?")]).await;
    light(&sees, &got);
    assert!(got.text.contains("before these, not shown here"), "{}", got.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_the_whole_store_stay_small_with_many_conversations_of_which_many_are_damaged() {
    let served = Served::start().await;
    for number in 0..240 {
        let store = served.store(scope(&format!("{number:03}"))).await;
        store.append_message(ChatMessage::at(ChatRole::User, "ok", at(number))).await.unwrap();
        store
            .change_profile(Box::new(|profile| {
                profile.rename(Some(WIDE.repeat(500)));
                profile.tags.insert(WIDE.repeat(400));
            }))
            .await
            .unwrap();
        if number >= 120 {
            let folders = store.scope().folder().unwrap();
            let root = served.root.path().join("store");
            let folder = folders.iter().fold(root, |folder, part| folder.join(part));
            std::fs::remove_file(folder.join("profile")).unwrap();
            std::fs::create_dir(folder.join("profile")).unwrap();
        }
    }
    let browser = served.enter().await;
    for path in ["/", "/?after=30", "/?kind=room", "/search", "/search?q=ok", "/numbers", "/health"]
    {
        light(path, &browser.get(path).await);
    }
    let first = browser.get("/").await.text;
    assert!(first.contains("cannot be read") && first.contains("more."), "{first}");
    // Every conversation is on some page.
    let (mut path, mut seen) = ("/".to_owned(), 0);
    loop {
        let page = browser.get(&path).await;
        light(&path, &page);
        seen += page.text.matches("class=\"title\"").count();
        let Some((_, older)) = page.text.split_once("class=\"pages\"><a href=\"") else { break };
        path = older.split_once('"').unwrap().0.replace("&amp;", "&");
    }
    assert_eq!(seen, 120);
    assert_eq!(browser.post("/verify", &[]).await.status, 303);
    let checked = loop {
        let page = browser.get("/health").await;
        light("/health", &page);
        if page.text.contains("Last checked") {
            break page.text;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    assert!(checked.contains("conversations more, of which"), "{checked}");
    for path in ["/?q=", "/search?q=", "/search?q=a&speaker="] {
        let long = format!("{path}{}", "a".repeat(9000));
        let got = browser.get(&long).await;
        assert_eq!(got.status, 422);
        assert!(got.text.len() < LIMIT);
    }
}
