//! Messages get their meanings while nobody waits, keep them over a restart, and lose them with their words.
#![cfg(feature = "meaning")]

use std::sync::Arc;

use proptest::prelude::*;
use sottovoce::context::recall::Recall;
use sottovoce::store::{Batch, DocumentId, StoreBackend};
use sottovoce::{ConversationStore, FileConversationStore};

use crate::common::block_on;
use crate::home::{Home, files, find, recall, scores};

const SAID: [&str; 12] = [
    "We got a hamster and called it Pixel.",
    "The plumber comes on Thursday at nine.",
    "I lent the drill to Ada.",
    "At seven.",
    "Opa ist gegen Nüsse allergisch.",
    "Nous partons à Lille en juillet.",
    "The spare key hangs behind the boiler. Do not tell the neighbours. It is the small one with the red tag on it.",
    "Turn on the lamp.",
    "Thank you!",
    "うちの犬はポチです。",
    "My sister moved to Ghent in May.",
    "The code of the garage is 4711.",
];

async fn known(recall: &Recall) -> (usize, usize) {
    let understood = recall.understood().await.unwrap();
    (understood.known, understood.all)
}

async fn understand_all(recall: &Recall) {
    while recall.understand(64).await.unwrap() > 0 {}
}

#[test]
fn meanings_come_newest_first_survive_a_restart_and_go_on_where_they_stopped() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.chatter(&store, 30).await;
        home.say(&store, "We got a hamster and called it Pixel.", "What a sweet name.").await;
        let ours = recall(&store);
        assert_eq!(known(&ours).await, (0, 32));
        let by_words = find(&ours, "Wie heißt unser Haustier?", 5).await;
        assert!(by_words.hits.iter().all(|hit| hit.hit.why.alike == 0.));
        assert_eq!(ours.understand(4).await.unwrap(), 4);
        ours.save().await.unwrap();

        let theirs = recall(&home.open().await);
        assert_eq!(known(&theirs).await, (4, 32));
        let by_meaning = find(&theirs, "Wie heißt unser Haustier?", 5).await;
        assert_eq!(by_meaning.hits[0].stored.seq, 31);
        understand_all(&theirs).await;
        assert_eq!(known(&theirs).await, (32, 32));
    });
}

#[test]
fn nobody_encodes_what_another_process_has_saved() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.chatter(&store, 8).await;
        let ours = recall(&store);
        understand_all(&ours).await;
        ours.save().await.unwrap();
        let theirs = recall(&home.open().await);
        assert_eq!(theirs.understand(8).await.unwrap(), 0);
    });
}

#[test]
fn what_was_asked_for_expressly_passes_no_gate_and_what_needs_nothing_brings_nothing() {
    use sottovoce::context::recall::{RecallQuery, ScoreFloor};

    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.say(&store, "We got a hamster and called it Pixel.", "What a sweet name.").await;
        let recall = recall(&store);
        understand_all(&recall).await;
        for (asked, floor, finds) in [
            ("What's the name of our pet?", ScoreFloor::Needed, true),
            ("Turn on the light in the kitchen.", ScoreFloor::Needed, false),
            ("Turn on the light in the kitchen.", ScoreFloor::Any, true),
        ] {
            let now = recall.store().clock().now();
            let query = RecallQuery::new(asked, now, 5).floor(floor);
            let found = recall.find_in(&query, None).await.unwrap();
            assert_eq!(!found.hits.is_empty(), finds, "{asked} {floor:?}");
        }
    });
}

/// The bytes of all segments, as the store keeps them sealed.
async fn segments(store: &FileConversationStore) -> Vec<Vec<u8>> {
    let mut segments = Vec::new();
    for block in 0..3 {
        let segment = store.document(&DocumentId::Segment(block)).await.unwrap();
        segments.extend(segment.map(|bytes| bytes.to_vec()));
    }
    segments
}

#[test]
fn a_message_that_cannot_be_read_keeps_no_other_from_being_understood() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.say(&store, SAID[0], SAID[1]).await;
        home.say(&store, SAID[2], SAID[3]).await;
        let ours = recall(&store);
        assert_eq!(known(&ours).await, (0, 4));
        // The index knows it, and then its file is damaged.
        let record = files(&home.root())
            .into_iter()
            .find(|path| path.to_string_lossy().contains("_0004_"))
            .unwrap();
        std::fs::write(record, b"damaged").unwrap();
        let store = home.open().await;
        let theirs = Recall::new(Arc::clone(&store) as Arc<dyn ConversationStore>);
        for recall in [&ours, &theirs] {
            let mut rounds = 0;
            while recall.understand(2).await.unwrap() > 0 {
                rounds += 1;
                assert!(rounds < 10, "it goes on for ever");
            }
            assert!(known(recall).await.0 >= 3);
        }
    });
}

/// Takes these steps, and compares the index with one that is made anew.
fn lives_as_if_made_anew(steps: &[(u8, usize, u64)]) {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        let mut ours = recall(&store);
        for &(step, which, at) in steps {
            match step {
                0 => home.say(&store, SAID[which], SAID[(which + 5) % SAID.len()]).await,
                1 => drop(store.forget(&[at..=at + 1]).await.unwrap()),
                _ => {
                    understand_all(&ours).await;
                    ours.save().await.unwrap();
                    if which % 2 == 0 {
                        ours = recall(&home.open().await);
                    }
                }
            }
        }
        understand_all(&ours).await;
        ours.save().await.unwrap();
        let lived = segments(&store).await;
        let mut batch = Batch::new(&store.state().await.unwrap());
        for block in 0..3 {
            batch = batch.remove(DocumentId::Segment(block));
        }
        store.commit(batch).await.unwrap();
        let fresh = recall(&home.open().await);
        understand_all(&fresh).await;
        for question in ["What is our pet called?", "Wer isst keine Nüsse?", "Where is the key?"] {
            let (lived, made) = (find(&ours, question, 30).await, find(&fresh, question, 30).await);
            assert_eq!(scores(&lived), scores(&made), "{question}");
        }
        fresh.save().await.unwrap();
        assert!(lived == segments(&store).await, "the segments differ");
    });
}

#[test]
fn a_conversation_that_was_forgotten_message_by_message_leaves_no_segment() {
    lives_as_if_made_anew(&[(0, 0, 1), (2, 1, 1), (1, 0, 1)]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(6) })]

    /// A meaning is of a message and of the one before it. An index that lived through forgetting must not keep what the
    /// message before has left in the meaning of the next.
    #[test]
    fn after_forgetting_the_index_is_as_if_made_from_what_is_left(
        steps in prop::collection::vec((0..3u8, 0..12usize, 1..40u64), 4..16),
    ) {
        lives_as_if_made_anew(&steps);
    }
}
