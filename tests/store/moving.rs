//! Moving a store to another folder, by processes that may be killed at any moment.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::*;
use sottovoce::admin::{move_store, scopes as scopes_of};
use sottovoce::{ConversationStore, Error, FileConversationStore, Scope};

fn scopes() -> [Scope; 3] {
    let named = Scope::Named { id: "Küche".into() };
    [Scope::Default, Scope::Dm { user: "Bob".into() }, named]
}

async fn open_scope(root: &Path, scope: Scope) -> FileConversationStore {
    options().scope(scope).open(root).await.unwrap()
}

/// A store of three conversations, one of them partly packed.
async fn made(root: &Path, each: u64) {
    for scope in scopes() {
        let store = open_scope(root, scope).await;
        for number in 0..each {
            store.append_message(said(number)).await.unwrap();
        }
        if store.scope().to_string() == "default" {
            store.pack(|_| ()).await.unwrap();
        }
    }
}

/// Checks that everything exists, is sound, and accepts new messages.
async fn check(root: &Path, each: u64) {
    assert_eq!(scopes_of(root).unwrap().len(), 3);
    for scope in scopes() {
        let store = open_scope(root, scope).await;
        let reading = store.read_tail(usize::MAX).await.unwrap();
        let expected: Vec<String> = (0..each).map(|number| number.to_string()).collect();
        assert_eq!(texts(&reading), expected);
        let report = store.verify(|_| ()).await.unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

fn well() -> Result<(), Error> {
    Ok(())
}

#[test]
fn a_store_that_is_moved_is_whole_in_the_new_place_and_gone_from_the_old() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("cache/store"), folder.path().join("data/deep/store"));
    block_on(async {
        made(&from, 20).await;
        let switch = || {
            // Until now the old folder is complete, and from now on the new one.
            assert!(from.join("vault").exists() && to.join("vault").exists());
            well()
        };
        let moved = move_store(&from, &to, switch).unwrap();
        assert_eq!((moved.copied, moved.left), (0, None));
        assert!(moved.files > 40);
        assert_eq!(std::fs::read_dir(folder.path().join("cache")).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(folder.path().join("data/deep")).unwrap().count(), 1);
        check(&to, 20).await;
        let store = open_scope(&to, Scope::Default).await;
        store.append_message(said("and on")).await.unwrap();
    });
}

#[test]
fn on_another_file_system_it_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("SKIPPED: there is no /dev/shm");
        return;
    };
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    if device(folder.path()) == device(other.path()) {
        eprintln!("SKIPPED: /dev/shm is no file system of its own");
        return;
    }
    let (from, to) = (folder.path().join("store"), other.path().join("store"));
    block_on(async {
        made(&from, 5).await;
        let moved = move_store(&from, &to, well).unwrap();
        assert!(moved.copied > 1000 && moved.left.is_none());
        assert!(!from.exists());
        check(&to, 5).await;
    });
}

#[test]
fn where_the_settings_cannot_be_switched_the_old_place_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("store"), folder.path().join("new"));
    block_on(async {
        made(&from, 3).await;
        let refused = move_store(&from, &to, || Err(Error::ShuttingDown));
        assert!(matches!(refused, Err(Error::ShuttingDown)));
        check(&from, 3).await;
        // The contents of the new folder are never replaced.
        let refused = move_store(&from, &to, well).unwrap_err();
        assert!(refused.to_string().contains("new"), "{refused}");
        assert!(move_store(&from, &from.join("within"), well).is_err());
        check(&from, 3).await;
        // A file that another program writes after the move began stays too.
        let to = folder.path().join("another");
        let late = from.join("late.json");
        let moved = move_store(&from, &to, || {
            std::fs::write(&late, "x").unwrap();
            well()
        });
        assert_eq!(moved.unwrap().left, Some(from.clone()));
        assert!(late.exists());
        check(&to, 3).await;
    });
}

#[test]
fn whoever_has_it_open_can_write_to_neither_place_until_it_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("store"), folder.path().join("new"));
    block_on(async {
        made(&from, 3).await;
        let open = open_scope(&from, Scope::Default).await;
        open.append_message(said(3)).await.unwrap();
        move_store(&from, &to, well).unwrap();
        let refused = open.append_message(said("lost?")).await;
        assert!(matches!(refused, Err(Error::FolderReplaced { .. })), "{refused:?}");
        assert!(!from.exists());
        assert_eq!(open_scope(&to, Scope::Default).await.read_tail(9).await.unwrap().last_seq, 4);
    });
}

/// The store's folder according to the settings.
fn place(folder: &Path) -> PathBuf {
    std::fs::read_to_string(folder.join("settings")).unwrap().into()
}

fn switch(folder: &Path, to: &Path) {
    let new = folder.join("settings.new");
    std::fs::write(&new, to.to_str().unwrap()).unwrap();
    std::fs::rename(new, folder.join("settings")).unwrap();
}

#[test]
#[ignore = "another test runs it in processes of its own"]
fn a_process_that_moves_a_store_to_and_fro() {
    let Some(folder) = child_folder() else { return };
    for round in 0.. {
        let from = place(&folder);
        let to = folder.join(format!("{}-{round}", std::process::id()));
        move_store::<Error>(&from, &to, || {
            switch(&folder, &to);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn killed_at_any_moment_it_leaves_a_whole_store_where_the_settings_say() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    block_on(made(&first, 12));
    switch(folder.path(), &first);
    let mut places = std::collections::BTreeSet::new();
    for round in 0..25u64 {
        let mut child = child("a_process_that_moves_a_store_to_and_fro", folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(20 + round * 37 % 150));
        child.kill().unwrap();
        child.wait().unwrap();
        let place = place(folder.path());
        block_on(check(&place, 12));
        places.insert(place);
    }
    assert!(places.len() > 1, "it was never moved");
}
