//! Which keys a vault may name, and what becomes of those that nothing binds to the store.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::blob::{Blobs, memory::MemoryBlobs};
use crate::crypto::SealingKey;
use crate::store::keyring::line;
use crate::store::keyring::line::Entry;
use crate::store::tests::failing_storage::said;
use crate::store::{ConversationStore, FileConversationStore, FindingKind, Rekey, RepairOptions};
use crate::store::{RepairKind, StoreOptions};
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

async fn open_with(blobs: &Arc<MemoryBlobs>, options: StoreOptions) -> FileConversationStore {
    let blobs: Arc<dyn Blobs> = blobs.clone();
    options.open_blobs(blobs.clone(), blobs).await.unwrap()
}

async fn open(blobs: &Arc<MemoryBlobs>) -> FileConversationStore {
    open_with(blobs, StoreOptions::new(ours())).await
}

fn read(blobs: &MemoryBlobs, name: &str) -> String {
    String::from_utf8(blobs.read(name).unwrap().unwrap()).unwrap()
}

fn record(blobs: &MemoryBlobs, part: &str) -> String {
    let mut found = None;
    blobs
        .list(&mut |name, _| {
            let name = String::from_utf8(name.into()).unwrap();
            if name.contains(part) {
                found = Some(name);
            }
        })
        .unwrap();
    found.unwrap()
}

/// A store of three messages that say whose they are.
async fn house(words: &str) -> Arc<MemoryBlobs> {
    let blobs = Arc::new(MemoryBlobs::default());
    let store = open(&blobs).await;
    for second in 1..=3 {
        let at = format!("2025-08-24T16:00:0{second}Z").parse().unwrap();
        store.append_message(ChatMessage::at(ChatRole::User, words, at)).await.unwrap();
    }
    blobs
}

/// The part of a vault between its brackets, and what stands behind it.
fn split(vault: &str) -> (&str, &str) {
    let (_, rest) = vault.split_once('[').unwrap();
    rest.split_once(']').unwrap()
}

fn older_line(key: &EncryptionKey, salt: u8) -> String {
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
        let root: Arc<dyn Blobs> = here.clone();
        let refused = refused.run_on(&root, |_| ControlFlow::Continue(()));
        assert!(matches!(refused, Err(Error::VaultDamaged { .. })), "{refused:?}");
        // What is ours goes on.
        store.append_message(said(9)).await.unwrap();
        store.forget(&[4..=99]).await.unwrap();

        let options = RepairOptions { quarantine: true, ..RepairOptions::default() };
        let mended = store.repair(options, |_| {}).await.unwrap().mended;
        assert!(mended.iter().any(|mending| mending.remedy == RepairKind::BindVault), "{mended:?}");
        let (keys, seal) = (read(&here, "vault"), our_seal);
        assert_eq!(keys, format!(r#"{{"v":1,"keys":[{our_keys}]{seal}"#));
        let quarantine = here.folder("quarantine");
        assert!(quarantine.read("vault.1").unwrap().is_some(), "the other's salt is kept");
        let found = store.verify(|_| {}).await.unwrap().findings;
        let of_key = |found: &&crate::store::Finding| found.kind.code() == "wrong-key";
        assert_eq!(found.iter().filter(of_key).count(), 1, "{found:?}");
    }
}

#[tokio::test]
async fn a_vault_without_a_seal_whose_store_has_one_names_the_writing_key_alone() {
    let blobs = house("ours").await;
    let vault = read(&blobs, "vault");
    let (keys, _) = split(&vault);
    let planted = format!("{{\"v\":1,\"keys\":[{keys},{}]}}\n", older_line(&next(), 3));
    blobs.replace("vault", planted.as_bytes()).unwrap();
    let store = open_with(&blobs, StoreOptions::new(ours()).also_with(next())).await;
    assert!(!store.verify(|_| {}).await.unwrap().is_sound());
    let id = SealingKey::new(&next().unsalted(), &[3; 32]).id().to_owned();
    let vault =
        crate::store::keyring::Keyring::read(&*blobs, &[Arc::new(ours()), Arc::new(next())]);
    let vault = vault.unwrap().unwrap();
    assert!(matches!(vault.find(&id), Ok(crate::store::keyring::KeyLookup::Unbound)));
    assert_eq!(vault.keys().count(), 1);
}

#[tokio::test]
async fn a_vault_from_before_seals_gets_one_with_the_next_message() {
    let blobs = Arc::new(MemoryBlobs::default());
    let older = format!("{{\"v\":1,\"keys\":[{}]}}\n", older_line(&ours(), 1));
    blobs.replace("vault", older.as_bytes()).unwrap();
    let store = open(&blobs).await;
    assert!(store.read_tail(1).await.unwrap().messages.is_empty());
    assert_eq!(read(&blobs, "vault"), older, "reading changes nothing");
    store.append_message(said(1)).await.unwrap();
    let now = read(&blobs, "vault");
    assert!(now.starts_with(older.trim_end().trim_end_matches('}')), "{now}");
    assert!(now.contains(r#"],"seal":""#), "{now}");
    store.append_message(said(2)).await.unwrap();
    assert_eq!(read(&blobs, "vault"), now);
    assert!(open(&blobs).await.verify(|_| {}).await.unwrap().findings.is_empty());
}

#[tokio::test]
async fn a_change_of_keys_that_was_begun_before_seals_is_gone_on_with_and_bound() {
    let blobs = Arc::new(MemoryBlobs::default());
    let (old, new) = (older_line(&ours(), 1), older_line(&next(), 2));
    blobs.replace("vault", format!(r#"{{"v":1,"keys":[{old}]}}"#).as_bytes()).unwrap();
    open(&blobs).await.append_message(said(1)).await.unwrap();
    blobs.replace("vault", format!(r#"{{"v":1,"keys":[{new},{old}]}}"#).as_bytes()).unwrap();
    let both = || StoreOptions::new(next()).also_with(ours());
    let store = open_with(&blobs, both()).await;
    assert_eq!(words(&store).await, ["1"]);
    store.append_message(said(2)).await.unwrap();
    let found = store.verify(|_| {}).await.unwrap().findings;
    assert_eq!(found.len(), 1, "that the vault was never sealed: {found:?}");
    let root: Arc<dyn Blobs> = blobs.clone();
    let begun = Rekey::new(ours(), next()).run_on(&root, |_| ControlFlow::Break(())).unwrap();
    assert_eq!(begun.kept.len(), 1);
    assert!(open_with(&blobs, both()).await.verify(|_| {}).await.unwrap().findings.is_empty());
    Rekey::new(ours(), next()).run_on(&root, |_| ControlFlow::Continue(())).unwrap();
    let store = open_with(&blobs, StoreOptions::new(next())).await;
    assert_eq!(words(&store).await, ["1", "2"]);
    assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
}

#[tokio::test]
async fn what_a_change_of_keys_names_is_bound_as_long_as_it_takes() {
    let blobs = house("ours").await;
    let root: Arc<dyn Blobs> = blobs.clone();
    Rekey::new(ours(), next()).run_on(&root, |_| ControlFlow::Break(())).unwrap();
    let store = open_with(&blobs, StoreOptions::new(next()).also_with(ours())).await;
    assert!(store.verify(|_| {}).await.unwrap().findings.is_empty());
    // Not in another order either.
    let list = line::read(&*blobs).unwrap().unwrap();
    assert_eq!(list.entries.len(), 2);
    assert_eq!(list.is_sealed_by(&next().unsalted()), Some(true));
    let vault = read(&blobs, "vault");
    let (keys, seal) = split(&vault);
    let (first, second) = keys.split_once("},").unwrap();
    let turned = format!(r#"{{"v":1,"keys":[{second},{first}}}]{seal}"#);
    blobs.replace("vault", turned.as_bytes()).unwrap();
    let store = open_with(&blobs, StoreOptions::new(ours()).also_with(next())).await;
    assert!(!store.verify(|_| {}).await.unwrap().is_sound());
}

#[test]
fn a_second_passphrase_costs_nothing_before_a_file_names_it() {
    let blobs = MemoryBlobs::default();
    let words = || EncryptionKey::from_passphrase("words that somebody may know".to_owned());
    let keys = [Arc::new(ours()), Arc::new(words().unwrap())];
    let salt = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let id = "0123456789abcdef0123456789abcdef";
    // It would take a gibibyte, and in a build for tests minutes.
    let costly =
        format!(r#"{{"kid":"{id}","kdf":"argon2id","m":1048576,"t":16,"p":1,"salt":"{salt}"}}"#);
    let older = older_line(&ours(), 1);
    let own = Entry::new(&ours()).unwrap();
    let bound = String::from_utf8(line::copy_bytes(&own).unwrap()).unwrap();
    let started = std::time::Instant::now();
    for first in [older.as_str(), split(&bound).0] {
        let vault = format!(r#"{{"v":1,"keys":[{first},{costly}]}}"#);
        blobs.replace("vault", vault.as_bytes()).unwrap();
        let vault = crate::store::keyring::Keyring::read(&blobs, &keys).unwrap().unwrap();
        let writer = vault.writer().id().to_owned();
        assert!(matches!(vault.find(&writer), Ok(crate::store::keyring::KeyLookup::Key(_))));
        assert_eq!(vault.unbound().count(), 1);
        if first != older {
            assert!(matches!(vault.find(id), Ok(crate::store::keyring::KeyLookup::Unbound)));
        }
    }
    assert!(started.elapsed().as_secs() < 5);
    let many = format!(r#"{{"v":1,"keys":[{older},{costly},{costly},{costly},{costly}]}}"#);
    blobs.replace("vault", many.as_bytes()).unwrap();
    let refused = crate::store::keyring::Keyring::read(&blobs, &keys);
    assert!(matches!(refused, Err(Error::VaultDamaged { .. })), "{refused:?}");
}

#[test]
fn the_seal_of_the_formats_example_is_right() {
    let format = include_str!("../../../FORMAT.md");
    let vault = format.lines().find(|line| line.starts_with(r#"{"v":1,"keys":"#)).unwrap();
    let list = line::parse(vault.as_bytes(), std::path::Path::new("vault")).unwrap();
    let key = secret("test key, not secret").unsalted();
    assert_eq!(list.is_sealed_by(&key), Some(true));
}
