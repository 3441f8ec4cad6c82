//! Interleavings: readers and a writer that share one open store and its cache, interrupted at every call.
//!
//! The writer waits in tokio's lock, on blocking threads, and in the system's lock for other processes. Tools that
//! schedule threads themselves (loom, shuttle) would have to replace all three. Threads of one process can only
//! disagree between calls to the backend. The tests interrupt them there, once and twice.

use std::sync::Arc;

use crate::EncryptionKey;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::tests::failing_storage::{Call, FaultyDirectory, said};
use crate::store::{ConversationStore, FileConversationStore, StoreOptions};

/// The calls during which other threads may use the cache.
const CALLS: [Call; 8] = [
    Call::List,
    Call::Read,
    Call::Create,
    Call::Overwrite,
    Call::Sync,
    Call::Stream,
    Call::Flush,
    Call::Remove,
];

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// A store that packs at nearly every append, with the messages `1` to `before`.
fn opened(before: u64) -> (Arc<FaultyDirectory>, FileConversationStore) {
    let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
    let store = open(&faulty);
    append(&store, 1..=before);
    (faulty, store)
}

fn open(faulty: &Arc<FaultyDirectory>) -> FileConversationStore {
    let key = EncryptionKey::from_secret("a secret of the interleaving tests").unwrap();
    let directory: Arc<dyn Directory> = faulty.clone();
    block_on(StoreOptions::new(key).loose_files(1).open_directory(directory.clone(), directory))
        .unwrap()
}

fn append(store: &FileConversationStore, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        assert_eq!(block_on(store.append_message(said(number))).unwrap().seq, number);
    }
}

/// Returns the last number of a tail. Checks that the tail holds every number once, with its own text.
fn last(store: &FileConversationStore, n: usize, context: &str) -> u64 {
    let reading = block_on(store.read_tail(n)).unwrap();
    assert!(reading.skipped.is_empty(), "{context}: {:?}", reading.skipped);
    let seqs: Vec<u64> = reading.messages.iter().map(|stored| stored.seq).collect();
    let last = seqs.last().copied().unwrap_or(0);
    let first = (last + 1).saturating_sub(n as u64).max(1);
    assert!(seqs.iter().copied().eq(first..=last), "{context}: {seqs:?}");
    assert!(
        reading.messages.iter().all(|stored| stored.message.content == stored.seq.to_string()),
        "{context}"
    );
    last
}

#[test]
fn a_reader_overtaken_by_appends_at_any_two_calls_never_brings_back_what_was_before() {
    for call in [Call::List, Call::Read] {
        for first in 0.. {
            let mut interrupted = false;
            for second in 0.. {
                let context = format!("before {call:?} number {first}, then {second}");
                let (faulty, warm) = opened(16);
                // Another reader's cache of the same folder is outdated.
                let reader = open(&faulty);
                let (again, writer) = (Arc::clone(&faulty), reader.clone());
                faulty.interfere(call, first, move || {
                    append(&writer, 17..=17);
                    assert_eq!(last(&writer, 3, "right after"), 17);
                    let writer = writer.clone();
                    again.interfere(call, second, move || append(&writer, 18..=18));
                });
                let seen = last(&reader, 40, &context);
                let done = faulty.has_interfered();
                faulty.interfere(Call::Any, 0, || {});
                let now = last(&reader, 5, &context);
                assert!(seen >= 16 && now >= seen, "{context}: {now} after {seen}");
                let written = last(&warm, 5, &context);
                assert_eq!(now, written, "{context}");
                interrupted |= written > 16;
                if !done || written == 16 {
                    break;
                }
            }
            if !interrupted {
                assert!(first > 2, "{call:?}");
                break;
            }
        }
    }
}

#[test]
fn readers_that_come_at_any_call_of_a_writer_never_see_an_older_tail_than_before() {
    for call in CALLS {
        for after in 0.. {
            let context = format!("before {call:?} number {after}");
            let (faulty, store) = opened(16);
            let reader = store.clone();
            let inner = context.clone();
            faulty.interfere(call, after, move || {
                let before = last(&reader, 3, &inner);
                for n in [40, 1, 3] {
                    assert!(last(&reader, n, &inner) >= before, "{inner}");
                }
            });
            // These appends pack and merge packs.
            append(&store, 17..=18);
            let done = faulty.has_interfered();
            faulty.interfere(Call::Any, 0, || {});
            assert_eq!(last(&store, 40, &context), 18, "{context}");
            assert!(block_on(store.verify(|_| {})).unwrap().findings.is_empty(), "{context}");
            if !done {
                assert!(after > 0, "{call:?}");
                break;
            }
        }
    }
}

#[test]
fn appends_that_meet_each_take_a_number_of_their_own_in_whatever_order() {
    for round in 0..50 {
        let (_, store) = opened(3);
        let seqs: Vec<u64> = std::thread::scope(|threads| {
            let appending: Vec<_> = (0..4)
                .map(|thread| {
                    let store = store.clone();
                    threads.spawn(move || {
                        block_on(async {
                            let mut seqs = Vec::new();
                            for n in 0..5 {
                                let stored = store.append_message(said(n)).await.unwrap();
                                seqs.push(stored.seq);
                                let n = 1 + (round + thread + n) % 4;
                                let tail = store.read_tail(n).await.unwrap();
                                assert!(tail.last_seq >= stored.seq, "one's own words are there");
                            }
                            seqs
                        })
                    })
                })
                .collect();
            appending.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut sorted = seqs;
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(4..=23), "{sorted:?}");
    }
}
