//! Setbacks: temporary failures and restored backups must leave nothing permanent behind.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::ReadResult;
use crate::store::record::import_digest::ImportTombstones;
use crate::store::record::import_digest::Origin;
use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken, said};
use crate::store::{ConversationStore, Document, FileConversationStore, StoreOptions};
use crate::{ChatMessage, EncryptionKey};

async fn open(directory: &Arc<impl Directory + 'static>, loose: usize) -> FileConversationStore {
    let key = EncryptionKey::from_secret("a secret of the tests of setbacks").unwrap();
    let directory: Arc<dyn Directory> = directory.clone();
    StoreOptions::new(key)
        .loose_files(loose)
        .open_directory(directory.clone(), directory)
        .await
        .unwrap()
}

fn names(directory: &dyn Directory) -> Vec<String> {
    let mut names = Vec::new();
    directory.list(&mut |name, _| names.push(String::from_utf8(name.into()).unwrap())).unwrap();
    names
}

fn name(directory: &dyn Directory, part: &str) -> String {
    names(directory).into_iter().find(|name| name.contains(part)).unwrap()
}

fn bytes(directory: &dyn Directory, name: &str) -> Vec<u8> {
    directory.read(name).unwrap().unwrap()
}

fn copied(directory: &MemoryDirectory) -> Arc<MemoryDirectory> {
    let copy = Arc::new(MemoryDirectory::default());
    for name in names(directory) {
        copy.replace(&name, &bytes(directory, &name)).unwrap();
    }
    copy
}

fn seqs(reading: &ReadResult) -> Vec<u64> {
    reading.messages.iter().map(|stored| stored.seq).collect()
}

async fn appended(store: &FileConversationStore, numbers: RangeInclusive<u64>) {
    for number in numbers {
        assert_eq!(store.append_message(said(number)).await.unwrap().seq, number);
    }
}

fn many(count: u64) -> Vec<ChatMessage> {
    (1..=count).map(said).collect()
}

#[tokio::test]
async fn no_number_is_given_again_because_its_record_could_not_be_read_for_a_moment() {
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(&memory, 64).await;
    store.append_message(said(1)).await.unwrap();
    let head = bytes(&*memory, "head");
    store.append_message(said(2)).await.unwrap();
    // A power cut lost the head's last change.
    memory.replace("head", &head).unwrap();
    let mut reached = 0;
    for after in 0..8 {
        let copy = copied(&memory);
        let faulty = FaultyDirectory::over(copy.clone());
        let store = open(&faulty, 64).await;
        faulty.fail(Call::Read, after, 1, broken);
        let appended = store.append_message(said(3)).await;
        reached += usize::from(faulty.was_reached());
        if let Ok(stored) = appended {
            assert!(stored.seq > 2, "read number {after}");
        }
        let report = open(&copy, 64).await.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "read number {after}: {:?}", report.findings);
    }
    assert!(reached > 1);
}

#[tokio::test]
async fn an_append_that_could_not_mark_its_folder_afterwards_is_acknowledged() {
    let memory = Arc::new(MemoryDirectory::default());
    let faulty = FaultyDirectory::over(memory.clone());
    let store = open(&faulty, 8).await;
    appended(&store, 1..=16).await;
    // This append packs the oldest messages, then writes the head once more.
    faulty.fail(Call::Overwrite, 1, 1, broken);
    assert_eq!(store.append_message(said(17)).await.unwrap().seq, 17);
    assert!(faulty.was_reached());
    for store in [store, open(&memory, 8).await] {
        assert!(seqs(&store.read_tail(20).await.unwrap()).into_iter().eq(1..=17));
    }
}

#[tokio::test]
async fn a_message_that_was_away_for_a_while_is_seen_by_who_remembers_the_rest() {
    let directory = Arc::new(MemoryDirectory::default());
    let writer = open(&directory, 64).await;
    appended(&writer, 1..=30).await;
    let away = name(&*directory, "_0015_");
    let kept = bytes(&*directory, &away);
    directory.remove(&away).unwrap();
    let reader = open(&directory, 64).await;
    assert!(!seqs(&reader.read_tail(20).await.unwrap()).contains(&15));
    directory.create(&away, &kept).unwrap();
    for n in 31..=33 {
        writer.append_message(said(n)).await.unwrap();
        let tail = reader.read_tail(20).await.unwrap();
        assert!(seqs(&tail).into_iter().eq(n - 19..=n));
    }
}

#[tokio::test]
async fn a_scan_is_cached_although_another_reader_failed_to_read_from_the_head_meanwhile() {
    let directory = Arc::new(MemoryDirectory::default());
    let writer = open(&directory, 64).await;
    appended(&writer, 1..=30).await;
    let faulty = FaultyDirectory::over(directory.clone());
    let reader = open(&faulty, 64).await;
    let other = reader.clone();
    let (one, two) = tokio::join!(reader.read_tail(20), other.read_tail(20));
    assert_eq!(seqs(&one.unwrap()), seqs(&two.unwrap()));
    faulty.fail(Call::List, 0, usize::MAX, broken);
    assert_eq!(reader.read_tail(20).await.unwrap().messages.len(), 20);
}

#[tokio::test]
async fn a_forget_record_that_comes_back_after_its_own_number_was_forgotten_counts_still() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 64).await;
    appended(&store, 1..=10).await;
    let (two, forget) = (name(&*directory, "_0002_"), "_0011_forget");
    let words = bytes(&*directory, &two);
    store.forget(&[1..=3]).await.unwrap();
    let forget = name(&*directory, forget);
    let sound = bytes(&*directory, &forget);
    directory.replace(&forget, b"damaged").unwrap();
    let store = open(&directory, 64).await;
    store.append_message(said(12)).await.unwrap();
    store.forget(&[10..=12]).await.unwrap();
    // A backup restores both, one after the other.
    directory.replace(&forget, &sound).unwrap();
    open(&directory, 64).await.append_message(said(14)).await.unwrap();
    directory.replace(&two, &words).unwrap();
    let store = open(&directory, 64).await;
    assert!(store.read_seqs(2..=2).await.unwrap().messages.is_empty());
    // A later forget record covers it, and it is removed.
    store.forget(&[4..=4]).await.unwrap();
    assert!(directory.read(&forget).unwrap().is_none());
    directory.replace(&two, &words).unwrap();
    assert!(open(&directory, 64).await.read_seqs(1..=4).await.unwrap().messages.is_empty());
}

#[tokio::test]
async fn a_forget_record_that_could_not_be_read_for_a_moment_is_not_lost() {
    let mut reached = 0;
    for after in 0..40 {
        let memory = Arc::new(MemoryDirectory::default());
        let store = open(&memory, 64).await;
        appended(&store, 1..=10).await;
        let two = name(&*memory, "_0002_");
        let words = bytes(&*memory, &two);
        store.forget(&[1..=3]).await.unwrap();
        let faulty = FaultyDirectory::over(memory.clone());
        let store = open(&faulty, 64).await;
        faulty.fail(Call::Read, after, 1, broken);
        let told = store.forget(&[9..=11]).await;
        reached += usize::from(faulty.was_reached());
        faulty.fail(Call::Any, 0, 0, broken);
        memory.replace(&two, &words).unwrap();
        let reading = open(&memory, 64).await.read_seqs(2..=2).await.unwrap();
        assert!(reading.messages.is_empty(), "read number {after}: {told:?}");
    }
    assert!(reached > 3);
}

#[tokio::test]
async fn a_pack_that_is_put_back_again_and_again_is_rid_of_what_was_forgotten_each_time() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory, 2).await;
    store.append_all(many(9)).await.unwrap();
    let packs = directory.folder("packs");
    let pack = name(&*packs, ".pack");
    let before = bytes(&*packs, &pack);
    store.forget(&[3..=3]).await.unwrap();
    for turn in 0..3 {
        packs.replace(&pack, &before).unwrap();
        store.append_message(said(turn)).await.unwrap();
        assert!(packs.read(&pack).unwrap().is_none(), "turn {turn}");
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
    }
}

#[tokio::test]
async fn a_pack_that_cannot_be_made_durable_after_the_head_was_lost_keeps_nobody_from_appending() {
    let memory = Arc::new(MemoryDirectory::default());
    open(&memory, 2).await.append_all(many(9)).await.unwrap();
    memory.remove("head").unwrap();
    let faulty = FaultyDirectory::over(memory.clone());
    let store = open(&faulty, 2).await;
    faulty.fail(Call::Flush, 0, usize::MAX, broken);
    assert_eq!(store.append_message(said(10)).await.unwrap().seq, 10);
}

#[tokio::test]
async fn what_cannot_be_read_for_a_moment_is_not_forgotten_unnoted() {
    let foreign = |n: u64| {
        let mut message = said(n);
        Origin::new("elara", &n.to_string(), &message).unwrap().mark(&mut message, "elara");
        message
    };
    let origins = |messages: &ReadResult| -> BTreeSet<Origin> {
        messages.messages.iter().filter_map(|stored| Origin::of(&stored.message)).collect()
    };
    for times in 1..4 {
        for after in 0.. {
            let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
            let store = open(&faulty, 64).await;
            store.import_after(0, 0, (1..=10).map(foreign).collect()).await.unwrap().unwrap();
            let all = origins(&store.read_seqs(1..=99).await.unwrap());
            faulty.fail(Call::Read, after, times, broken);
            let told = store.forget(&[2..=4, 9..=9]).await;
            if !faulty.was_reached() {
                assert!(told.is_ok() && after > 0);
                break;
            }
            faulty.fail(Call::Any, 0, 0, broken);
            let store = open(&faulty, 64).await;
            // The next writer finishes what was left.
            store.append_message(said(11)).await.unwrap();
            let noted = store.read_document(Document::Imports).await.unwrap();
            let parse = |bytes: zeroize::Zeroizing<Vec<u8>>| {
                ImportTombstones::parse(&bytes).unwrap().origins
            };
            let mut accounted = noted.map(parse).unwrap_or_default();
            accounted.append(&mut origins(&store.read_seqs(1..=99).await.unwrap()));
            assert_eq!(accounted, all, "{times} reads after {after} fail: {told:?}");
        }
    }
}

#[tokio::test]
async fn what_is_sealed_under_a_key_that_is_not_at_hand_is_neither_lost_nor_forgotten() {
    let directory = Arc::new(MemoryDirectory::default());
    let root: Arc<dyn Directory> = directory.clone();
    let key = |which: &str| {
        EncryptionKey::from_secret(&format!("the {which} secret of a house")).unwrap()
    };
    let store =
        StoreOptions::new(key("old")).open_directory(root.clone(), root.clone()).await.unwrap();
    appended(&store, 1..=6).await;
    let (three, old) = (name(&*directory, "_0003_"), name(&*directory, "_0006_"));
    let kept =
        [(three.clone(), bytes(&*directory, &three)), (old.clone(), bytes(&*directory, &old))];
    let rekey = crate::admin::Rekey::new(key("old"), key("new"));
    let run = {
        let root = root.clone();
        move || rekey.run_on(&root, |_| std::ops::ControlFlow::Continue(()))
    };
    tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    // As if the change had not got that far.
    for (name, bytes) in kept {
        directory.replace(&name, &bytes).unwrap();
    }
    let store = StoreOptions::new(key("new")).open_directory(root.clone(), root).await.unwrap();
    let findings = store.verify(|_| {}).await.unwrap().findings;
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings.iter().all(|finding| finding.kind.code() == "wrong-key"), "{findings:?}");
    for refused in [3..=3, 1..=6, 6..=99] {
        let told = store.forget(&[refused]).await;
        assert!(matches!(told, Err(crate::Error::WrongKey { .. })), "{told:?}");
    }
    assert_eq!(store.forget(&[2..=2]).await.unwrap().removed, [2]);
}

#[tokio::test]
async fn what_is_forgotten_while_an_inventory_is_taken_or_compared_is_not_missed_by_it() {
    let forgetting = |directory: &Arc<MemoryDirectory>| {
        let directory = directory.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let forget = async { open(&directory, 64).await.forget(&[4..=4]).await.unwrap() };
            runtime.block_on(forget);
        }
    };
    for after in 0..6 {
        for compares in [true, false] {
            let directory = Arc::new(MemoryDirectory::default());
            let store = open(&directory, 64).await;
            appended(&store, 1..=10).await;
            let faulty = FaultyDirectory::over(directory.clone());
            let store = open(&faulty, 64).await;
            let earlier = store.inventory(|_| {}).await.unwrap();
            faulty.interfere(Call::List, after, forgetting(&directory));
            let earlier = if compares { earlier } else { store.inventory(|_| {}).await.unwrap() };
            let found = store.compare(earlier, |_| {}).await.unwrap();
            assert!(found.is_empty(), "after {after} listings, {compares}: {found:?}");
        }
    }
}
