//! Forgetting on a full disk: it is how one makes room.

use std::num::NonZeroU64;
use std::sync::Arc;

use jiff::SignedDuration;

use crate::ChatRole;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::tests::failing_storage::{Call, FaultyDirectory, no_space, said};
use crate::store::tests::interrupted_documents::{
    clock, copied, open, options, saved_words, say, snapshot,
};
use crate::store::{ConversationStore, FileConversationStore, FindingKind, Retention};

async fn words(store: &FileConversationStore) -> Vec<String> {
    let read = store.read_tail(99).await.unwrap();
    read.messages.iter().map(|stored| stored.message.content.clone()).collect()
}

fn has_reserve(directory: &MemoryDirectory) -> bool {
    directory.read("reserve").unwrap().is_some()
}

/// A store with 40 messages in packs, two loose ones and a snapshot.
async fn house() -> Arc<MemoryDirectory> {
    let (clock, memory) = (clock(), Arc::new(MemoryDirectory::default()));
    let store = open(options(&clock).loose_files(2), &memory).await;
    store.append_all((1..=40).map(said).collect()).await.unwrap();
    for n in 41..=42 {
        store.append_message(said(n)).await.unwrap();
    }
    store.save_snapshot(snapshot(&clock, &[(7, "7"), (42, "42")])).await.unwrap();
    memory.replace("reserve", b"room").unwrap();
    memory
}

#[tokio::test]
async fn on_a_full_disk_any_write_of_a_forgetting_finds_room() {
    let (clock, house, mut gave_room) = (clock(), house().await, 0);
    for after in 0.. {
        let memory = copied(&house);
        let faulty = FaultyDirectory::over(memory.clone());
        let store = open(options(&clock).loose_files(2), &faulty).await;
        faulty.fail(Call::Write, after, 1, no_space);
        let report = store.forget(&[7..=7, 42..=42]).await.unwrap();
        assert_eq!(report.removed, [7, 42], "after {after} writes");
        assert_eq!((report.left.len(), report.numbers), (0, 2), "after {after} writes");
        let was_reached = faulty.was_reached();
        gave_room += usize::from(!has_reserve(&memory));
        faulty.fail(Call::Write, 0, 0, no_space);
        let store = open(options(&clock).loose_files(2), &memory).await;
        let left: Vec<_> = (1..=41).filter(|n| *n != 7).map(|n: u64| n.to_string()).collect();
        assert_eq!(words(&store).await, left, "after {after} writes");
        assert_eq!(saved_words(&store).await, Vec::<Vec<String>>::new());
        let found = store.verify(|_| {}).await.unwrap().findings;
        assert!(found.is_empty(), "after {after} writes: {found:?}");
        if !was_reached {
            assert!(gave_room > 8, "{gave_room} writes were given room");
            break;
        }
    }
}

#[tokio::test]
async fn a_forgetting_that_has_begun_is_not_begun_again_for_want_of_room() {
    let (clock, house) = (clock(), house().await);
    for after in 0.. {
        let memory = copied(&house);
        let faulty = FaultyDirectory::over(memory.clone());
        let store = open(options(&clock).loose_files(2), &faulty).await;
        faulty.fail(Call::Any, after, 1, no_space);
        // It reaches beyond the last number, where its own record will be.
        let told = store.forget(&[7..=7, 42..=60]).await;
        let was_reached = faulty.was_reached();
        faulty.fail(Call::Any, 0, 0, no_space);
        let store = open(options(&clock).loose_files(2), &memory).await;
        let read = store.read_tail(99).await.unwrap();
        assert!(read.last_seq <= 43, "after {after} calls: {}", read.last_seq);
        assert!(told.is_err() || read.messages.len() == 40, "after {after} calls");
        if !was_reached {
            break;
        }
    }
}

#[tokio::test]
async fn a_pack_that_a_full_disk_cannot_hold_again_is_purged_once_there_is_room() {
    let (clock, memory) = (clock(), house().await);
    let faulty = FaultyDirectory::over(memory.clone());
    let store = open(options(&clock).loose_files(2), &faulty).await;
    faulty.fail(Call::Stream, 0, usize::MAX, no_space);
    let report = store.forget(&[7..=7, 42..=42]).await.unwrap();
    assert_eq!((&*report.removed, report.numbers), (&[42][..], 2));
    assert!(matches!(&*report.left, [left] if left.kind == FindingKind::Resurrected), "{report:?}");
    assert_eq!(words(&store).await.len(), 40);
    // The message is hidden, and it is still known that its bytes have to go.
    let found = store.verify(|_| {}).await.unwrap().findings;
    assert!(found.iter().all(|found| found.kind == FindingKind::Resurrected), "{found:?}");
    assert_eq!(found.len(), 1);
    store.append_message(said(43)).await.unwrap();
    assert_eq!(store.verify(|_| {}).await.unwrap().findings.len(), 1);
    faulty.fail(Call::Stream, 0, 0, no_space);
    store.append_message(said(44)).await.unwrap();
    assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    assert_eq!(words(&store).await.len(), 42);
}

#[tokio::test]
async fn what_has_expired_and_what_is_deleted_make_room_on_a_full_disk_too() {
    let (clock, memory) = (clock(), house().await);
    let faulty = FaultyDirectory::over(memory.clone());
    let ttl = Retention { max_messages: None, ttl_seconds: NonZeroU64::new(60) };
    let store = open(options(&clock).loose_files(2).retention(ttl), &faulty).await;
    let id = store.snapshots().await.unwrap().0[0].id.clone();
    faulty.fail(Call::Replace, 0, 1, no_space);
    store.delete_snapshot(&id).await.unwrap();
    assert!(faulty.was_reached() && !has_reserve(&memory));

    memory.replace("reserve", b"room").unwrap();
    clock.advance(SignedDuration::from_hours(24));
    faulty.fail(Call::Create, 0, 1, no_space);
    store.append_message(say(&clock, ChatRole::User, "good morning")).await.unwrap();
    assert!(faulty.was_reached() && !has_reserve(&memory));
    assert_eq!(words(&store).await, ["good morning"]);

    // Only what deletes is given the room.
    memory.replace("reserve", b"room").unwrap();
    faulty.fail(Call::Create, 0, 1, no_space);
    assert!(store.append_message(say(&clock, ChatRole::User, "too much")).await.is_err());
    assert!(has_reserve(&memory));
}

#[tokio::test]
async fn a_store_on_disk_sets_room_aside_and_sets_it_aside_again_after_it_was_used() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = options(&clock).open(folder.path()).await.unwrap();
    let set_aside = || folder.path().join("reserve").metadata().map_or(0, |file| file.len());
    store.append_message(said(1)).await.unwrap();
    assert_eq!(set_aside(), 512 << 10);
    std::fs::remove_file(folder.path().join("reserve")).unwrap();
    store.append_message(said(2)).await.unwrap();
    assert_eq!(set_aside(), 0, "an append leaves the room to others");
    store.forget(&[1..=1]).await.unwrap();
    assert_eq!(set_aside(), 512 << 10);
    assert!(store.verify(|_| {}).await.unwrap().is_sound());
}
