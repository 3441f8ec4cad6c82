//! Long tool results become artifacts, which are deleted with their messages.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::io::{Cursor, Read};

use crate::common::block_on;
use crate::common::scripted::House;
use sottovoce::ChatRole;
use sottovoce::store::{ArtifactKind, NewArtifact, artifact_references};

fn words_of(house: &House, id: &str) -> impl Future<Output = Option<String>> {
    let store = house.store.clone();
    let id = id.to_owned();
    async move {
        let mut contents = store.artifact_store()?.open_artifact(&id).await.unwrap()?;
        let mut words = String::new();
        contents.read_to_string(&mut words).unwrap();
        Some(words)
    }
}

#[test]
fn a_long_result_is_a_line_in_its_message_and_whole_in_its_artifact() {
    block_on(async {
        let house = House::with(|conversation| conversation.long_result(100)).await;
        let conversation = house.conversation.clone();
        let long = "rain in Bergen ".repeat(50);
        let short = conversation
            .shortened(conversation.message(ChatRole::Tool, "rain in Bergen"))
            .await
            .unwrap();
        assert_eq!(short.content, "rain in Bergen");
        let message =
            conversation.shortened(conversation.message(ChatRole::Tool, &long)).await.unwrap();
        assert!(message.content.len() < long.len() && message.content.contains("it begins: rain"));
        let id = artifact_references(&message.content).next().unwrap().to_owned();
        assert_eq!(message.moved_to(), Some(id.as_str()));
        assert_eq!(words_of(&house, &id).await.as_deref(), Some(long.as_str()));
    });
}

#[test]
fn words_that_two_messages_or_an_artifact_share_go_with_their_own_message_alone() {
    block_on(async {
        let house = House::with(|conversation| conversation.long_result(100)).await;
        let conversation = house.conversation.clone();
        let long = "the same forecast ".repeat(50);
        let mut kept = Vec::new();
        for _ in 0..2 {
            let message =
                conversation.shortened(conversation.message(ChatRole::Tool, &long)).await.unwrap();
            kept.push(house.store.append_message(message).await.unwrap());
        }
        let content = Box::new(Cursor::new(long.clone().into_bytes()));
        let new = NewArtifact::new(ArtifactKind::File, "forecast.txt");
        let added = house.store.artifact_store().unwrap().add_artifact(new, content).await.unwrap();
        assert!(!added.was_there);
        let id = |at: usize| {
            let stored: &sottovoce::StoredMessage = &kept[at];
            artifact_references(&stored.message.content).next().unwrap().to_owned()
        };
        house.store.forget(&[kept[0].seq..=kept[0].seq]).await.unwrap();
        assert_eq!(words_of(&house, &id(0)).await, None);
        assert_eq!(words_of(&house, &id(1)).await.as_deref(), Some(long.as_str()));
        house.store.forget(&[kept[1].seq..=kept[1].seq]).await.unwrap();
        assert_eq!(words_of(&house, &id(1)).await, None);
        assert_eq!(words_of(&house, &added.artifact.id).await.as_deref(), Some(long.as_str()));
    });
}
