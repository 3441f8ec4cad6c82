//! What is forgotten leaves the results, the files and the memory.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a child process tells its parent what it found")]

use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::SignedDuration;
use sottovoce::admin::Rekey;
use sottovoce::context::recall::{Recall, ScoreFloor};
use sottovoce::store::{DocumentId, Retention, StoreBackend};
use sottovoce::{Conversation, ConversationStore, EncryptionKey, FileConversationStore};

use crate::common::{block_on, child, child_folder, key};
use crate::home::{Home, files, find, recall};
use crate::memory_search::{found_in_memory, text};

const QUESTION: &str = "What is my dog called?";

async fn has_word(store: &FileConversationStore, word: &[u8]) -> bool {
    for block in 0..4 {
        let segment = store.document(&DocumentId::Segment(block)).await.unwrap();
        if segment.is_some_and(|bytes| bytes.windows(word.len()).any(|part| part == word)) {
            return true;
        }
    }
    false
}

async fn finds(recall: &Recall, word: &str) -> bool {
    let found = find(recall, QUESTION, 30).await;
    found.hits.iter().any(|hit| hit.stored.message.content.contains(word))
}

#[derive(Debug, Clone, Copy)]
enum End {
    Several,
    All,
    TooMany,
    TooOld,
}

#[test]
fn no_file_and_no_result_holds_what_was_forgotten_or_removed() {
    for end in [End::Several, End::All, End::TooMany, End::TooOld] {
        block_on(async {
            let home = Home::new();
            let store = home.open().await;
            home.say(&store, "My dog is called Bruno.", "Bruno is a nice name.").await;
            home.chatter(&store, 1300).await;
            // Another process knows it, too.
            let (ours, theirs) = (recall(&store), recall(&home.open().await));
            for recall in [&ours, &theirs] {
                assert!(finds(recall, "Bruno").await);
                recall.save().await.unwrap();
            }
            assert_eq!(files(&home.segments()).len(), 2);
            assert!(has_word(&store, b"bruno").await, "the search must see what is there");
            match end {
                End::Several => drop(store.forget(&[1..=2, 9..=9, 1100..=1200]).await.unwrap()),
                End::All => drop(store.forget_all().await.unwrap()),
                End::TooMany | End::TooOld => {
                    let limits = match end {
                        End::TooMany => Retention::FOREVER.max_messages(900),
                        _ => Retention::FOREVER.ttl_seconds(60),
                    };
                    let limit = move |profile: &mut sottovoce::store::Profile| {
                        profile.retention = Some(limits)
                    };
                    store.change_profile(Box::new(limit)).await.unwrap();
                    home.clock.advance(SignedDuration::from_hours(1));
                    for recall in [&ours, &theirs] {
                        assert!(!finds(recall, "Bruno").await, "{end:?}: hidden at once");
                    }
                    store.cleanup().await.unwrap();
                }
            }
            assert!(!has_word(&store, b"bruno").await, "{end:?}");
            for recall in [&ours, &theirs, &recall(&home.open().await)] {
                assert!(!finds(recall, "Bruno").await, "{end:?}");
                recall.save().await.unwrap();
                assert!(!has_word(&store, b"bruno").await, "{end:?}: written again");
            }
            let names: Vec<String> =
                files(&home.segments()).iter().map(|path| path.display().to_string()).collect();
            assert!(names.iter().all(|name| !name.contains(".tmp-")), "{names:?}");
        });
    }
}

#[test]
fn a_change_of_keys_leaves_no_segment_under_the_old_one() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.say(&store, "My dog is called Bruno.", "Nice.").await;
        home.chatter(&store, 1300).await;
        let index = recall(&store);
        assert!(finds(&index, "Bruno").await);
        index.save().await.unwrap();
        let before: Vec<_> =
            files(&home.segments()).iter().map(|p| std::fs::read(p).unwrap()).collect();
        assert_eq!(before.len(), 2);
        let new = || EncryptionKey::from_secret("another secret of the tests").unwrap();
        let rekey = Rekey::new(key(), new());
        rekey.run(home.root(), |_| ControlFlow::Continue(())).await.unwrap();
        assert!(files(&home.segments()).is_empty());
        // The program that knew the old key writes nothing under it.
        let _ = index.save().await;
        let store = Arc::new(home.options(new()).open(home.root()).await.unwrap());
        let after = recall(&store);
        assert!(finds(&after, "Bruno").await);
        after.save().await.unwrap();
        assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
        for file in files(&home.segments()) {
            assert!(!before.contains(&std::fs::read(file).unwrap()));
        }
    });
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_remembers_forgets_and_lets_go() {
    let Some(root) = child_folder() else { return };
    // Searching must not leave copies itself: the first search shows what exists before.
    assert_eq!(found_in_memory(), [0; 10]);
    block_on(async {
        let home = Home::in_folder(&root);
        let store = home.open().await;
        home.say(&store, "Good morning.", "Hello.").await;
        for (said, answer) in
            [("My 0 is called 1.", "The 2 of a 9?"), ("Die 3 und die 4.", "Und 5.")]
        {
            // Here the words are held by nobody but the store.
            let (said, answer) = (text(said), text(answer));
            home.say(&store, &said, &answer).await;
        }
        home.chatter(&store, 300).await;
        let shared = || Arc::clone(&store) as Arc<dyn ConversationStore>;
        let talk = Conversation::builder(shared()).last_n(2).recall(256, ScoreFloor::Any).build();
        let index = recall(&store);
        let other = recall(&home.open().await);
        for recall in [&index, &other] {
            for question in
                ["What is my 0 called?", "Wo ist die 3, und was ist mit der 4?", "And 5?"]
            {
                assert!(!find(recall, &text(question), 9).await.hits.is_empty());
            }
            recall.save().await.unwrap();
        }
        {
            // The host's utterance and its prompt are the host's to let go.
            let (prompt, receipt) = talk.prompt("What is it called?").await.unwrap();
            drop((prompt, receipt));
        }
        let held = found_in_memory();
        assert!(held[..6].iter().all(|found| *found > 0), "what is held must be seen: {held:?}");
        store.forget(&[3..=6]).await.unwrap();
        for recall in [&index, &other] {
            assert!(!find(recall, "What is my dog called?", 9).await.hits.is_empty());
        }
        drop(talk.prompt("What is it called?").await.unwrap());
        println!("@forgotten {:?}", found_in_memory());
        drop((index, other, talk));
        drop(store);
        println!("@gone {:?}", found_in_memory());
    });
    println!("@done");
}

#[test]
fn forgotten_words_leave_memory_with_the_next_question() {
    let root = tempfile::tempdir().unwrap();
    let test = "a_process_that_remembers_forgets_and_lets_go";
    let output = child(test, root.path()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("@done"), "{said}");
    for what in ["forgotten", "gone"] {
        assert!(said.contains(&format!("@{what} {:?}\n", [0; 10])), "{said}");
    }
}
