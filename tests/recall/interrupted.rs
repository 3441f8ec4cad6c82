//! Callers who stop waiting for an answer: the index is whole for the next one.

use std::future::poll_fn;
use std::task::Poll;

use sottovoce::FileConversationStore;
use sottovoce::context::recall::Recall;
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact};

use crate::common::block_on;
use crate::home::{Home, find, recall, scores};

const QUESTION: &str = "What pressure should the boiler have?";

/// Polls so often at most. Says whether the work ended.
async fn polled(work: impl Future<Output = ()>, times: usize) -> bool {
    let mut work = Box::pin(work);
    let mut left = times;
    poll_fn(|context| match (left, work.as_mut().poll(context)) {
        (_, Poll::Ready(())) => Poll::Ready(true),
        (0, Poll::Pending) => Poll::Ready(false),
        (_, Poll::Pending) => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Says something about a note of its own.
async fn note(home: &Home, store: &FileConversationStore, number: usize) {
    let text = format!("Boiler {number}: the pressure should be 1.{number} bar.");
    let new = NewArtifact::new(ArtifactKind::File, "boiler.txt");
    let text = Box::new(std::io::Cursor::new(text.into_bytes()));
    let added = store.add_artifact(new, text).await.unwrap();
    home.say(store, &format!("See {}.", added.artifact.reference()), "I shall.").await;
}

async fn asked(index: &Recall) -> Vec<(u64, u32)> {
    scores(&find(index, QUESTION, 9).await)
}

#[test]
fn a_question_that_nobody_waits_for_leaves_the_index_as_a_whole_question_does() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        for number in 0..3 {
            note(&home, &store, number).await;
            home.chatter(&store, 700).await;
        }
        let whole = recall(&store);
        let expected = asked(&whole).await;
        assert!(expected.len() > 2);
        for saved in [false, true] {
            if saved {
                whole.save().await.unwrap();
            }
            let mut interrupted = 0;
            for times in 0..200 {
                let index = recall(&store);
                if polled(async { drop(asked(&index).await) }, times).await {
                    break;
                }
                interrupted += 1;
                assert_eq!(asked(&index).await, expected, "{times}");
            }
            assert!(interrupted > 3, "{interrupted}");
        }
    });
}

#[test]
fn a_message_is_taken_in_once_though_nobody_waited_for_it() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        let index = recall(&store);
        let mut interrupted = 0;
        for times in 0..24 {
            for number in 0..3 {
                note(&home, &store, number).await;
            }
            interrupted += usize::from(!polled(async { drop(asked(&index).await) }, times).await);
            assert_eq!(asked(&index).await, asked(&recall(&store)).await, "{times}");
        }
        assert!(interrupted > 3, "{interrupted}");
    });
}
