//! Contexts and presets: storage, refusals and removal.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use jiff::SignedDuration;
use sottovoce::import::Backup;
use sottovoce::persona::{
    NewPersonaConversation, Persona, PersonaChange, PersonaConversationChange, PersonaFailure,
    PersonaLimits, PersonaRegistry, Preset, PresetChange,
};
use sottovoce::{
    ChatMessage, ChatRole, Clock, ConversationStore, EncryptionKey, Error, ManualClock, Scope,
    StoreOptions,
};

const SECRET: &str = "a long secret that only this house knows";

fn key() -> Arc<EncryptionKey> {
    Arc::new(EncryptionKey::from_secret(SECRET).unwrap())
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_utc("2025-08-24T05:31:01.123Z".parse().unwrap()))
}

fn registry(root: &Path, clock: &Arc<ManualClock>) -> PersonaRegistry {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    PersonaRegistry::new(root, StoreOptions::new(key()).clock(clock))
}

fn mira() -> NewPersonaConversation {
    NewPersonaConversation::new("Mira", Persona::new("You are Mira.").personality("Warm and brief"))
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

async fn say(registry: &PersonaRegistry, id: &str, clock: &ManualClock, words: &str) {
    let store = registry.open(id).await.unwrap();
    let said = ChatMessage::new(ChatRole::User, words, &clock.now());
    store.append_message(said).await.unwrap();
}

fn failure(error: Error) -> PersonaFailure {
    match error {
        Error::Persona(failure) => failure,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_context_is_found_by_its_id_and_by_its_name_from_another_process_too() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let made = registry(root.path(), &clock).create(mira()).await.unwrap();
    assert!(made.id.starts_with("context-mep92q9v-"), "{}", made.id);
    let other = registry(root.path(), &clock);
    assert_eq!(other.get(&made.id).await.unwrap(), made);
    assert_eq!(other.find(" mira ").await.unwrap(), made);
    assert_eq!(other.list().await.unwrap().contexts, [made]);
}

#[tokio::test]
async fn what_is_not_there_is_answered_with_what_there_is_and_an_id_is_never_a_path() {
    let root = tempfile::tempdir().unwrap();
    let registry = registry(root.path(), &clock());
    let made = registry.create(mira()).await.unwrap();
    for id in ["context-none", "", "../../etc", "a/b", "x\0y", &"x".repeat(1000)] {
        let error = registry.get(id).await.unwrap_err();
        let text = format!("{error} {}", error.help());
        assert_eq!(
            failure(error),
            PersonaFailure::NoSuchConversation { known: vec![made.id.clone()] }
        );
        assert!(text.contains(&made.id) && text.contains("list the contexts"), "{text}");
    }
    let error = failure(registry.preset("nope").await.unwrap_err());
    let PersonaFailure::NoSuchPreset { known } = error else { panic!("{error}") };
    assert_eq!(known.len(), 6);
    // The registry ignores a conversation that is not a context.
    let options = StoreOptions::new(key()).scope(Scope::Named { id: "diary".into() });
    let diary = options.open(root.path()).await.unwrap();
    let clock = clock();
    diary
        .append_message(ChatMessage::new(ChatRole::User, "Dear diary", &clock.now()))
        .await
        .unwrap();
    assert!(registry.get("diary").await.is_err());
    assert_eq!(registry.list().await.unwrap().contexts.len(), 1);
}

#[tokio::test]
async fn no_two_contexts_have_one_name() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let mira_id = registry.create(mira()).await.unwrap().id;
    let taken = PersonaFailure::ConversationNameTaken { id: mira_id.clone() };
    let upper = NewPersonaConversation::new(" MIRA ", Persona::new("x"));
    assert_eq!(failure(registry.create(upper).await.unwrap_err()), taken);
    // A context's own name, and a new one, are accepted.
    let renamed =
        |name: &str| PersonaConversationChange { name: Some(name.into()), ..Default::default() };
    registry.update(&mira_id, renamed("mira")).await.unwrap();
    let preset = registry.preset("calm-counselor").await.unwrap();
    for name in ["Calm Counselor", "Calm Counselor 2", "Calm Counselor 3"] {
        let new = NewPersonaConversation::from_preset(&preset, None, PersonaChange::default());
        assert_eq!(registry.create(new).await.unwrap().name, name);
    }
    let other =
        registry.create(NewPersonaConversation::new("Other", Persona::new("x"))).await.unwrap().id;
    assert_eq!(failure(registry.update(&other, renamed("Mira")).await.unwrap_err()), taken);
    assert_eq!(registry.get(&other).await.unwrap().name, "Other");
    // A deleted context gives up its name, and does not get it back while another one has it.
    registry.delete(&other).await.unwrap();
    let second =
        registry.create(NewPersonaConversation::new("Other", Persona::new("x"))).await.unwrap().id;
    let back = |name: Option<&str>| PersonaConversationChange {
        name: name.map(str::to_owned),
        is_active: Some(true),
        ..Default::default()
    };
    let error = failure(registry.update(&other, back(None)).await.unwrap_err());
    assert_eq!(error, PersonaFailure::ConversationNameTaken { id: second.clone() });
    registry.update(&other, back(Some("Another"))).await.unwrap();
    // An expired context keeps its name.
    clock.advance(SignedDuration::from_hours(24 * 30));
    let error = failure(registry.create(mira()).await.unwrap_err());
    assert_eq!(error, taken);
}

#[tokio::test]
async fn of_two_contexts_of_one_name_made_at_once_one_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let registry = registry(root.path(), &clock());
    for number in 0..5 {
        let new = || NewPersonaConversation::new(format!("Mira {number}"), Persona::new("x"));
        let made = tokio::join!(registry.create(new()), registry.create(new()));
        assert_eq!([made.0, made.1].iter().filter(|made| made.is_ok()).count(), 1);
    }
}

#[tokio::test]
async fn if_an_import_brought_a_second_one_of_a_name_both_ids_are_named() {
    let root = tempfile::tempdir().unwrap();
    let registry = registry(root.path(), &clock());
    let one = registry.create(mira()).await.unwrap().id;
    let other =
        registry.create(NewPersonaConversation::new("Other", Persona::new("x"))).await.unwrap().id;
    // As an import does, without the registry.
    let scope = Scope::Named { id: other.clone() };
    let store = StoreOptions::new(key()).scope(scope).open(root.path()).await.unwrap();
    store.change_profile(Box::new(|profile| profile.rename(Some("mira".into())))).await.unwrap();
    let error = registry.find("Mira").await.unwrap_err();
    let text = format!("{error} {}", error.help());
    assert!(text.contains(&one) && text.contains(&other) && text.contains("give the id"), "{text}");
    registry.delete(&other).await.unwrap();
    assert_eq!(registry.find("Mira").await.unwrap().id, one);
}

#[tokio::test]
async fn a_bad_field_is_refused_by_name_and_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let registry = registry(root.path(), &clock());
    let made = registry.create(mira()).await.unwrap();
    let hot = PersonaChange { temperature: Some(1.5), ..PersonaChange::default() };
    let change =
        PersonaConversationChange { persona: hot, name: Some("Hot".into()), ..Default::default() };
    let error = failure(registry.update(&made.id, change).await.unwrap_err());
    assert!(matches!(error, PersonaFailure::Invalid { field: "temperature", .. }));
    assert_eq!(registry.get(&made.id).await.unwrap(), made);
    let unnamed = NewPersonaConversation::new("\n", Persona::new("x"));
    let error = failure(registry.create(unnamed).await.unwrap_err());
    assert!(matches!(error, PersonaFailure::Invalid { field: "name", .. }));
    assert_eq!(registry.list().await.unwrap().contexts.len(), 1);
}

#[tokio::test]
async fn zero_is_a_temperature() {
    let root = tempfile::tempdir().unwrap();
    let registry = registry(root.path(), &clock());
    let preset = registry.preset("calm_counselor").await.unwrap();
    let cold = PersonaChange { temperature: Some(0.0), ..PersonaChange::default() };
    let made =
        registry.create(NewPersonaConversation::from_preset(&preset, None, cold)).await.unwrap();
    let assigned_persona = registry.get(&made.id).await.unwrap().assigned_persona;
    assert_eq!(assigned_persona.persona.temperature, 0.0);
    assert_eq!(assigned_persona.persona.expiry_days, 14);
    assert_eq!(assigned_persona.preset.as_deref(), Some("preset-calm-counselor"));
}

#[tokio::test]
async fn expiry_is_counted_from_the_last_interaction_and_warned_of_a_day_before() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let id = registry.create(mira()).await.unwrap().id;
    clock.advance(days(5));
    say(&registry, &id, &clock, "Good morning").await;
    clock.advance(days(5));
    let context = registry.get(&id).await.unwrap();
    assert!(!context.is_expired && !context.expires_soon);
    clock.advance(SignedDuration::from_hours(25));
    assert!(registry.get(&id).await.unwrap().expires_soon);
    clock.advance(SignedDuration::from_hours(24));
    let context = registry.get(&id).await.unwrap();
    assert!(context.is_expired && !context.expires_soon);
    let error = failure(registry.open(&id).await.unwrap_err());
    assert_eq!(error, PersonaFailure::Expired { at: context.expires_at });
    // It is not lost and can be continued.
    let extended = registry.extend(&id, Some(3)).await.unwrap();
    assert!(!extended.is_expired);
    assert_eq!(extended.expires_at, clock.now().timestamp() + days(3));
    say(&registry, &id, &clock, "And again").await;
    assert_eq!(registry.get(&id).await.unwrap().messages, 2);
}

#[tokio::test]
async fn a_deleted_context_can_be_taken_back_with_every_word() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let id = registry.create(mira()).await.unwrap().id;
    say(&registry, &id, &clock, "Remember the eggs").await;
    registry.delete(&id).await.unwrap();
    assert!(matches!(
        failure(registry.open(&id).await.unwrap_err()),
        PersonaFailure::Deleted { .. }
    ));
    registry.maintain().await.unwrap();
    let back =
        PersonaConversationChange { is_active: Some(true), ..PersonaConversationChange::default() };
    assert!(registry.update(&id, back).await.unwrap().is_open());
    let reading = registry.open(&id).await.unwrap().read_tail(9).await.unwrap();
    assert_eq!(reading.messages[0].message.content, "Remember the eggs");
}

#[tokio::test]
async fn what_is_over_is_removed_only_after_a_backup_that_brings_it_back_whole() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let id = registry.create(mira()).await.unwrap().id;
    for words in ["Remember the eggs", "And the milk"] {
        say(&registry, &id, &clock, words).await;
    }
    let before = registry.get(&id).await.unwrap();
    let folder = root.path().join("conversations").join(&id);
    clock.advance(days(300));
    assert!(registry.maintain().await.unwrap().removed.is_empty(), "at the first look");
    clock.advance(days(6));
    assert!(registry.maintain().await.unwrap().removed.is_empty());
    assert!(folder.exists() && registry.get(&id).await.unwrap().is_expired);
    clock.advance(days(1));
    let done = registry.maintain().await.unwrap();
    let [(removed, backup)] = done.removed.as_slice() else { panic!("{done:?}") };
    assert_eq!(*removed, id);
    assert!(!folder.exists() && !folder.with_file_name(".gone").exists());
    assert!(registry.get(&id).await.is_err());
    assert!(registry.list().await.unwrap().contexts.is_empty());

    let path = root.path().to_owned();
    let time: Arc<dyn Clock> = clock.clone();
    let open: sottovoce::import::OpenStore = Box::new(move |scope| {
        let (path, time) = (path.clone(), Arc::clone(&time));
        Box::pin(async move { StoreOptions::new(key()).clock(time).scope(scope).open(path).await })
    });
    let back = Backup::new(backup).key(key()).import(open, |_| {}, |_| {}).await.unwrap();
    assert_eq!(back[0].messages.taken, 2);
    let after = registry.get(&id).await.unwrap();
    assert_eq!((after.created_at, after.messages), (before.created_at, 2));
    assert_eq!(after.assigned_persona.persona, before.assigned_persona.persona);
    // It is not removed again before somebody could extend it.
    clock.advance(days(1));
    assert!(registry.maintain().await.unwrap().removed.is_empty());
    clock.advance(days(6));
    assert!(registry.maintain().await.unwrap().removed.is_empty());
    let back =
        PersonaConversationChange { is_active: Some(true), ..PersonaConversationChange::default() };
    registry.update(&id, back).await.unwrap();
    clock.advance(days(2));
    assert!(registry.maintain().await.unwrap().removed.is_empty(), "it is taken back");
}

#[tokio::test]
async fn a_context_that_cannot_be_read_whole_is_not_removed() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let id = registry.create(mira()).await.unwrap().id;
    for words in ["Remember the eggs", "And the milk"] {
        say(&registry, &id, &clock, words).await;
    }
    let folder = root.path().join("conversations").join(&id);
    let records = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut records: Vec<_> = records().filter(|p| p.extension().is_some()).collect();
    records.sort();
    let mut bytes = std::fs::read(&records[0]).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&records[0], bytes).unwrap();
    let fresh = self::registry(root.path(), &clock);
    let error = failure(fresh.remove(&id).await.unwrap_err());
    assert_eq!(error, PersonaFailure::NotBackedUp { unread: 1 });
    assert!(records[0].exists());
    assert!(fresh.maintain().await.unwrap().kept.is_empty());
    clock.advance(days(7));
    let done = fresh.maintain().await.unwrap();
    assert_eq!(done.kept, [id]);
    assert!(records[0].exists() && records[1].exists());
}

#[tokio::test]
async fn whoever_has_a_removed_context_open_learns_it_and_loses_nothing_silently() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let (one, other) = (registry(root.path(), &clock), registry(root.path(), &clock));
    let id = one.create(mira()).await.unwrap().id;
    let store = other.open(&id).await.unwrap();
    store.append_message(ChatMessage::new(ChatRole::User, "Hello", &clock.now())).await.unwrap();
    one.remove(&id).await.unwrap();
    let late = ChatMessage::new(ChatRole::User, "Still there?", &clock.now());
    let error = store.append_message(late).await.unwrap_err();
    assert!(matches!(error, Error::FolderReplaced { .. }), "{error}");
    assert!(matches!(
        failure(other.get(&id).await.unwrap_err()),
        PersonaFailure::NoSuchConversation { .. }
    ));
}

#[tokio::test]
async fn one_backup_is_made_a_day_and_the_oldest_go() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let mut limits = PersonaLimits::default();
    limits.daily_backups = 3;
    let registry = registry(root.path(), &clock).limits(limits);
    assert_eq!(registry.maintain().await.unwrap().backups.len(), 0, "there is nothing to back up");
    let preset = Preset::new("DJ", Persona::new("You play music."));
    registry.create_preset(preset).await.unwrap();
    let id = registry.create(mira()).await.unwrap().id;
    for _ in 0..6 {
        let done = registry.maintain().await.unwrap();
        assert!(done.backups.len() == 2 && done.unread == 0, "{done:?}");
        assert_eq!(registry.maintain().await.unwrap().backups.len(), 0);
        clock.advance(days(1));
        say(&registry, &id, &clock, "Another day").await;
    }
    let list = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let names = list(registry.backup_folder());
    let days = ["2025-08-27", "2025-08-28", "2025-08-29"];
    let expected =
        days.map(|day| [format!("daily-{day}-{id}.sottovoce"), format!("daily-{day}.sottovoce")]);
    assert_eq!(names, expected.as_flattened());
    // A check finds nothing foreign about them.
    let default = StoreOptions::new(key()).open(root.path()).await.unwrap();
    assert_eq!(default.verify(|_| {}).await.unwrap().findings, []);
    // They are sealed, and restore presets and contexts into an empty store.
    let files = [&names[4], &names[5]].map(|name| registry.backup_folder().join(name));
    for file in &files {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(4).any(|window| window == b"Mira" || window == b"musi"));
    }
    let anew = tempfile::tempdir().unwrap();
    let (path, time) = (anew.path().to_owned(), Arc::clone(&clock) as Arc<dyn Clock>);
    for file in files {
        let (path, time) = (path.clone(), Arc::clone(&time));
        let open: sottovoce::import::OpenStore = Box::new(move |scope| {
            let options = StoreOptions::new(key()).clock(Arc::clone(&time)).scope(scope);
            let path = path.clone();
            Box::pin(async move { options.open(path).await })
        });
        Backup::new(file).key(key()).import(open, |_| {}, |_| {}).await.unwrap();
    }
    let there = self::registry(anew.path(), &clock);
    assert_eq!(there.presets().await.unwrap()[6].name, "DJ");
    assert_eq!(there.get(&id).await.unwrap().messages, 5);
}

#[tokio::test]
async fn limits_are_checked_before_anything_is_created() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let mut limits = PersonaLimits::default();
    (limits.contexts, limits.messages) = (2, 3);
    let registry = registry(root.path(), &clock).limits(limits);
    let id = registry.create(mira()).await.unwrap().id;
    registry.create(mira().numbered()).await.unwrap();
    let error = failure(registry.create(mira()).await.unwrap_err());
    assert_eq!(error, PersonaFailure::TooManyConversations { limit: 2 });
    say(&registry, &id, &clock, "One").await;
    say(&registry, &id, &clock, "Two").await;
    let error = failure(registry.open(&id).await.unwrap_err());
    assert_eq!(error, PersonaFailure::Full { limit: 3 });
    // Deleting one makes room.
    registry.delete(&id).await.unwrap();
    registry.create(mira()).await.unwrap();
}

#[tokio::test]
async fn built_in_presets_are_changed_beside_what_is_built_in_and_never_destroyed() {
    let root = tempfile::tempdir().unwrap();
    let registry = registry(root.path(), &clock());
    let before = registry.preset("preset-calm-counselor").await.unwrap();
    let refused = failure(registry.delete_preset("calm_counselor").await.unwrap_err());
    assert_eq!(refused, PersonaFailure::BuiltIn);
    let change = PresetChange {
        description: Some("Ruhig & sachlich".into()),
        is_active: Some(false),
        ..PresetChange::default()
    };
    let changed = registry.update_preset("calm_counselor", change).await.unwrap();
    assert_eq!((changed.id.as_str(), changed.is_active), ("preset-calm-counselor", false));
    assert_eq!(registry.presets().await.unwrap()[0], changed);
    registry.delete_preset("preset-calm-counselor").await.unwrap();
    assert_eq!(registry.presets().await.unwrap()[0], before);
}

#[tokio::test]
async fn presets_of_ones_own_are_sealed_used_and_deleted() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let mut dj = Preset::new("Kitchen DJ", Persona::new("You play the marimba."));
    dj.metadata.insert("lang".into(), "de-CH".into());
    let made = registry.create_preset(dj.clone()).await.unwrap();
    let taken = failure(registry.create_preset(dj).await.unwrap_err());
    assert_eq!(taken, PersonaFailure::NameTaken);
    // Found by name, and from another process.
    let found = self::registry(root.path(), &clock).preset("kitchen dj").await.unwrap();
    assert_eq!(found, made);
    let new =
        NewPersonaConversation::from_preset(&found, Some("Party".into()), PersonaChange::default());
    let context = registry.create(new).await.unwrap();
    registry.delete_preset(&made.id).await.unwrap();
    assert_eq!(registry.presets().await.unwrap().len(), 6);
    // The context keeps its own copy.
    let kept = registry.get(&context.id).await.unwrap().assigned_persona.persona;
    assert_eq!(kept.system_prompt, "You play the marimba.");
    for file in walk(root.path()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"marimba"), "{}", file.display());
    }
}

#[tokio::test]
async fn what_somebody_was_killed_over_removing_is_no_context_and_goes_with_the_next_upkeep() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let (gone, kept) =
        (registry.create(mira()).await.unwrap(), registry.create(mira().numbered()).await.unwrap());
    say(&registry, &gone.id, &clock, "Remember the eggs").await;
    let conversations = root.path().join("conversations");
    std::fs::create_dir(conversations.join(".gone")).unwrap();
    std::fs::rename(conversations.join(&gone.id), conversations.join(".gone").join(&gone.id))
        .unwrap();
    let fresh = self::registry(root.path(), &clock);
    assert_eq!(fresh.list().await.unwrap().contexts, [kept]);
    assert_eq!(sottovoce::admin::scopes(root.path()).unwrap().len(), 1);
    fresh.maintain().await.unwrap();
    assert!(!conversations.join(".gone").exists());
}

#[tokio::test]
async fn no_debug_output_shows_the_texts_of_a_persona() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let secret = "the marimba under the stairs";
    let new = NewPersonaConversation::new(secret, Persona::new(secret).personality(secret));
    let change = PersonaChange { personality: Some(secret.into()), ..PersonaChange::default() };
    let context = PersonaConversationChange {
        name: Some(secret.into()),
        persona: change.clone(),
        is_active: None,
    };
    let preset = PresetChange {
        name: Some(secret.into()),
        description: Some(secret.into()),
        persona: change.clone(),
        metadata: Some([("note".to_owned(), secret.into())].into()),
        ..PresetChange::default()
    };
    let mut shown = format!("{new:?} {change:?} {context:?} {preset:?} {registry:?}");
    let made = registry.create(new).await.unwrap();
    let mut own = Preset::new(secret, Persona::new(secret));
    preset.apply(&mut own);
    let own = registry.create_preset(own).await.unwrap();
    let profile = registry.store(&made.id).await.unwrap().profile().await.unwrap();
    shown += &format!("{made:?} {own:?} {profile:?} {:?}", registry.list().await.unwrap());
    let errors = [
        registry.get("context-none").await.unwrap_err(),
        registry.create_preset(own.clone()).await.unwrap_err(),
        registry.create(NewPersonaConversation::new("\n", Persona::new(secret))).await.unwrap_err(),
    ];
    shown += &errors.map(|error| format!("{error} {error:?} {}", error.help())).join(" ");
    assert!(!shown.contains("marimba"), "{shown}");
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn of_two_presets_of_one_name_made_at_once_one_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    registry(root.path(), &clock).create(mira()).await.unwrap();
    for number in 0..10 {
        let (one, other) = (registry(root.path(), &clock), registry(root.path(), &clock));
        let preset = || Preset::new(format!("DJ {number}"), Persona::new("x"));
        let made = tokio::join!(one.create_preset(preset()), other.create_preset(preset()));
        let made = [made.0, made.1];
        assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1);
        let refused = made.into_iter().find_map(Result::err).unwrap();
        assert_eq!(failure(refused), PersonaFailure::NameTaken);
    }
    assert_eq!(registry(root.path(), &clock).presets().await.unwrap().len(), 16);
}

#[tokio::test]
async fn two_registries_that_change_presets_at_once_lose_none() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let (one, other) = (registry(root.path(), &clock), registry(root.path(), &clock));
    one.create(mira()).await.unwrap();
    let make = async |registry: &PersonaRegistry, who: &str| {
        for number in 0..10 {
            let preset = Preset::new(format!("{who} {number}"), Persona::new("x"));
            registry.create_preset(preset).await.unwrap();
        }
    };
    tokio::join!(make(&one, "one"), make(&other, "other"));
    assert_eq!(one.presets().await.unwrap().len(), 26);
}

#[tokio::test]
async fn two_changes_of_one_preset_at_once_are_both_kept() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let (one, other) = (registry(root.path(), &clock), registry(root.path(), &clock));
    let described = PresetChange { description: Some("Music".into()), ..Default::default() };
    let hidden = PresetChange { is_active: Some(false), ..Default::default() };
    for number in 0..10 {
        let preset = Preset::new(format!("DJ {number}"), Persona::new("x"));
        let id = one.create_preset(preset).await.unwrap().id;
        let (here, there) = tokio::join!(
            one.update_preset(&id, described.clone()),
            other.update_preset(&id, hidden.clone())
        );
        assert_eq!(here.unwrap().description, "Music");
        assert!(!there.unwrap().is_active);
        let now = one.preset(&id).await.unwrap();
        assert!(now.description == "Music" && !now.is_active);
    }
}

#[tokio::test]
async fn a_listing_opens_only_what_has_changed_since_the_last_one() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let one = registry(root.path(), &clock);
    let mut ids = Vec::new();
    for _ in 0..4 {
        let id = one.create(mira()).await.unwrap().id;
        one.delete(&id).await.unwrap();
        ids.push(id);
    }
    let listed = one.list().await.unwrap();
    // Unchanged contexts are not opened again; the test would notice.
    let settings = root.path().join("conversations").join(&ids[0]).join("profile");
    let sealed = std::fs::read(&settings).unwrap();
    std::fs::write(&settings, b"damaged").unwrap();
    assert_eq!(one.list().await.unwrap().contexts, listed.contexts);
    assert_eq!(registry(root.path(), &clock).list().await.unwrap().unreadable, [ids[0].clone()]);
    std::fs::write(&settings, sealed).unwrap();
    // A change of another process is noticed.
    let other = registry(root.path(), &clock);
    let back = PersonaConversationChange {
        is_active: Some(true),
        name: Some("Ada".to_owned()),
        ..PersonaConversationChange::default()
    };
    other.update(&ids[1], back).await.unwrap();
    say(&other, &ids[1], &clock, "Hello").await;
    let found = one.find("ada").await.unwrap();
    assert_eq!((found.id.as_str(), found.messages, found.is_open()), (ids[1].as_str(), 1, true));
    // Time passes without any change.
    clock.advance(days(6) + SignedDuration::from_hours(1));
    assert!(one.find("ada").await.unwrap().expires_soon);
    clock.advance(days(1));
    assert!(one.find("ada").await.unwrap().is_expired);
    other.remove(&ids[2]).await.unwrap();
    let left = one.list().await.unwrap().contexts;
    assert!(left.len() == 3 && left.iter().all(|context| context.id != ids[2]), "{left:?}");
}

/// A preset of about this many bytes.
fn large(name: &str, bytes: usize) -> Preset {
    let mut preset = Preset::new(name, Persona::new("x"));
    preset.metadata.insert("notes".into(), "n".repeat(bytes).into());
    preset
}

#[tokio::test]
async fn presets_leave_the_default_conversations_settings_their_room() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let registry = registry(root.path(), &clock);
    let mut made = Vec::new();
    let refused = loop {
        match registry.create_preset(large(&format!("{}", made.len()), 16_000)).await {
            Ok(preset) => made.push(preset.id),
            Err(error) => break failure(error),
        }
    };
    assert_eq!(refused, PersonaFailure::PresetsTooLarge { limit: 1 << 20 });
    assert!((60..=65).contains(&made.len()), "{}", made.len());
    // The settings stay small, and the conversation works.
    assert!(std::fs::metadata(root.path().join("profile")).unwrap().len() < 2000);
    let store = StoreOptions::new(key()).clock(clock.clone()).open(root.path()).await.unwrap();
    store.change_profile(Box::new(|profile| profile.rename(Some("Home".into())))).await.unwrap();
    store.append_message(ChatMessage::new(ChatRole::User, "Hello", &clock.now())).await.unwrap();
    let longer = PresetChange {
        metadata: Some(large("", 16_300).metadata),
        description: Some("d".repeat(2000)),
        ..PresetChange::default()
    };
    let mut outcomes = Vec::new();
    for id in made.iter().take(5) {
        outcomes.push(registry.update_preset(id, longer.clone()).await.is_ok());
    }
    assert_eq!(outcomes.last(), Some(&false), "{outcomes:?}");
    registry.delete_preset(&made[0]).await.unwrap();
    registry.create_preset(large("again", 1000)).await.unwrap();
    assert_eq!(registry.presets().await.unwrap().len(), 6 + made.len());
}

#[tokio::test]
async fn older_presets_that_are_put_back_are_noticed_and_nothing_else_suffers() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let file = root.path().join("presets");
    let registry = registry(root.path(), &clock);
    let first = registry.create_preset(large("first", 10)).await.unwrap();
    let older = std::fs::read(&file).unwrap();
    let open =
        || async { StoreOptions::new(key()).clock(clock.clone()).open(root.path()).await.unwrap() };
    open()
        .await
        .append_message(ChatMessage::new(ChatRole::User, "Hello", &clock.now()))
        .await
        .unwrap();
    for harm in ["outdated", "absent", "unopenable"] {
        registry.create_preset(large(harm, 10)).await.unwrap();
        match harm {
            "outdated" => std::fs::write(&file, &older).unwrap(),
            "absent" => std::fs::remove_file(&file).unwrap(),
            _ => std::fs::copy(root.path().join("head"), &file).map(drop).unwrap(),
        }
        let fresh = self::registry(root.path(), &clock);
        let refused = fresh.presets().await.unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{harm}: {refused:?}");
        assert!(fresh.create_preset(large("more", 10)).await.is_err(), "{harm}");
        let store = open().await;
        let report = store.verify(|_| {}).await.unwrap();
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|finding| (finding.file.as_deref().unwrap_or_default(), finding.kind.code()))
            .collect();
        assert_eq!(found, [("presets", harm)]);
        // The context holds the messages as before, and other settings stay.
        let profile = store.profile().await.unwrap();
        let said = store.read_tail(1).await.unwrap().messages;
        assert!(!profile.hides(&said[0]), "{harm}");
        store
            .change_profile(Box::new(|profile| profile.rename(Some("Home".into()))))
            .await
            .unwrap();
        assert!(open().await.verify(|_| {}).await.unwrap().findings.len() == 1, "{harm}");
        store.repair(sottovoce::admin::RepairOptions::default(), |_| {}).await.unwrap();
        let mut left = open().await.verify(|_| {}).await.unwrap().findings;
        // The unreadable file is kept there.
        left.retain(|finding| finding.kind.code() != "quarantined");
        assert!(left.is_empty(), "{harm}: {left:?}");
        let names: Vec<_> = self::registry(root.path(), &clock)
            .presets()
            .await
            .unwrap()
            .into_iter()
            .skip(6)
            .map(|preset| preset.id)
            .collect();
        let left = if harm == "outdated" { vec![first.id.clone()] } else { Vec::new() };
        assert_eq!(names, left, "{harm}");
    }
}

#[tokio::test]
async fn presets_open_under_a_changed_key() {
    let root = tempfile::tempdir().unwrap();
    let clock = clock();
    let made = registry(root.path(), &clock).create_preset(large("one", 10)).await.unwrap();
    let new = || EncryptionKey::from_secret("another secret that only this house knows").unwrap();
    let rekey = sottovoce::admin::Rekey::new(EncryptionKey::from_secret(SECRET).unwrap(), new());
    let go_on = |_| std::ops::ControlFlow::Continue(());
    rekey.run(root.path().to_owned(), go_on).await.unwrap();
    let after = PersonaRegistry::new(root.path(), StoreOptions::new(new()).clock(clock));
    assert_eq!(after.preset("one").await.unwrap(), made);
}
