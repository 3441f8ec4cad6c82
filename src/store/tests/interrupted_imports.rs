//! Importing, and forgetting imported messages, with a failure at any call.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::admin::RepairOptions;
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::folder::document;
use crate::store::record::import_digest::ImportTombstones;
use crate::store::record::import_digest::Origin;
use crate::store::tests::failing_storage::{
    Call, FaultyDirectory, broken, no_files, no_space, not_durable, said,
};
use crate::store::write::import_tombstones;
use crate::store::{
    ConversationStore, Document, FileConversationStore, FindingKind, HiddenMessages, Profile,
    Progress, Retention, StoreOptions, StoredMessage,
};
use crate::transfer::import::{ImportedConversation, ImportedMessage};
use crate::{ChatMessage, EncryptionKey, Error, Scope};

const ERRORS: [fn(&Path) -> Error; 3] = [no_space, not_durable, no_files];

async fn open(directory: &Arc<impl Directory + 'static>) -> FileConversationStore {
    let directory: Arc<dyn Directory> = Arc::clone(directory) as Arc<dyn Directory>;
    let key = EncryptionKey::from_secret("a secret of the house").unwrap();
    StoreOptions::new(key).open_directory(Arc::clone(&directory), directory).await.unwrap()
}

/// Ten messages of another system.
fn foreign() -> Vec<ChatMessage> {
    let mark = |n: u64| {
        let mut message = said(n);
        Origin::new("elara", &n.to_string(), &message).unwrap().mark(&mut message, "elara");
        message
    };
    (1..=10).map(mark).collect()
}

async fn there(store: &FileConversationStore) -> Vec<Origin> {
    let messages = store.read_seqs(1..=u64::MAX).await.unwrap().messages;
    messages.iter().filter_map(|stored| Origin::of(&stored.message)).collect()
}

/// The origins of all messages, of those that were said here too.
async fn all_there(store: &FileConversationStore) -> BTreeSet<Origin> {
    let messages = store.read_seqs(1..=u64::MAX).await.unwrap().messages;
    let origin = |m: &Arc<StoredMessage>| Origin::of_stored(&m.scope, m.seq, &m.message);
    messages.iter().filter_map(origin).collect()
}

async fn noted(store: &FileConversationStore) -> BTreeSet<Origin> {
    let list = store.read_document(Document::Imports).await.unwrap();
    list.map_or_else(BTreeSet::new, |bytes| ImportTombstones::parse(&bytes).unwrap().origins)
}

#[tokio::test]
async fn an_import_that_fails_at_any_step_stores_all_of_a_pack_or_none_and_is_gone_on_with() {
    for error in ERRORS {
        let mut stored_anyway = BTreeSet::new();
        for after in 0.. {
            let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
            let store = open(&faulty).await;
            store.append_message(said("own")).await.unwrap();
            faulty.fail(Call::Any, after, 1, error);
            let imported = store.import_after(1, 0, foreign()).await;
            if !faulty.was_reached() {
                assert_eq!(imported.unwrap().unwrap().len(), 10);
                break;
            }
            // The next process checks the existing files.
            let store = open(&faulty).await;
            let stored = there(&store).await.len();
            assert!(stored == 0 || stored == 10, "{stored} after {after} calls");
            stored_anyway.insert(stored);
            if stored == 0 {
                let seen = store.read_tail(0).await.unwrap().last_seq;
                assert_eq!(
                    store.import_after(seen, 0, foreign()).await.unwrap().unwrap().len(),
                    10
                );
            }
            assert_eq!(there(&store).await.len(), 10);
            assert!(store.verify(|_| {}).await.unwrap().is_sound());
        }
        assert_eq!(stored_anyway, BTreeSet::from([0, 10]));
    }
}

#[tokio::test]
async fn a_forgetting_that_fails_at_any_step_notes_what_is_gone_and_nothing_that_is_here() {
    for error in ERRORS {
        for after in 0.. {
            let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
            let store = open(&faulty).await;
            store.import_after(0, 0, foreign()).await.unwrap().unwrap();
            // In files of their own.
            store.append_message(said("own")).await.unwrap();
            store.append_message(said("own too")).await.unwrap();
            let all = all_there(&store).await;
            faulty.fail(Call::Any, after, 1, error);
            let forgotten = store.forget(&[2..=4, 9..=9, 12..=12]).await;
            if !faulty.was_reached() {
                forgotten.unwrap();
                faulty.fail(Call::Any, 0, 0, error);
                assert_eq!((all_there(&store).await.len(), noted(&store).await.len()), (7, 5));
                break;
            }
            let store = open(&faulty).await;
            let overlap = |noted: &BTreeSet<_>, there: &BTreeSet<_>| (noted & there).len();
            let (early, before) = (noted(&store).await, all_there(&store).await);
            assert_eq!(overlap(&early, &before), 0, "a message here is noted after {after} calls");
            // The next writer finishes it, or nothing has happened.
            store.append_message(said("next")).await.unwrap();
            let (noted, mut there) = (noted(&store).await, all_there(&store).await);
            there.retain(|origin| all.contains(origin));
            assert!([0, 5].contains(&noted.len()), "{} after {after} calls", noted.len());
            assert_eq!((overlap(&noted, &there), &noted | &there), (0, all), "{after} calls");
            assert_eq!(there, before, "{after} calls");
        }
    }
}

#[tokio::test]
async fn what_limits_remove_with_a_forgotten_message_is_never_told_to_others_whatever_fails() {
    let (mut calls, mut finished) = (0, 0);
    loop {
        let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
        let store = open(&faulty).await;
        store.import_after(0, 0, foreign()).await.unwrap().unwrap();
        store.append_message(said("own")).await.unwrap();
        let four = Some(Retention::FOREVER.max_messages(4));
        let effect = store.limits_effect(four).await.unwrap();
        store.change_limits(four, HiddenMessages::Keep, &effect).await.unwrap();
        faulty.fail(Call::Any, calls, 1, broken);
        let forgotten = store.forget(&[10..=10]).await;
        let is_last = !faulty.was_reached();
        faulty.fail(Call::Any, 0, 0, broken);
        let store = open(&faulty).await;
        store.append_message(said("next")).await.unwrap();
        let list = store.read_document(Document::Imports).await.unwrap();
        let list = list.map(|bytes| ImportTombstones::parse(&bytes).unwrap()).unwrap_or_default();
        let counts = (list.origins.len(), list.expired.len());
        assert!(counts == (0, 0) || counts == (1, 7), "{counts:?} after {calls} calls");
        let is_here = !store.read_seqs(10..=10).await.unwrap().messages.is_empty();
        assert_eq!(counts == (0, 0), is_here, "after {calls} calls");
        finished += usize::from(counts.0 == 1 && forgotten.is_err());
        if is_last {
            break;
        }
        calls += 1;
    }
    assert!(finished > 2, "a writer has finished what another began: {finished}");
}

#[tokio::test]
async fn an_import_into_a_store_that_has_changed_stores_nothing() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    open(&directory).await.append_message(said("meanwhile")).await.unwrap();
    assert!(store.import_after(0, 0, foreign()).await.unwrap().is_none());
    assert!(store.import_after(2, 0, foreign()).await.unwrap().is_none());
    assert_eq!(there(&store).await.len(), 0);
    assert!(store.import_after(1, 0, foreign()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_list_that_is_damaged_keeps_nothing_from_being_forgotten() {
    let directory = Arc::new(MemoryDirectory::default());
    let store = open(&directory).await;
    store.import_after(0, 0, foreign()).await.unwrap();
    store.forget(&[1..=1]).await.unwrap();
    directory.replace("imports", b"damaged").unwrap();
    assert!(store.read_document(Document::Imports).await.is_err());
    store.forget(&[2..=3]).await.unwrap();
    assert_eq!(noted(&store).await.len(), 2);
    assert_eq!(there(&store).await.len(), 7);
}

#[test]
fn only_a_sorted_list_of_whole_origins_is_one() {
    let origins: BTreeSet<_> = (1u8..6).map(|n| Origin::from_bytes([n; 16])).collect();
    for rev in [0, 7] {
        let list = ImportTombstones { rev, origins: origins.clone(), ..Default::default() };
        let bytes = list.to_bytes();
        assert_eq!(bytes.len(), if rev == 0 { 80 } else { 88 });
        assert_eq!(ImportTombstones::parse(&bytes), Some(list));
        let (rev, bytes) = bytes.split_at(bytes.len() - 80);
        let whole = |parts: &[&[u8]]| ImportTombstones::parse(&[rev, &parts.concat()].concat());
        assert_eq!(whole(&[&bytes[..79]]), None);
        assert_eq!(whole(&[&bytes[16..], &bytes[..16]]), None);
        assert_eq!(whole(&[&bytes[..16], &bytes[..16]]), None);
    }
    let removed = [([9; 16], origins)].into();
    let list = ImportTombstones { removed, ..Default::default() };
    assert_eq!(ImportTombstones::parse(&list.to_bytes()), Some(list));
    assert_eq!(ImportTombstones::parse(&[]), Some(ImportTombstones::default()));
    assert_eq!(ImportTombstones::parse(&[0; 8]), None);
}

#[tokio::test]
async fn an_older_list_that_is_put_back_is_a_finding_and_no_import_goes_by_it() {
    for gone in [false, true] {
        let directory = Arc::new(MemoryDirectory::default());
        let store = open(&directory).await;
        store.import_after(0, 0, foreign()).await.unwrap();
        store.forget(&[1..=1]).await.unwrap();
        let older = directory.read("imports").unwrap().unwrap();
        store.forget(&[2..=3]).await.unwrap();
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
        match gone {
            true => directory.remove("imports").unwrap(),
            false => directory.replace("imports", &older).unwrap(),
        }
        let store = open(&directory).await;
        let report = store.verify(|_| {}).await.unwrap();
        let kind = if gone { FindingKind::Absent } else { FindingKind::Outdated };
        assert_eq!(report.findings, [kind.in_file("imports")]);
        let reader = store.reader().clone();
        let current = || {
            let profile = reader.settings().unwrap();
            let bytes = document::read(&reader.folder, Document::Imports).unwrap();
            import_tombstones::current(
                &reader.folder,
                &profile,
                bytes.as_ref().map(|bytes| &bytes[..]),
            )
        };
        assert!(matches!(current(), Err(Error::Damaged { .. })));
        // Forgetting continues, and hides nothing else.
        store.forget(&[4..=4]).await.unwrap();
        assert!(matches!(current(), Err(Error::Damaged { .. })));
        assert_eq!(noted(&store).await.len(), if gone { 1 } else { 2 });
        // A repair has reported it.
        store.repair(RepairOptions::default(), |_| {}).await.unwrap();
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
        assert_eq!(current().unwrap().origins.len(), if gone { 1 } else { 2 });
    }
}

#[tokio::test]
async fn settings_are_restored_only_where_nothing_was_said_meanwhile() {
    let store = open(&Arc::new(MemoryDirectory::default())).await;
    let restored = Profile { rev: 9, title: Some("theirs".to_owned()), ..Profile::default() };
    store.append_message(said(1)).await.unwrap();
    let restore = |seen| {
        let profile = Profile::clone(&restored);
        store.write(move |writer| writer.restore_profile(profile, seen))
    };
    assert!(!restore(0).await.unwrap());
    assert_eq!(store.profile().await.unwrap().title, None);
    assert!(restore(1).await.unwrap());
    assert_eq!(store.profile().await.unwrap().title.as_deref(), Some("theirs"));
}

#[tokio::test]
async fn what_was_cleared_is_no_context_after_an_import_that_failed_half_way() {
    /// More than a pack holds.
    const MANY: u64 = 600;
    let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
    let directory: Arc<dyn Directory> = faulty.clone();
    let key = EncryptionKey::from_secret("a secret of the house").unwrap();
    let options = StoreOptions::new(key).loose_files(1);
    let store = options.open_directory(Arc::clone(&directory), directory).await.unwrap();
    // The clear marker cannot hide the imported ones without this one.
    store.import_after(0, 0, foreign()).await.unwrap().unwrap();
    let at = said(1).timestamp;
    let mut conversation = ImportedConversation::new(Scope::Default, "elara");
    conversation.cleared = Some(at);
    for n in 0..MANY {
        let name = format!("cleared {n}");
        conversation.messages.push(&name, ImportedMessage::new("elara", &name, "log", said(n)));
    }
    let fail = Arc::clone(&faulty);
    let progress = move |progress: Progress| {
        if (1..MANY as usize).contains(&progress.done) {
            fail.fail(Call::Write, 0, 1, broken);
        }
    };
    conversation.import_into(&store, progress).await.unwrap_err();
    assert!(faulty.was_reached());
    let there = store.read_seqs(11..=u64::MAX).await.unwrap().messages;
    assert!((1..MANY as usize).contains(&there.len()), "{}", there.len());
    let profile = store.profile().await.unwrap();
    assert!(there.iter().all(|stored| profile.is_pruned(stored.seq)));
    assert!(!profile.is_pruned(1));
}
