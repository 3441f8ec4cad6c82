//! Devices that join, and a lost one that is shut out.

use std::os::unix::fs::PermissionsExt;

use super::*;
use sync::{Shared, done, sync};

#[test]
fn a_code_goes_to_a_private_file_that_is_never_overwritten() {
    let shared = Shared::new(&[]);
    let file = shared.first.path().join("code");
    let add = ["device", "add", "--to", file.to_str().unwrap()];
    let added = shared.first.run(&add);
    done(&added);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.trim(), shared.code());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let said = format!("{}{}", out(&added), err(&added));
    assert!(!said.contains(text.trim()), "a file was wanted: {said}");
    assert_eq!(code(&shared.first.run(&add)), 2);
    let inside = shared.first.store().join("code");
    let refused = shared.first.run(&["device", "add", "--to", inside.to_str().unwrap()]);
    assert!(code(&refused) == 2 && !inside.exists(), "{}", err(&refused));
    let row = rows(&shared.first.run(&["--json", "device", "add"])).remove(0);
    assert_eq!(row["code"], text.trim());
    let second = Home::new();
    done(&second.run(&["device", "join", file.to_str().unwrap()]));
    let third = Home::new();
    done(&third.feed(&["device", "join", "-"], text));
    let listed = rows(&third.run(&["--json", "device", "list"]));
    assert_eq!(listed[0]["here"], true);
    assert!(!listed[0]["name"].as_str().unwrap().is_empty(), "the host's name");
}

#[test]
fn a_code_can_be_used_right_after_a_beginning() {
    let (remote, first, second) = (tempfile::tempdir().unwrap(), Home::new(), Home::new());
    first.keep(&["canary one"]);
    done(&first.run(&["sync", "init", remote.path().to_str().unwrap()]));
    let added = first.run(&["device", "add"]);
    done(&added);
    done(&second.run(&["device", "join", out(&added).trim()]));
    sync(&[&second]);
    assert_eq!(second.words(), ["canary one"]);
}

#[test]
fn a_wrong_code_is_refused_and_changes_nothing() {
    let shared = Shared::new(&[]);
    let right = shared.code();
    let mut wrong = right.clone();
    wrong.replace_range(3..4, if right.as_bytes()[3] == b'A' { "B" } else { "A" });
    let home = Home::new();
    for (code_, reason) in
        [(&*wrong, "mistyped"), ("nonsense", "no file"), ("MFRGG@b", "too short")]
    {
        let refused = home.run(&["device", "join", code_]);
        assert_eq!(code(&refused), 2, "{}", err(&refused));
        assert!(err(&refused).contains(reason), "{reason}: {}", err(&refused));
        assert!(!err(&refused).contains(right.split('@').next().unwrap()));
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let empty = home.run(&["device", "join", &right, "--at", elsewhere.path().to_str().unwrap()]);
    assert_eq!(code(&empty), 1, "{}", err(&empty));
    assert!(err(&empty).contains("no device has ever published"), "{}", err(&empty));
    assert_eq!(code(&home.run(&["sync"])), 1);
}

#[test]
fn the_same_folder_may_have_another_path_on_each_device() {
    let shared = Shared::new(&[]);
    let home = Home::new();
    let path = home.path().join("mounted here");
    std::os::unix::fs::symlink(shared.remote(), &path).unwrap();
    done(&home.run(&["device", "join", &shared.code(), "--at", "mounted here"]));
    sync(&[&home]);
    assert_eq!(home.words(), ["canary one"]);
    assert!(out(&home.run(&["sync", "status"])).contains("mounted here"));
}

#[test]
fn others_see_a_device_by_its_new_name() {
    let shared = Shared::new(&[]);
    let second = shared.joined("second");
    sync(&[&second]);
    done(&second.run(&["device", "rename", "cellar"]));
    sync(&[&second, &shared.first]);
    let listed = out(&shared.first.run(&["device", "list"]));
    assert!(listed.contains("cellar") && !listed.contains("second"), "{listed}");
}

#[test]
fn a_removed_device_reads_nothing_any_more_and_the_others_join_again() {
    let shared = Shared::new(&[]);
    let (first, second, lost) = (&shared.first, shared.joined("second"), shared.joined("lost"));
    second.keep(&["canary two"]);
    sync(&[&second, &lost, first]);
    let old = shared.code();
    let nobody = first.run(&["device", "remove", "lst", "--yes"]);
    assert!(code(&nobody) == 1 && err(&nobody).contains("device list"), "{}", err(&nobody));
    let unasked = first.run(&["device", "remove", "lost"]);
    assert!(code(&unasked) == 2 && err(&unasked).contains("--yes"), "{}", err(&unasked));
    assert_eq!(shared.code(), old);
    let removed = rows(&first.run(&["--json", "device", "remove", "lost", "--yes"])).remove(0);
    assert_eq!(removed["rejoin"], serde_json::json!(["second"]));
    let new = removed["code"].as_str().unwrap();
    assert!(new == shared.code() && new != old);
    first.keep(&["canary three"]);
    sync(&[first]);
    for home in [&lost, &second] {
        let refused = home.run(&["sync"]);
        assert_eq!(code(&refused), 1, "{}", err(&refused));
        assert!(err(&refused).contains("device join"), "{}", err(&refused));
    }
    assert!(!lost.words().contains(&"canary three".to_owned()));
    let late = Home::new();
    late.run(&["device", "join", &old]);
    assert_eq!(code(&late.run(&["sync"])), 1, "the old code still lets devices in");
    assert!(!late.words().iter().any(|words| words.contains("canary")));
    done(&second.run(&["device", "join", new, "--name", "second"]));
    second.keep(&["canary four"]);
    sync(&[&second, first]);
    assert_eq!(first.words(), ["canary one", "canary two", "canary three", "canary four"]);
    assert_eq!(first.words(), second.words().as_slice());
}
