//! Backups restored into conversations that continued without them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::scripted::Scripted;
use crate::common::{block_on, key, open, options, said, texts};
use jiff::Timestamp;
use sottovoce::context::LastNContextProvider;
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::{Backup, ConversationReport};
use sottovoce::model::{OllamaChatRenderer, PromptRenderer};
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact, SavedMessage, Snapshot};
use sottovoce::{
    ChatMessage, ChatRole, Conversation, ConversationStore, FileConversationStore, ManualClock,
    ModelOptions, StoreOptions,
};
use tempfile::{TempDir, tempdir};

const SUMMARY: &str = "A summary of the secret.";

pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_utc("2025-08-25T16:00:00Z".parse().unwrap()))
}

pub(crate) async fn export(store: &FileConversationStore, out: &TempDir, name: &str) -> PathBuf {
    let path = out.path().join(name);
    let mut exporter = Exporter::to_file(ExportForm::Json, &path).unwrap();
    exporter.add(store, ExportRange::default(), |_| {}).await.unwrap();
    exporter.finish().await.unwrap();
    path
}

pub(crate) async fn import(path: &Path, root: &Path) -> sottovoce::Result<ConversationReport> {
    import_with(path, root, options()).await
}

pub(crate) async fn import_with(
    path: &Path,
    root: &Path,
    options: StoreOptions,
) -> sottovoce::Result<ConversationReport> {
    let root = root.to_owned();
    let open: sottovoce::import::OpenStore = Box::new(move |scope| {
        let (root, options) = (root.clone(), options.clone());
        Box::pin(async move { options.scope(scope).open(root).await })
    });
    let reports = Backup::new(path).key(key()).import(open, |_| {}, |_| {}).await?;
    Ok(reports.into_iter().next().unwrap())
}

fn conversation(store: &FileConversationStore) -> (Conversation, Arc<Scripted>) {
    let store: Arc<dyn ConversationStore> = Arc::new(store.clone());
    let builder = Conversation::builder(store.clone())
        .system("You are a voice.")
        .history(LastNContextProvider::in_blocks());
    let model = Arc::new(Scripted::default());
    let conversation = builder.last_n(100).model(model.clone()).build();
    (conversation, model)
}

pub(crate) async fn prompt(store: &FileConversationStore) -> String {
    let prompt = conversation(store).0.prompt("And now?").await.unwrap().0;
    OllamaChatRenderer::new(ModelOptions::new("x")).render(&prompt).body
}

pub(crate) async fn words(store: &FileConversationStore) -> Vec<String> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    texts(&reading).into_iter().map(str::to_owned).collect()
}

pub(crate) async fn is_sound(store: &FileConversationStore) {
    let report = store.verify(|_| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

pub(crate) async fn talk(store: &FileConversationStore, words: impl IntoIterator<Item = &str>) {
    for word in words {
        store.append_message(said(word)).await.unwrap();
    }
}

async fn summarize(store: &FileConversationStore, keep: usize) {
    let (conversation, model) = conversation(store);
    model.says(SUMMARY);
    assert!(conversation.summarize(keep).await.unwrap().messages > 0);
}

async fn retitle(store: &FileConversationStore, times: usize) {
    for n in 0..times {
        let rename =
            move |profile: &mut sottovoce::store::Profile| profile.rename(Some(n.to_string()));
        store.change_profile(Box::new(rename)).await.unwrap();
    }
}

/// A conversation, and a copy restored elsewhere from its backup.
pub(crate) async fn twins<'a>(
    said: impl IntoIterator<Item = &'a str>,
) -> ([TempDir; 3], FileConversationStore, FileConversationStore) {
    let dirs = [tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap()];
    let one = open(dirs[0].path()).await;
    talk(&one, said).await;
    let file = export(&one, &dirs[2], "first.json").await;
    import(&file, dirs[1].path()).await.unwrap();
    let two = open(dirs[1].path()).await;
    assert_eq!(words(&two).await, words(&one).await);
    (dirs, one, two)
}

#[test]
fn a_restore_that_broke_off_before_its_first_message_was_kept_is_exact_still() {
    block_on(async {
        let (root, other, out) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
        let store = open(root.path()).await;
        talk(&store, ["a", "b", "c", "d", "cleared"]).await;
        store.forget(&[1..=2]).await.unwrap();
        store.clear().await.unwrap();
        talk(&store, ["e", "pruned", "g"]).await;
        store.change_profile(Box::new(|profile| profile.prune([8]))).await.unwrap();
        let file = export(&store, &out, "whole.json").await;
        let whole = std::fs::read_to_string(&file).unwrap();
        let cut = out.path().join("cut.json");
        let (begun, _) = whole.rsplit_once("\"cleared\"").unwrap();
        std::fs::write(&cut, begun).unwrap();
        import(&cut, other.path()).await.unwrap_err();
        import(&file, other.path()).await.unwrap();
        let back = open(other.path()).await;
        assert_eq!(prompt(&back).await, prompt(&store).await);
        let again = export(&back, &out, "again.json").await;
        assert_eq!(std::fs::read_to_string(again).unwrap(), whole);
    });
}

#[test]
fn a_restore_that_broke_off_in_the_middle_goes_on_exactly() {
    /// More than is restored at once.
    const MANY: usize = 32_800;
    block_on(async {
        let (root, other, out) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
        let store = open(root.path()).await;
        store.append_all((0..MANY).map(|n| said(n.to_string())).collect()).await.unwrap();
        store.forget(&[3..=4]).await.unwrap();
        store.clear().await.unwrap();
        talk(&store, ["a", "pruned", "last"]).await;
        let pruned = MANY as u64 + 3;
        store.change_profile(Box::new(move |profile| profile.prune([pruned]))).await.unwrap();
        let file = export(&store, &out, "whole.json").await;
        let whole = std::fs::read_to_string(&file).unwrap();
        let cut = out.path().join("cut.json");
        let (begun, _) = whole.rsplit_once("\"last\"").unwrap();
        std::fs::write(&cut, begun).unwrap();
        import(&cut, other.path()).await.unwrap_err();
        let some = words(&open(other.path()).await).await.len();
        assert!(some > 0 && some < MANY, "{some}");
        import(&file, other.path()).await.unwrap();
        let back = open(other.path()).await;
        let again = export(&back, &out, "again.json").await;
        assert!(std::fs::read_to_string(again).unwrap() == whole);
        is_sound(&back).await;
    });
}

#[test]
fn a_later_state_brings_its_messages_under_new_numbers_and_what_it_leaves_out_of_prompts() {
    const WORDS: [&str; 5] = ["alpha", "bravo", "charlie", "delta", "echo"];
    block_on(async {
        let (dirs, one, two) = twins(["alpha", "bravo"]).await;
        talk(&one, ["charlie", "delta", "echo"]).await;
        one.change_profile(Box::new(|profile| profile.prune([2, 4]))).await.unwrap();
        let file = export(&one, &dirs[2], "2.json").await;
        for taken in [3, 0] {
            let report = import(&file, dirs[1].path()).await.unwrap();
            assert_eq!((report.messages.taken, report.messages.already_there), (taken, 5 - taken));
            assert_eq!(words(&two).await, WORDS);
            let shown = prompt(&two).await;
            let is_shown = WORDS.map(|word| shown.contains(word));
            assert_eq!(is_shown, [true, false, true, false, true], "{shown}");
        }
        // Nothing comes back, and nothing is doubled, on the way home.
        let file = export(&two, &dirs[2], "3.json").await;
        let report = import(&file, dirs[0].path()).await.unwrap();
        assert_eq!((report.messages.taken, report.messages.already_there), (0, 5));
        is_sound(&two).await;
    });
}

#[test]
fn a_backup_with_newer_settings_does_not_undo_a_clear() {
    block_on(async {
        let (dirs, one, two) = twins(["secret", "b"]).await;
        two.clear().await.unwrap();
        retitle(&one, 9).await;
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        assert!(!prompt(&two).await.contains("secret"));
    });
}

#[test]
fn a_backup_with_newer_settings_brings_no_summary_of_what_was_forgotten_here() {
    block_on(async {
        let (dirs, one, two) = twins(["secret", "b", "c", "d"]).await;
        two.forget(&[1..=1]).await.unwrap();
        summarize(&one, 1).await;
        retitle(&one, 9).await;
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        assert!(!prompt(&two).await.contains(SUMMARY));
    });
}

#[test]
fn a_backup_with_newer_settings_loses_no_artifact_and_no_snapshot_that_was_added_here() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b"]).await;
        let new = NewArtifact::new(ArtifactKind::File, "mine");
        let added = two.add_artifact(new, Box::new(&b"mine"[..])).await.unwrap().artifact;
        let gone = NewArtifact::new(ArtifactKind::File, "gone");
        let gone = two.add_artifact(gone, Box::new(&b"gone"[..])).await.unwrap().artifact;
        two.delete_artifacts(std::slice::from_ref(&gone.id)).await.unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let saved = vec![SavedMessage::new(1, said("a"))];
        let saved = Snapshot::new(now, (now, now), saved).unwrap();
        two.save_snapshot(saved.clone()).await.unwrap();
        retitle(&one, 9).await;
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        assert_eq!(two.profile().await.unwrap().title.as_deref(), Some("8"));
        assert!(two.open_artifact(&added.id).await.unwrap().is_some());
        assert!(two.open_artifact(&gone.id).await.unwrap().is_none());
        assert!(two.read_snapshot(&saved.id).await.unwrap().is_some());
        is_sound(&two).await;
    });
}

#[test]
fn a_backup_of_a_later_state_brings_its_snapshots_and_artifacts_whole() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b", "c"]).await;
        let now = Timestamp::UNIX_EPOCH;
        let saved = vec![SavedMessage::new(1, said("a")), SavedMessage::new(2, said("b"))];
        let saved = Snapshot::new(now, (now, now), saved).unwrap();
        one.save_snapshot(saved.clone()).await.unwrap();
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        // Another revision of it with fewer messages.
        one.forget(&[2..=2]).await.unwrap();
        let new = NewArtifact::new(ArtifactKind::File, "x");
        let added = one.add_artifact(new, Box::new(&b"x"[..])).await.unwrap().artifact;
        talk(&one, ["d"]).await;
        let file = export(&one, &dirs[2], "3.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        assert_eq!(words(&two).await, ["a", "c", "d"]);
        let there = two.read_snapshot(&saved.id).await.unwrap().unwrap();
        assert_eq!(there.messages.len(), 1);
        assert!(two.open_artifact(&added.id).await.unwrap().is_some());
        is_sound(&two).await;
    });
}

#[test]
fn what_was_forgotten_there_is_forgotten_here_and_what_an_export_has_besides_is_taken() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b", "c", "d"]).await;
        summarize(&two, 1).await;
        talk(&two, ["mine"]).await;
        one.forget(&[2..=4]).await.unwrap();
        let file = export(&one, &dirs[2], "2.json").await;
        let report = import(&file, dirs[1].path()).await.unwrap();
        assert_eq!(report.messages.removed, 3);
        assert_eq!(words(&two).await, ["a", "mine"]);
        assert!(!prompt(&two).await.contains("Earlier"), "its summary goes, too");
        talk(&one, ["e"]).await;
        let file = export(&one, &dirs[2], "3.json").await;
        let report = import(&file, dirs[1].path()).await.unwrap();
        assert_eq!((report.messages.taken, report.messages.removed), (1, 0));
        assert_eq!(words(&two).await, ["a", "mine", "e"]);
        is_sound(&two).await;
    });
}

#[test]
fn a_message_whose_number_is_a_forgettings_here_is_taken() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b", "c"]).await;
        two.forget(&[2..=2]).await.unwrap();
        talk(&one, ["d", "e"]).await;
        let file = export(&one, &dirs[2], "2.json").await;
        let report = import(&file, dirs[1].path()).await.unwrap();
        let mut there = words(&two).await;
        there.sort();
        assert_eq!(there, ["a", "c", "d", "e"], "{report:?}");
    });
}

#[test]
fn what_was_said_here_is_not_forgotten_for_the_number_that_it_has() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b", "c"]).await;
        one.forget(&[2..=2]).await.unwrap();
        talk(&one, ["d"]).await;
        one.forget(&[1..=1]).await.unwrap();
        talk(&one, ["e"]).await;
        talk(&two, ["mine"]).await;
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        let mut there = words(&two).await;
        there.sort();
        // Of these it has forgotten the first two, and not what is under the number of a forgetting there.
        assert_eq!(there, ["c", "d", "e", "mine"]);
        import(&file, dirs[1].path()).await.unwrap();
        assert_eq!(words(&two).await.len(), 4);
        is_sound(&two).await;
    });
}

#[test]
fn a_message_whose_file_is_lost_comes_back_with_a_backup() {
    block_on(async {
        let (root, out) = (tempdir().unwrap(), tempdir().unwrap());
        let store = open(root.path()).await;
        talk(&store, ["a", "b", "c"]).await;
        let file = export(&store, &out, "1.json").await;
        let lost = crate::common::records(root.path()).remove(1);
        std::fs::remove_file(lost).unwrap();
        let report = import(&file, root.path()).await.unwrap();
        let mut there = words(&open(root.path()).await).await;
        there.sort();
        assert_eq!(there, ["a", "b", "c"], "{report:?}");
    });
}

async fn name(store: &FileConversationStore, title: &'static str, tag: &'static str) {
    let change = move |profile: &mut sottovoce::store::Profile| {
        profile.rename(Some(title.to_owned()));
        profile.tags = [tag.to_owned()].into();
    };
    store.change_profile(Box::new(change)).await.unwrap();
}

async fn is_named(store: &FileConversationStore, title: &str, tag: &str) {
    let profile = store.profile().await.unwrap();
    assert_eq!(profile.title.as_deref(), Some(title));
    assert_eq!(profile.tags.iter().collect::<Vec<_>>(), [tag]);
}

#[test]
fn a_rename_reaches_a_conversation_that_has_gone_on_and_an_older_backup_does_not_undo_it() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b"]).await;
        name(&one, "first", "x").await;
        talk(&two, ["mine"]).await;
        talk(&one, ["c"]).await;
        let older = export(&one, &dirs[2], "older.json").await;
        import(&older, dirs[1].path()).await.unwrap();
        is_named(&two, "first", "x").await;
        name(&one, "second", "y").await;
        talk(&two, ["mine too"]).await;
        let newer = export(&one, &dirs[2], "newer.json").await;
        import(&newer, dirs[1].path()).await.unwrap();
        is_named(&two, "second", "y").await;
        import(&older, dirs[1].path()).await.unwrap();
        is_named(&two, "second", "y").await;
        // What is chosen here afterwards is newer than that, and goes back.
        name(&two, "third", "z").await;
        import(&newer, dirs[1].path()).await.unwrap();
        is_named(&two, "third", "z").await;
        let back = export(&two, &dirs[2], "back.json").await;
        import(&back, dirs[0].path()).await.unwrap();
        is_named(&one, "third", "z").await;
        one.change_profile(Box::new(|profile| profile.rename(None))).await.unwrap();
        let file = export(&one, &dirs[2], "untitled.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        assert_eq!(two.profile().await.unwrap().title, None);
        is_sound(&one).await;
        is_sound(&two).await;
    });
}

#[test]
fn another_conversation_keeps_its_name_until_the_imported_one_is_renamed() {
    block_on(async {
        let dirs = [tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap()];
        let (one, two) = (open(dirs[0].path()).await, open(dirs[1].path()).await);
        talk(&one, ["a", "b"]).await;
        retitle(&one, 9).await;
        name(&one, "theirs", "x").await;
        talk(&two, ["mine"]).await;
        name(&two, "ours", "o").await;
        let file = export(&one, &dirs[2], "1.json").await;
        for _ in 0..2 {
            import(&file, dirs[1].path()).await.unwrap();
            is_named(&two, "ours", "o").await;
        }
        name(&one, "renamed", "y").await;
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        is_named(&two, "renamed", "y").await;
    });
}

#[test]
fn a_summary_of_other_numbers_hides_nothing_that_was_said_here() {
    block_on(async {
        let (dirs, one, two) = twins(["a", "b"]).await;
        talk(&one, ["c", "d", "e", "f"]).await;
        summarize(&one, 1).await;
        one.change_profile(Box::new(|profile| profile.prune([3, 4]))).await.unwrap();
        retitle(&one, 9).await;
        talk(&two, ["mine", "mine too"]).await;
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        let prompt = prompt(&two).await;
        assert!(prompt.contains("mine") && prompt.contains("mine too"), "{prompt}");
    });
}

#[test]
fn nothing_comes_back_where_all_that_was_common_was_forgotten() {
    block_on(async {
        let (dirs, one, two) = twins(["secret", "b", "c"]).await;
        two.forget(&[1..=3]).await.unwrap();
        talk(&two, ["other", "talk"]).await;
        talk(&one, ["d", "e", "f", "g"]).await;
        let file = export(&one, &dirs[2], "2.json").await;
        import(&file, dirs[1].path()).await.unwrap();
        let there = words(&two).await;
        assert!(there.contains(&"other".to_owned()) && there.contains(&"g".to_owned()));
        assert!(!there.contains(&"secret".to_owned()), "{there:?}");
    });
}

#[test]
fn what_was_cleared_is_no_context_in_another_conversation_either() {
    block_on(async {
        let (root, other, out) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
        let store = options().clock(clock()).open(root.path()).await.unwrap();
        // The time of a clock that was an hour ahead.
        let at = "2025-08-25T17:00:00Z".parse().unwrap();
        store.append_message(ChatMessage::at(ChatRole::User, "secret", at)).await.unwrap();
        store.clear().await.unwrap();
        let there = open(other.path()).await;
        talk(&there, ["mine"]).await;
        import(&export(&store, &out, "1.json").await, other.path()).await.unwrap();
        let prompt = prompt(&there).await;
        assert!(prompt.contains("mine") && !prompt.contains("secret"), "{prompt}");
    });
}

#[test]
fn a_snapshot_of_forgotten_words_does_not_come_back() {
    block_on(async {
        for exact in [true, false] {
            let (root, other, out) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
            let store = open(root.path()).await;
            talk(&store, ["secret", "b", "c"]).await;
            let now = Timestamp::UNIX_EPOCH;
            let saved = vec![SavedMessage::new(1, said("secret"))];
            let saved = Snapshot::new(now, (now, now), saved).unwrap();
            store.save_snapshot(saved.clone()).await.unwrap();
            let file = export(&store, &out, "1.json").await;
            let root = if exact {
                import(&file, other.path()).await.unwrap();
                other.path()
            } else {
                root.path()
            };
            let store = open(root).await;
            store.forget(&[1..=1]).await.unwrap();
            import(&file, root).await.unwrap();
            let back = export(&store, &out, "2.json").await;
            assert!(!std::fs::read_to_string(back).unwrap().contains("secret"));
            assert!(!prompt(&store).await.contains("secret"));
            is_sound(&store).await;
        }
    });
}

#[test]
fn a_sealed_backup_that_is_cut_changed_or_shuffled_is_refused_and_harms_nothing() {
    block_on(async {
        let (root, out) = (tempdir().unwrap(), tempdir().unwrap());
        let store = open(root.path()).await;
        let long = "long words ".repeat(900);
        for n in 0..30 {
            store.append_message(said(format!("{n} {long}"))).await.unwrap();
        }
        let path = out.path().join("sealed");
        let mut exporter = Exporter::sealed(&path, &store).unwrap();
        exporter.add(&store, ExportRange::default(), |_| {}).await.unwrap();
        exporter.finish().await.unwrap();
        let whole = std::fs::read(&path).unwrap();
        let head = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let segment = 65_536;
        assert!(whole.len() > head + 4 * segment);
        let mut shuffled = whole.clone();
        shuffled[head + segment..head + 3 * segment].rotate_left(segment);
        let mut changed = whole.clone();
        changed[head + 2 * segment + 5] ^= 1;
        let mut longer = whole.clone();
        longer.extend_from_slice(&whole[head + segment..head + 2 * segment]);
        for (at, bytes) in [
            &whole[..head],
            &whole[..head + 1],
            &whole[..head + segment],
            &whole[..head + 3 * segment],
            &whole[..whole.len() - 1],
            &shuffled,
            &changed,
            &longer,
            &whole[..10],
            b"",
        ]
        .into_iter()
        .enumerate()
        {
            let other = tempdir().unwrap();
            let wrong = out.path().join(format!("wrong{at}"));
            std::fs::write(&wrong, bytes).unwrap();
            assert!(import(&wrong, other.path()).await.is_err(), "{at}");
            import(&path, other.path()).await.unwrap();
            let back = open(other.path()).await;
            assert_eq!(words(&back).await, words(&store).await, "{at}");
            is_sound(&back).await;
        }
    });
}

#[test]
fn limits_of_the_store_that_imports_a_backup_are_reported_before_they_remove_anything() {
    block_on(async {
        let (root, other, out) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
        let store = open(root.path()).await;
        talk(&store, ["a", "b", "c"]).await;
        let file = export(&store, &out, "1.json").await;
        let at = || {
            options().clock(clock()).retention(sottovoce::store::Retention::FOREVER.ttl_seconds(60))
        };
        let path = other.path().to_owned();
        let open: sottovoce::import::OpenStore = Box::new(move |scope| {
            let path = path.clone();
            Box::pin(async move { at().scope(scope).open(path).await })
        });
        let reports = Backup::new(&file).import(open, |_| {}, |_| {}).await.unwrap();
        let there = at().open(other.path()).await.unwrap();
        assert!(words(&there).await.is_empty());
        assert!(reports[0].expired, "{:?}", reports[0]);
    });
}
