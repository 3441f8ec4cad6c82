//! Backups that go from one store to another and back: a message is the same one wherever it gets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::{Backup, ImportReport, OpenStore};
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact, SavedMessage, Snapshot};
use sottovoce::{
    ChatMessage, Conversation, ConversationStore, EncryptionKey, FileConversationStore,
    StoreOptions,
};
use tempfile::{TempDir, tempdir};

use crate::common::{block_on, said};

/// A store under a key of its own.
struct House {
    secret: &'static str,
    folder: TempDir,
    store: FileConversationStore,
}

impl House {
    async fn new(secret: &'static str, words: &[&str]) -> Self {
        let folder = tempdir().unwrap();
        let store = options(secret).open(folder.path()).await.unwrap();
        let house = Self { secret, folder, store };
        house.talk(words).await;
        house
    }

    async fn talk(&self, words: &[&str]) {
        for word in words {
            self.store.append_message(said(word)).await.unwrap();
        }
    }

    /// Takes what the other house has.
    async fn take(&self, from: &Self) -> ImportReport {
        let folder = tempdir().unwrap();
        let file = folder.path().join("export.json");
        let mut exporter = Exporter::to_file(ExportForm::Json, &file).unwrap();
        exporter.add(&from.store, ExportRange::default(), |_| {}).await.unwrap();
        exporter.finish().await.unwrap();
        let (root, secret) = (self.folder.path().to_owned(), self.secret);
        let open: OpenStore = Box::new(move |scope| {
            let root = root.clone();
            Box::pin(async move { options(secret).scope(scope).open(root).await })
        });
        let reports = Backup::new(&file).import(open, |_| {}, |_| {}).await.unwrap();
        let report = self.store.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        reports.into_iter().next().unwrap().messages
    }

    async fn messages(&self) -> Vec<ChatMessage> {
        let tail = self.store.read_tail(usize::MAX).await.unwrap();
        tail.messages.iter().map(|stored| stored.message.clone()).collect()
    }

    async fn words(&self) -> Vec<String> {
        let mut words: Vec<String> =
            self.messages().await.iter().map(|message| message.content.clone()).collect();
        words.sort();
        words
    }

    async fn forget(&self, word: &str) {
        let tail = self.store.read_tail(usize::MAX).await.unwrap();
        let found = tail.messages.iter().find(|stored| stored.message.content == word).unwrap();
        self.store.forget(&[found.seq..=found.seq]).await.unwrap();
    }
}

fn options(secret: &str) -> StoreOptions {
    StoreOptions::new(EncryptionKey::from_secret(secret).unwrap())
}

async fn houses() -> [House; 3] {
    [
        House::new("the secret of the first house", &["a1", "a2", "a3"]).await,
        House::new("the secret of the second house", &["b1", "b2"]).await,
        House::new("the secret of the third house", &["c1"]).await,
    ]
}

fn listed(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn what_goes_there_and_back_again_is_not_doubled() {
    block_on(async {
        let [a, b, c] = houses().await;
        assert_eq!(b.take(&a).await.taken, 3);
        let back = a.take(&b).await;
        assert_eq!((back.taken, back.already_there), (2, 3));
        // By way of a third house.
        assert_eq!(c.take(&b).await.taken, 5);
        for (to, from) in [(&a, &c), (&b, &c), (&a, &b), (&c, &a), (&b, &a)] {
            to.take(from).await;
        }
        for house in [&a, &b, &c] {
            assert_eq!(house.words().await, listed(&["a1", "a2", "a3", "b1", "b2", "c1"]));
        }
    });
}

#[test]
fn what_was_forgotten_here_does_not_come_back_from_there() {
    block_on(async {
        let [a, b, c] = houses().await;
        b.take(&a).await;
        c.take(&b).await;
        a.forget("a2").await;
        let back = a.take(&b).await;
        assert_eq!((back.taken, back.forgotten), (2, 1));
        assert_eq!(a.words().await, listed(&["a1", "a3", "b1", "b2"]));
        // The second house learns of it, and the third one from the second.
        assert_eq!(b.take(&a).await.removed, 1);
        assert_eq!(c.take(&b).await.removed, 1);
        a.take(&c).await;
        assert_eq!(a.words().await, listed(&["a1", "a3", "b1", "b2", "c1"]));
    });
}

#[test]
fn what_was_forgotten_where_it_came_to_is_forgotten_at_home() {
    block_on(async {
        let [a, b, _] = houses().await;
        b.take(&a).await;
        b.forget("a1").await;
        b.forget("b1").await;
        assert_eq!(a.take(&b).await.removed, 1);
        assert_eq!(a.words().await, listed(&["a2", "a3", "b2"]));
        b.take(&a).await;
        assert_eq!(b.words().await, listed(&["a2", "a3", "b2"]));
    });
}

#[test]
fn a_number_that_was_forgotten_here_hides_no_message_of_another_house() {
    block_on(async {
        let [a, b, _] = houses().await;
        a.store.forget(&[1..=3]).await.unwrap();
        assert_eq!(a.take(&b).await.taken, 2);
        assert_eq!(a.words().await, listed(&["b1", "b2"]));
    });
}

#[test]
fn what_limits_removed_here_is_no_wish_of_anybody_there() {
    block_on(async {
        let [a, b, _] = houses().await;
        b.take(&a).await;
        let limit = Some(sottovoce::store::Retention::FOREVER.max_messages(1));
        let effect = a.store.limits_effect(limit).await.unwrap();
        let remove = sottovoce::store::HiddenMessages::Delete;
        a.store.change_limits(limit, remove, &effect).await.unwrap();
        assert_eq!(a.words().await, listed(&["a3"]));
        assert_eq!(b.take(&a).await.removed, 0);
        assert_eq!(b.words().await.len(), 5);
    });
}

#[test]
fn two_artifacts_of_the_same_bytes_are_both_there_afterwards() {
    block_on(async {
        let [a, b, _] = houses().await;
        for house in [&a, &b] {
            let new = NewArtifact::new(ArtifactKind::File, "note.txt");
            let added =
                house.store.add_artifact(new, Box::new(&b"tea"[..])).await.unwrap().artifact;
            house.talk(&[&format!("see {}", added.reference())]).await;
        }
        b.take(&a).await;
        a.take(&b).await;
        for house in [&a, &b] {
            let messages = house.messages().await;
            let ids = messages
                .iter()
                .filter_map(|message| message.content.strip_prefix("see artifact://"));
            let ids: Vec<&str> = ids.collect();
            assert_eq!(ids.len(), 2);
            for id in ids {
                assert!(house.store.open_artifact(id).await.unwrap().is_some(), "{id}");
            }
        }
    });
}

#[test]
fn a_restored_copy_names_its_original_by_the_number_that_it_has_there() {
    block_on(async {
        let [a, b, _] = houses().await;
        let first = a.messages().await.remove(0);
        let at = first.timestamp;
        let saved = Snapshot::new(at, (at, at), vec![SavedMessage::new(1, first)]).unwrap();
        a.store.save_snapshot(saved.clone()).await.unwrap();
        a.store
            .change_profile(Box::new(|profile| {
                profile.clear("2030-01-01T00:00:00Z".parse().unwrap(), 3)
            }))
            .await
            .unwrap();
        let conversation = Conversation::builder(std::sync::Arc::new(a.store.clone())).build();
        conversation.restore(&saved.id).await.unwrap();
        assert_eq!(a.words().await, listed(&["a1", "a1", "a2", "a3"]));
        b.take(&a).await;
        let restored =
            b.messages().await.into_iter().find(|message| message.restored_from().is_some());
        let (_, original) = restored.as_ref().unwrap().restored_from().unwrap();
        let original = b.store.read_seqs(original..=original).await.unwrap();
        assert_eq!(original.messages[0].message.content, "a1");
        // Forgetting the original forgets the copy, and nothing else.
        b.forget("a1").await;
        assert_eq!(b.words().await, listed(&["a2", "a3", "b1", "b2"]));
        a.take(&b).await;
        assert_eq!(a.words().await, listed(&["a2", "a3", "b1", "b2"]));
    });
}
