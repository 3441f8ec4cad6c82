//! Power cuts: everything acknowledged must exist after one, whatever happened before. A process is killed at any of
//! its calls, or runs out of disk space once. Others continue and get acknowledgements. Only then the power fails.

mod disk;
mod process;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::admin::RepairOptions;
use crate::directory::Directory;
use crate::scope::Scope;
use crate::store::care::rekey::Rekey;
use crate::store::tests::failing_storage::said;
use crate::store::{
    Batch, ConversationStore, DocumentId, FileConversationStore, StoreBackend, StoreOptions,
};
use crate::{EncryptionKey, Result};
use disk::{CutOutcome, Disk};
use process::{Fault, Process};

const SEGMENT: DocumentId = DocumentId::Segment(0);
/// More calls than any process here makes.
const MOST_CALLS: usize = 1000;

fn old() -> EncryptionKey {
    EncryptionKey::from_secret("a secret of the tests of power").unwrap()
}

fn new() -> EncryptionKey {
    EncryptionKey::from_secret("the next secret of these tests").unwrap()
}

fn scopes() -> [Scope; 2] {
    [Scope::Default, Scope::Dm { user: "42".into() }]
}

async fn open_with(
    options: StoreOptions,
    root: &Arc<dyn Directory>,
    scope: &Scope,
) -> Result<FileConversationStore> {
    let levels = scope.folder().unwrap();
    let directory = levels.iter().fold(root.clone(), |directory, level| directory.folder(level));
    options.loose_files(2).scope(scope.clone()).open_directory(root.clone(), directory).await
}

async fn open(root: &Arc<dyn Directory>, scope: &Scope) -> Result<FileConversationStore> {
    open_with(StoreOptions::new(old()), root, scope).await
}

async fn open_with_both(root: &Arc<dyn Directory>, scope: &Scope) -> FileConversationStore {
    open_with(StoreOptions::new(new()).also_with(old()), root, scope).await.unwrap()
}

/// What a conversation's writers were told.
#[derive(Debug, Default)]
struct MessageRefs {
    kept: BTreeMap<u64, String>,
    forgotten: BTreeSet<u64>,
    said: usize,
}

impl MessageRefs {
    /// Appends messages at once. Returns whether they were acknowledged.
    async fn append(&mut self, store: &FileConversationStore, count: usize) -> bool {
        let messages = (self.said..self.said + count).map(said).collect();
        self.said += count;
        let Ok(stored) = store.append_all(messages).await else { return false };
        for stored in stored {
            let again = self.kept.insert(stored.seq, stored.message.content.clone());
            assert!(again.is_none(), "number {} was given twice", stored.seq);
        }
        true
    }

    /// Writes a segment of the search index that lists the messages.
    async fn index(&self, store: &FileConversationStore) {
        let Ok(state) = store.state().await else { return };
        let bytes: Vec<u8> = self.kept.keys().flat_map(|seq| seq.to_le_bytes()).collect();
        let _ = store.commit(Batch::new(&state).write(SEGMENT, bytes.into())).await;
    }

    /// Appends single messages and batches, so that there are files, packs and files that move to packs. Writes a
    /// segment of the search index. Forgets one message. Retries each failed step once.
    async fn work(&mut self, root: &Arc<dyn Directory>, scope: &Scope) {
        let Ok(store) = open(root, scope).await else { return };
        for count in [1, 5, 1, 1] {
            let _ = self.append(&store, count).await || self.append(&store, count).await;
        }
        self.index(&store).await;
        let second = self.kept.keys().nth(1).copied();
        if let Some(seq) = second {
            // It may be gone once its deletion was requested.
            self.kept.remove(&seq);
            if store.forget(&[seq..=seq]).await.is_ok() {
                self.forgotten.insert(seq);
            }
        }
        for _ in 0..2 {
            let _ = self.append(&store, 1).await || self.append(&store, 1).await;
        }
    }

    async fn is_there_after_a_cut(&self, disk: &Arc<Disk>, scope: &Scope, context: &str) {
        for luck in CutOutcome::ALL {
            let context = format!("{context}, then a cut ({luck:?})");
            let root = Process::unharmed(&disk.cut(luck));
            let store = open_with_both(&root, scope).await;
            let reading = store.read_seqs(0..=u64::MAX).await.unwrap();
            let mut there = BTreeMap::new();
            for stored in &reading.messages {
                there.insert(stored.seq, &stored.message.content);
            }
            for (seq, words) in &self.kept {
                assert_eq!(there.get(seq), Some(&words), "{context}: {seq} is lost: {there:?}");
            }
            assert!(!self.forgotten.iter().any(|seq| there.contains_key(seq)), "{context}");
            let segment = store.document(&SEGMENT).await.unwrap().unwrap_or_default();
            let indexed = segment.as_chunks::<8>().0.iter().map(|seq| u64::from_le_bytes(*seq));
            let gone: Vec<u64> = indexed.filter(|seq| !there.contains_key(seq)).collect();
            assert!(gone.is_empty(), "{context}: a segment holds {gone:?}");
            let next = store.append_message(said("next")).await.unwrap().seq;
            assert!(next > self.kept.keys().last().copied().unwrap_or(0), "{context}");
            let report = store.verify(|_| {}).await.unwrap();
            assert!(report.is_sound(), "{context}: {:?}", report.findings);
        }
    }
}

/// Runs a process once for each of its calls with a fault at that call, until a run has no fault. Returns the number
/// of calls.
async fn at_each_call(mut run: impl AsyncFnMut(usize) -> Option<String>) -> usize {
    for at in 0..MOST_CALLS {
        if run(at).await.is_none() {
            return at;
        }
    }
    panic!("more than {MOST_CALLS} calls");
}

/// One writer has a fault at each call, others continue as given, and then the power fails.
async fn survives(others: impl AsyncFn(&mut MessageRefs, &Arc<dyn Directory>, &Scope)) {
    let [all, one] = scopes();
    for (scope, fault) in [(&all, Fault::Killed), (&one, Fault::Killed), (&one, Fault::NoRoom)] {
        let calls = at_each_call(async |at| {
            let (disk, mut told) = (Arc::default(), MessageRefs::default());
            let (root, process) = Process::on(&disk, fault, at);
            told.work(&root, scope).await;
            let happened = process.fault();
            others(&mut told, &Process::unharmed(&disk), scope).await;
            let context = format!("{scope:?}: {fault:?} at call {at}, {happened:?}");
            told.is_there_after_a_cut(&disk, scope, &context).await;
            happened
        })
        .await;
        assert!(calls > 40, "six appends, some of them to packs, took {calls} calls");
    }
}

#[tokio::test]
async fn a_writer_that_is_killed_or_has_no_room_got_no_acknowledgement_that_a_cut_breaks() {
    survives(async |_, _, _| {}).await;
}

#[tokio::test]
async fn one_message_after_a_writer_that_was_killed_or_had_no_room_outlives_a_cut() {
    survives(async |told, root, scope| {
        assert!(told.append(&open(root, scope).await.unwrap(), 1).await);
    })
    .await;
}

#[tokio::test]
async fn many_messages_at_once_after_a_writer_that_was_killed_or_had_no_room_outlive_a_cut() {
    survives(async |told, root, scope| {
        assert!(told.append(&open(root, scope).await.unwrap(), 5).await);
    })
    .await;
}

#[tokio::test]
async fn packing_and_appending_after_a_writer_that_was_killed_or_had_no_room_outlive_a_cut() {
    survives(async |told, root, scope| {
        let store = open(root, scope).await.unwrap();
        store.pack(|_| {}).await.unwrap();
        assert!(told.append(&store, 1).await && told.append(&store, 5).await);
    })
    .await;
}

/// A conversation under the old key, in files and packs.
async fn filled(scope: &Scope) -> (Arc<Disk>, MessageRefs) {
    let (disk, mut told) = (Arc::default(), MessageRefs::default());
    let store = open(&Process::unharmed(&disk), scope).await.unwrap();
    for count in [1, 5, 1] {
        assert!(told.append(&store, count).await);
    }
    (disk, told)
}

async fn rekey(root: Arc<dyn Directory>) -> bool {
    let run = move || Rekey::new(old(), new()).run_on(&root, |_| ControlFlow::Continue(()));
    tokio::task::spawn_blocking(run).await.unwrap().is_ok()
}

#[tokio::test]
async fn what_is_sealed_under_a_new_key_outlives_a_cut_though_the_change_was_broken_off() {
    let mishaps = [(Fault::NoRoom, 5), (Fault::Killed, 1)];
    for (scope, (fault, count)) in scopes().into_iter().zip(mishaps) {
        let calls = at_each_call(async |at| {
            let (disk, mut told) = filled(&scope).await;
            let (root, process) = Process::on(&disk, fault, at);
            let is_done = rekey(root).await;
            let happened = process.fault();
            assert!(is_done || happened.is_some());
            let context = format!("{scope:?}: {fault:?} at call {at}, {happened:?}");
            told.is_there_after_a_cut(&disk, &scope, &context).await;
            let store = open_with_both(&Process::unharmed(&disk), &scope).await;
            assert!(told.append(&store, count).await);
            told.is_there_after_a_cut(&disk, &scope, &format!("{context}, appended")).await;
            happened
        })
        .await;
        assert!(calls > 10, "the vault twice, the head, files and a pack took {calls} calls");
    }
}

#[tokio::test]
async fn a_change_of_keys_that_is_gone_on_with_seals_nothing_under_a_key_that_a_cut_takes() {
    let scope = Scope::Dm { user: "42".into() };
    // The last call before the conversation itself: syncing the root with the new key list.
    let mut first = 0;
    loop {
        let (disk, _) = filled(&scope).await;
        let (root, process) = Process::on(&disk, Fault::Killed, first + 1);
        assert!(!rekey(root).await);
        let fault = process.fault().unwrap();
        if fault.contains("42") || fault.contains("catalog") {
            break;
        }
        first += 1;
    }
    let calls = at_each_call(async |second| {
        let (disk, told) = filled(&scope).await;
        let (root, killed) = Process::on(&disk, Fault::Killed, first);
        assert!(!rekey(root).await);
        assert_eq!(killed.fault().unwrap(), "sync root");
        let (root, process) = Process::on(&disk, Fault::Killed, second);
        rekey(root).await;
        let context = format!("killed at call {first}, then {second}, {:?}", process.fault());
        told.is_there_after_a_cut(&disk, &scope, &context).await;
        process.fault()
    })
    .await;
    assert!(calls > 10, "the vault, the head, files and a pack took {calls} calls");
}

#[tokio::test]
async fn a_repair_that_is_broken_off_and_done_again_makes_a_head_for_good() {
    async fn repair(root: &Arc<dyn Directory>) {
        if let Ok(store) = open(root, &Scope::Default).await {
            // It may be killed.
            let _ = store.repair(RepairOptions::default(), |_| {}).await;
        }
    }
    let calls = at_each_call(async |first| {
        let mut fault = None;
        at_each_call(async |second| {
            let (disk, mut told) = (Arc::default(), MessageRefs::default());
            let store = open(&Process::unharmed(&disk), &Scope::Default).await.unwrap();
            for _ in 1..=3 {
                assert!(told.append(&store, 1).await);
            }
            disk.rename("head", "head", "heap");
            let (root, process) = Process::on(&disk, Fault::Killed, first);
            repair(&root).await;
            fault = process.fault();
            let (root, process) = Process::on(&disk, Fault::Killed, second);
            repair(&root).await;
            for luck in CutOutcome::ALL {
                let root = Process::unharmed(&disk.cut(luck));
                repair(&root).await;
                let store = open(&root, &Scope::Default).await.unwrap();
                let there = store.read_seqs(0..=u64::MAX).await.unwrap().messages.len();
                let again = process.fault();
                let context = format!("{fault:?} at {first}, {again:?} at {second}, {luck:?}");
                assert_eq!(there, 3, "{context}");
                let findings = store.verify(|_| {}).await.unwrap().findings;
                let others = findings.iter().filter(|found| found.file.as_deref() != Some("heap"));
                assert_eq!(others.count(), 0, "{context}: {findings:?}");
            }
            process.fault()
        })
        .await;
        fault
    })
    .await;
    assert!(calls > 3, "a repair took {calls} calls");
}
