//! File systems that lack something: unnamed files, a rename that replaces nothing, hard links, an fsync of folders, or
//! locks.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::*;
use sottovoce::admin::RepairOptions;
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::Backup;
use sottovoce::{ConversationStore, Scope};

/// What a process does there, by its name, and how that ended.
#[derive(Debug)]
struct Outcome {
    what: String,
    /// The error with its causes and advice; empty if there is none.
    error: String,
}

/// Uses a store under `root`, with the named system calls failing. `None` where strace is missing.
fn used(root: &Path, inject: &[&str]) -> Option<Vec<Outcome>> {
    let has = Command::new("strace").args(["-f", "true"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: strace is not installed or not allowed");
        return None;
    }
    let mut command = Command::new("strace");
    command.args(["-f", "-qqq", "-o", "/dev/null"]).args(inject);
    command.arg(std::env::current_exe().unwrap()).args(child_args("a_process_that_uses_a_store"));
    let output = command.env(CHILD, root).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let told = told.lines().filter_map(|line| line.split_once("@did ")).map(|(_, told)| {
        let (what, error) = told.split_once(": ").unwrap();
        Outcome { what: what.to_owned(), error: error.to_owned() }
    });
    let told: Vec<_> = told.collect();
    assert!(output.status.success() && !told.is_empty(), "{output:?}");
    Some(told)
}

fn tell<T>(what: &str, outcome: sottovoce::Result<T>) {
    let error = outcome.err().map_or_else(String::new, |error| {
        let cause = std::error::Error::source(&error).map_or_else(String::new, ToString::to_string);
        format!("{error}: {cause}; {}", error.help())
    });
    println!("\n@did {what}: {}", error.replace('\n', " "));
}

#[test]
#[ignore = "other tests run it in processes of their own"]
fn a_process_that_uses_a_store() {
    let Some(root) = child_folder() else { return };
    let (store, exported) = (root.join("store"), root.join("exports/talk.json"));
    block_on(async {
        let one = options().open(&store).await.unwrap();
        tell("append", one.append_message(said("one")).await);
        tell("append", one.append_message(said("two")).await);
        let export = async || {
            let mut exporter = Exporter::to_file(ExportForm::Json, &exported)?;
            exporter.add(&one, ExportRange::default(), |_| {}).await?;
            exporter.finish().await
        };
        tell("export", export().await);
        // An injected failure counts the calls on the folder of the export.
        let copy = root.join("copy.json");
        let _ = std::fs::copy(&exported, &copy);
        let open: sottovoce::import::OpenStore = Box::new(move |scope| {
            let folder = root.join("again");
            Box::pin(async move { options().scope(scope).open(folder).await })
        });
        tell("import", Backup::new(&copy).key(key()).import(open, |_| {}, |_| {}).await);
        tell("forget", one.forget(&[2..=2]).await);
        let scope = Scope::Named { id: "kitchen".into() };
        let kitchen = options().scope(scope).open(&store).await.unwrap();
        tell("append", kitchen.append_message(said("in the kitchen")).await);
        tell("forget", kitchen.forget_all().await);
        tell("remove", kitchen.remove_forgotten().await);
        let strange = store.join("strange");
        if store.exists() {
            std::fs::create_dir_all(&strange).unwrap();
            std::fs::write(strange.join("file"), "not ours").unwrap();
        }
        let options = RepairOptions { quarantine: true, ..RepairOptions::default() };
        tell("repair", one.repair(options, |_| {}).await);
    });
}

fn house() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("exports")).unwrap();
    folder
}

fn has_exported(root: &Path) -> bool {
    std::fs::read_to_string(root.join("exports/talk.json")).is_ok_and(|text| text.contains("two"))
}

#[test]
fn without_unnamed_files_and_a_rename_that_replaces_nothing_all_works() {
    for error in ["EINVAL", "ENOSYS", "EOPNOTSUPP"] {
        let folder = house();
        let root = folder.path();
        let rename = format!("inject=renameat2:error={error}");
        let exports = root.join("exports");
        // The second call on that folder asks for an unnamed file in it.
        let unnamed = "inject=openat:error=EOPNOTSUPP:when=2";
        let everywhere = ["-e", "trace=renameat2", "-e", &rename];
        let there = [
            "-P",
            exports.to_str().unwrap(),
            "-e",
            "trace=openat,renameat2",
            "-e",
            unnamed,
            "-e",
            &rename,
        ];
        for inject in [&everywhere[..], &there] {
            let _ = std::fs::remove_file(root.join("exports/talk.json"));
            let _ = std::fs::remove_dir_all(root.join("store"));
            let _ = std::fs::remove_dir_all(root.join("again"));
            let Some(outcomes) = used(root, inject) else { return };
            assert!(outcomes.iter().all(|did| did.error.is_empty()), "{error}: {outcomes:?}");
            assert!(has_exported(root));
            assert!(!root.join("store/conversations/kitchen").exists(), "{error}: it is gone");
            let aside = root.join("store/quarantine/strange/file");
            assert_eq!(std::fs::read_to_string(aside).unwrap(), "not ours");
            block_on(async {
                let store = options().open(root.join("store")).await.unwrap();
                assert_eq!(texts(&store.read_tail(9).await.unwrap()), ["one"]);
            });
        }
    }
}

#[test]
fn without_hard_links_too_no_store_is_written_and_the_error_names_the_need_but_an_export_works() {
    let folder = house();
    let root = folder.path();
    // A store that is there already can be read and exported.
    block_on(async {
        let store = options().open(root.join("store")).await.unwrap();
        store.append_all(vec![said("one"), said("two")]).await.unwrap();
    });
    let inject = |call: &str, error: &str| format!("inject={call}:error={error}");
    let (rename, link) = (inject("renameat2", "EINVAL"), inject("linkat", "EPERM"));
    let args = ["-e", "trace=renameat2,linkat", "-e", &rename, "-e", &link];
    let Some(outcomes) = used(root, &args) else { return };
    for append in outcomes.iter().filter(|did| did.what == "append") {
        assert!(append.error.contains("nor make hard links"), "{append:?}");
    }
    // Where the unnamed file cannot be had, the name is taken by an empty file first.
    let (exports, unnamed) = (root.join("exports"), "inject=openat:error=EOPNOTSUPP:when=2");
    let args =
        ["-P", exports.to_str().unwrap(), "-e", "trace=openat,renameat2,linkat", "-e", unnamed];
    let _ = std::fs::remove_file(root.join("exports/talk.json"));
    let Some(outcomes) = used(root, &[&args[..], &["-e", &rename, "-e", &link]].concat()) else {
        return;
    };
    assert!(
        outcomes.iter().all(|did| did.what != "export" || did.error.is_empty()),
        "{outcomes:?}"
    );
    assert!(has_exported(root));
    // It never replaces a file.
    std::fs::write(root.join("exports/talk.json"), "mine").unwrap();
    let Some(outcomes) = used(root, &[&args[..], &["-e", &rename, "-e", &link]].concat()) else {
        return;
    };
    assert!(
        outcomes.iter().any(|did| did.what == "export" && !did.error.is_empty()),
        "{outcomes:?}"
    );
    assert_eq!(std::fs::read_to_string(root.join("exports/talk.json")).unwrap(), "mine");
}

#[test]
fn without_an_fsync_of_folders_nothing_is_acknowledged_and_the_error_names_the_need() {
    let folder = house();
    let store = folder.path().join("store");
    let fsync = "inject=fsync:error=EINVAL";
    let args = ["-P", store.to_str().unwrap(), "-e", "trace=fsync", "-e", fsync];
    let Some(outcomes) = used(folder.path(), &args) else { return };
    // After the first one the store refuses all others.
    assert!(
        outcomes.iter().all(|did| did.what != "append" || !did.error.is_empty()),
        "{outcomes:?}"
    );
    for did in outcomes.iter().take(1) {
        assert!(did.error.contains("(fsync); put the store on one that can"), "{did:?}");
    }
}

#[test]
fn without_locks_nothing_is_written_and_the_error_names_the_need() {
    for error in ["ENOLCK", "EOPNOTSUPP", "ENOSYS"] {
        let folder = house();
        let flock = format!("inject=flock:error={error}");
        let args = ["-e", "trace=flock", "-e", &flock];
        let Some(outcomes) = used(folder.path(), &args) else { return };
        for did in outcomes.iter().filter(|did| did.what == "append") {
            assert!(did.error.contains("no locks (flock)"), "{did:?}");
        }
        assert!(!folder.path().join("store/head").exists());
    }
}
