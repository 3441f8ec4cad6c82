//! The head's shortcut: it may save listing the folder, but must never hide a change.

use std::sync::Arc;

use crate::clock::ManualClock;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::ReadResult;
use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken, said};
use crate::store::{ConversationStore, FileConversationStore, StoreOptions};
use crate::{ChatMessage, ChatRole, EncryptionKey};

async fn open(directory: &Arc<impl Directory + 'static>, loose: usize) -> FileConversationStore {
    let key = EncryptionKey::from_secret("a secret of the glance tests").unwrap();
    let clock = ManualClock::at_utc("2025-08-24T17:00:00Z".parse().unwrap());
    let options = StoreOptions::new(key).loose_files(loose).clock(Arc::new(clock));
    let directory: Arc<dyn Directory> = directory.clone();
    options.open_directory(directory.clone(), directory).await.unwrap()
}

async fn appended(store: &FileConversationStore, count: usize) {
    for _ in 0..count {
        let next = store.read_tail(1).await.unwrap().last_seq + 1;
        assert_eq!(store.append_message(said(next)).await.unwrap().seq, next);
    }
}

fn seqs(reading: &ReadResult) -> Vec<u64> {
    reading.messages.iter().map(|stored| stored.seq).collect()
}

fn record_names(directory: &dyn Directory) -> Vec<String> {
    let mut names = Vec::new();
    directory.list(&mut |name, _| names.push(String::from_utf8(name.into()).unwrap())).unwrap();
    names.retain(|name| name.ends_with(".json"));
    names.sort();
    names
}

#[tokio::test]
async fn the_newest_end_takes_no_look_at_the_folder_however_long_the_conversation() {
    for count in [1, 6, 40] {
        let directory = Arc::new(MemoryDirectory::default());
        let faulty = FaultyDirectory::over(directory.clone());
        let writer = open(&directory, 8).await;
        appended(&writer, count).await;
        faulty.fail(Call::List, 0, usize::MAX, broken);
        let reader = open(&faulty, 8).await;
        let last = count as u64;
        for more in 0..4 {
            // The first read starts with an empty cache, the others follow appends of another store.
            let tail = reader.read_tail(6).await.unwrap();
            assert!(
                seqs(&tail).into_iter().eq((last + more).saturating_sub(5).max(1)..=last + more)
            );
            appended(&writer, 1).await;
        }
        appended(&writer, 4).await;
        let tail = reader.read_tail(6).await.unwrap();
        assert!(seqs(&tail).into_iter().eq((last + 8).saturating_sub(5)..=last + 8));
        assert!(!faulty.was_reached());
        // More messages than the head names: the folder is listed.
        appended(&writer, 30).await;
        assert!(reader.read_tail(6).await.is_err());
        faulty.fail(Call::List, 0, 0, broken);
        assert!(seqs(&reader.read_tail(6).await.unwrap()).into_iter().eq(last + 33..=last + 38));
    }
}

#[tokio::test]
async fn what_was_kept_at_once_is_read_from_its_pack_without_a_look_at_the_folder() {
    let directory = Arc::new(MemoryDirectory::default());
    let faulty = FaultyDirectory::over(directory.clone());
    let writer = open(&directory, 8).await;
    writer.append_all((1..=300).map(said).collect()).await.unwrap();
    assert!(record_names(&*directory).is_empty());
    for last in 300..=309 {
        // One listing, of the packs.
        faulty.fail(Call::List, 1, usize::MAX, broken);
        let tail = open(&faulty, 8).await.read_tail(6).await.unwrap();
        assert!(seqs(&tail).into_iter().eq(last - 5..=last), "{last}");
        assert!(tail.skipped.is_empty() && tail.last_seq == last);
        assert!(!faulty.was_reached());
        appended(&writer, 1).await;
    }
}

#[tokio::test]
async fn a_range_of_packs_that_is_read_again_is_neither_listed_nor_opened() {
    let directory = Arc::new(MemoryDirectory::default());
    let faulty = FaultyDirectory::over(directory.clone());
    let writer = open(&directory, 8).await;
    writer.append_all((1..=300).map(said).collect()).await.unwrap();
    let reader = open(&faulty, 8).await;
    let read = reader.read_seqs(100..=199).await.unwrap();
    faulty.fail(Call::List, 0, usize::MAX, broken);
    let (calls, _) = faulty.counted();
    for (first, last) in [(100, 199), (120, 130)] {
        let again = reader.read_seqs(first..=last).await.unwrap();
        assert!(seqs(&again).into_iter().eq(first..=last));
    }
    assert_eq!(read.messages.len(), 100);
    // Reads the head twice, its stamps before and during the read, and checks for a writer's lock.
    assert!(faulty.counted().0 - calls <= 8, "{}", faulty.counted().0 - calls);
    // One appended message needs a listing of the folder, but none of the packs' lines.
    faulty.fail(Call::List, usize::MAX, 0, broken);
    appended(&writer, 1).await;
    assert!(seqs(&reader.read_seqs(100..=301).await.unwrap()).into_iter().eq(100..=301));
    // A forgotten message is dropped from the cache too.
    writer.forget(&[150..=150]).await.unwrap();
    assert_eq!(reader.read_seqs(149..=151).await.unwrap().messages.len(), 2);
}

#[tokio::test]
async fn a_document_and_packing_leave_the_head_as_good_as_it_was() {
    let directory = Arc::new(MemoryDirectory::default());
    let faulty = FaultyDirectory::over(directory.clone());
    let writer = open(&directory, 8).await;
    // The last of these is the ninth, one more than the head names.
    appended(&writer, 17).await;
    assert_eq!(record_names(&*directory).len(), 8);
    writer.write_document(crate::store::Document::Calibration, b"{}").await.unwrap();
    faulty.fail(Call::List, 0, usize::MAX, broken);
    let tail = open(&faulty, 8).await.read_tail(6).await.unwrap();
    assert!(seqs(&tail).into_iter().eq(12..=17));
}

type Interference = fn(&Arc<MemoryDirectory>, &[u8]);

fn block_on(work: impl Future<Output = ()> + Send) {
    let run = || tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work);
    std::thread::scope(|scope| scope.spawn(run).join().unwrap());
}

/// What may happen between two reads of thirty messages, when the first used the head of message two.
const INTERFERENCE: [(&str, Interference); 14] = [
    ("nothing", |_, _| {}),
    ("one appended", |directory, _| {
        block_on(async { appended(&open(directory, 8).await, 1).await })
    }),
    ("nine appended", |directory, _| {
        block_on(async { appended(&open(directory, 8).await, 9).await })
    }),
    ("a hundred appended", |directory, _| {
        block_on(async { appended(&open(directory, 8).await, 100).await })
    }),
    ("many at once", |directory, _| {
        block_on(async {
            let messages = (0..500).map(said).collect();
            open(directory, 8).await.append_all(messages).await.unwrap();
        });
    }),
    ("packed with the next", |directory, _| {
        block_on(async {
            appended(&open(directory, 8).await, 1).await;
            appended(&open(directory, 1).await, 1).await;
        });
    }),
    ("the newest forgotten", |directory, _| {
        block_on(async { drop(open(directory, 8).await.forget(&[30..=30]).await.unwrap()) });
    }),
    ("forgotten and appended", |directory, _| {
        block_on(async {
            let store = open(directory, 8).await;
            appended(&store, 1).await;
            store.forget(&[29..=29, 31..=31]).await.unwrap();
            appended(&store, 2).await;
        });
    }),
    ("older ones imported", |directory, _| {
        block_on(async {
            let at = "2024-01-01T00:00:00Z".parse().unwrap();
            let old = ChatMessage::at(ChatRole::User, "old", at);
            let store = open(directory, 8).await;
            store.import(vec![old.clone(), said("new"), old]).await.unwrap();
            appended(&store, 1).await;
        });
    }),
    ("an old head put back", |directory, head| {
        block_on(async { appended(&open(directory, 8).await, 3).await });
        directory.overwrite("head", head).unwrap();
    }),
    ("a head between put back", |directory, _| {
        block_on(async { appended(&open(directory, 8).await, 1).await });
        let between = directory.read("head").unwrap().unwrap();
        block_on(async { appended(&open(directory, 8).await, 2).await });
        directory.overwrite("head", &between).unwrap();
    }),
    ("taken away and put back by a sync, with the head", |directory, head| {
        let newest = record_names(&**directory).pop().unwrap();
        let bytes = directory.read(&newest).unwrap().unwrap();
        directory.remove(&newest).unwrap();
        directory.overwrite("head", head).unwrap();
        directory.create(&newest, &bytes).unwrap();
    }),
    ("the newest taken away", |directory, _| {
        directory.remove(record_names(&**directory).last().unwrap()).unwrap();
    }),
    ("a strange name planted", |directory, _| {
        directory.create("99990101T000000000Z_9999_user.json", b"{}").unwrap();
    }),
];

#[tokio::test]
async fn whatever_happens_between_two_readings_both_say_what_the_folder_says() {
    for (what, interfere) in INTERFERENCE {
        for then_append in [0, 1] {
            let directory = Arc::new(MemoryDirectory::default());
            appended(&open(&directory, 8).await, 28).await;
            let head = directory.read("head").unwrap().unwrap();
            appended(&open(&directory, 8).await, 2).await;
            let mut warm = Vec::new();
            for n in [0, 1, 6, 20] {
                let store = open(&directory, 8).await;
                store.read_tail(n).await.unwrap();
                warm.push(store);
            }
            let seen = directory.read("head").unwrap();
            interfere(&directory, &head);
            block_on(async { appended(&open(&directory, 8).await, then_append).await });
            if directory.read("head").unwrap() == seen {
                // The cache stays valid until the head changes.
                warm.clear();
            }
            let whole = open(&directory, 8).await.read_tail(usize::MAX).await.unwrap();
            let expected = seqs(&whole);
            for n in [6, 1, 20, 0] {
                for store in warm.iter().chain([&open(&directory, 8).await]) {
                    let tail = store.read_tail(n).await.unwrap();
                    let context = format!("{what}, {then_append} appended then, tail of {n}");
                    assert_eq!(tail.last_seq, whole.last_seq, "{context}");
                    assert_eq!(seqs(&tail), expected[expected.len() - n..], "{context}");
                    assert_eq!(tail.skipped, whole.skipped, "{context}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_head_of_another_conversation_names_nothing_here() {
    let (here, there) =
        (Arc::new(MemoryDirectory::default()), Arc::new(MemoryDirectory::default()));
    appended(&open(&here, 8).await, 3).await;
    there.create("vault", &here.read("vault").unwrap().unwrap()).unwrap();
    let key = EncryptionKey::from_secret("a secret of the glance tests").unwrap();
    let other = StoreOptions::new(key).scope(crate::Scope::Dm { user: "42".into() });
    let other = other.open_directory(there.clone(), there.clone()).await.unwrap();
    let warm = open(&here, 8).await;
    warm.read_tail(2).await.unwrap();
    appended(&other, 5).await;
    here.overwrite("head", &there.read("head").unwrap().unwrap()).unwrap();
    while here.change_stamp().unwrap() < there.change_stamp().unwrap() {
        here.renew_change_stamp().unwrap();
    }
    assert_eq!(here.change_stamp().unwrap(), there.change_stamp().unwrap());
    for store in [warm, open(&here, 8).await] {
        let tail = store.read_tail(9).await.unwrap();
        assert_eq!(seqs(&tail), [1, 2, 3]);
        assert_eq!(tail.skipped.len(), 1, "{:?}", tail.skipped);
    }
}

#[tokio::test]
async fn numbers_are_found_by_halving_and_where_they_do_not_go_with_time_by_reading_all() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 8).await;
    let spoken = |from: i64| {
        move |n: i64| {
            let at = jiff::Timestamp::from_second(from + n * 20).unwrap();
            ChatMessage::at(ChatRole::User, format!("{n:300}"), at)
        }
    };
    store.append_all((0..2_000).map(spoken(1_700_000_000)).collect()).await.unwrap();
    store.import((0..900).map(spoken(1_600_000_000)).collect()).await.unwrap();
    // Between the others, so that numbers in merged packs are not ascending.
    store.import((0..900).map(spoken(1_700_000_007)).collect()).await.unwrap();
    store.forget(&[40..=60, 2_500..=2_500]).await.unwrap();
    store.pack(|_| {}).await.ok();
    let whole = store.read_seqs(1..=u64::MAX).await.unwrap();
    assert_eq!(whole.messages.len(), 3_800 - 22);
    for threads in [1, 2, 5] {
        let key = EncryptionKey::from_secret("a secret of the glance tests").unwrap();
        let options = StoreOptions::new(key).threads(threads);
        let reader = options.open_directory(directory.clone(), directory.clone()).await.unwrap();
        let all = reader.read_seqs(1..=u64::MAX).await.unwrap();
        assert_eq!(all.messages, whole.messages);
        for (first, last) in [
            (1, 1),
            (35, 45),
            (41, 59),
            (1_990, 2_010),
            (2_499, 2_501),
            (3_000, 3_009),
            (9_999, 10_000),
        ] {
            let range = reader.read_seqs(first..=last).await.unwrap();
            let expected: Vec<_> =
                whole.messages.iter().filter(|m| (first..=last).contains(&m.seq)).collect();
            assert!(range.messages.iter().eq(expected), "{first} to {last}");
        }
        for (from, hours) in [(1_600_000_000, 1), (1_700_003_000, 2), (1_650_000_000, 24)] {
            let from = jiff::Timestamp::from_second(from).unwrap();
            let to = from + jiff::SignedDuration::from_hours(hours);
            let day = reader.read_times(from..to).await.unwrap();
            let expected: Vec<_> =
                whole.messages.iter().filter(|m| (from..to).contains(&m.ordered_at())).collect();
            assert!(day.messages.iter().eq(expected));
        }
    }
}

#[tokio::test]
async fn what_was_published_before_its_writer_was_killed_is_seen_by_who_opens_the_store_then() {
    let directory = Arc::new(MemoryDirectory::default());
    appended(&open(&directory, 8).await, 9).await;
    let head = directory.read("head").unwrap().unwrap();
    appended(&open(&directory, 8).await, 1).await;
    directory.overwrite("head", &head).unwrap();
    for n in [1, 6, 9] {
        let tail = open(&directory, 8).await.read_tail(n).await.unwrap();
        assert!(seqs(&tail).into_iter().eq(11 - n as u64..=10), "{n}");
    }
    // Not even a written document hides it again.
    let writer = open(&directory, 8).await;
    writer.write_document(crate::store::Document::Calibration, b"{}").await.unwrap();
    assert_eq!(seqs(&open(&directory, 8).await.read_tail(2).await.unwrap()), [9, 10]);
}
