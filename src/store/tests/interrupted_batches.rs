//! Batches of messages that are interrupted.

use std::path::Path;
use std::sync::Arc;

use crate::clock::ManualClock;
use crate::directory::{Directory, fs::FsDirectory, memory::MemoryDirectory};
use crate::store::tests::failing_storage::{
    Call, FaultyDirectory, broken, no_space, not_durable, said,
};
use crate::store::{ConversationStore, FileConversationStore, FindingKind, StoreOptions};
use crate::{ChatMessage, EncryptionKey, Error};

/// The most messages of one pack if one file stays loose.
const PACK: u64 = 512;

async fn open(directory: &Arc<impl Directory + 'static>) -> FileConversationStore {
    opened(directory, 1).await
}

async fn opened(directory: &Arc<impl Directory + 'static>, loose: usize) -> FileConversationStore {
    let key = EncryptionKey::from_secret("a secret of the tests of batches").unwrap();
    let clock = ManualClock::at_utc("2025-08-24T17:00:00Z".parse().unwrap());
    let directory: Arc<dyn Directory> = directory.clone();
    let options = StoreOptions::new(key).loose_files(loose).clock(Arc::new(clock));
    options.open_directory(directory.clone(), directory).await.unwrap()
}

fn many(first: u64, count: u64) -> Vec<ChatMessage> {
    (first..first + count).map(said).collect()
}

/// Counts the messages. Checks that they are numbered from 1 without a gap, each with its own text.
async fn count(directory: &Arc<MemoryDirectory>, context: &str) -> u64 {
    let store = open(directory).await;
    let reading = store.read_tail(usize::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{context}: {:?}", reading.skipped);
    let count = reading.messages.len() as u64;
    assert!(reading.messages.iter().map(|stored| stored.seq).eq(1..=count), "{context}");
    assert!(reading.messages.iter().all(|m| m.message.content == m.seq.to_string()), "{context}");
    assert_eq!(reading.last_seq, count, "{context}");
    let ranged = store.read_seqs(0..=u64::MAX).await.unwrap();
    assert!(ranged.messages == reading.messages, "{context}");
    let report = store.verify(|_| {}).await.unwrap();
    let harmless = |kind: &FindingKind| *kind == FindingKind::RedundantCopy;
    assert!(report.findings.iter().all(|f| harmless(&f.kind)), "{context}: {:?}", report.findings);
    count
}

fn files(directory: &dyn Directory, ending: &str) -> usize {
    let mut count = 0;
    directory.list(&mut |name, _| count += usize::from(name.ends_with(ending.as_bytes()))).unwrap();
    count
}

#[tokio::test]
async fn many_at_once_become_packs_and_some_become_files() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    store.append_all(many(1, 2)).await.unwrap();
    assert_eq!((files(&*directory, ".json"), files(&*directory.folder("packs"), ".pack")), (2, 0));
    let stored = store.append_all(many(3, 2 * PACK + 1)).await.unwrap();
    assert!(stored.iter().map(|stored| stored.seq).eq(3..=2 * PACK + 3));
    assert_eq!((files(&*directory, ".json"), files(&*directory.folder("packs"), ".pack")), (2, 3));
    assert_eq!(count(&directory, "").await, 2 * PACK + 3);
    let tail = store.read_tail(3).await.unwrap();
    assert!(tail.messages.iter().map(|stored| stored.seq).eq(2 * PACK + 1..=2 * PACK + 3));
}

#[tokio::test]
async fn nine_at_once_do_not_wait_for_nine_files() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = opened(&directory, 64).await;
    store.append_all(many(1, 8)).await.unwrap();
    assert_eq!((files(&*directory, ".json"), files(&*directory.folder("packs"), ".pack")), (8, 0));
    store.append_all(many(9, 9)).await.unwrap();
    store.append_all(many(18, 1)).await.unwrap();
    assert_eq!((files(&*directory, ".json"), files(&*directory.folder("packs"), ".pack")), (9, 1));
    assert_eq!(count(&directory, "").await, 18);
}

#[tokio::test]
async fn long_messages_at_once_become_packs_that_readers_open() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = opened(&directory, 64).await;
    let long = |n: u64| said(format!("{n} {}", "long ".repeat(200_000)));
    let stored = store.append_all((1..=40).map(long).collect()).await.unwrap();
    assert!(stored.iter().map(|stored| stored.seq).eq(1..=40));
    assert_eq!((files(&*directory, ".json"), files(&*directory.folder("packs"), ".pack")), (0, 2));
    let tail = opened(&directory, 64).await.read_tail(7).await.unwrap();
    assert_eq!(tail.messages, stored[33..]);
}

#[tokio::test]
async fn batch_after_batch_leaves_few_packs() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    for batch in 0..100 {
        store.append_all(many(batch * 3 + 1, 3)).await.unwrap();
    }
    assert_eq!(count(&directory, "").await, 300);
    let packs = files(&*directory.folder("packs"), ".pack");
    assert!(packs < 22, "{packs} packs");
}

#[tokio::test]
async fn a_batch_broken_off_at_any_step_leaves_whole_packs_of_its_first_and_the_next_goes_on() {
    // With the very first message, with pack after pack, with an eighth pack, so that packs merge, and with files that
    // stay loose.
    for (loose, before, size) in [(1, 0, 9), (1, 1, PACK + 3), (1, 22, 9), (64, 0, 9), (64, 27, 9)]
    {
        let first = size.min(PACK);
        let mut steps = 0;
        for step in 0.. {
            let directory = Arc::new(MemoryDirectory::default());
            let faulty = FaultyDirectory::over(directory.clone());
            let store = opened(&faulty, loose).await;
            for earlier in (1..=before).step_by(3) {
                store.append_all(many(earlier, 3.min(before - earlier + 1))).await.unwrap();
            }
            // From here on nothing reaches the disk, as after a kill.
            faulty.fail(Call::Any, step, usize::MAX, broken);
            let told = store.append_all(many(before + 1, size)).await;
            let context = format!("step {step} after {before}, {loose} loose");
            let there = count(&directory, &context).await - before;
            assert!([0, first, size].contains(&there), "{context}: {there}");
            match &told {
                Ok(stored) => assert_eq!((stored.len() as u64, there), (size, size), "{context}"),
                Err(Error::Partial { stored, total, .. }) => {
                    assert_eq!((*stored as u64, *total as u64), (first, size), "{context}");
                    assert!(there >= first, "{context}");
                }
                Err(_) => assert!(there <= first, "{context}: {there}"),
            }
            let next = open(&directory).await;
            let last = before + there;
            assert_eq!(next.append_message(said(last + 1)).await.unwrap().seq, last + 1);
            next.append_all(many(last + 2, 40)).await.unwrap();
            assert_eq!(count(&directory, &context).await, last + 41);
            let report = next.verify(|_| {}).await.unwrap();
            assert!(report.findings.is_empty(), "{context}: {:?}", report.findings);
            if told.is_ok() && !faulty.was_reached() {
                break;
            }
            steps += 1;
        }
        assert!(steps > 7, "only {steps} steps");
    }
}

#[tokio::test]
async fn a_batch_that_fails_says_how_many_were_kept_and_the_rest_can_be_sent_again() {
    for (call, error) in [
        (Call::Stream, no_space as fn(&Path) -> Error),
        (Call::Overwrite, broken),
        (Call::Lock, broken),
    ] {
        let directory = Arc::new(MemoryDirectory::default());
        let faulty = FaultyDirectory::over(directory.clone());
        let store = open(&faulty).await;
        store.append_message(said(1)).await.unwrap();
        faulty.fail(call, 1, 1, error);
        let failed = store.append_all(many(2, 3 * PACK)).await;
        let Err(Error::Partial { stored, total, .. }) = failed else {
            panic!("{call:?}: {failed:?}");
        };
        assert_eq!((stored as u64, total as u64), (PACK, 3 * PACK), "{call:?}");
        let there = count(&directory, "").await;
        // A pack may exist although its head could not be written. No caller was told that it does not.
        assert!(there == PACK + 1 || call == Call::Overwrite, "{call:?}: {there}");
        store.append_all(many(there + 1, 3 * PACK + 1 - there)).await.unwrap();
        assert_eq!(count(&directory, "").await, 3 * PACK + 1, "{call:?}");
    }
}

#[tokio::test]
async fn many_messages_that_cannot_be_made_durable_are_not_acknowledged_and_stop_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    for (at, call) in [Call::Stream, Call::Sync, Call::Flush].into_iter().enumerate() {
        let root = folder.path().join(at.to_string());
        for directory in [
            Arc::new(MemoryDirectory::default()) as Arc<dyn Directory>,
            Arc::new(FsDirectory::new(&root, &[]).unwrap()),
        ] {
            let faulty = FaultyDirectory::over(directory);
            let store = open(&faulty).await;
            store.append_message(said(1)).await.unwrap();
            faulty.fail(call, 0, 1, not_durable);
            let failed = store.append_all(many(2, 9)).await;
            assert!(matches!(failed, Err(Error::NotDurable { .. })), "{call:?}: {failed:?}");
            let refused = store.append_all(many(2, 9)).await;
            assert!(matches!(refused, Err(Error::Poisoned { .. })), "{call:?}");
            let reopened = open(&faulty).await;
            let last = reopened.read_tail(1).await.unwrap().last_seq;
            assert!(last == 1 || last == 10, "{call:?}: {last}");
            assert_eq!(reopened.append_message(said("next")).await.unwrap().seq, last + 1);
            assert!(reopened.verify(|_| {}).await.unwrap().findings.is_empty(), "{call:?}");
        }
    }
}

#[tokio::test]
async fn a_pack_that_a_killed_writer_left_beyond_the_head_is_durable_before_the_next_number_is_given()
 {
    for call in [Call::Flush, Call::Sync] {
        let directory = Arc::new(MemoryDirectory::default());
        let faulty = FaultyDirectory::over(directory.clone());
        let store = open(&faulty).await;
        store.append_message(said(1)).await.unwrap();
        faulty.fail(Call::Overwrite, 0, usize::MAX, broken);
        store.append_all(many(2, 9)).await.unwrap_err();
        let next = open(&faulty).await;
        faulty.fail(call, 0, 1, not_durable);
        let failed = next.append_message(said(11)).await;
        assert!(matches!(failed, Err(Error::NotDurable { .. })), "{call:?}: {failed:?}");
        let next = open(&faulty).await;
        assert_eq!(next.append_message(said(11)).await.unwrap().seq, 11);
        assert_eq!(count(&directory, "").await, 11);
    }
}

#[tokio::test]
async fn records_of_a_killed_writer_beyond_the_head_reach_readers_with_a_cache_as_soon_as_they_count()
 {
    for count in [1, 9] {
        let directory = Arc::new(MemoryDirectory::default());
        let (faulty, watcher) = (FaultyDirectory::over(directory.clone()), open(&directory).await);
        let store = open(&faulty).await;
        store.append_message(said(1)).await.unwrap();
        assert_eq!(watcher.read_tail(9).await.unwrap().last_seq, 1);
        faulty.fail(Call::Overwrite, 0, usize::MAX, broken);
        store.append_all(many(2, count)).await.unwrap_err();
        // The next one changes nothing itself.
        let forgotten = open(&directory).await.forget(&[99..=99]).await.unwrap();
        assert_eq!(forgotten.numbers, 0);
        assert_eq!(watcher.read_tail(9).await.unwrap().last_seq, 1 + count);
        assert_eq!(watcher.append_message(said(2 + count)).await.unwrap().seq, 2 + count);
        assert_eq!(self::count(&directory, "").await, 2 + count);
    }
}

#[tokio::test]
async fn a_pack_name_that_is_taken_is_never_overwritten() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    store.append_message(said(1)).await.unwrap();
    let time = "20250824T163625123Z";
    let name = format!("{time}_0002_user.{time}_0010_user.2-10.9.pack");
    let packs = directory.folder("packs");
    assert!(packs.create(&name, b"planted").unwrap());
    let refused = store.append_all(many(2, 9)).await;
    assert!(matches!(&refused, Err(Error::Damaged { place, .. }) if place.ends_with(&name)));
    assert_eq!(packs.read(&name).unwrap().unwrap(), b"planted");
    assert_eq!(store.append_all(many(2, 8)).await.unwrap().len(), 8);
}

#[tokio::test]
async fn imported_messages_lie_at_their_own_place_in_time_however_many_there_are() {
    // One message goes into a file, the others into packs, which merge later.
    for imported in [1, 9, 700] {
        let directory = Arc::new(MemoryDirectory::default());
        let store = open(&directory).await;
        store.append_all(many(1, 20)).await.unwrap();
        store.read_tail(5).await.unwrap();
        let old = |number: u64| {
            let mut message = said(format!("old {number}"));
            // In mixed order, as other systems write them.
            let seconds = i64::try_from(number * 7 % imported).unwrap();
            message.timestamp = jiff::Timestamp::from_second(1_000_000_000 + seconds).unwrap();
            message
        };
        let stored = store.import((0..imported).map(old).collect()).await.unwrap();
        assert!(stored.iter().map(|stored| stored.seq).eq(21..=20 + imported));
        assert!(stored.iter().all(|stored| stored.ordered_at() == stored.message.timestamp));
        for _ in 0..2 {
            for store in [&store, &open(&directory).await] {
                let all = store.read_tail(usize::MAX).await.unwrap();
                assert!(all.skipped.is_empty(), "{:?}", all.skipped);
                assert!(all.messages.is_sorted_by_key(|m| (m.ordered_at(), m.seq)));
                assert!(all.messages.iter().take(imported as usize).all(|m| m.seq > 20));
                let tail = store.read_tail(5).await.unwrap();
                assert_eq!(tail.messages, all.messages[all.messages.len() - 5..]);
                let since = jiff::Timestamp::from_second(1_000_000_000).unwrap();
                let until = since + jiff::SignedDuration::from_hours(1);
                let times = store.read_times(since..until).await.unwrap();
                assert_eq!(times.messages, all.messages[..imported as usize]);
                let numbers = store.read_seqs(20..=21).await.unwrap();
                assert!(numbers.messages.iter().map(|m| m.seq).eq([21, 20]));
                assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
            }
            // The next message always comes last.
            let mut late = said("said now");
            late.timestamp = jiff::Timestamp::from_second(1_000_000_001).unwrap();
            let late = store.append_message(late).await.unwrap();
            assert_eq!(store.read_tail(1).await.unwrap().messages, [late]);
            for number in 0..30 {
                store.append_message(said(format!("later {number}"))).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn an_import_broken_off_at_any_step_keeps_whole_packs_in_the_order_handed_over() {
    for step in 0.. {
        let directory = Arc::new(MemoryDirectory::default());
        let faulty = FaultyDirectory::over(directory.clone());
        let store = open(&faulty).await;
        store.append_all(many(1, 4)).await.unwrap();
        // Higher numbers have earlier times.
        let backwards = |number: u64| {
            let mut message = said(number);
            let seconds = i64::try_from(number).unwrap();
            message.timestamp = jiff::Timestamp::from_second(1_000_000_000 - seconds).unwrap();
            message
        };
        faulty.fail(Call::Any, step, usize::MAX, broken);
        let told = store.import((5..PACK + 8).map(backwards).collect()).await;
        let next = open(&directory).await;
        let reading = next.read_tail(usize::MAX).await.unwrap();
        assert!(reading.skipped.is_empty(), "step {step}: {:?}", reading.skipped);
        let mut there: Vec<u64> = reading.messages.iter().map(|stored| stored.seq).collect();
        there.sort_unstable();
        let last = there.len() as u64;
        assert!(there.iter().copied().eq(1..=last), "step {step}: {there:?}");
        assert!([4, PACK + 4, PACK + 7].contains(&last), "step {step}: {last}");
        assert!(reading.messages.iter().all(|m| m.message.content == m.seq.to_string()));
        if let Err(Error::Partial { stored, .. }) = &told {
            assert_eq!(*stored as u64, PACK, "step {step}");
            assert!(last >= PACK + 4, "step {step}");
        }
        assert_eq!(next.append_message(said("next")).await.unwrap().seq, last + 1);
        assert!(next.verify(|_| {}).await.unwrap().findings.is_empty(), "step {step}");
        if told.is_ok() && !faulty.was_reached() {
            assert!(step > 10);
            return;
        }
    }
}
