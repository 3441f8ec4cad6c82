//! Settings, limits and snapshots after a failing call.

use std::num::NonZeroU64;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::clock::{Clock, ManualClock};
use crate::directory::{Directory, memory::MemoryDirectory};
use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken, not_durable};
use crate::store::{
    ConversationStore, FileConversationStore, FindingKind, HiddenMessages, Profile, RestoreThreads,
    Retention, SavedMessage, Snapshot, StoreOptions,
};
use crate::{ChatMessage, ChatRole, EncryptionKey, Error};

const FOLDERS: [&str; 3] = ["packs", "snapshots", "recall"];

fn start() -> Timestamp {
    "2025-08-24T16:00:00Z".parse().unwrap()
}

pub(super) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_utc(start()))
}

pub(super) fn options(clock: &Arc<ManualClock>) -> StoreOptions {
    let key = EncryptionKey::from_secret("a secret of the tests, long enough").unwrap();
    StoreOptions::new(key).clock(Arc::clone(clock) as Arc<dyn Clock>)
}

pub(super) async fn open(
    options: StoreOptions,
    directory: &Arc<impl Directory + 'static>,
) -> FileConversationStore {
    let directory: Arc<dyn Directory> = directory.clone();
    options.open_directory(directory.clone(), directory).await.unwrap()
}

fn names(directory: &dyn Directory) -> Vec<String> {
    let mut names = Vec::new();
    directory
        .list(&mut |name, kind| {
            if kind == crate::directory::EntryKind::File {
                names.push(String::from_utf8(name.into()).unwrap());
            }
        })
        .unwrap();
    names
}

pub(super) fn copied(directory: &MemoryDirectory) -> Arc<MemoryDirectory> {
    let copy = Arc::new(MemoryDirectory::default());
    for name in names(directory) {
        copy.replace(&name, &directory.read(&name).unwrap().unwrap()).unwrap();
    }
    for folder in FOLDERS {
        let (from, to) = (directory.folder(folder), copy.folder(folder));
        for name in names(&*from) {
            to.replace(&name, &from.read(&name).unwrap().unwrap()).unwrap();
        }
    }
    copy
}

pub(super) fn say(clock: &ManualClock, role: ChatRole, text: impl ToString) -> ChatMessage {
    ChatMessage::at(role, text.to_string(), clock.now().timestamp())
}

pub(super) async fn exchanges(
    store: &FileConversationStore,
    clock: &ManualClock,
    numbers: std::ops::RangeInclusive<u32>,
) {
    for n in numbers {
        store.append_message(say(clock, ChatRole::User, format!("q{n}"))).await.unwrap();
        store.append_message(say(clock, ChatRole::Assistant, format!("a{n}"))).await.unwrap();
    }
}

/// Works on a copy of the directory in which one call fails, or all from that one on: each call in turn. `check` gets
/// the outcome, the copy as the next process finds it, and which calls failed. Returns how often a call failed.
pub(super) async fn at_each_failure<T>(
    memory: &MemoryDirectory,
    options: impl Fn() -> StoreOptions,
    work: impl AsyncFn(&FileConversationStore) -> T,
    mut check: impl AsyncFnMut(T, &Arc<MemoryDirectory>, &str),
) -> usize {
    let mut reached = 0;
    for times in [1, usize::MAX] {
        for after in 0..400 {
            let copy = copied(memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(options(), &faulty).await;
            faulty.fail(Call::Any, after, times, broken);
            let outcome = work(&store).await;
            if !faulty.was_reached() {
                break;
            }
            reached += 1;
            drop(store);
            check(outcome, &copy, &format!("{times} times after {after}")).await;
        }
    }
    reached
}

pub(super) async fn words(store: &FileConversationStore) -> Vec<String> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    reading.messages.iter().map(|stored| stored.message.content.clone()).collect()
}

async fn sound(store: &FileConversationStore, what: &str) {
    let mut findings = store.verify(|_| {}).await.unwrap().findings;
    // A snapshot whose saving or deletion was interrupted is in no list, and a repair removes it.
    findings.retain(|finding| finding.kind != FindingKind::Resurrected);
    assert!(findings.is_empty(), "{what}: {findings:?}");
}

pub(super) fn snapshot(clock: &ManualClock, messages: &[(u64, &str)]) -> Snapshot {
    let now = clock.now().timestamp();
    let saved = messages
        .iter()
        .map(|(seq, text)| SavedMessage::new(*seq, say(clock, ChatRole::User, text)))
        .collect();
    Snapshot::new(now, (now, now), saved).unwrap()
}

pub(super) async fn saved_words(store: &FileConversationStore) -> Vec<Vec<String>> {
    let (snapshots, findings) = store.snapshots().await.unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    snapshots
        .iter()
        .map(|s| s.messages.iter().map(|m| m.message.content.clone()).collect())
        .collect()
}

fn window(seconds: u64) -> crate::store::ProfileChange {
    Box::new(move |profile: &mut Profile| profile.window_seconds = NonZeroU64::new(seconds))
}

fn retention(retention: Retention) -> crate::store::ProfileChange {
    Box::new(move |profile: &mut Profile| profile.retention = Some(retention))
}

const TTL: Retention = Retention { max_messages: None, ttl_seconds: NonZeroU64::new(86_400) };

#[tokio::test]
async fn two_settings_never_bear_one_revision_so_no_acknowledged_change_is_lost() {
    let (clock, memory) = (clock(), Arc::new(MemoryDirectory::default()));
    let a = open(options(&clock), &memory).await;
    a.append_message(say(&clock, ChatRole::User, 1)).await.unwrap();
    a.change_profile(window(60)).await.unwrap();
    // Another process is killed right before it overwrites the head.
    let faulty = FaultyDirectory::over(memory.clone());
    let b = open(options(&clock), &faulty).await;
    b.read_tail(1).await.unwrap();
    faulty.fail(Call::Overwrite, 0, usize::MAX, broken);
    drop(b.change_profile(window(61)).await.unwrap_err());
    drop(b);
    // A third process takes over and appends.
    let d = open(options(&clock), &memory).await;
    d.append_message(say(&clock, ChatRole::User, 2)).await.unwrap();
    // The first process changes the limits, which is acknowledged. Then the third changes the window.
    a.change_profile(retention(TTL)).await.unwrap();
    assert_eq!(d.profile().await.unwrap().retention, Some(TTL), "d sees a's acknowledged change");
}

#[tokio::test]
async fn an_acknowledged_change_outlives_those_of_others() {
    let (clock, memory) = (clock(), Arc::new(MemoryDirectory::default()));
    let a = open(options(&clock), &memory).await;
    a.append_message(say(&clock, ChatRole::User, 1)).await.unwrap();
    a.change_profile(window(60)).await.unwrap();
    let faulty = FaultyDirectory::over(memory.clone());
    let b = open(options(&clock), &faulty).await;
    b.read_tail(1).await.unwrap();
    faulty.fail(Call::Overwrite, 0, usize::MAX, broken);
    drop(b.change_profile(window(61)).await.unwrap_err());
    drop(b);
    let d = open(options(&clock), &memory).await;
    d.append_message(say(&clock, ChatRole::User, 2)).await.unwrap();
    a.change_profile(retention(TTL)).await.unwrap();
    d.clear().await.unwrap();
    let fresh = open(options(&clock), &memory).await;
    assert_eq!(fresh.profile().await.unwrap().retention, Some(TTL), "an acknowledged change");
}

#[tokio::test]
async fn a_change_that_is_tried_again_and_acknowledged_is_seen_by_all() {
    let (clock, memory) = (clock(), Arc::new(MemoryDirectory::default()));
    let a = open(options(&clock), &memory).await;
    a.append_message(say(&clock, ChatRole::User, 1)).await.unwrap();
    a.change_profile(window(60)).await.unwrap();
    let mut reached = 0;
    for after in 0..60 {
        let copy = copied(&memory);
        let a = open(options(&clock), &copy).await;
        assert_eq!(a.read_tail(9).await.unwrap().messages.len(), 1);
        a.profile().await.unwrap();
        let faulty = FaultyDirectory::over(copy.clone());
        let b = open(options(&clock), &faulty).await;
        faulty.fail(Call::Any, after, 1, broken);
        let first = b.change_profile(retention(TTL)).await;
        reached += usize::from(faulty.was_reached());
        if first.is_err() {
            b.change_profile(retention(TTL)).await.unwrap();
        }
        assert_eq!(a.profile().await.unwrap().retention, Some(TTL), "call {after}");
    }
    assert!(reached > 5, "{reached}");
}

#[tokio::test]
async fn a_forgotten_message_does_not_come_back_with_a_backup_of_a_snapshot() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=2).await;
    let snap = snapshot(&clock, &[(1, "q1"), (3, "q2")]);
    store.save_snapshot(snap.clone()).await.unwrap();
    let backup = memory.folder("snapshots").read(&snap.id).unwrap().unwrap();
    let mut bad = Vec::new();
    let forget = async |store: &FileConversationStore| store.forget(&[1..=1]).await.is_ok();
    at_each_failure(
        &memory,
        || options(&clock),
        forget,
        async |told, copy, what| {
            let store = open(options(&clock), copy).await;
            if !told {
                store.forget(&[1..=1]).await.unwrap();
            }
            copy.folder("snapshots").replace(&snap.id, &backup).unwrap();
            let fresh = open(options(&clock), copy).await;
            let (snapshots, _) = fresh.snapshots().await.unwrap();
            if snapshots.iter().any(|s| s.messages.iter().any(|m| m.seq == 1)) {
                bad.push(what.to_owned());
            }
        },
    )
    .await;
    assert!(bad.is_empty(), "the words are back after a failure at calls {bad:?}");
}

#[tokio::test]
async fn forgetting_reaches_every_copy_or_is_not_acknowledged() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=3).await;
    let reading = store.read_seqs(1..=4).await.unwrap();
    let now = clock.now().timestamp();
    let saved =
        reading.messages.iter().map(|m| SavedMessage::new(m.seq, m.message.clone())).collect();
    let snap = Snapshot::new(now, (now, now), saved).unwrap();
    store.save_snapshot(snap.clone()).await.unwrap();
    store.clear().await.unwrap();
    let copies = store
        .restore(&snap.id, Timestamp::MIN, RestoreThreads::default(), clock.now())
        .await
        .unwrap();
    assert_eq!(copies.len(), 4);
    let mut bad = Vec::new();
    let forget = async |store: &FileConversationStore| store.forget(&[1..=1]).await.is_ok();
    at_each_failure(
        &memory,
        || options(&clock),
        forget,
        async |told, copy, what| {
            let store = open(options(&clock), copy).await;
            if !told {
                store.forget(&[1..=1]).await.unwrap();
            }
            let there = words(&store).await;
            let saved = saved_words(&store).await;
            if there.contains(&"q1".to_owned()) || saved.iter().flatten().any(|w| w == "q1") {
                bad.push((what.to_owned(), told));
            }
            assert_eq!(there.iter().filter(|w| *w == "a1").count(), 2, "{there:?} {what}");
            store.append_message(say(&clock, ChatRole::User, "next")).await.unwrap();
            sound(&store, what).await;
        },
    )
    .await;
    assert!(bad.is_empty(), "q1 is still there after a failure at calls {bad:?}");
}

#[tokio::test]
async fn what_has_expired_does_not_come_back_though_a_call_fails_while_it_is_removed() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(TTL).loose_files(2);
    let store = open(opts(), &memory).await;
    exchanges(&store, &clock, 1..=4).await;
    clock.advance(SignedDuration::from_hours(48));
    let mut bad = Vec::new();
    let append = async |store: &FileConversationStore| {
        store.append_message(say(&clock, ChatRole::User, "new")).await.is_ok()
    };
    at_each_failure(&memory, opts, append, async |told, copy, what| {
        let there = words(&open(opts(), copy).await).await;
        let expected: &[&str] = if told { &["new"] } else { &[] };
        if there != expected && there != ["new"] {
            bad.push((what.to_owned(), told, there));
        }
    })
    .await;
    assert!(bad.is_empty(), "{bad:?}");
}

#[tokio::test]
async fn nothing_is_removed_because_the_newest_could_not_be_read_for_a_moment() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(TTL);
    let store = open(opts(), &memory).await;
    exchanges(&store, &clock, 1..=1).await;
    clock.advance(SignedDuration::from_hours(20));
    store.append_message(say(&clock, ChatRole::User, "q2")).await.unwrap();
    clock.advance(SignedDuration::from_hours(20));
    assert_eq!(words(&store).await.len(), 3, "it has not expired");
    let mut bad = Vec::new();
    for cleanup in [false, true] {
        for after in 0..40 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(opts(), &faulty).await;
            faulty.fail(Call::Read, after, 1, broken);
            if cleanup {
                drop(store.cleanup().await);
            } else {
                drop(store.append_message(say(&clock, ChatRole::User, "q3")).await);
            }
            if !faulty.was_reached() {
                break;
            }
            drop(store);
            let there = words(&open(opts(), &copy).await).await;
            if there.len() < 3 {
                bad.push((cleanup, after, there));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[tokio::test]
async fn an_append_that_trims_leaves_a_sound_store_whatever_fails() {
    // In a file of its own, and in a pack.
    for at_once in [1, 9] {
        an_append_that_trims_and_fails(at_once).await;
    }
}

async fn an_append_that_trims_and_fails(at_once: usize) {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(Retention::FOREVER.max_messages(4)).loose_files(4);
    let store = open(opts(), &memory).await;
    // One more exchange reaches sixteen.
    exchanges(&store, &clock, 1..=9).await;
    store.append_message(say(&clock, ChatRole::User, "q10")).await.unwrap();
    let answers: Vec<String> = (1..=at_once).map(|n| format!("a10 {n}")).collect();
    let newest = [&["q10".to_owned()][..], &answers].concat().split_off(at_once - 1);
    let mut reached = 0;
    for (error, times) in
        [(broken as fn(&std::path::Path) -> Error, 1), (broken, usize::MAX), (not_durable, 1)]
    {
        for after in 0..400 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(opts(), &faulty).await;
            faulty.fail(Call::Any, after, times, error);
            let batch = answers.iter().map(|words| say(&clock, ChatRole::Assistant, words));
            let first = store.append_all(batch.collect()).await;
            if !faulty.was_reached() {
                break;
            }
            reached += 1;
            let what = format!("{at_once} at once, {times} {after} {}", first.is_ok());
            if times == 1
                && error(std::path::Path::new("x")).to_string()
                    == broken(std::path::Path::new("x")).to_string()
            {
                for n in 11..=13 {
                    store.append_message(say(&clock, ChatRole::User, n)).await.unwrap();
                }
                let there = words(&store).await;
                assert!(
                    there.ends_with(&["11".into(), "12".into(), "13".into()]),
                    "{what}: {there:?}"
                );
                sound(&store, &what).await;
            }
            drop(store);
            let store = open(opts(), &copy).await;
            let there = words(&store).await;
            if times == usize::MAX && first.is_ok() {
                assert!(there.ends_with(&newest), "{what} {there:?}");
            }
            assert!(there.len() <= 4);
            store.append_message(say(&clock, ChatRole::User, "last")).await.unwrap();
            sound(&store, &what).await;
        }
    }
    assert!(reached > 20);
}

#[tokio::test]
async fn a_sync_that_fails_while_trimming_stops_the_writer_as_any_other() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(Retention::FOREVER.max_messages(4));
    let store = open(opts(), &memory).await;
    exchanges(&store, &clock, 1..=9).await;
    store.append_message(say(&clock, ChatRole::User, "q10")).await.unwrap();
    let mut bad = Vec::new();
    for call in [Call::Create, Call::Sync] {
        for after in 0..20 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(opts(), &faulty).await;
            faulty.fail(call, after, 1, not_durable);
            drop(store.append_message(say(&clock, ChatRole::Assistant, "a10")).await);
            if !faulty.was_reached() {
                break;
            }
            let next = store.append_message(say(&clock, ChatRole::User, "q11")).await;
            if !matches!(next, Err(Error::Poisoned { .. })) {
                bad.push((call, after));
            }
        }
    }
    assert!(bad.is_empty(), "writing goes on after a failed fsync: {bad:?}");
}

#[tokio::test]
async fn an_append_costs_the_same_where_some_numbers_are_lost() {
    let clock = clock();
    let mut costs = Vec::new();
    for most in [200, 800] {
        let memory = Arc::new(MemoryDirectory::default());
        let opts = || options(&clock).retention(Retention::FOREVER.max_messages(most));
        let store = open(opts(), &memory).await;
        for n in 0..most {
            store.append_message(say(&clock, ChatRole::User, n)).await.unwrap();
        }
        // Lost numbers, as after a disk failure: as many files as a pack holds.
        let mut loose: Vec<_> =
            names(&*memory).into_iter().filter(|name| name.ends_with(".json")).collect();
        loose.sort();
        let lost = if most == 200 { 26 } else { 0 };
        for name in loose.iter().take(lost) {
            memory.remove(name).unwrap();
        }
        if most == 800 {
            let packs = memory.folder("packs");
            let first = names(&*packs).into_iter().min().unwrap();
            packs.remove(&first).unwrap();
        }
        let faulty = FaultyDirectory::over(memory.clone());
        let store = open(opts(), &faulty).await;
        for n in 0..(lost.max(if most == 800 { 101 } else { 0 })) {
            store.append_message(say(&clock, ChatRole::User, n)).await.unwrap();
        }
        let mut each = Vec::new();
        for n in 0..6 {
            let before = faulty.counted().0;
            store.append_message(say(&clock, ChatRole::User, n)).await.unwrap();
            each.push(faulty.counted().0 - before);
        }
        costs.push((most, each));
    }
    assert!(costs.iter().all(|(_, each)| each[2..].iter().all(|c| *c < 60)), "calls: {costs:?}");
}

#[tokio::test]
async fn what_is_over_the_limit_goes_whether_it_came_in_files_or_in_packs() {
    for at_once in [1, 8, 9, 40, 128, 200] {
        let clock = clock();
        let opts = options(&clock).retention(Retention::FOREVER.max_messages(4));
        let store = open(opts, &Arc::new(MemoryDirectory::default())).await;
        for _ in 0..400 / at_once {
            let batch = (0..at_once).map(|n| say(&clock, ChatRole::User, n)).collect();
            store.append_all(batch).await.unwrap();
            let stored = store.verify(|_| {}).await.unwrap().messages;
            // Those that show, and fewer than are removed together.
            assert!(stored < 4 + 16, "{stored} are stored, {at_once} at once");
        }
        sound(&store, "after that").await;
    }
}

#[tokio::test]
async fn two_that_restore_at_once_do_not_double() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=2).await;
    let snap = snapshot(&clock, &[(1, "q1"), (3, "q2")]);
    store.save_snapshot(snap.clone()).await.unwrap();
    store.clear().await.unwrap();
    let faulty = FaultyDirectory::over(memory.clone());
    let a = open(options(&clock), &faulty).await;
    let b = open(options(&clock), &memory).await;
    let (other, now) = (snap.clone(), clock.now());
    faulty.interfere(Call::Lock, 0, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime
            .block_on(b.restore(&other.id, Timestamp::MIN, RestoreThreads::default(), now))
            .unwrap();
    });
    a.restore(&snap.id, Timestamp::MIN, RestoreThreads::default(), clock.now()).await.unwrap();
    assert!(faulty.has_interfered());
    let there = words(&a).await;
    assert_eq!(
        there.iter().filter(|w| *w == "q1").count(),
        2,
        "the original and one copy: {there:?}"
    );
}

#[tokio::test]
async fn what_another_process_forgets_meanwhile_is_not_restored() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=2).await;
    let snap = snapshot(&clock, &[(1, "q1"), (3, "q2")]);
    store.save_snapshot(snap.clone()).await.unwrap();
    store.clear().await.unwrap();
    let faulty = FaultyDirectory::over(memory.clone());
    let a = open(options(&clock), &faulty).await;
    let b = open(options(&clock), &memory).await;
    faulty.interfere(Call::Lock, 0, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime.block_on(b.forget(&[1..=1])).unwrap();
    });
    let snap = a.read_snapshot(&snap.id).await.unwrap().unwrap();
    drop(a.restore(&snap.id, Timestamp::MIN, RestoreThreads::default(), clock.now()).await);
    assert!(faulty.has_interfered());
    let there = words(&a).await;
    assert!(!there.contains(&"q1".to_owned()), "forgotten words are back: {there:?}");
}

#[tokio::test]
async fn many_that_are_restored_do_not_wait_for_a_file_each_and_come_back_whole_or_not_at_all() {
    let clock = clock();
    let texts: Vec<String> = (1..=20).map(|n| format!("q{n}")).collect();
    let numbered: Vec<(u64, &str)> = (1..).zip(texts.iter().map(String::as_str)).collect();
    for step in 0.. {
        let memory = Arc::new(MemoryDirectory::default());
        let store = open(options(&clock), &memory).await;
        exchanges(&store, &clock, 1..=10).await;
        let snap = snapshot(&clock, &numbered);
        store.save_snapshot(snap.clone()).await.unwrap();
        store.clear().await.unwrap();
        let faulty = FaultyDirectory::over(memory.clone());
        let restoring = open(options(&clock), &faulty).await;
        faulty.fail(Call::Any, step, usize::MAX, broken);
        let now = clock.now();
        let restored =
            restoring.restore(&snap.id, Timestamp::MIN, RestoreThreads::default(), now).await;
        let fresh = open(options(&clock), &memory).await;
        let there = words(&fresh).await.split_off(20);
        assert!(there.is_empty() || there == texts, "step {step}: {there:?}");
        assert!(restored.is_err() || there == texts, "step {step}");
        if faulty.was_reached() {
            continue;
        }
        assert_eq!(restored.unwrap().len(), 20);
        let files = names(&*memory).into_iter().filter(|name| name.ends_with(".json"));
        assert_eq!((files.count(), names(&*memory.folder("packs")).len()), (20, 1));
        return;
    }
}

#[tokio::test]
async fn a_prompt_right_after_a_start_lists_nothing() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=10).await;
    let faulty = FaultyDirectory::over(memory.clone());
    let fresh = open(options(&clock), &faulty).await;
    fresh.read_tail(4).await.unwrap();
    assert_eq!(faulty.counted().1, 0, "reading lists nothing");
    // Reads the settings first, as every prompt does.
    let fresh = open(options(&clock), &faulty).await;
    fresh.profile().await.unwrap();
    let first = faulty.counted().1;
    store.append_message(say(&clock, ChatRole::User, "x")).await.unwrap();
    fresh.profile().await.unwrap();
    assert_eq!(
        (first, faulty.counted().1 - first),
        (0, 0),
        "names listed at the start, after another's append"
    );
}

#[tokio::test]
async fn settings_are_the_old_or_the_new_ones_whatever_fails() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=2).await;
    store.change_profile(window(60)).await.unwrap();
    let snap = snapshot(&clock, &[(1, "q1")]);
    store.save_snapshot(snap.clone()).await.unwrap();
    let another = snapshot(&clock, &[(3, "q2")]);
    for op in 0..6 {
        for times in [1, usize::MAX] {
            for after in 0..300 {
                let copy = copied(&memory);
                let faulty = FaultyDirectory::over(copy.clone());
                let store = open(options(&clock), &faulty).await;
                let sound_before = open(options(&clock), &copy).await;
                sound_before.read_tail(2).await.unwrap();
                faulty.fail(Call::Any, after, times, broken);
                let ok = match op {
                    0 => store.change_profile(window(61)).await.is_ok(),
                    1 => store.clear().await.is_ok(),
                    2 => store.save_snapshot(another.clone()).await.is_ok(),
                    3 => store.delete_snapshot(&snap.id).await.is_ok(),
                    4 => store
                        .change_profile(retention(Retention::FOREVER.max_messages(2)))
                        .await
                        .is_ok(),
                    _ => store
                        .restore(
                            &snap.id,
                            clock.now().timestamp() + SignedDuration::from_secs(1),
                            RestoreThreads::default(),
                            clock.now(),
                        )
                        .await
                        .is_ok(),
                };
                if !faulty.was_reached() {
                    break;
                }
                drop(store);
                let what = format!("op {op}, {times} times after {after}: ok {ok}");
                let store = open(options(&clock), &copy).await;
                for _ in 0..2 {
                    let profile = store.profile().await.unwrap();
                    let saved = saved_words(&store).await.len();
                    let there = words(&store).await;
                    let state = match op {
                        0 => profile.window_seconds.unwrap().get() == 61,
                        1 => profile.cleared.is_some(),
                        2 => saved == 2,
                        3 => saved == 0,
                        4 => profile.retention.is_some(),
                        _ => there.iter().filter(|w| *w == "q1").count() == 2,
                    };
                    assert!(!ok || state, "{what}");
                    assert!(op == 4 || there.len() >= 4, "{what}");
                    assert!(profile.window_seconds.is_some(), "{what}");
                    // A process that ran all the time sees the same after the next write.
                    store.append_message(say(&clock, ChatRole::User, "next")).await.unwrap();
                    sound(&store, &what).await;
                }
                if ok {
                    let p = sound_before.profile().await.unwrap();
                    assert_eq!(p, store.profile().await.unwrap(), "{what}: another process");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_cleanup_broken_off_anywhere_shows_nothing_hidden_and_loses_nothing() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(Retention::FOREVER.max_messages(4)).loose_files(2);
    let store = open(opts(), &memory).await;
    exchanges(&store, &clock, 1..=7).await;
    let kept = words(&store).await;
    for times in [1, usize::MAX] {
        for after in 0..400 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(opts(), &faulty).await;
            faulty.fail(Call::Any, after, times, broken);
            let ok = store.cleanup().await.is_ok();
            if !faulty.was_reached() {
                break;
            }
            drop(store);
            let what = format!("{times} {after} {ok}");
            let store = open(opts(), &copy).await;
            assert_eq!(words(&store).await, kept, "{what}");
            store.cleanup().await.unwrap();
            assert_eq!(words(&store).await, kept, "{what}");
            sound(&store, &what).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_removed_because_the_newest_is_for_a_newer_program() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(TTL);
    let store = open(opts(), &memory).await;
    exchanges(&store, &clock, 1..=1).await;
    clock.advance(SignedDuration::from_hours(20));
    store.append_message(say(&clock, ChatRole::User, "q2")).await.unwrap();
    clock.advance(SignedDuration::from_hours(20));
    let newest = names(&*memory).into_iter().find(|n| n.contains("_0003_")).unwrap();
    let text = String::from_utf8(memory.read(&newest).unwrap().unwrap()).unwrap();
    memory.replace(&newest, text.replacen("{\"v\":1", "{\"v\":2", 1).as_bytes()).unwrap();
    let mut gone = Vec::new();
    for cleanup in [false, true] {
        let copy = copied(&memory);
        let store = open(opts(), &copy).await;
        let outcome = if cleanup {
            store.cleanup().await.map(drop)
        } else {
            store.append_message(say(&clock, ChatRole::User, "q3")).await.map(drop)
        };
        let left =
            names(&*copy).iter().filter(|n| n.contains("_0001_") || n.contains("_0002_")).count();
        if left < 2 {
            gone.push((cleanup, outcome.is_ok(), left));
        }
    }
    assert!(gone.is_empty(), "two messages that have not expired were deleted: {gone:?}");
}

#[tokio::test]
async fn restoring_that_is_tried_again_neither_doubles_nor_loses_and_is_forgotten_whole() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock).loose_files(2), &memory).await;
    exchanges(&store, &clock, 1..=3).await;
    let snap =
        snapshot(&clock, &[(1, "q1"), (2, "a1"), (3, "q2"), (4, "a2"), (5, "q3"), (6, "a3")]);
    store.save_snapshot(snap.clone()).await.unwrap();
    store.clear().await.unwrap();
    for times in [1, usize::MAX] {
        for after in 0..400 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(options(&clock).loose_files(2), &faulty).await;
            faulty.fail(Call::Any, after, times, broken);
            let first = store
                .restore(&snap.id, Timestamp::MIN, RestoreThreads::default(), clock.now())
                .await;
            if !faulty.was_reached() {
                break;
            }
            drop(store);
            let store = open(options(&clock).loose_files(2), &copy).await;
            let what = format!("{times} {after} {}", first.is_ok());
            let second = store
                .restore(&snap.id, Timestamp::MIN, RestoreThreads::default(), clock.now())
                .await
                .unwrap();
            if first.is_ok_and(|first| first.len() == 6) {
                assert!(second.is_empty(), "{what}: {second:?}");
            }
            let there = words(&store).await;
            for word in ["q1", "a1", "q2", "a2", "q3", "a3"] {
                assert_eq!(there.iter().filter(|w| *w == word).count(), 2, "{what} {there:?}");
            }
            store.forget(&[1..=1]).await.unwrap();
            let there = words(&store).await;
            assert!(!there.contains(&"q1".to_owned()), "{what} {there:?}");
            sound(&store, &what).await;
        }
    }
}

#[tokio::test]
async fn a_check_finds_nothing_wrong_while_others_save_and_delete_snapshots() {
    let clock = clock();
    let mut bad = Vec::new();
    for delete in [false, true] {
        for call in [Call::Read, Call::List] {
            for after in 0..30 {
                let memory = Arc::new(MemoryDirectory::default());
                let store = open(options(&clock), &memory).await;
                exchanges(&store, &clock, 1..=2).await;
                let snap = snapshot(&clock, &[(1, "q1")]);
                store.save_snapshot(snap.clone()).await.unwrap();
                let faulty = FaultyDirectory::over(memory.clone());
                let a = open(options(&clock), &faulty).await;
                let another = snapshot(&clock, &[(3, "q2")]);
                faulty.interfere(call, after, move || {
                    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
                    runtime.block_on(async {
                        if delete {
                            store.delete_snapshot(&snap.id).await.unwrap();
                        } else {
                            store.save_snapshot(another).await.unwrap();
                        }
                    });
                });
                let report = a.verify(|_| {}).await.unwrap();
                if !faulty.has_interfered() {
                    break;
                }
                if !report.findings.is_empty() {
                    let kinds: Vec<_> = report.findings.iter().map(|f| f.kind.clone()).collect();
                    bad.push((delete, call, after, kinds));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[tokio::test]
async fn all_see_the_same_under_limits() {
    let mut random = 7_u64;
    let mut next = move |below: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for round in 0..12 {
        let clock = clock();
        let memory = Arc::new(MemoryDirectory::default());
        let most = 3 + u32::try_from(next(12)).unwrap();
        let opts = || {
            options(&clock)
                .retention(Retention::FOREVER.max_messages(most).ttl_seconds(7_200))
                .loose_files(3)
        };
        let a = open(opts(), &memory).await;
        let b = open(opts(), &memory).await;
        for step in 0..60 {
            clock.advance(SignedDuration::from_secs(i64::try_from(next(600)).unwrap()));
            let roles = [ChatRole::User, ChatRole::Assistant, ChatRole::Tool, ChatRole::User];
            let many: Vec<_> = (0..1 + next(9))
                .map(|n| say(&clock, roles[(n % 4) as usize], format!("{round}.{step}.{n}")))
                .collect();
            let who = if next(2) == 0 { &a } else { &b };
            match next(12) {
                0..=5 => drop(who.append_all(many).await.unwrap()),
                6 => {
                    let mut many = many;
                    for m in &mut many {
                        m.timestamp -= SignedDuration::from_secs(900);
                    }
                    drop(who.import(many).await.unwrap());
                }
                7 => drop(who.cleanup().await.unwrap()),
                8 => {
                    let last = who.read_tail(1).await.unwrap().last_seq.max(1);
                    let first = 1 + next(last);
                    drop(who.forget(&[first..=first + next(4)]).await.unwrap());
                }
                9 => clock.advance(SignedDuration::from_secs(i64::try_from(next(5_000)).unwrap())),
                10 => drop(who.change_profile(window(1 + next(9))).await.unwrap()),
                _ => drop(who.pack(|_| {}).await.unwrap()),
            }
            let fresh = open(opts(), &memory).await;
            let what = format!("round {round} step {step} most {most}");
            let expected = words(&fresh).await;
            assert!(expected.len() <= most as usize, "{what}");
            for n in [1, 2, 5, 50] {
                for store in [&a, &b, &fresh] {
                    let tail = store.read_tail(n).await.unwrap();
                    let got: Vec<_> =
                        tail.messages.iter().map(|m| m.message.content.clone()).collect();
                    assert_eq!(got, expected[expected.len().saturating_sub(n)..], "{what} n {n}");
                }
            }
            for store in [&a, &b] {
                let all = store.read_times(Timestamp::MIN..Timestamp::MAX).await.unwrap();
                assert_eq!(all.messages.len(), expected.len(), "{what}");
                assert_eq!(
                    store.stats().await.unwrap().message_count as usize,
                    expected.len(),
                    "{what}"
                );
            }
        }
        sound(&a, &format!("round {round}")).await;
    }
}

#[tokio::test]
async fn what_has_expired_does_not_come_back_with_many_at_once_though_a_call_fails() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(TTL).loose_files(2);
    let store = open(opts(), &memory).await;
    exchanges(&store, &clock, 1..=4).await;
    clock.advance(SignedDuration::from_hours(48));
    let mut bad = Vec::new();
    for times in [1, usize::MAX] {
        for after in 0..400 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(opts(), &faulty).await;
            faulty.fail(Call::Any, after, times, broken);
            let many = (0..9).map(|n| say(&clock, ChatRole::User, format!("new {n}"))).collect();
            let first = store.append_all(many).await;
            if !faulty.was_reached() {
                break;
            }
            drop(store);
            let there = words(&open(opts(), &copy).await).await;
            let new = there.iter().filter(|w| w.starts_with("new")).count();
            if there.len() != new || (first.is_ok() && new != 9) {
                bad.push((times, after, first.is_ok(), there));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[tokio::test]
async fn widening_the_limits_shows_nothing_old_whatever_fails() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock).loose_files(2), &memory).await;
    store.change_profile(retention(Retention::FOREVER.max_messages(4))).await.unwrap();
    exchanges(&store, &clock, 1..=7).await;
    let mut bad = Vec::new();
    for times in [1, usize::MAX] {
        for after in 0..400 {
            let copy = copied(&memory);
            let faulty = FaultyDirectory::over(copy.clone());
            let store = open(options(&clock).loose_files(2), &faulty).await;
            faulty.fail(Call::Any, after, times, broken);
            let forever = Some(Retention::FOREVER);
            let ok = match store.limits_effect(forever).await {
                Ok(effect) => {
                    store.change_limits(forever, HiddenMessages::Delete, &effect).await.is_ok()
                }
                Err(_) => false,
            };
            if !faulty.was_reached() {
                break;
            }
            drop(store);
            let there = words(&open(options(&clock), &copy).await).await;
            if there != ["q6", "a6", "q7", "a7"] {
                bad.push((times, after, ok, there));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[tokio::test]
async fn an_append_under_limits_costs_no_more_the_longer_the_conversation() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts =
        || options(&clock).retention(Retention::FOREVER.max_messages(50).ttl_seconds(1 << 30));
    let faulty = FaultyDirectory::over(memory.clone());
    let store = open(opts(), &faulty).await;
    let mut costs = Vec::new();
    for part in 0..8_u32 {
        let before = faulty.counted();
        exchanges(&store, &clock, part * 100..=part * 100 + 99).await;
        let after = faulty.counted();
        costs.push(((after.0 - before.0) / 200, (after.1 - before.1) / 200));
    }
    let (first, last) = (costs[1], costs[7]);
    assert!(last.0 <= first.0 + 3 && last.1 <= first.1 + 3, "{costs:?}");
    assert!(last.0 < 40, "{costs:?}");
}
