//! Changes of keys that are interrupted, disturbed, or run on unusual stores.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::admin::{Rekey, RekeyReport};
use crate::directory::{Directory, EntryKind, fs::FsDirectory, memory::MemoryDirectory};
use crate::scope::Scope;
use crate::store::tests::failing_storage::{
    Call, FaultyDirectory, broken, no_space, not_durable, said,
};
use crate::store::{ConversationStore, Document, FileConversationStore, StoreOptions};
use crate::{EncryptionKey, Error, Result};

fn secret(text: &str) -> EncryptionKey {
    EncryptionKey::from_secret(text).unwrap()
}

fn old() -> EncryptionKey {
    secret("the old key of this house")
}

fn new() -> EncryptionKey {
    secret("the new key of this house")
}

fn scopes() -> [Scope; 4] {
    let id = |id: &str| id.to_owned();
    [
        Scope::Default,
        Scope::Dm { user: id("Bob é") },
        Scope::Guild { guild: id("1"), channel: id("2"), user: id("3") },
        Scope::Named { id: id("kitchen") },
    ]
}

async fn open(
    root: &Arc<dyn Directory>,
    scope: &Scope,
    options: StoreOptions,
) -> Result<FileConversationStore> {
    let below = scope.folder().unwrap();
    let directory = below.iter().fold(Arc::clone(root), |directory, name| directory.folder(name));
    options.scope(scope.clone()).loose_files(4).open_directory(Arc::clone(root), directory).await
}

/// At least thirty messages in each scope: packed, loose, with a document, and some forgotten.
async fn fill(root: &Arc<dyn Directory>) {
    for scope in &scopes() {
        let store = open(root, scope, StoreOptions::new(old())).await.unwrap();
        for number in 1..=30 {
            store.append_message(said(number)).await.unwrap();
        }
        store.forget(&[3..=4, 29..=29]).await.unwrap();
        store.append_message(said(32)).await.unwrap();
        store.write_document(Document::Calibration, b"what was learnt").await.unwrap();
    }
}

/// Checks that everything exists under these keys, without findings.
async fn is_whole(root: &Arc<dyn Directory>, options: impl Fn() -> StoreOptions) {
    for scope in &scopes() {
        let store = open(root, scope, options()).await.unwrap();
        let reading = store.read_tail(99).await.unwrap();
        assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
        let texts =
            reading.messages.iter().map(|stored| stored.message.content.parse::<u64>().unwrap());
        let expected = (1..=32).filter(|number: &u64| ![3, 4, 29, 31].contains(number));
        assert!(texts.eq(expected), "{scope:?}");
        let document = store.read_document(Document::Calibration).await.unwrap().unwrap();
        assert_eq!(*document, b"what was learnt");
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

fn rekey() -> Rekey {
    Rekey::new(old(), new())
}

fn run(rekey: Rekey, root: &Arc<dyn Directory>) -> Result<RekeyReport> {
    rekey.run_on(root, |_| ControlFlow::Continue(()))
}

/// Every file's name and bytes below a folder, except locks.
fn files(directory: &dyn Directory) -> Vec<(String, Vec<u8>)> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    directory
        .list(&mut |name, kind| {
            let name = String::from_utf8(name.into()).unwrap();
            if kind == EntryKind::Folder { folders.push(name) } else { files.push(name) }
        })
        .unwrap();
    files.retain(|name| name != "lock");
    let mut found: Vec<_> = files
        .into_iter()
        .map(|name| {
            (
                directory.path().join(&name).display().to_string(),
                directory.read(&name).unwrap().unwrap(),
            )
        })
        .collect();
    for folder in folders {
        found.extend(self::files(&*directory.folder(&folder)));
    }
    found.sort();
    found
}

fn copy(from: &Arc<dyn Directory>, to: &Arc<dyn Directory>) {
    let mut found = Vec::new();
    from.list(&mut |name, kind| found.push((str::from_utf8(name).unwrap().to_owned(), kind)))
        .unwrap();
    for (name, kind) in found {
        match kind {
            EntryKind::Folder => copy(&from.folder(&name), &to.folder(&name)),
            _ => to.replace(&name, &from.read(&name).unwrap().unwrap()).unwrap(),
        }
    }
}

fn mentions(root: &Arc<dyn Directory>, kid: &str) -> Vec<String> {
    let all = files(&**root).into_iter();
    let with = all.filter(|(_, bytes)| bytes.windows(kid.len()).any(|part| part == kid.as_bytes()));
    with.map(|(name, _)| name).collect()
}

fn backends() -> [(Arc<dyn Directory>, Option<tempfile::TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = FsDirectory::new(&folder.path().join("root"), &[]).unwrap();
    [(Arc::new(MemoryDirectory::default()), None), (Arc::new(on_disk), Some(folder))]
}

#[tokio::test]
async fn after_a_change_everything_opens_under_the_new_key_and_nothing_knows_the_old_one() {
    for (root, _folder) in backends() {
        fill(&root).await;
        let rekeyed = run(rekey(), &root).unwrap();
        assert_eq!(rekeyed.records, 4 * 29 + 4, "28 messages, a forget record, and the catalog's");
        assert!(rekeyed.left.is_empty() && rekeyed.kept.is_empty(), "{rekeyed:?}");
        assert_eq!(mentions(&root, &rekeyed.retired[0]), [""; 0]);
        assert!(!mentions(&root, &rekeyed.id).is_empty());
        is_whole(&root, || StoreOptions::new(new())).await;
        for scope in &scopes() {
            let refused = open(&root, scope, StoreOptions::new(old())).await;
            assert!(matches!(refused, Err(Error::WrongKey { .. })), "{refused:?}");
        }
        let before = files(&*root);
        let again = run(rekey(), &root).unwrap();
        assert_eq!((again.files, again.retired.len()), (0, 0));
        // A head may get new stamps.
        let but_heads = |files: Vec<(String, Vec<u8>)>| -> Vec<_> {
            files.into_iter().filter(|(name, _)| !name.ends_with("/head")).collect()
        };
        assert!(
            but_heads(files(&*root)) == but_heads(before),
            "what is under the new key is not sealed again"
        );
    }
}

#[tokio::test]
async fn broken_off_at_any_call_both_keys_open_everything_and_the_next_run_ends_it() {
    type Failure = fn(&std::path::Path) -> Error;
    let filled: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
    fill(&filled).await;
    // One failure for each call. All failures for each call would take minutes.
    for (from, error) in [(0, broken as Failure), (7, no_space), (14, not_durable)] {
        for after in (from..).step_by(21) {
            let faulty = FaultyDirectory::over(Arc::new(MemoryDirectory::default()));
            let root: Arc<dyn Directory> = faulty.clone();
            copy(&filled, &root);
            faulty.fail(Call::Any, after, 1, error);
            let outcome = run(rekey(), &root);
            let reached = faulty.was_reached();
            faulty.fail(Call::Any, 0, 0, error);
            is_whole(&root, || StoreOptions::new(new()).also_with(old())).await;
            let rekeyed = run(rekey(), &root).unwrap();
            assert!(rekeyed.kept.is_empty(), "{after}: {rekeyed:?} after {outcome:?}");
            is_whole(&root, || StoreOptions::new(new())).await;
            if !reached {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_change_of_keys_that_the_vault_has_no_room_for_is_refused_and_changes_nothing() {
    let key = |n: usize| secret(&format!("the secret number {n} of these tests"));
    for (root, _folder) in backends() {
        let store = open(&root, &scopes()[0], StoreOptions::new(key(0))).await.unwrap();
        store.append_message(said(1)).await.unwrap();
        for n in 1..8 {
            let change = Rekey::new(key(n - 1), key(n));
            assert_eq!(change.run_on(&root, |_| ControlFlow::Break(())).unwrap().kept.len(), n);
        }
        let before = files(&*root);
        let refused = run(Rekey::new(key(7), key(8)), &root);
        assert!(matches!(refused, Err(Error::TooManyKeys { keys: 8, .. })), "{refused:?}");
        assert!(files(&*root) == before);
        // As the error says.
        assert_eq!(run(Rekey::new(key(6), key(7)), &root).unwrap().retired.len(), 7);
        assert_eq!(run(Rekey::new(key(7), key(8)), &root).unwrap().retired.len(), 1);
        let store = open(&root, &scopes()[0], StoreOptions::new(key(8))).await.unwrap();
        assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 1);
    }
}

#[tokio::test]
async fn the_wrong_old_key_is_refused_before_anything_is_touched() {
    for (root, _folder) in backends() {
        fill(&root).await;
        let before = files(&*root);
        let refused = run(Rekey::new(secret("some other key"), new()), &root);
        assert!(matches!(refused, Err(Error::WrongKey { .. })), "{refused:?}");
        assert!(files(&*root) == before);
    }
}

#[tokio::test]
async fn a_program_with_the_old_key_alone_writes_nothing_once_the_change_has_begun() {
    for (root, _folder) in backends() {
        fill(&root).await;
        let scope = &scopes()[1];
        let behind = open(&root, scope, StoreOptions::new(old())).await.unwrap();
        let both = open(&root, scope, StoreOptions::new(old()).also_with(new())).await.unwrap();
        behind.read_tail(3).await.unwrap();
        both.read_tail(3).await.unwrap();
        let rekeyed = rekey().run_on(&root, |_| ControlFlow::Break(())).unwrap();
        assert_eq!(rekeyed.kept.len(), 1);

        let before = files(&*root);
        let refused = behind.append_message(said(33)).await;
        assert!(matches!(refused, Err(Error::KeyChanged { .. })), "{refused:?}");
        assert!(refused.unwrap_err().help().contains("start the program again"));
        assert!(files(&*root) == before);
        let kept = both.append_message(said(33)).await.unwrap();
        assert_eq!(kept.seq, 33);
        run(rekey(), &root).unwrap();
        assert_eq!(both.append_message(said(34)).await.unwrap().seq, 34);
        assert_eq!(both.read_tail(99).await.unwrap().messages.len(), 30);

        let alone = open(&root, scope, StoreOptions::new(new())).await.unwrap();
        assert_eq!(alone.read_tail(2).await.unwrap().messages[0].message.content, "33");
        assert!(alone.verify(|_| {}).await.unwrap().is_sound());
    }
}

#[tokio::test]
async fn files_that_no_key_opens_stay_unchanged_and_keep_the_old_key_unless_asked_otherwise() {
    for (root, _folder) in backends() {
        fill(&root).await;
        let dm = root.folder("dms").folder("%42ob%20%c3%a9");
        let mut name = None;
        dm.list(&mut |found, _| {
            let found = String::from_utf8(found.into()).unwrap();
            if found.contains("_0032_") {
                name = Some(found);
            }
        })
        .unwrap();
        let name = name.unwrap();
        let damaged = String::from_utf8(dm.read(&name).unwrap().unwrap()).unwrap();
        let damaged = damaged.replace(r#""tag":""#, r#""tag":"AAAA"#);
        dm.replace(&name, damaged.as_bytes()).unwrap();

        let rekeyed = run(rekey(), &root).unwrap();
        assert_eq!((rekeyed.kept.len(), rekeyed.retired.len()), (1, 0));
        assert_eq!(rekeyed.left.len(), 1, "{:?}", rekeyed.left);
        let place = format!("dms/%42ob%20%c3%a9/{name}");
        assert_eq!(rekeyed.left[0].file.as_ref(), Some(&place));
        assert_eq!(dm.read(&name).unwrap().unwrap(), damaged.as_bytes());

        let rekeyed = run(rekey().leave_unreadable(true), &root).unwrap();
        assert_eq!((rekeyed.kept.len(), rekeyed.retired.len()), (0, 1));
        assert_eq!(dm.read(&name).unwrap().unwrap(), damaged.as_bytes());
    }
}

#[tokio::test]
async fn a_damaged_line_of_a_pack_stays_and_its_neighbours_change_keys() {
    for (root, _folder) in backends() {
        fill(&root).await;
        let packs = root.folder("packs");
        let (path, bytes) = files(&*packs).into_iter().next().unwrap();
        let name = path.rsplit('/').next().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let first = text.lines().next().unwrap();
        let damaged = first.replacen(r#""iv":""#, r#""iv":"!!"#, 1);
        packs.replace(name, text.replacen(first, &damaged, 1).as_bytes()).unwrap();

        let rekeyed = run(rekey(), &root).unwrap();
        assert_eq!((rekeyed.kept.len(), rekeyed.left.len()), (1, 1), "{rekeyed:?}");
        let after = String::from_utf8(packs.read(name).unwrap().unwrap()).unwrap();
        assert_eq!(after.lines().next().unwrap(), damaged);
        assert_eq!(after.matches(&rekeyed.kept[0]).count(), 1);
        assert_eq!(after.matches(&rekeyed.id).count() + 1, text.lines().count());
        let places = |text: &str| text.match_indices('\t').map(|(at, _)| at).collect::<Vec<_>>();
        let old = text.replacen(first, &damaged, 1);
        assert_eq!(places(&after), places(&old), "each line stays where it was");
    }
}

#[tokio::test]
async fn a_change_that_was_begun_can_be_turned_back_or_led_on_to_a_third_key() {
    for (back, to) in [(true, old()), (false, secret("a third key of this house"))] {
        let root: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
        fill(&root).await;
        assert_eq!(rekey().run_on(&root, |_| ControlFlow::Break(())).unwrap().kept.len(), 1);
        let rekeyed = run(Rekey::new(new(), to).also_from(old()), &root).unwrap();
        assert_eq!(rekeyed.retired.len(), if back { 1 } else { 2 });
        let key = || if back { old() } else { secret("a third key of this house") };
        is_whole(&root, || StoreOptions::new(key())).await;
    }
}

#[tokio::test]
async fn a_root_without_a_store_is_left_alone_and_one_without_its_vault_is_refused() {
    let root: Arc<dyn Directory> = Arc::new(MemoryDirectory::default());
    assert_eq!(run(rekey(), &root).unwrap(), RekeyReport::default());
    assert!(files(&*root).is_empty());
    fill(&root).await;
    root.remove("vault").unwrap();
    assert!(matches!(run(rekey(), &root), Err(Error::VaultMissing { .. })));
}

#[tokio::test]
async fn a_link_keeps_the_old_key_and_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root");
    let root: Arc<dyn Directory> = Arc::new(FsDirectory::new(&path, &[]).unwrap());
    fill(&root).await;
    std::os::unix::fs::symlink("kitchen", path.join("conversations/cellar")).unwrap();
    let rekeyed = run(rekey(), &root).unwrap();
    assert_eq!(rekeyed.kept.len(), 1);
    let mut left: Vec<_> = rekeyed.left.iter().map(|f| f.file.clone().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["conversations/cellar"]);
}
