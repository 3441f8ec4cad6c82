//! Search: messages are found in their own conversation, by exact words, and nowhere else.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use crate::common::{block_on, filled, open, said};
use sottovoce::context::recall::{Recall, SearchQuery, SearchResults, neighbours};
use sottovoce::conversation::SEARCH_NOTE;
use sottovoce::store::Retention;
use sottovoce::{ChatRole, ConversationStore, FileConversationStore, StoredMessage};

fn texts(found: &SearchResults) -> Vec<&str> {
    found.hits.iter().map(|stored| stored.message.content.as_str()).collect()
}

async fn search(store: &Arc<FileConversationStore>, query: &str, limit: usize) -> SearchResults {
    let recall = Recall::new(Arc::clone(store) as Arc<dyn ConversationStore>);
    recall.search(&SearchQuery::parse(query).unwrap(), None, limit).await.unwrap()
}

#[test]
fn words_are_exact_but_for_letter_case_and_accents_and_all_matches_are_counted() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(open(root.path()).await);
        for words in ["Milk and bread", "tea", "MILK", "no m i l k", "buttermilk", "bread, Mílk"] {
            store.append_message(said(words)).await.unwrap();
        }
        let found = search(&store, "milk", 2).await;
        assert_eq!((texts(&found), found.total), (vec!["bread, Mílk", "MILK"], 3));
        assert_eq!(
            texts(&search(&store, " bread  milk ", 50).await),
            ["bread, Mílk", "Milk and bread"]
        );
        assert_eq!(texts(&search(&store, "butter*", 50).await), ["buttermilk"]);
        for none in ["", " ", "milk coffee", "*"] {
            assert_eq!(search(&store, none, 50).await.total, 0, "{none:?}");
        }
        assert_eq!(search(&store, "milk", 0).await.total, 3);
    });
}

#[test]
fn phrases_speakers_roles_and_days_narrow_a_search() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(open(root.path()).await);
        for (words, role, speaker, at) in [
            ("oat milk", ChatRole::User, "Anna", "2025-05-11T10:00:00Z"),
            ("milk oat", ChatRole::User, "Ben", "2025-06-01T10:00:00Z"),
            ("the oat milk is in", ChatRole::Assistant, "", "2025-06-02T10:00:00Z"),
            ("oat milk: 2 l", ChatRole::Tool, "", "2025-06-03T10:00:00Z"),
            ("the oat milk rule", ChatRole::System, "", "2025-06-04T10:00:00Z"),
        ] {
            let mut message = said(words);
            message.role = role;
            message.timestamp = at.parse().unwrap();
            if !speaker.is_empty() {
                message = message.with_metadata("speaker", speaker);
            }
            store.append_message(message).await.unwrap();
        }
        for (query, expected) in [
            ("\"oat milk\"", 4),
            ("\"oat milk\" from:me", 1),
            ("\"oat milk\" from:assistant", 1),
            ("milk from:tool", 1),
            ("milk from:system", 1),
            ("milk speaker:anna", 1),
            ("milk from:Ben", 1),
            ("speaker:Ben", 1),
            ("milk after:2025-05", 4),
            ("milk before:2025-06-02", 2),
            ("milk after:2025-05-11 before:2025-06-03", 2),
            ("the", 2),
        ] {
            assert_eq!(search(&store, query, 9).await.total, expected, "{query}");
        }
    });
}

#[test]
fn a_search_finds_what_a_search_of_every_message_finds() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(filled(root.path(), 9000).await);
        let all = store.read_seqs(1..=9000).await.unwrap().messages;
        for query in ["9", "4096", "9*", "1 from:assistant"] {
            let parsed = SearchQuery::parse(query).unwrap();
            let is_match = |stored: &&Arc<StoredMessage>| {
                parsed.matches(&stored.message.content)
                    && (parsed.from.is_none() || stored.message.role == ChatRole::Assistant)
            };
            let mut expected: Vec<u64> =
                all.iter().filter(is_match).map(|stored| stored.seq).collect();
            expected.reverse();
            let found = search(&store, query, usize::MAX).await;
            let seqs: Vec<u64> = found.hits.iter().map(|stored| stored.seq).collect();
            assert_eq!(seqs, expected, "{query}");
        }
    });
}

#[test]
fn what_was_imported_later_but_said_earlier_is_not_newest() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(open(root.path()).await);
        store.append_message(said("new milk")).await.unwrap();
        let mut old = said("old milk");
        old.timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
        store.import(vec![old]).await.unwrap();
        assert_eq!(texts(&search(&store, "milk", 1).await), ["new milk"]);
    });
}

#[test]
fn a_thread_is_searched_by_itself_and_what_is_hidden_or_forgotten_is_not_found() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(open(root.path()).await);
        for (words, thread) in
            [("milk 1", None), ("milk 2", Some("7")), ("milk 3", None), ("milk 4", None)]
        {
            let mut message = said(words);
            message.thread_id = thread.map(str::to_owned);
            store.append_message(message).await.unwrap();
        }
        let recall = Recall::new(Arc::clone(&store) as Arc<dyn ConversationStore>);
        let milk = SearchQuery::parse("milk").unwrap();
        assert_eq!(texts(&recall.search(&milk, Some("7"), 9).await.unwrap()), ["milk 2"]);
        assert_eq!(recall.search(&milk, Some("8"), 9).await.unwrap().total, 0);
        assert_eq!(recall.search(&milk, None, 9).await.unwrap().total, 4);
        store.forget(&[3..=3]).await.unwrap();
        // Cleared messages are outside prompts, but a search still finds them.
        store.clear().await.unwrap();
        let found = recall.search(&milk, None, 9).await.unwrap();
        assert_eq!(texts(&found), ["milk 4", "milk 2", "milk 1"]);
        let two = Retention::default().max_messages(2);
        store.change_profile(Box::new(move |profile| profile.retention = Some(two))).await.unwrap();
        let found = recall.search(&milk, None, 9).await.unwrap();
        assert_eq!(texts(&found), ["milk 4", "milk 2"]);
    });
}

#[test]
fn a_message_that_tells_of_a_search_is_not_found_by_the_next() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(open(root.path()).await);
        let mut note = said("found milk").with_metadata(SEARCH_NOTE, "milk");
        note.role = ChatRole::System;
        store.append_message(note).await.unwrap();
        assert_eq!(search(&store, "milk", 9).await.total, 0);
    });
}

#[test]
fn neighbours_are_of_the_same_thread() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(open(root.path()).await);
        for at in 0..60 {
            let mut message = said(if at == 30 { "milk".to_owned() } else { at.to_string() });
            message.thread_id = (at % 3 != 0).then(|| "7".to_owned());
            store.append_message(message).await.unwrap();
        }
        let found = search(&store, "milk", 1).await;
        let around = neighbours(&*store, found.hits.first().unwrap(), 4).await.unwrap();
        let words = |messages: &[Arc<StoredMessage>]| {
            messages.iter().map(|stored| stored.message.content.clone()).collect::<Vec<_>>()
        };
        assert_eq!(words(&around.before), ["18", "21", "24", "27"]);
        assert_eq!(words(&around.after), ["33", "36", "39", "42"]);
    });
}
