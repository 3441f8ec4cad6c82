//! Upkeep of contexts: what it deletes, and what it never does.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use jiff::SignedDuration;
use sottovoce::admin::RepairOptions;
use sottovoce::import::{Backup, OpenStore};
use sottovoce::persona::{
    NewPersonaConversation, Persona, PersonaFailure, PersonaLimits, PersonaRegistry,
};
use sottovoce::{
    ChatMessage, ChatRole, Clock, ConversationStore, EncryptionKey, Error, ManualClock, Scope,
    StoreOptions,
};

const SECRET: &str = "a long secret that only this house knows";

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_utc("2025-08-24T05:31:01.123Z".parse().unwrap()))
}

fn registry(root: &Path, clock: &Arc<ManualClock>) -> PersonaRegistry {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    let key = EncryptionKey::from_secret(SECRET).unwrap();
    PersonaRegistry::new(root, StoreOptions::new(key).clock(clock))
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

async fn make(registry: &PersonaRegistry, clock: &ManualClock) -> String {
    let mira = NewPersonaConversation::new("Mira", Persona::new("You are Mira.")).numbered();
    let id = registry.create(mira).await.unwrap().id;
    say(registry, &id, clock).await;
    id
}

async fn say(registry: &PersonaRegistry, id: &str, clock: &ManualClock) {
    let said = ChatMessage::new(ChatRole::User, "Remember the eggs", &clock.now());
    registry.open(id).await.unwrap().append_message(said).await.unwrap();
}

/// How many messages a context has in a new store after its backup was imported there.
async fn messages_in(backup: &Path, id: &str) -> u64 {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_owned();
    let key = || EncryptionKey::from_secret(SECRET).unwrap();
    let open: OpenStore = Box::new(move |scope| {
        let (options, path) = (StoreOptions::new(key()).scope(scope), path.clone());
        Box::pin(async move { options.open(path).await })
    });
    Backup::new(backup).key(key()).import(open, |_| {}, |_| {}).await.unwrap();
    let there = PersonaRegistry::new(root.path(), StoreOptions::new(key()));
    there.get(id).await.unwrap().messages
}

fn fill(folder: &Path, names: impl Iterator<Item = String>) {
    std::fs::create_dir(folder).unwrap();
    names.for_each(|name| std::fs::write(folder.join(name), b"x").unwrap());
}

#[tokio::test]
async fn a_backup_just_made_stays_also_where_the_clock_was_set_back() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let (one, other) = (make(&registry, &clock).await, make(&registry, &clock).await);
    let later = (0..100).map(|n| format!("removed-1999999999{n:03}-x.sottovoce"));
    let later = later.chain((1..8).map(|n| format!("daily-2033-05-1{n}-x.sottovoce")));
    fill(registry.backup_folder(), later);
    let backup = registry.remove(&one).await.unwrap();
    let next = registry.remove(&other).await.unwrap();
    assert!(backup.exists() && next.exists() && backup < next);
    make(&registry, &clock).await;
    let made = registry.maintain().await.unwrap().backups;
    assert!(made.len() == 1 && made[0].exists());
}

#[tokio::test]
async fn however_many_contexts_go_at_once_the_backup_of_each_stays_for_a_month() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let old = (0..100).map(|n| format!("removed-1740000000{n:03}-x.sottovoce"));
    let own = "removed-mine.sottovoce".to_owned();
    fill(registry.backup_folder(), old.chain([own.clone()]));
    for _ in 0..103 {
        make(&registry, &clock).await;
    }
    clock.advance(days(8));
    registry.maintain().await.unwrap();
    clock.advance(days(7));
    let done = registry.maintain().await.unwrap();
    assert_eq!(done.removed.len(), 103);
    assert!(done.removed.iter().all(|(_, backup)| backup.exists()));
    let left = std::fs::read_dir(registry.backup_folder()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = left.filter(|name| name.starts_with("removed-")).collect();
    assert!(left.contains(&own));
    assert_eq!(left.len(), 104, "those of months ago are gone");
}

#[tokio::test]
async fn backups_from_before_a_contexts_settings_were_damaged_stay() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let mut limits = PersonaLimits::default();
    limits.daily_backups = 2;
    let whole = registry(root.path(), &clock).limits(limits);
    let (damaged, _) = (make(&whole, &clock).await, make(&whole, &clock).await);
    let first = whole.maintain().await.unwrap().backups;
    let settings = root.path().join("conversations").join(damaged).join("profile");
    std::fs::write(settings, b"damaged").unwrap();
    let registry = registry(root.path(), &clock).limits(limits);
    for _ in 0..4 {
        clock.advance(days(1));
        assert_eq!(registry.maintain().await.unwrap().unread, 1);
    }
    assert!(first.len() == 2 && first.iter().all(|backup| backup.exists()));
}

#[tokio::test]
async fn what_is_forgotten_goes_from_the_backups_that_the_store_makes_and_others_stay() {
    let clock = clock();
    for elsewhere in [false, true] {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut registry = registry(root.path(), &clock);
        if elsewhere {
            registry = registry.backups(other.path());
        }
        let (one, two) = (make(&registry, &clock).await, make(&registry, &clock).await);
        let before = registry.maintain().await.unwrap().backups;
        let store = registry.open(&one).await.unwrap();
        let plan = store.plan_forget(&[1..=1]).await.unwrap();
        assert_eq!(plan.backups.len(), 1, "{plan:?}");
        let report = store.forget_planned(&plan).await.unwrap();
        assert_eq!((report.removed, report.left), (vec![1], Vec::new()));
        let left: Vec<_> = before.iter().filter(|backup| backup.exists()).collect();
        assert!(left.len() == 1 && left[0].to_str().unwrap().contains(&two), "{left:?}");
        // The same day another one is made, which has only what is left.
        let anew = registry.maintain().await.unwrap().backups;
        assert!(anew.len() == 1 && anew[0].to_str().unwrap().contains(&one), "{anew:?}");
        assert_eq!(messages_in(&anew[0], &one).await, 0);
    }
}

#[tokio::test]
async fn what_a_repair_set_aside_is_never_removed_with_its_context() {
    for place in ["", "packs", "snapshots", "artifacts"] {
        for beside in ["quarantine", "a folder of mine"] {
            let root = tempfile::tempdir().unwrap();
            let clock = clock();
            let registry = registry(root.path(), &clock);
            let id = make(&registry, &clock).await;
            let folder = root.path().join("conversations").join(&id).join(place).join(beside);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("a"), b"not to be opened").unwrap();
            let error = registry.remove(&id).await.unwrap_err();
            let expected = PersonaFailure::NotBackedUp { unread: 1 };
            assert!(matches!(error, Error::Persona(told) if told == expected), "{place} {beside}");
            assert!(folder.join("a").exists());
            assert_eq!(std::fs::read_dir(registry.backup_folder()).unwrap().count(), 0);
        }
    }
}

#[tokio::test]
async fn the_last_days_are_counted_anew_after_a_context_was_taken_back() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let id = make(&registry, &clock).await;
    clock.advance(days(8));
    registry.maintain().await.unwrap();
    registry.extend(&id, Some(1)).await.unwrap();
    // No upkeep runs during the talk.
    for _ in 0..30 {
        say(&registry, &id, &clock).await;
        clock.advance(days(1));
    }
    clock.advance(days(7));
    assert!(registry.get(&id).await.unwrap().is_expired);
    assert_eq!(registry.maintain().await.unwrap().removed, []);
    clock.advance(days(6));
    assert_eq!(registry.maintain().await.unwrap().removed, []);
    clock.advance(days(1));
    assert_eq!(registry.maintain().await.unwrap().removed.len(), 1);
}

#[tokio::test]
async fn two_that_look_after_contexts_at_once_do_not_stop_each_other() {
    for _ in 0..10 {
        let root = tempfile::tempdir().unwrap();
        let clock = clock();
        let (one, other) = (registry(root.path(), &clock), registry(root.path(), &clock));
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(make(&one, &clock).await);
        }
        clock.advance(days(8));
        one.maintain().await.unwrap();
        clock.advance(days(7));
        let (here, there) = tokio::join!(one.maintain(), other.maintain());
        let removed = [here.unwrap().removed, there.unwrap().removed].concat();
        assert!(removed.iter().all(|(_, backup)| backup.exists()));
        for id in ids {
            let left = one.get(&id).await;
            let times = removed.iter().filter(|(gone, _)| *gone == id).count();
            assert_eq!(times, usize::from(left.is_err()), "{left:?}");
        }
    }
}

#[tokio::test]
async fn a_context_that_lost_its_settings_is_one_again_once_a_backup_is_imported() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let whole = registry(root.path(), &clock);
    let id = make(&whole, &clock).await;
    let backup = whole.maintain().await.unwrap().backups.remove(0);
    say(&whole, &id, &clock).await;
    std::fs::write(root.path().join("conversations").join(&id).join("profile"), b"?").unwrap();
    let (path, time): (_, Arc<dyn Clock>) = (root.path().to_owned(), clock.clone());
    let opened = move |scope| {
        let (path, time) = (path.clone(), Arc::clone(&time));
        let key = EncryptionKey::from_secret(SECRET).unwrap();
        async move { StoreOptions::new(key).clock(time).scope(scope).open(path).await }
    };
    let store = opened(Scope::Named { id: id.clone() }).await.unwrap();
    store.repair(RepairOptions::default(), |_| {}).await.unwrap();
    let registry = registry(root.path(), &clock);
    assert!(registry.get(&id).await.is_err());
    let open: OpenStore = Box::new(move |scope| Box::pin(opened(scope)));
    let key = Arc::new(EncryptionKey::from_secret(SECRET).unwrap());
    Backup::new(backup).key(key).import(open, |_| {}, |_| {}).await.unwrap();
    let back = registry.get(&id).await.unwrap();
    assert_eq!(back.assigned_persona.persona.system_prompt, "You are Mira.");
    assert_eq!((back.name.as_str(), back.messages), ("Mira", 2));
}

#[tokio::test]
async fn a_context_that_was_forgotten_whole_comes_back_with_no_backup() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let id = make(&registry, &clock).await;
    let made = registry.maintain().await.unwrap().backups.remove(0);
    // Somebody took it elsewhere: those here go with the words.
    let backup = root.path().join("copy");
    std::fs::copy(made, &backup).unwrap();
    let store = registry.store(&id).await.unwrap();
    store.forget(&[1..=1]).await.unwrap();
    store.change_profile(Box::new(sottovoce::store::Profile::clear_metadata)).await.unwrap();
    let (path, time): (_, Arc<dyn Clock>) = (root.path().to_owned(), clock.clone());
    let open: OpenStore = Box::new(move |scope| {
        let (path, time) = (path.clone(), Arc::clone(&time));
        let key = EncryptionKey::from_secret(SECRET).unwrap();
        Box::pin(async move { StoreOptions::new(key).clock(time).scope(scope).open(path).await })
    });
    let key = Arc::new(EncryptionKey::from_secret(SECRET).unwrap());
    let reports = Backup::new(backup).key(key).import(open, |_| {}, |_| {}).await.unwrap();
    assert_eq!((reports[0].messages.forgotten, reports[0].messages.taken), (1, 0));
    assert!(registry.get(&id).await.is_err());
    assert!(store.profile().await.unwrap().title.is_none());
}

#[tokio::test]
async fn a_conversation_that_is_kept_for_ever_says_no_date_in_a_hundred_years() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let mut persona = Persona::new("You are Mira.");
    assert!(!persona.is_lasting());
    persona.expiry_days = *Persona::EXPIRY_DAYS.end();
    assert!(persona.is_lasting());
    let id = registry.create(NewPersonaConversation::new("Mira", persona)).await.unwrap().id;
    say(&registry, &id, &clock).await;
    let stats = registry.store(&id).await.unwrap().stats().await.unwrap();
    assert_eq!((stats.expires_at, stats.expires_in), (None, None));
    let week = make(&registry, &clock).await;
    let stats = registry.store(&week).await.unwrap().stats().await.unwrap();
    assert_eq!(stats.expires_in, Some(7 * 24 * 3600 * 1000));
}

#[tokio::test]
async fn no_later_write_deletes_the_backups_that_were_made_after_a_forgetting() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let mut limits = PersonaLimits::default();
    limits.remove_after_days = 0;
    let registry = registry(root.path(), &clock).limits(limits);
    let id = make(&registry, &clock).await;
    say(&registry, &id, &clock).await;
    let store = registry.open(&id).await.unwrap();
    store.forget(&[1..=1]).await.unwrap();
    let daily = registry.maintain().await.unwrap().backups;
    for _ in 0..200 {
        say(&registry, &id, &clock).await;
    }
    assert!(daily.len() == 1 && daily[0].exists());
    // Its last backup is not taken for one that holds what was forgotten.
    let removed = registry.remove(&id).await.unwrap();
    assert!(removed.exists() && daily[0].exists());
    assert_eq!(messages_in(&removed, &id).await, 201);
}
