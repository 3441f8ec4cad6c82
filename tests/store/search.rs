//! Words are found where they were said, and nowhere else.

#![allow(clippy::unwrap_used)]

use crate::common::{block_on, filled, open, said};
use sottovoce::{ChatRole, ConversationStore, Found, Retention, SEARCH_NOTE, search};

fn texts(found: &Found) -> Vec<&str> {
    found.messages.iter().map(|stored| stored.message.content.as_str()).collect()
}

#[test]
fn the_newest_come_first_and_all_are_counted() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = open(root.path()).await;
        for words in ["Milk and bread", "tea", "MILK", "no m i l k", "buttermilk", "bread, MILK"] {
            store.append_message(said(words)).await.unwrap();
        }
        let found = search(&store, "milk", None, 3).await.unwrap();
        assert_eq!((texts(&found), found.total), (vec!["bread, MILK", "buttermilk", "MILK"], 4));
        let found = search(&store, " bread  milk ", None, 50).await.unwrap();
        assert_eq!(texts(&found), ["bread, MILK", "Milk and bread"]);
        for none in ["", " ", "milk coffee"] {
            assert_eq!(search(&store, none, None, 50).await.unwrap().total, 0, "{none:?}");
        }
        assert_eq!(search(&store, "milk", None, 0).await.unwrap().total, 4);
    });
}

#[test]
fn many_messages_are_looked_through_from_end_to_end() {
    block_on(async {
        let root = tempfile::tempdir().unwrap();
        let store = filled(root.path(), 9000).await;
        let found = search(&store, "9", None, 2).await.unwrap();
        assert_eq!(texts(&found), ["9000", "8999"]);
        let with_a_nine = (1..=9000).filter(|n: &u32| n.to_string().contains('9')).count() as u64;
        assert_eq!(found.total, with_a_nine);
        for first in ["1", "4096", "4097", "8192", "9000"] {
            let found = search(&store, first, None, 9000).await.unwrap();
            assert!(texts(&found).contains(&first), "{first}");
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
        assert_eq!(texts(&search(&store, "milk", None, 1).await.unwrap()), ["new milk"]);
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
        assert_eq!(texts(&search(&store, "milk", Some("7"), 9).await.unwrap()), ["milk 2"]);
        assert_eq!(search(&store, "milk", Some("8"), 9).await.unwrap().total, 0);
        assert_eq!(search(&store, "milk", None, 9).await.unwrap().total, 4);
        store.forget(&[3..=3]).await.unwrap();
        // What was cleared is out of prompts, but somebody may well look for it.
        store.clear().await.unwrap();
        assert_eq!(
            texts(&search(&store, "milk", None, 9).await.unwrap()),
            ["milk 4", "milk 2", "milk 1"]
        );
        let two = Retention::default().max_messages(2);
        store.change_profile(Box::new(move |profile| profile.retention = Some(two))).await.unwrap();
        assert_eq!(texts(&search(&store, "milk", None, 9).await.unwrap()), ["milk 4", "milk 2"]);
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
        assert_eq!(search(&store, "milk", None, 9).await.unwrap().total, 0);
    });
}
