//! Inventories: they reveal that an older copy of a folder was restored.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::*;
use sottovoce::admin::{Inventory, RepairOptions};
use sottovoce::store::{Document, Finding};
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope, StoreOptions};
use tempfile::TempDir;

fn packing() -> StoreOptions {
    options().loose_files(1)
}

async fn open_packing(root: &Path) -> FileConversationStore {
    packing().open(root).await.unwrap()
}

async fn inventory(root: &Path) -> Inventory {
    let taken = open(root).await.inventory(|_| {}).await.unwrap();
    // As it is read from its file.
    let read = Inventory::from_json(taken.to_json().unwrap().as_bytes(), "here").unwrap();
    assert_eq!(read, taken);
    read
}

async fn compare(root: &Path, earlier: &Inventory) -> Vec<Finding> {
    let findings = open(root).await.compare(earlier.clone(), |_| {}).await.unwrap();
    let is_note = |finding: &Finding| finding.kind.code() == "not-compared";
    assert!(findings.iter().all(|finding| finding.kind.is_problem() != is_note(finding)));
    findings
}

/// Kinds and numbers.
async fn told(root: &Path, earlier: &Inventory) -> Vec<(&'static str, (u64, u64))> {
    let findings = compare(root, earlier).await;
    findings.iter().map(|f| (f.kind.code(), f.seqs.unwrap_or_default())).collect()
}

fn copied(from: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new("cp").arg("-a").arg(from.join(".")).arg(folder.path()).status();
    assert!(done.unwrap().success());
    folder
}

#[tokio::test]
async fn every_restored_earlier_state_is_reported_and_no_later_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut states = Vec::new();
    for step in 0..14 {
        let store = open_packing(root).await;
        match step {
            3 => drop(store.forget(&[2..=2]).await.unwrap()),
            6 => drop(store.forget(&[1..=1, 5..=6]).await.unwrap()),
            // Only the head says that there was a newest message.
            8 => {
                let last = store.read_tail(1).await.unwrap().last_seq;
                store.forget(&[last..=last]).await.unwrap();
            }
            10 => store.write_document(Document::Calibration, b"learned").await.unwrap(),
            11 => {
                fs::remove_file(root.join("head")).unwrap();
                let options = RepairOptions::default();
                open(root).await.repair(options, |_| {}).await.unwrap();
            }
            12 => drop(store.append_all((0..20).map(said).collect()).await.unwrap()),
            _ => drop(store.append_message(said(step)).await.unwrap()),
        }
        states.push((copied(root), inventory(root).await));
    }
    for (then, (_, earlier)) in states.iter().enumerate() {
        for (now, (there, held)) in states.iter().enumerate() {
            let findings = told(there.path(), earlier).await;
            let is_older = now < then && held != earlier;
            assert_eq!(!findings.is_empty(), is_older, "{then} against {now}: {findings:?}");
        }
    }
}

#[tokio::test]
async fn an_older_copy_that_was_written_to_until_it_was_as_long_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    for (what, before, after) in
        [("in files", options(), options()), ("in packs", packing(), packing())]
    {
        let root = folder.path().join(what);
        let store = before.open(&root).await.unwrap();
        store.append_all((1..=5).map(said).collect()).await.unwrap();
        let old = copied(&root);
        store.append_all((6..=9).map(said).collect()).await.unwrap();
        let earlier = inventory(&root).await;
        let old_store = after.open(old.path()).await.unwrap();
        for number in 6..=12 {
            // The same text at the same time under the same number is still another record.
            old_store.append_message(said(number)).await.unwrap();
        }
        assert_eq!(told(old.path(), &earlier).await, [("replaced", (1, 9))], "{what}");
        assert_eq!(told(&root, &earlier).await, [], "{what}");
    }
}

#[tokio::test]
async fn removed_restored_and_forgotten_records_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let store = filled(&root, 9).await;
    let whole = copied(&root);
    fs::remove_file(&records(&root)[1]).unwrap();
    let earlier = inventory(&root).await;
    // It was known to be lost then, so it may stay lost or come back.
    assert_eq!(told(&root, &earlier).await, []);
    let second = records(whole.path())[1].clone();
    fs::copy(&second, root.join(second.file_name().unwrap())).unwrap();
    assert_eq!(told(&root, &earlier).await, []);
    // Forgetting is not a loss, deleting is.
    store.forget(&[3..=4]).await.unwrap();
    assert_eq!(told(&root, &earlier).await, []);
    let forgotten = inventory(&root).await;
    let six = records(&root).into_iter().find(|p| p.to_string_lossy().contains("_0006_")).unwrap();
    fs::rename(&six, folder.path().join("six")).unwrap();
    assert_eq!(told(&root, &earlier).await, [("vanished", (6, 6))]);
    fs::rename(folder.path().join("six"), &six).unwrap();
    // The forget record is removed, and a backup restores the message.
    let forget =
        records(&root).into_iter().find(|p| p.to_string_lossy().contains("forget")).unwrap();
    fs::remove_file(forget).unwrap();
    for at in [2, 3] {
        let record = records(whole.path())[at].clone();
        fs::copy(&record, root.join(record.file_name().unwrap())).unwrap();
    }
    assert_eq!(told(&root, &earlier).await, []);
    let found = told(&root, &forgotten).await;
    assert_eq!(found, [("tombstone-lost", (3, 4)), ("vanished", (10, 10))]);
}

#[tokio::test]
async fn digests_of_many_blocks_hold_through_packing_merging_and_forgetting() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let store = options().open(root).await.unwrap();
    store.append_all((1..=2500).map(said).collect()).await.unwrap();
    let earlier = inventory(root).await;
    assert_eq!(earlier.last_seq(), 2500);
    assert_eq!(earlier.to_json().unwrap().matches("sha256").count(), 3);
    let store = packing().open(root).await.unwrap();
    for number in 2501..=2520 {
        store.append_message(said(number)).await.unwrap();
    }
    assert_eq!(told(root, &earlier).await, []);
    store.forget(&[1000..=1100]).await.unwrap();
    assert_eq!(told(root, &earlier).await, []);
    // A block with a forgotten message is compared by numbers, the others by contents.
    let pack = |root: &Path| {
        let mut packs: Vec<_> =
            fs::read_dir(root.join("packs")).unwrap().map(|entry| entry.unwrap().path()).collect();
        packs.sort_by_key(|pack| std::cmp::Reverse(fs::metadata(pack).unwrap().len()));
        packs.remove(0)
    };
    let text = fs::read_to_string(pack(root)).unwrap();
    let line = text.lines().find(|line| line.contains("_2000_")).unwrap();
    fs::write(pack(root), text.replacen(&format!("{line}\n"), "", 1)).unwrap();
    assert_eq!(told(root, &earlier).await, [("vanished", (2000, 2000))]);
}

#[tokio::test]
async fn an_inventory_is_what_the_format_says() {
    use sha2::{Digest, Sha256};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let store = open_packing(root).await;
    for number in 1..=9 {
        store.append_message(said(number)).await.unwrap();
    }
    store.forget(&[2..=3]).await.unwrap();
    fs::remove_file(records(root).pop().unwrap()).unwrap();
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for pack in fs::read_dir(root.join("packs")).unwrap() {
        let bytes = fs::read(pack.unwrap().path()).unwrap();
        lines.extend(bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec));
    }
    for record in records(root) {
        let name = record.file_name().unwrap().to_str().unwrap().as_bytes();
        lines.push([name, b"\t", &fs::read(&record).unwrap()].concat());
    }
    // All have one time and fewer than five digits, so names sort like the conversation.
    lines.sort();
    lines.reverse();
    let digest = Sha256::digest(lines.concat());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let vault = fs::read_to_string(root.join("vault")).unwrap();
    let kid = vault.split('"').nth(7).unwrap();
    assert_eq!(
        inventory(root).await.to_json().unwrap(),
        format!(
            r#"{{"v":1,"kid":"{kid}","scope":["default"],"last":10,"forgotten":[],"missing":[[2,3],[10,10]],"blocks":[{{"first":1,"sha256":"{digest}"}}]}}"#
        ) + "\n"
    );
}

#[tokio::test]
async fn an_inventory_of_another_conversation_or_key_is_not_taken_for_this_ones() {
    let folder = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
    filled(&here, 3).await;
    filled(&there, 3).await;
    let bob = Scope::Dm { user: "bob".into() };
    let bobs = options().scope(bob).open(&here).await.unwrap();
    bobs.append_message(said(1)).await.unwrap();
    let refused = bobs.compare(inventory(&here).await, |_| {}).await;
    assert!(matches!(refused, Err(Error::OtherScope)), "{refused:?}");
    assert_eq!(told(&here, &inventory(&there).await).await, [("not-compared", (0, 0))]);
}

#[tokio::test]
async fn an_inventory_that_was_damaged_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 3).await;
    let json = inventory(folder.path()).await.to_json().unwrap();
    assert!(json.starts_with(r#"{"v":1,"kid":""#), "{json}");
    for wrong in [
        String::new(),
        "{}".to_owned(),
        "[".repeat(100_000),
        json.replacen(r#""last":3,"#, "", 1),
        json.replacen(r#""v":1"#, r#""v":0"#, 1),
        json.replacen(r#""last":3"#, r#""last":-3"#, 1),
        json.replacen(r#""last":3"#, r#""last":3,"also":1"#, 1),
    ] {
        let refused = Inventory::from_json(wrong.as_bytes(), "the file");
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{wrong:.99}: {refused:?}");
    }
    let newer = json.replacen(r#""v":1"#, r#""v":2"#, 1);
    assert!(matches!(
        Inventory::from_json(newer.as_bytes(), "the file"),
        Err(Error::NewerFormat { version: 2, .. })
    ));
    // Numbers that no store has, and that could not be visited one by one.
    let vast = json.replacen(r#""last":3"#, &format!(r#""last":{}"#, u64::MAX), 1);
    let vast = Inventory::from_json(vast.as_bytes(), "the file").unwrap();
    let found = told(folder.path(), &vast).await;
    assert_eq!(found[0], ("rolled-back", (4, u64::MAX)));
}
