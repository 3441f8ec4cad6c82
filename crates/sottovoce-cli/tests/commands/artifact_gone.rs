//! Artifacts that are exported, deleted or forgotten.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use artifact::{done, files, id, listed, said, short, write};

const CANARY: &str = "canary in the coal mine";

#[test]
fn an_export_is_private_overwrites_nothing_and_needs_a_yes() {
    let home = Home::new();
    let long: String = (0..30_000).map(|line| format!("{line}\n")).collect();
    write(&home, "long", &long);
    let id = id(&said(&home, &["artifact", "add", "long"]));
    let export = |rest: &[&str]| home.run(&[&["artifact", "export", &id], rest].concat());
    let unasked = export(&["copy"]);
    assert_eq!(code(&unasked), 2);
    assert!(
        err(&unasked).contains("--yes") && err(&unasked).contains("in the clear"),
        "{}",
        err(&unasked)
    );
    assert!(!home.path().join("copy").exists());
    assert_eq!(code(&export(&["copy", "--yes"])), 0);
    let copy = home.path().join("copy");
    assert_eq!(fs::read_to_string(&copy).unwrap(), long);
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(out(&export(&["-", "--yes"])), long);
    write(&home, "other", "mine");
    symlink("nowhere", home.path().join("dangling")).unwrap();
    for taken in ["other", "dangling", ".", "no/such/folder"] {
        assert_eq!(code(&export(&[taken, "--yes"])), 2, "{taken}");
    }
    assert_eq!(fs::read_to_string(home.path().join("other")).unwrap(), "mine");
    let inside = home.store().join("plain");
    assert_eq!(code(&export(&[inside.to_str().unwrap(), "--yes"])), 2);
    assert!(!inside.exists());
    // Only the previous files, and the copy.
    let mut names: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".cache", ".config", ".local", "copy", "dangling", "long", "other"]);
}

#[test]
fn a_damaged_artifact_leaves_no_half_a_copy() {
    let home = Home::new();
    write(&home, "long", "x".repeat(200_000));
    let id = id(&said(&home, &["artifact", "add", "long"]));
    let sealed = home.store().join("artifacts").join(&id);
    let mut bytes = fs::read(&sealed).unwrap();
    bytes[150_000] ^= 1;
    fs::write(&sealed, bytes).unwrap();
    let failed = home.run(&["artifact", "export", &id, "copy", "--yes"]);
    assert_eq!(code(&failed), 1, "{}", err(&failed));
    assert!(err(&failed).contains("damaged"), "{}", err(&failed));
    assert!(
        !fs::read_dir(home.path())
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_str().unwrap().starts_with("copy") })
    );
    assert_eq!(code(&home.run(&["artifact", "show", &id])), 1);
    // And it can still be deleted.
    done(&home, &["artifact", "delete", &id, "--yes"]);
    assert_eq!(files(&home), 0);
}

#[test]
fn all_that_are_named_are_deleted_or_none_of_them() {
    let home = Home::new();
    let ids: Vec<String> = ["one", "two", "three"]
        .into_iter()
        .map(|text| {
            write(&home, text, text);
            id(&said(&home, &["artifact", "add", text]))
        })
        .collect();
    assert_eq!(code(&home.run(&["artifact", "delete", &ids[0]])), 2);
    assert_eq!(code(&home.run(&["artifact", "delete", &ids[0], "zz", "--yes"])), 1);
    assert_eq!(listed(&home).len(), 3);
    let deleted = said(&home, &["artifact", "delete", &ids[0], short(&ids[1]), &ids[0], "--yes"]);
    assert_eq!(deleted["deleted"].as_array().unwrap().len(), 2);
    assert_eq!((listed(&home).len(), files(&home)), (1, 2));
    assert_eq!(home.words().len(), 3, "what was said stays");
}

#[test]
fn cleanup_names_what_no_message_refers_to_and_deletes_it_only_on_request() {
    let home = Home::new();
    let add = |name: &str, rest: &[&str]| {
        write(&home, name, name);
        id(&said(&home, &[&["artifact", "add", name], rest].concat()))
    };
    let (used, unused) = (add("used", &[]), add("unused", &["--no-message"]));
    let looked = home.run(&["cleanup"]);
    assert_eq!(code(&looked), 0);
    assert!(
        err(&looked).contains("no message refers to 1 artifact")
            && err(&looked).contains(short(&unused)),
        "{}",
        err(&looked)
    );
    let row = said(&home, &["cleanup", "--all"]);
    assert_eq!(row["unreferenced"], serde_json::json!([unused]));
    assert_eq!(code(&home.run(&["cleanup", "--artifacts"])), 2);
    assert_eq!(code(&home.run(&["cleanup", "--yes"])), 2);
    assert_eq!(listed(&home).len(), 2);
    assert_eq!(said(&home, &["cleanup", "--artifacts", "--yes"])["deleted"], true);
    assert_eq!(id(&listed(&home)[0]), used);
    // The message keeps the folder's list. Once it is forgotten, nothing does.
    write(&home, "src/a", "a");
    done(&home, &["artifact", "add-folder", "src"]);
    assert!(said(&home, &["cleanup"]).get("unreferenced").is_none());
    done(&home, &["forget", "--last", "--yes"]);
    done(&home, &["cleanup", "--artifacts", "--yes"]);
    assert_eq!(listed(&home).len(), 1);
}

#[test]
fn while_a_message_cannot_be_read_cleanup_deletes_no_artifact() {
    let home = Home::new();
    write(&home, "a", "a");
    done(&home, &["artifact", "add", "a"]);
    home.keep(&["another"]);
    fs::write(&home.records()[0], "rubbish").unwrap();
    let cleaned = home.run(&["cleanup", "--artifacts", "--yes"]);
    assert_eq!(code(&cleaned), 0, "{}", err(&cleaned));
    assert!(err(&cleaned).contains("nothing was deleted"), "{}", err(&cleaned));
    assert_eq!(listed(&home).len(), 1);
}

#[test]
fn forgetting_everything_takes_the_artifacts_and_the_title_along() {
    let home = Home::new();
    write(&home, "a", "a");
    done(&home, &["artifact", "add", "a", "--no-message"]);
    done(&home, &["conversations", "tag", "x"]);
    let unasked = home.run(&["forget", "--all"]);
    let asked = err(&unasked);
    assert!(asked.contains("delete 1 artifact, take away its title, tags"), "{asked}");
    let forgotten = home.run(&["forget", "--all", "--yes"]);
    assert_eq!(code(&forgotten), 0, "{}", err(&forgotten));
    assert!(err(&forgotten).contains("deleted 1 artifact for ever"), "{}", err(&forgotten));
    assert_eq!((listed(&home).len(), files(&home)), (0, 0));
    assert_eq!(said(&home, &["conversations", "show"])["tags"], serde_json::json!([]));
    assert_eq!(code(&home.run(&["verify"])), 0);
    assert_eq!(code(&home.run(&["forget", "--all", "--yes"])), 2, "there is nothing left");
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

#[test]
fn no_word_stays_behind_in_the_clear_whatever_is_done_with_artifacts() {
    let home = Home::new();
    write(&home, "plain/canary.txt", format!("{CANARY}\n").repeat(5000));
    home.keep(&[CANARY]);
    let unclean = |home: &Home| {
        let mut files = Vec::new();
        files_below(&home.path().join(".cache"), &mut files);
        assert!(files.len() > 3, "{files:?}");
        files.retain(|file| {
            let bytes = fs::read(file).unwrap();
            let name = file.file_name().unwrap().to_str().unwrap();
            let is_private = file.metadata().unwrap().permissions().mode() & 0o77 == 0;
            let has_words = bytes.windows(6).any(|part| part == b"canary");
            has_words || !is_private || name.ends_with(".new") || name.starts_with(".tmp")
        });
        files
    };
    let added = said(&home, &["artifact", "add", "plain/canary.txt"]);
    done(&home, &["artifact", "add-folder", "plain"]);
    done(&home, &["artifact", "add-search", "canary"]);
    assert!(unclean(&home).is_empty());
    done(&home, &["artifact", "export", &id(&added), "copy", "--yes"]);
    done(&home, &["conversations", "rename", "canary"]);
    assert!(unclean(&home).is_empty());
    done(&home, &["prune", "--max-tokens", "1", "--keep-recent", "1"]);
    done(&home, &["export", "--sealed", "--all", ".cache/backup"]);
    done(&home, &["export", "copy.json", "--yes"]);
    done(&home, &["import", "backup", ".cache/backup"]);
    done(&home, &["import", "backup", "copy.json"]);
    assert!(unclean(&home).is_empty());
    let ids: Vec<String> = listed(&home).iter().map(id).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    done(&home, &[&["artifact", "delete", "--yes"], &ids[..]].concat());
    assert_eq!(files(&home), 0);
    assert!(unclean(&home).is_empty());
    let verbose =
        home.run(&["--verbose", "artifact", "add", "plain/canary.txt", "--name", "x", "--json"]);
    assert!(!err(&verbose).contains("canary"), "{}", err(&verbose));
}
