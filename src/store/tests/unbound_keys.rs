//! Keys in the key list: which are accepted, and what happens to those not bound to the store.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::admin::{Rekey, RepairKind, RepairOptions};
use crate::crypto::SealingKey;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::StoreOptions;
use crate::store::folder::keyring::{KeyLookup, Keyring, key_list};
use crate::store::tests::failing_storage::said;
use crate::store::{ConversationStore, FileConversationStore, FindingKind};
use crate::{ChatMessage, ChatRole, EncryptionKey, Error};

fn secret(text: &str) -> EncryptionKey {
    EncryptionKey::from_secret(text).unwrap()
}

fn ours() -> EncryptionKey {
    secret("the key of both these houses")
}

fn next() -> EncryptionKey {
    secret("the next key of this house")
}

async fn open_with(
    directory: &Arc<MemoryDirectory>,
    options: StoreOptions,
) -> FileConversationStore {
    let directory: Arc<dyn Directory> = directory.clone();
    options.open_directory(directory.clone(), directory).await.unwrap()
}

async fn open(directory: &Arc<MemoryDirectory>) -> FileConversationStore {
    open_with(directory, StoreOptions::new(ours())).await
}

fn read(directory: &MemoryDirectory, name: &str) -> String {
    String::from_utf8(directory.read(name).unwrap().unwrap()).unwrap()
}

fn record(directory: &MemoryDirectory, part: &str) -> String {
    let mut found = None;
    directory
        .list(&mut |name, _| {
            let name = String::from_utf8(name.into()).unwrap();
            if name.contains(part) {
                found = Some(name);
            }
        })
        .unwrap();
    found.unwrap()
}

/// A store of three messages that name their store.
async fn house(words: &str) -> Arc<MemoryDirectory> {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    for second in 1..=3 {
        let at = format!("2025-08-24T16:00:0{second}Z").parse().unwrap();
        store.append_message(ChatMessage::at(ChatRole::User, words, at)).await.unwrap();
    }
    directory
}

/// The part of a key list between its brackets, and the part after it.
fn split(vault: &str) -> (&str, &str) {
    let (_, rest) = vault.split_once('[').unwrap();
    rest.split_once(']').unwrap()
}

fn line(key: &EncryptionKey, salt: u8) -> String {
    use base64::Engine;
    let salt = [salt; 32];
    let id = SealingKey::new(&key.unsalted(), &salt).id().to_owned();
    let salt = base64::engine::general_purpose::STANDARD.encode(salt);
    format!(r#"{{"kid":"{id}","kdf":"sha256","salt":"{salt}"}}"#)
}

async fn words(store: &FileConversationStore) -> Vec<String> {
    let reading = store.read_tail(99).await.unwrap();
    reading.messages.iter().map(|stored| stored.message.content.clone()).collect()
}

#[tokio::test]
async fn another_stores_record_is_not_read_here_because_the_vault_was_made_to_name_its_key() {
    let (here, there) = (house("ours").await, house("theirs").await);
    let (vault, theirs) = (read(&here, "vault"), read(&there, "vault"));
    let ((our_keys, our_seal), (their_keys, their_seal)) = (split(&vault), split(&theirs));
    let name = record(&here, "_0002_");
    assert_eq!(name, record(&there, "_0002_"));
    for seal in [our_seal, their_seal, "}\n"] {
        let planted = format!(r#"{{"v":1,"keys":[{our_keys},{their_keys}]{seal}"#);
        here.replace("vault", planted.as_bytes()).unwrap();
        here.replace(&name, read(&there, &name).as_bytes()).unwrap();
        let store = open(&here).await;
        assert_eq!(words(&store).await, ["ours", "ours"], "{seal}");
        let skipped = store.read_tail(99).await.unwrap().skipped;
        assert!(matches!(skipped[0].kind, FindingKind::UnboundKey { .. }), "{skipped:?}");
        let report = store.verify(|_| {}).await.unwrap();
        assert!(!report.is_sound());
        let places: Vec<_> =
            report.findings.iter().filter_map(|found| found.file.as_deref()).collect();
        assert!(places.contains(&"vault") && places.contains(&&*name), "{:?}", report.findings);
        let refused = Rekey::new(ours(), next());
        let root: Arc<dyn Directory> = here.clone();
        let refused = refused.run_on(&root, |_| ControlFlow::Continue(()));
        assert!(matches!(refused, Err(Error::VaultDamaged { .. })), "{refused:?}");
        // The store's own key continues to work.
        store.append_message(said(9)).await.unwrap();
        store.forget(&[4..=99]).await.unwrap();

        let options = RepairOptions { quarantine: true, ..RepairOptions::default() };
        // Nothing takes the list's place while there is no room for a copy of it.
        let quarantine = here.folder("quarantine");
        let copies: Vec<_> = (1..1000).map(|n| format!("vault.{n}")).collect();
        let made = |copy: &&String| quarantine.create(copy, b"copy").unwrap();
        let copies: Vec<_> = copies.iter().filter(made).collect();
        let refused = store.repair(options, |_| {}).await;
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
        assert_eq!(read(&here, "vault"), planted);
        copies.iter().for_each(|copy| quarantine.remove(copy).unwrap());
        let repairs = store.repair(options, |_| {}).await.unwrap().repairs;
        assert!(repairs.iter().any(|action| action.kind == RepairKind::BindVault), "{repairs:?}");
        let (keys, seal) = (read(&here, "vault"), our_seal);
        assert_eq!(keys, format!(r#"{{"v":1,"keys":[{our_keys}]{seal}"#));
        assert!(quarantine.read("vault.1").unwrap().is_some(), "the other's salt is kept");
        let found = store.verify(|_| {}).await.unwrap().findings;
        let of_key = |found: &&crate::store::Finding| found.kind.code() == "wrong-key";
        assert_eq!(found.iter().filter(of_key).count(), 1, "{found:?}");
    }
}

#[tokio::test]
async fn a_vault_without_a_seal_whose_store_has_one_names_the_writing_key_alone() {
    let directory = house("ours").await;
    let vault = read(&directory, "vault");
    let (keys, _) = split(&vault);
    let planted = format!("{{\"v\":1,\"keys\":[{keys},{}]}}\n", line(&next(), 3));
    directory.replace("vault", planted.as_bytes()).unwrap();
    let store = open_with(&directory, StoreOptions::new(ours()).also_with(next())).await;
    assert!(!store.verify(|_| {}).await.unwrap().is_sound());
    let id = SealingKey::new(&next().unsalted(), &[3; 32]).id().to_owned();
    let vault = Keyring::read(&*directory, &[Arc::new(ours()), Arc::new(next())]);
    let vault = vault.unwrap().unwrap();
    assert!(matches!(vault.find(&id), Ok(KeyLookup::Unbound)));
    assert_eq!(vault.keys().count(), 1);
}

#[tokio::test]
async fn what_a_change_of_keys_names_is_bound_as_long_as_it_takes() {
    let directory = house("ours").await;
    let root: Arc<dyn Directory> = directory.clone();
    Rekey::new(ours(), next()).run_on(&root, |_| ControlFlow::Break(())).unwrap();
    let store = open_with(&directory, StoreOptions::new(next()).also_with(ours())).await;
    assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    // Another order is refused too.
    let list = key_list::read(&*directory).unwrap().unwrap();
    assert_eq!(list.entries.len(), 2);
    assert!(list.is_sealed_by(&next().unsalted()));
    let vault = read(&directory, "vault");
    let (keys, seal) = split(&vault);
    let (first, second) = keys.split_once("},").unwrap();
    let turned = format!(r#"{{"v":1,"keys":[{second},{first}}}]{seal}"#);
    directory.replace("vault", turned.as_bytes()).unwrap();
    let store = open_with(&directory, StoreOptions::new(ours()).also_with(next())).await;
    assert!(!store.verify(|_| {}).await.unwrap().is_sound());
}

#[test]
fn a_second_passphrase_costs_nothing_before_a_file_names_it() {
    let directory = MemoryDirectory::default();
    let words = || EncryptionKey::from_passphrase("words that somebody may know".to_owned());
    let keys = [Arc::new(ours()), Arc::new(words().unwrap())];
    let salt = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let id = "0123456789abcdef0123456789abcdef";
    // It would take a gibibyte, and minutes in a test build.
    let costly =
        format!(r#"{{"kid":"{id}","kdf":"argon2id","m":1048576,"t":16,"p":1,"salt":"{salt}"}}"#);
    let first = line(&ours(), 1);
    let vault = format!(r#"{{"v":1,"keys":[{first},{costly}]}}"#);
    directory.replace("vault", vault.as_bytes()).unwrap();
    let vault = Keyring::read(&directory, &keys).unwrap().unwrap();
    let writer = vault.writer().id().to_owned();
    assert!(matches!(vault.find(&writer), Ok(KeyLookup::Key(_))));
    assert_eq!(vault.unbound().count(), 1);
    assert!(matches!(vault.find(id), Ok(KeyLookup::Unbound)));
    let many = format!(r#"{{"v":1,"keys":[{first},{costly},{costly},{costly},{costly}]}}"#);
    directory.replace("vault", many.as_bytes()).unwrap();
    let refused = Keyring::read(&directory, &keys);
    assert!(matches!(refused, Err(Error::VaultDamaged { .. })), "{refused:?}");
}

#[test]
fn the_seal_of_the_formats_example_is_right() {
    let format = include_str!("../../../FORMAT.md");
    let vault = format.lines().find(|line| line.starts_with(r#"{"v":1,"keys":"#)).unwrap();
    let list = key_list::parse(vault.as_bytes(), std::path::Path::new("vault")).unwrap();
    let key = secret("test key, not secret").unsalted();
    assert!(list.is_sealed_by(&key));
}
