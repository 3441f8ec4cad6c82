//! The index of origins: that nothing is lost by trusting it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sottovoce::exchange::{Exchange, Incoming, Origin};
use sottovoce::import::{ImportReport, ImportedMessage, ImportedMessages};
use sottovoce::{ConversationStore, FileConversationStore};

use crate::common::block_on;
use crate::exchange::{Device, all, said, words};

/// Enough messages for several packs.
const MANY: u32 = 4500;

fn log(messages: u32) -> ImportedMessages {
    let mut read = ImportedMessages::new("log");
    for number in 0..messages {
        let message = said(number % 1000, &format!("message {number} of a long log"));
        let name = number.to_string();
        read.push(name.clone(), ImportedMessage::new("log", &name, "log", message));
    }
    read
}

async fn import(store: &FileConversationStore, messages: u32) -> ImportReport {
    log(messages).import_into(store, |_| {}).await.unwrap()
}

fn packs(folder: &Path) -> Vec<PathBuf> {
    let packs = std::fs::read_dir(folder.join("packs")).unwrap();
    let mut packs: Vec<_> = packs.map(|entry| entry.unwrap().path()).collect();
    packs.retain(|path| path.extension().is_some_and(|extension| extension == "pack"));
    packs.sort_by_key(|path| std::fs::metadata(path).unwrap().len());
    packs
}

#[test]
fn what_is_not_here_any_more_comes_back_with_the_next_import() {
    let one = Device::new();
    block_on(async {
        let a = one.open().await;
        assert_eq!(import(a.store(), MANY).await.taken, MANY as usize);
        assert_eq!(import(a.store(), MANY).await.already_there, MANY as usize);
        // Forgotten messages stay away, and no other goes with them.
        a.store().forget(&[7..=7]).await.unwrap();
        let again = import(one.open().await.store(), MANY).await;
        assert_eq!((again.taken, again.forgotten), (0, 1));
        // A pack that is lost comes back with the import.
        let lost = packs(one.folder.path()).pop().unwrap();
        std::fs::remove_file(lost).unwrap();
        let again = import(one.open().await.store(), MANY).await;
        assert!(again.taken > 1000 && again.forgotten == 1, "{again:?}");
        assert_eq!(import(a.store(), MANY).await.taken, 0);
        // One message of a pack is damaged in place.
        let damaged = packs(one.folder.path()).pop().unwrap();
        let mut bytes = std::fs::read(&damaged).unwrap();
        let at = bytes.len() / 2;
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        std::fs::write(&damaged, bytes).unwrap();
        assert_eq!(import(one.open().await.store(), MANY).await.taken, 1);
    });
}

/// Copies a folder's contents.
fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-r").arg(from.join(".")).arg(to).status();
    assert!(done.unwrap().success());
}

#[test]
fn an_exchange_that_goes_on_knows_what_was_received_forgotten_packed_and_put_back_meanwhile() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        for minute in 1..=3 {
            b.store().append_message(said(minute, &format!("b{minute}"))).await.unwrap();
        }
        let receive = async |exchange: &Exchange| {
            let received = exchange.receive(all(&b).await).await.unwrap();
            (received.taken, received.already_there, received.forgotten)
        };
        assert_eq!(receive(&a).await, (3, 0, 0));
        let older = tempfile::tempdir().unwrap();
        copy(one.folder.path(), older.path());
        // Another process stores and packs so many that all loose messages move.
        let other = one.open().await;
        let more = (0..200).map(|n| said(n % 50, &format!("a{n}"))).collect();
        other.store().append_all(more).await.unwrap();
        other.store().pack(|_| {}).await.unwrap();
        b.store().append_message(said(4, "b4")).await.unwrap();
        assert_eq!(receive(&a).await, (1, 3, 0));
        other.store().forget(&[1..=1]).await.unwrap();
        assert_eq!(receive(&a).await, (0, 3, 1));
        // An older copy of the folder is put back, in which other messages get the numbers.
        let (folder, args) = (one.folder.path(), ["-type", "f", "-delete"]);
        let done = std::process::Command::new("find").arg(folder).args(args).status();
        assert!(done.unwrap().success());
        copy(older.path(), one.folder.path());
        let restored = one.open().await;
        let more = (0..300).map(|n| said(n % 50, &format!("other {n}"))).collect();
        restored.store().append_all(more).await.unwrap();
        assert_eq!(receive(&a).await, (1, 3, 0));
        assert!(restored.store().verify(|_| {}).await.unwrap().is_sound());
    });
}

#[test]
fn a_list_of_forgotten_messages_that_is_longer_than_an_envelope_is_whole() {
    let one = Device::new();
    block_on(async {
        let a = one.open().await;
        a.store().append_message(said(1, "a1")).await.unwrap();
        let messages = all(&a).await.messages;
        let origin = |n: u32| format!("{:032x}", n + 1).parse::<Origin>().unwrap();
        let mut forgotten: BTreeSet<Origin> = (0..80_000).map(origin).collect();
        a.receive(Incoming { forgotten: forgotten.clone(), ..Incoming::default() }).await.unwrap();
        forgotten.insert(messages[0].origin);
        a.store().forget_all().await.unwrap();
        let a = one.open().await;
        assert!(a.forgotten().await.unwrap() == forgotten);
        let received = a.receive(Incoming { messages, ..Incoming::default() }).await.unwrap();
        assert_eq!((received.taken, received.forgotten), (0, 1));
        assert!(a.store().verify(|_| {}).await.unwrap().is_sound());
        assert!(words(&a).await.is_empty());
    });
}

/// Figures: `cargo test --release --test transfer figures -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute; run it for its figures"]
fn figures_of_the_index() {
    for size in [100_000, 1_000_000] {
        let (one, two) = (Device::new(), Device::new());
        block_on(async {
            let (a, b) = (one.open().await, two.open().await);
            let start = Instant::now();
            import(a.store(), size).await;
            println!("{size}: import: {:?}", start.elapsed());
            let read = log(size);
            let start = Instant::now();
            let report = read.import_into(one.open().await.store(), |_| {}).await.unwrap();
            println!("{size}: import again: {:?}", start.elapsed());
            assert_eq!(report.taken, 0);
            for minute in 1..=3 {
                b.store().append_message(said(minute, "received")).await.unwrap();
                let incoming = all(&b).await;
                let a = one.open().await;
                let start = Instant::now();
                assert_eq!(a.receive(incoming).await.unwrap().taken, 1);
                println!("{size}: receive of one message: {:?}", start.elapsed());
            }
            let forgotten = BTreeSet::from([b.message_origin(1).await.unwrap().unwrap()]);
            let incoming = Incoming { forgotten, ..Incoming::default() };
            let a = one.open().await;
            let start = Instant::now();
            assert_eq!(a.receive(incoming).await.unwrap().removed, 1);
            println!("{size}: forgetting of one message: {:?}", start.elapsed());
            let start = Instant::now();
            a.position().await.unwrap();
            println!("{size}: position: {:?}", start.elapsed());
            let start = Instant::now();
            let stretch = Exchange::new(a.store().clone()).messages(0).await.unwrap();
            println!("{size}: {} messages: {:?}", stretch.messages.len(), start.elapsed());
        });
    }
}
