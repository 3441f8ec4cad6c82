//! Hostile texts, wrong clocks and logs: bounded time and memory, the same answers, and no words.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sottovoce::context::recall::{RecallQuery, ScoreFloor};
use sottovoce::store::{Batch, DocumentId, StoreBackend};
use sottovoce::{ChatRole, Clock, Conversation, ConversationStore};

use crate::common::{block_on, child, child_folder};
use crate::home::{Home, files, find, recall, scores};
use crate::log::Log;

const QUESTION: &str = "What is my dog called?";

fn texts() -> Vec<(&'static str, String)> {
    let distinct = (0..100_000).map(|n| format!("w{n:x} ")).collect::<String>();
    vec![
        ("a word of a megabyte", "x".repeat((1 << 20) - 400)),
        ("a hundred thousand words", distinct),
        ("right to left", "\u{202e}\u{2066}שלום עולם\u{2069} ".repeat(3_000)),
        ("without spaces", "日本語犬猫鳥魚".repeat(3_000)),
        ("only emoji", "🤖👩‍👩‍👧".repeat(3_000)),
        ("zeros", "\0".repeat(50_000)),
    ]
}

/// The most memory that this process has used, in bytes.
fn most_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn hostile_messages_cost_little_and_hide_nothing() {
    // In a process of its own, whose memory is nobody else's.
    let root = tempfile::tempdir().unwrap();
    let output = child("a_process_that_meets_hostile_messages", root.path()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_meets_hostile_messages() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let home = Home::in_folder(&root);
        let store = home.open().await;
        home.say(&store, "My dog is called Bruno.", "Nice.").await;
        home.chatter(&store, 300).await;
        let shared = Arc::clone(&store) as Arc<dyn ConversationStore>;
        let talk = Conversation::builder(shared).last_n(2).recall(256, ScoreFloor::Needed).build();
        let index = recall(&store);
        let before = most_memory();
        for (name, text) in texts() {
            let began = Instant::now();
            store.append_message(home.message(ChatRole::User, text.clone())).await.unwrap();
            let (prompt, _) = talk.prompt(QUESTION).await.unwrap();
            let has =
                |word: &str| prompt.context.iter().any(|(_, m)| m.message().content.contains(word));
            assert!(has("Bruno"), "{name}");
            // The text itself as a question.
            talk.prompt(text.as_str()).await.unwrap();
            assert_eq!(find(&index, QUESTION, 1).await.hits[0].stored.seq, 1, "{name}");
            index.save().await.unwrap();
            // No measure, but a text whose cost grows with its square takes longer.
            assert!(began.elapsed() < Duration::from_secs(120), "{name}");
        }
        let used = most_memory() - before;
        assert!(used < 400 << 20, "{} MiB", used >> 20);
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
        let again = home.open().await;
        assert_eq!(find(&recall(&again), QUESTION, 1).await.hits[0].stored.seq, 1);
    });
}

#[test]
fn a_segment_that_could_not_be_read_again_is_not_written() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.say(&store, "My dog is called Bruno.", "Nice.").await;
        let state = store.state().await.unwrap();
        let long = vec![0; 13 << 20];
        let batch = Batch::new(&state).write(DocumentId::Segment(0), long.into());
        assert!(store.commit(batch).await.is_err());
        assert!(files(&home.segments()).is_empty());
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes more than a minute unless it is optimized")]
fn an_index_that_is_too_long_to_be_written_answers_all_the_same() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.say(&store, "My dog is called Bruno.", "Nice.").await;
        for part in 0..45 {
            let distinct = (0..13_000).map(|n| format!("{part}w{n:x}q{:x} ", n * 7919 + part));
            let text = distinct.collect::<String>();
            store.append_message(home.message(ChatRole::User, text)).await.unwrap();
        }
        home.chatter(&store, 1300).await;
        let index = recall(&store);
        let found = scores(&find(&index, QUESTION, 5).await);
        assert_eq!(found[0].0, 1);
        index.save().await.unwrap();
        assert_eq!(files(&home.segments()), [home.segments().join("1")]);
        assert_eq!(scores(&find(&recall(&home.open().await), QUESTION, 5).await), found);
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    });
}

#[test]
fn a_wrong_clock_neither_breaks_the_index_nor_changes_what_it_is() {
    block_on(async {
        let home = Home::new();
        let clocks = ["1970-01-01T00:00:00Z", "2100-07-01T12:00:00Z", "2025-03-03T09:00:00Z"];
        let clocks = clocks.map(|at| at.parse::<Timestamp>().unwrap());
        let store = home.open().await;
        let index = recall(&store);
        for (number, at) in clocks.iter().cycle().take(6).enumerate() {
            home.clock.set(at.to_zoned(jiff::tz::TimeZone::UTC));
            home.say(&store, &format!("The parcel number {number} is in the hall."), "I see.")
                .await;
            home.chatter(&store, 120).await;
            let found = find(&index, "Where is the parcel?", 20).await;
            let parcels =
                found.hits.iter().filter(|hit| hit.stored.message.content.contains("parcel"));
            assert_eq!(parcels.count(), number + 1);
        }
        index.save().await.unwrap();
        // Each clock's answer, from the index that lived through it and from those that are loaded and made anew.
        for at in clocks {
            home.clock.set(at.to_zoned(jiff::tz::TimeZone::UTC));
            for question in ["Where is the parcel?", "What was in the hall yesterday?", "in 1969"] {
                let lived = scores(&find(&index, question, 20).await);
                let loaded = scores(&find(&recall(&home.open().await), question, 20).await);
                assert_eq!(lived, loaded, "{at} {question}");
            }
        }
        let now = Timestamp::MAX.to_zoned(jiff::tz::TimeZone::UTC);
        let query = RecallQuery::new("the parcel next year or 3000 years ago", now, 3);
        index.find_in(&query, None).await.unwrap();
        let now =
            (Timestamp::MIN + SignedDuration::from_hours(1)).to_zoned(jiff::tz::TimeZone::UTC);
        let query = RecallQuery::new("the parcel last year or in 3000 years", now, 3);
        index.find_in(&query, None).await.unwrap();
    });
}

#[test]
fn no_log_error_or_debug_output_shows_words_of_the_index() {
    let log = Log::of_this_process();
    let mut shown = String::new();
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        let words = ["Quillfeather", "Zanzibarish"];
        home.say(&store, "My parrot Quillfeather speaks Zanzibarish.", "Quillfeather!").await;
        home.chatter(&store, 300).await;
        let question = "Does Quillfeather speak Zanzibarish?";
        let index = recall(&store);
        let query = RecallQuery::new(question, home.clock.now(), 5);
        let found = index.find_in(&query, None).await.unwrap();
        assert_eq!(found.hits[0].stored.seq, 1);
        shown += &format!("{index:?} {query:?} {found:?} {:?}", found.hits[0].hit.why);
        index.save().await.unwrap();
        let state = store.state().await.unwrap();
        // As damaged, as none, as one under another key, and with a conversation that changes meanwhile.
        let sealed = std::fs::read(home.segments().join("0")).unwrap();
        for bytes in [&sealed[..sealed.len() / 2], b"", &[&sealed[..60], &sealed[90..]].concat()] {
            std::fs::write(home.segments().join("0"), bytes).unwrap();
            let index = recall(&home.open().await);
            let found = index.find_in(&query, None).await.unwrap();
            shown += &format!("{found:?} {:?}", index.save().await);
        }
        let batch =
            Batch::new(&state).write(DocumentId::Segment(0), b"Quillfeather".to_vec().into());
        shown += &format!("{batch:?}");
        store.append_message(home.message(ChatRole::User, "Zanzibarish again")).await.unwrap();
        let Err(error) = store.commit(batch).await else { panic!("nothing had changed") };
        shown += &format!("{error} {error:?}");
        let shared = Arc::clone(&store) as Arc<dyn ConversationStore>;
        let builder = Conversation::builder(shared).recall(256, ScoreFloor::Needed);
        shown += &format!("{builder:?}");
        let talk = builder.build();
        let (prompt, receipt) = talk.prompt(question).await.unwrap();
        shown += &format!("{talk:?} {receipt:?} {}", serde_json::to_string(&receipt).unwrap());
        shown += &format!("{prompt:?}");
        store.forget(&[1..=2]).await.unwrap();
        index.find_in(&query, None).await.unwrap();
        let logged = log.bytes();
        let logged = String::from_utf8_lossy(&logged).to_lowercase();
        assert!(logged.contains("a segment of the search index is made again"), "{logged}");
        let shown = shown.to_lowercase();
        for word in words.map(str::to_lowercase) {
            let stem = &word[..word.len() - 3];
            assert!(!logged.contains(stem), "the log shows {stem}");
            assert!(!shown.contains(stem), "it is shown: {stem} in {shown}");
        }
    });
}
