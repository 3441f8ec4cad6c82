//! Several processes and stores working on one conversation.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::*;
use rustix::process::{Pid, Signal, kill_process};
use sottovoce::admin::Report;
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope};

const PATIENT: Duration = Duration::from_secs(120);
const SECOND: Duration = Duration::from_secs(1);
const WRITERS: u64 = 8;
const EACH: u64 = 1_000;
/// How many appends of a process are single; the rest come in small batches.
const SINGLY: u64 = 20;
const BATCH: u64 = 49;

async fn open_patiently(root: &Path) -> FileConversationStore {
    options().lock_timeout(PATIENT).open(root).await.unwrap()
}

async fn sound(root: &Path) -> Report {
    let report = open(root).await.verify(|_| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    report
}

fn spawn(test: &str, root: &Path) -> Child {
    child(test, root).stdout(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
}

/// Waits until there are this many records.
fn wait_for_records(root: &Path, count: usize) {
    let began = Instant::now();
    while !root.exists() || records(root).len() < count {
        assert!(began.elapsed() < PATIENT, "the other process writes nothing");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn eight_processes_append_a_thousand_each_without_a_gap_or_a_loss() {
    // In memory if possible, because this test does not concern power cuts.
    let in_memory = Path::new("/dev/shm");
    let folder = tempfile::tempdir_in(in_memory).or_else(|_| tempfile::tempdir()).unwrap();
    // Not even the root exists: all eight processes create the key list.
    let root = folder.path().join("root");
    let writers: Vec<Child> =
        (0..WRITERS).map(|_| spawn("a_process_that_appends_a_thousand", &root)).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let report = block_on(sound(&root));
    assert_eq!((report.messages as u64, report.last_seq), (WRITERS * EACH, WRITERS * EACH));

    let reading = block_on(async { open(&root).await.read_tail(usize::MAX).await.unwrap() });
    assert!(reading.messages.iter().map(|stored| stored.seq).eq(1..=WRITERS * EACH));
    // Every process's messages all exist, in the order in which it appended them.
    let mut of_process: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for text in texts(&reading) {
        let (process, n) = text.split_once(' ').unwrap();
        of_process.entry(process).or_default().push(n.parse().unwrap());
    }
    assert_eq!(of_process.len() as u64, WRITERS);
    assert!(of_process.values().all(|numbers| numbers.iter().copied().eq(1..=EACH)));
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_appends_a_thousand() {
    let Some(root) = child_folder() else { return };
    let id = std::process::id();
    block_on(async {
        let store = open_patiently(&root).await;
        for n in 1..=SINGLY {
            store.append_message(said(format!("{id} {n}"))).await.unwrap();
        }
        let mut first = SINGLY + 1;
        while first <= EACH {
            let last = (first + BATCH - 1).min(EACH);
            let batch = (first..=last).map(|n| said(format!("{id} {n}"))).collect();
            let stored = store.append_all(batch).await.unwrap();
            assert!(stored.is_sorted_by(|a, b| a.seq + 1 == b.seq), "a batch stays together");
            first = last + 1;
        }
    });
}

#[test]
fn processes_that_meet_on_a_new_root_agree_on_one_vault_whatever_their_scope() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let root = folder.path().join(round.to_string());
        let writers: Vec<Child> =
            (0..6).map(|_| spawn("a_process_that_writes_in_every_scope", &root)).collect();
        for mut writer in writers {
            assert!(writer.wait().unwrap().success());
        }
        for scope in scopes() {
            let store = block_on(options().scope(scope).open(&root)).unwrap();
            let report = block_on(store.verify(|_| {})).unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            assert_eq!((report.messages, report.last_seq), (12, 12));
        }
    }
}

fn scopes() -> [Scope; 3] {
    [
        Scope::Dm { user: "bob".into() },
        Scope::Default,
        Scope::Guild { guild: "g".into(), channel: "c".into(), user: "u".into() },
    ]
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_writes_in_every_scope() {
    let Some(root) = child_folder() else { return };
    let mut scopes = scopes();
    scopes.rotate_left(usize::try_from(std::process::id()).unwrap() % 3);
    block_on(async {
        for n in 0..2 {
            for scope in &scopes {
                let options = options().lock_timeout(PATIENT).scope(scope.clone());
                options.open(&root).await.unwrap().append_message(said(n)).await.unwrap();
            }
        }
    });
}

/// Reads until it is stopped, and checks each result against the one before.
async fn watch(store: &FileConversationStore, stop: &AtomicBool) -> u64 {
    let mut newest = 0;
    let mut readings = 0;
    while !stop.load(Ordering::Relaxed) {
        for n in [1, 10, 500] {
            let reading = store.read_tail(n).await.unwrap();
            assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
            let seqs: Vec<u64> = reading.messages.iter().map(|stored| stored.seq).collect();
            let last = seqs.last().copied().unwrap_or(0);
            assert!(last >= newest, "a tail up to {last} after one up to {newest}");
            let first = (last + 1).saturating_sub(n as u64).max(1);
            assert!(seqs.iter().copied().eq(first..=last), "{n} of {last}: {seqs:?}");
            for stored in &reading.messages {
                let whole = stored.message.content.len() == 2_000;
                assert!(whole && stored.message.content.ends_with(" end"), "half a record");
            }
            newest = last;
            readings += 1;
        }
        tokio::task::yield_now().await;
    }
    readings
}

fn long_text() -> String {
    format!("{:1996} end", "begin")
}

#[test]
fn readers_during_appends_see_whole_records_and_never_an_older_tail_than_before() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let mut watching = Vec::new();
        // Two tasks share an open store, and one has its own.
        let shared = block_on(open(&root));
        for store in [shared.clone(), shared, block_on(open(&root))] {
            let stop = &stop;
            watching.push(threads.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(watch(&store, stop))
            }));
        }
        let mut writers = [0, 1].map(|_| spawn("a_process_that_appends_long_messages", &root));
        let done: Vec<_> = writers.iter_mut().map(|writer| writer.wait().unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        for watcher in watching {
            let readings = watcher.join().unwrap();
            assert!(readings > 30, "only {readings} readings during the appends");
        }
        assert!(done.iter().all(|status| status.success()));
    });
    assert_eq!(block_on(sound(&root)).last_seq, 600);
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_appends_long_messages() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open_patiently(&root).await;
        for n in 0..60 {
            if n % 3 == 0 {
                store.append_all(vec![said(long_text()); 13]).await.unwrap();
            } else {
                store.append_message(said(long_text())).await.unwrap();
            }
        }
    });
}

#[test]
fn a_check_during_appends_and_forgetting_calls_nothing_lost() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    block_on(filled(&root, 3));
    let mut writer = spawn("a_process_that_appends_and_forgets", &root);
    let mut checks = 0;
    block_on(async {
        let store = open(&root).await;
        while writer.try_wait().unwrap().is_none() {
            let report = store.verify(|_| {}).await.unwrap();
            assert!(report.is_sound(), "{:?}", report.findings);
            let reading = store.read_tail(20).await.unwrap();
            assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
            checks += 1;
        }
    });
    assert!(writer.wait().unwrap().success());
    assert!(checks > 10, "only {checks} checks");
    assert_eq!(block_on(sound(&root)).messages, 63);
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_appends_and_forgets() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        let store = open_patiently(&root).await;
        for _ in 0..60 {
            let stored = store.append_all((1..=7).map(said).collect()).await.unwrap();
            store.forget(&[stored[1].seq..=stored[6].seq]).await.unwrap();
        }
    });
}

#[test]
fn readers_of_the_store_that_appends_never_see_an_older_tail_either() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let store = block_on(open(folder.path()));
    std::thread::scope(|threads| {
        let watching: Vec<_> = (0..3)
            .map(|_| {
                let (store, stop) = (store.clone(), &stop);
                threads.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    runtime.block_on(watch(&store, stop))
                })
            })
            .collect();
        block_on(async {
            for n in 0..300 {
                let count = if n % 7 == 0 { 5 } else { 1 };
                store.append_all(vec![said(long_text()); count]).await.unwrap();
            }
        });
        stop.store(true, Ordering::Relaxed);
        for watcher in watching {
            assert!(watcher.join().unwrap() > 30);
        }
    });
}

#[test]
fn two_stores_of_one_process_see_each_others_appends_and_share_the_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let seqs: Vec<u64> = std::thread::scope(|threads| {
        let appending: Vec<_> = (0..4)
            .map(|_| {
                let root = folder.path();
                threads.spawn(move || {
                    block_on(async {
                        let store = open_patiently(root).await;
                        let mut seqs = Vec::new();
                        for n in 0..25 {
                            let seq = store.append_message(said(n)).await.unwrap().seq;
                            let tail = store.read_tail(1).await.unwrap();
                            assert!(tail.messages[0].seq >= seq, "one's own words are in the tail");
                            seqs.push(seq);
                        }
                        seqs
                    })
                })
            })
            .collect();
        appending.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(seqs.into_iter().collect::<BTreeSet<_>>(), (1..=100).collect());
    assert_eq!(block_on(sound(folder.path())).messages, 100);
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_that_holds_the_lock_for_long() {
    let Some(root) = child_folder() else { return };
    block_on(async {
        // Enough that it does not pack them at once. Each answer gets a file of its own.
        let store = options().loose_files(1_000).open(&root).await.unwrap();
        let first = store.append_message(said(1)).await.unwrap();
        store.append_answers((2..=1_500).map(said).collect(), &first).await.unwrap();
    });
}

#[test]
fn a_killed_holder_of_the_lock_leaves_it_free_and_the_numbers_whole() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    // A store opened before, with a cached folder.
    let before = block_on(filled(&root, 3));
    let mut holder = spawn("a_process_that_holds_the_lock_for_long", &root);
    wait_for_records(&root, 20);
    signal(&holder, Signal::KILL);
    holder.wait().unwrap();
    let there = records(&root).len() as u64;
    assert!(there < 1_503, "the holder was done before it was killed");
    let seq = block_on(before.append_message(said("next"))).unwrap().seq;
    assert_eq!(seq, there + 1);
    let report = block_on(sound(&root));
    assert_eq!((report.messages as u64, report.last_seq), (there + 1, there + 1));
}

#[test]
fn a_stopped_holder_of_the_lock_is_a_timeout_and_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let mut holder = spawn("a_process_that_holds_the_lock_for_long", &root);
    wait_for_records(&root, 20);
    signal(&holder, Signal::STOP);
    block_on(async {
        let store = options().lock_timeout(SECOND / 4).open(&root).await.unwrap();
        for _ in 0..2 {
            let began = Instant::now();
            let refused = store.append_message(said("refused")).await;
            let took = began.elapsed();
            assert!(
                matches!(refused, Err(Error::LockTimeout { waited_ms: 250, .. })),
                "{refused:?}"
            );
            assert!(took >= SECOND / 4, "{took:?}");
        }
        // Reading needs no lock.
        assert!(store.read_tail(10).await.unwrap().messages.len() == 10);
    });
    signal(&holder, Signal::CONT);
    assert!(holder.wait().unwrap().success());
    let seq = block_on(async { open(&root).await.append_message(said("next")).await.unwrap().seq });
    assert_eq!(seq, 1_501);
    assert_eq!(block_on(sound(&root)).messages, 1_501);
}
