//! The list of conversations: missing ones, false alarms, and its cost.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::admin::{Rekey, Report, scopes};
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::scope::Scope;

use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken, said};
use crate::store::{ConversationStore, FileConversationStore, StoreOptions};
use crate::{EncryptionKey, Result};

fn key() -> EncryptionKey {
    EncryptionKey::from_secret("a secret of the tests of the catalog").unwrap()
}

fn options() -> StoreOptions {
    StoreOptions::new(key())
}

fn dm(user: &str) -> Scope {
    Scope::Dm { user: user.into() }
}

async fn wrote(root: &Path, scope: &Scope, words: u64) {
    let store = options().scope(scope.clone()).open(root).await.unwrap();
    store.append_message(said(words)).await.unwrap();
}

fn found(report: &Report) -> Vec<(&'static str, &str)> {
    let findings = report.findings.iter();
    findings.map(|found| (found.kind.code(), found.file.as_deref().unwrap_or(""))).collect()
}

#[tokio::test]
async fn a_conversation_that_was_moved_away_and_what_lies_between_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = &folder.path().join("root");
    let guild = Scope::Guild { guild: "1".into(), channel: "2".into(), user: "3".into() };
    for scope in [dm("42"), dm("43"), guild.clone(), Scope::Default] {
        wrote(root, &scope, 1).await;
        wrote(root, &scope, 2).await;
    }
    let check = || options().verify_catalog(root);
    let report = check().await.unwrap();
    assert_eq!((found(&report), report.messages), (Vec::new(), 4));
    assert_eq!(scopes(root).unwrap().len(), 4, "the list is no conversation of anybody's");

    fs::rename(root.join("dms/42"), folder.path().join("42")).unwrap();
    fs::write(root.join("dms/notes.txt"), "x").unwrap();
    fs::write(root.join("guilds/1/2/x"), "x").unwrap();
    fs::create_dir(root.join("conversations")).unwrap();
    fs::create_dir(root.join("conversations/planted")).unwrap();
    fs::write(root.join("conversations/planted/x"), "x").unwrap();
    let report = check().await.unwrap();
    let mut names = found(&report);
    names.sort_unstable();
    assert_eq!(
        names,
        [
            ("absent", "dms/42"),
            ("foreign", "conversations/planted"),
            ("foreign", "dms/notes.txt"),
            ("foreign", "guilds/1/2/x"),
        ]
    );
    assert!(!report.is_sound());
    for stray in ["dms/notes.txt", "guilds/1/2/x", "conversations/planted/x"] {
        fs::remove_file(root.join(stray)).unwrap();
    }
    // The conversation is restored, or accepted as gone.
    fs::rename(folder.path().join("42"), root.join("dms/42")).unwrap();
    assert_eq!(found(&check().await.unwrap()), []);
    fs::remove_dir_all(root.join("dms/42")).unwrap();
    assert_eq!(options().repair_catalog(root).await.unwrap().len(), 1);
    assert_eq!(found(&check().await.unwrap()), []);
    wrote(root, &dm("42"), 3).await;
    assert_eq!(found(&check().await.unwrap()), []);

    // The whole list is missing, or was replaced by an older one.
    let older = folder.path().join("older");
    copy(&root.join("catalog"), &older);
    wrote(root, &dm("44"), 1).await;
    fs::remove_dir_all(root.join("catalog")).unwrap();
    let report = check().await.unwrap();
    assert_eq!(found(&report).len(), 5, "{report:?}");
    copy(&older, &root.join("catalog"));
    assert_eq!(found(&check().await.unwrap()), [("unlisted", "dms/44")]);
    options().repair_catalog(root).await.unwrap();
    assert_eq!(found(&check().await.unwrap()), []);
    // A change of keys includes the list.
    let next = EncryptionKey::from_secret("the next secret of these tests").unwrap();
    Rekey::new(key(), next).run(root, |_| ControlFlow::Continue(())).await.unwrap();
    let next = EncryptionKey::from_secret("the next secret of these tests").unwrap();
    assert_eq!(found(&StoreOptions::new(next).verify_catalog(root).await.unwrap()), []);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &there),
            false => drop(fs::copy(entry.path(), there).unwrap()),
        }
    }
}

async fn open(root: &Arc<dyn Directory>, scope: &Scope) -> Result<FileConversationStore> {
    let below = scope.folder().unwrap();
    let directory = below.iter().fold(Arc::clone(root), |directory, name| directory.folder(name));
    options().scope(scope.clone()).open_directory(Arc::clone(root), directory).await
}

#[tokio::test]
async fn a_first_message_that_is_broken_off_anywhere_is_no_alarm_and_enters_the_conversation_once()
{
    for after in 0.. {
        let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
        let root: Arc<dyn Directory> = faulty.clone();
        open(&root, &dm("1")).await.unwrap().append_message(said(1)).await.unwrap();
        faulty.fail(Call::Any, after, usize::MAX, broken);
        if let Ok(store) = open(&root, &dm("2")).await {
            let _ = store.append_message(said(1)).await;
        }
        let reached = faulty.was_reached();
        faulty.fail(Call::Any, 0, 0, broken);
        let report = options().check_catalog(&root).unwrap();
        assert!(report.is_sound(), "call {after}: {report:?}");
        let store = open(&root, &dm("2")).await.unwrap();
        store.append_message(said(2)).await.unwrap();
        let report = options().check_catalog(&root).unwrap();
        assert_eq!((found(&report), report.messages), (Vec::new(), 2), "call {after}");
        if !reached {
            assert!(after > 20);
            break;
        }
    }
}

#[tokio::test]
async fn a_removal_that_is_broken_off_anywhere_is_no_alarm() {
    for after in 0.. {
        let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
        let root: Arc<dyn Directory> = faulty.clone();
        for user in ["1", "2"] {
            open(&root, &dm(user)).await.unwrap().append_message(said(1)).await.unwrap();
        }
        faulty.fail(Call::Any, after, usize::MAX, broken);
        if let Ok(store) = open(&root, &dm("2")).await {
            let _ = store.remove(1, 0).await;
        }
        let reached = faulty.was_reached();
        faulty.fail(Call::Any, 0, 0, broken);
        let report = options().check_catalog(&root).unwrap();
        assert!(report.is_sound(), "call {after}: {report:?}");
        // The next write to the conversation adds it to the list again.
        open(&root, &dm("2")).await.unwrap().append_message(said(2)).await.unwrap();
        let report = options().check_catalog(&root).unwrap();
        assert!(report.is_sound() && report.messages == 2, "call {after}: {report:?}");
        if !reached {
            assert!(after > 10);
            break;
        }
    }
}

#[tokio::test]
async fn only_the_first_message_of_a_conversation_costs_a_look_at_the_list() {
    let directory = Arc::new(MemoryDirectory::default());
    let root: Arc<dyn Directory> = directory.clone();
    open(&root, &dm("1")).await.unwrap().append_message(said(1)).await.unwrap();
    let catalog = directory.folder("catalog");
    let before = catalog.read("head").unwrap();
    // From here on, any access to the list fails.
    catalog.replace("head", b"damaged").unwrap();
    let store = open(&root, &dm("1")).await.unwrap();
    for number in 2..=300 {
        store.append_message(said(number)).await.unwrap();
    }
    assert_eq!(catalog.read("head").unwrap().unwrap(), b"damaged");
    catalog.replace("head", &before.unwrap()).unwrap();
    assert_eq!(found(&options().check_catalog(&root).unwrap()), []);
}

#[tokio::test]
async fn an_inventory_of_all_tells_of_conversations_that_went_and_of_older_ones_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = &folder.path().join("root");
    for user in ["1", "2", "3"] {
        wrote(root, &dm(user), 1).await;
    }
    copy(&root.join("dms/1"), &folder.path().join("older"));
    wrote(root, &dm("1"), 2).await;
    let earlier = options().inventory(root).await.unwrap();
    let json = earlier.to_json().unwrap();
    let again = crate::admin::StoreInventory::from_json(json.as_bytes(), "it").unwrap();
    assert_eq!(again, earlier);
    assert!(crate::admin::StoreInventory::from_json(b"{}", "it").is_err());
    let compare = |earlier: &crate::admin::StoreInventory| options().compare(root, earlier.clone());
    wrote(root, &dm("4"), 1).await;
    assert_eq!(compare(&earlier).await.unwrap(), []);
    // The store itself removed one.
    let store = options().scope(dm("3")).open(root).await.unwrap();
    assert!(store.remove(1, 0).await.unwrap());
    assert_eq!(compare(&earlier).await.unwrap(), []);
    fs::remove_dir_all(root.join("dms/1")).unwrap();
    copy(&folder.path().join("older"), &root.join("dms/1"));
    fs::remove_dir_all(root.join("dms/2")).unwrap();
    let findings = compare(&earlier).await.unwrap();
    let mut names: Vec<_> = findings
        .iter()
        .map(|found| (found.kind.code(), found.file.clone().unwrap_or_default()))
        .collect();
    names.sort_unstable();
    let expected = [("rolled-back", "dms/1".to_owned()), ("vanished", "dm/2".to_owned())];
    assert_eq!(names, expected);
}
