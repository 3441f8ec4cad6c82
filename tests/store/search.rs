//! Search: messages are found in their own conversation, and nowhere else.

#![allow(clippy::unwrap_used)]

use crate::common::{block_on, filled, open, said};
use sottovoce::conversation::{SEARCH_NOTE, SearchOptions, SearchResults, search};
use sottovoce::store::Retention;
use sottovoce::{ChatRole, ConversationStore};

fn texts(found: &SearchResults) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.stored.message.content.as_str()).collect()
}

#[test]
fn whole_words_come_before_parts_of_longer_ones_and_all_are_counted() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        for words in ["Milk and bread", "tea", "MILK", "no m i l k", "buttermilk", "bread, MILK"] {
            store.append_message(said(words)).await.unwrap();
        }
        let found = search(&store, "milk", &SearchOptions::new(3)).await.unwrap();
        assert_eq!(
            (texts(&found), found.total),
            (vec!["MILK", "bread, MILK", "Milk and bread"], 4)
        );
        let found = search(&store, " bread  milk ", &SearchOptions::new(50)).await.unwrap();
        assert_eq!(texts(&found), ["bread, MILK", "Milk and bread"]);
        for none in ["", " ", "milk coffee"] {
            assert_eq!(
                search(&store, none, &SearchOptions::new(50)).await.unwrap().total,
                0,
                "{none:?}"
            );
        }
        assert_eq!(search(&store, "milk", &SearchOptions::new(0)).await.unwrap().total, 4);
    });
}

#[test]
fn many_messages_are_looked_through_from_end_to_end() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = filled(root.path(), 9000).await;
        let found = search(&store, "9", &SearchOptions::new(2)).await.unwrap();
        assert_eq!(texts(&found), ["9", "999"]);
        let with_a_nine = (1..=9000).filter(|n: &u32| n.to_string().contains('9')).count() as u64;
        assert_eq!(found.total, with_a_nine);
        for first in ["1", "4096", "4097", "8192", "9000"] {
            let found = search(&store, first, &SearchOptions::new(2)).await.unwrap();
            assert_eq!(texts(&found)[0], first);
        }
    });
}

#[test]
fn what_was_imported_later_but_said_earlier_is_not_newest() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        store.append_message(said("new milk")).await.unwrap();
        let mut old = said("old milk");
        old.timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
        store.import(vec![old]).await.unwrap();
        assert_eq!(
            texts(&search(&store, "milk", &SearchOptions::new(1)).await.unwrap()),
            ["new milk"]
        );
    });
}

#[test]
fn a_thread_is_searched_by_itself_and_what_is_hidden_or_forgotten_is_not_found() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        for (words, thread) in
            [("milk 1", None), ("milk 2", Some("7")), ("milk 3", None), ("milk 4", None)]
        {
            let mut message = said(words);
            message.thread_id = thread.map(str::to_owned);
            store.append_message(message).await.unwrap();
        }
        assert_eq!(
            texts(
                &search(&store, "milk", &SearchOptions::new(9).in_thread(Some("7"))).await.unwrap()
            ),
            ["milk 2"]
        );
        assert_eq!(
            search(&store, "milk", &SearchOptions::new(9).in_thread(Some("8")))
                .await
                .unwrap()
                .total,
            0
        );
        assert_eq!(search(&store, "milk", &SearchOptions::new(9)).await.unwrap().total, 4);
        store.forget(&[3..=3]).await.unwrap();
        // Cleared messages are outside prompts, but a search still finds them.
        store.clear().await.unwrap();
        assert_eq!(
            texts(&search(&store, "milk", &SearchOptions::new(9)).await.unwrap()),
            ["milk 4", "milk 2", "milk 1"]
        );
        let two = Retention::default().max_messages(2);
        store.change_profile(Box::new(move |profile| profile.retention = Some(two))).await.unwrap();
        assert_eq!(
            texts(&search(&store, "milk", &SearchOptions::new(9)).await.unwrap()),
            ["milk 4", "milk 2"]
        );
    });
}

#[test]
fn a_message_that_tells_of_a_search_is_not_found_by_the_next() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        let mut note = said("found milk").with_metadata(SEARCH_NOTE, "milk");
        note.role = ChatRole::System;
        store.append_message(note).await.unwrap();
        assert_eq!(search(&store, "milk", &SearchOptions::new(9)).await.unwrap().total, 0);
    });
}

#[test]
fn tea_is_not_team_and_accents_make_no_difference() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        for words in ["Tea", "the TEAM came", "a cup of téa", "steam", "coffee"] {
            store.append_message(said(words)).await.unwrap();
        }
        let found = search(&store, "TEA", &SearchOptions::new(9)).await.unwrap();
        assert_eq!(texts(&found), ["Tea", "a cup of téa", "steam", "the TEAM came"]);
        assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score));
        let longer = |at: usize| found.hits[at].longer_words.iter().map(|w| w.to_string());
        assert_eq!(longer(0).count(), 0);
        assert_eq!(longer(3).collect::<Vec<_>>(), ["team"]);
        let whole = SearchOptions::new(9).whole(true);
        assert_eq!(search(&store, "tea", &whole).await.unwrap().total, 2);
    });
}

#[test]
fn where_any_word_is_enough_rare_ones_count_more() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        for words in ["what is it", "what is on", "the dentist rang", "is what", "this"] {
            store.append_message(said(words)).await.unwrap();
        }
        let any = SearchOptions::new(9).any(true);
        let found = search(&store, "when is the dentist", &any).await.unwrap();
        assert_eq!(texts(&found)[0], "the dentist rang");
        assert!(!texts(&found).contains(&"this"), "`is` within a longer word says nothing");
        let all = SearchOptions::new(9);
        assert_eq!(search(&store, "when is the dentist", &all).await.unwrap().total, 0);
    });
}

#[test]
fn neighbours_are_of_the_same_thread() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        for at in 0..60 {
            let mut message = said(if at == 30 { "milk".to_owned() } else { at.to_string() });
            message.thread_id = (at % 3 != 0).then(|| "7".to_owned());
            store.append_message(message).await.unwrap();
        }
        let found = search(&store, "milk", &SearchOptions::new(1).around(4)).await.unwrap();
        let words = |messages: &[std::sync::Arc<sottovoce::StoredMessage>]| {
            messages.iter().map(|stored| stored.message.content.clone()).collect::<Vec<_>>()
        };
        assert_eq!(words(&found.hits[0].before), ["18", "21", "24", "27"]);
        assert_eq!(words(&found.hits[0].after), ["33", "36", "39", "42"]);
    });
}
