//! Nothing is left after `forget --everything`, in any file and by any command.

use super::*;

const CANARY: &str = "canary";

/// Whether the canary stands in the name or in the bytes of anything below a folder.
fn holds_canary(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let path = entry.path();
        if path.is_dir() {
            found.extend(holds_canary(&path));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(CANARY) {
            found.push(path.clone());
        }
        if name.contains(CANARY) {
            found.push(path);
        }
    }
    found
}

fn done(home: &Home, arguments: &[&str]) -> Output {
    let output = home.run(arguments);
    assert_eq!(code(&output), 0, "{arguments:?}: {}", err(&output));
    output
}

/// A canary in every kind of thing that a store can hold.
fn planted() -> Home {
    let home = Home::new();
    std::fs::write(home.path().join("canary-file.txt"), "canary in an artifact").unwrap();
    std::fs::write(home.path().join("prompt.txt"), "You are a canary.").unwrap();
    home.keep(&["canary one", "two"]);
    done(&home, &["--scope", "dm/canary-ann", "append", "-r", "user", "canary to ann"]);
    done(&home, &["--scope", "guild/canary-house/hall/ben", "append", "-r", "user", "canary"]);
    done(&home, &["conversations", "rename", "canary title"]);
    done(&home, &["conversations", "tag", "canary-tag"]);
    done(&home, &["artifact", "add", "canary-file.txt", "--name", "canary name"]);
    done(&home, &["snapshot", "save", "canary", "snapshot"]);
    done(&home, &["settings", "--max-messages", "40"]);
    let preset = ["persona", "create", "canary-preset", "--system-prompt-file", "prompt.txt"];
    done(&home, &preset);
    for name in ["canary-one", "canary-two"] {
        done(&home, &["context", "create", "--preset", "canary-preset", "--name", name]);
        done(&home, &["--context", name, "append", "-r", "user", "canary in a context"]);
    }
    // Nothing was ever said in this one.
    done(&home, &["context", "create", "--preset", "canary-preset", "--name", "canary-three"]);
    done(&home, &["cleanup", "--all"]);
    done(&home, &["context", "delete", "canary-two", "--yes"]);
    // The index of what is searched for, and a file that a repair has set aside.
    done(&home, &["search", "--all", "canary"]);
    let aside = home.store().join("conversations");
    let aside = std::fs::read_dir(aside).unwrap().next().unwrap().unwrap().path();
    std::fs::create_dir(aside.join("quarantine")).unwrap();
    std::fs::write(aside.join("quarantine/canary"), "canary").unwrap();
    std::fs::remove_file(home.path().join("canary-file.txt")).unwrap();
    std::fs::remove_file(home.path().join("prompt.txt")).unwrap();
    home
}

/// The files below a folder that may hold something sealed: all but those that every store has.
fn not_bare(folder: &Path) -> Vec<PathBuf> {
    const BARE: [&str; 9] = [
        "vault",
        "head",
        "lock",
        "reserve",
        "profile",
        "tombstones",
        "imports",
        "presets",
        "calibration",
    ];
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.ends_with("catalog") {
            let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
            let entries = names.filter(|name| name.to_str().unwrap().ends_with("_system.json"));
            assert!(entries.count() <= 1, "it lists the default conversation alone");
        } else if path.is_dir() {
            found.extend(not_bare(&path));
        } else if !BARE.contains(&name) && !name.ends_with("_forget.json") {
            found.push(path);
        }
    }
    found
}

fn assert_nothing_is_left(home: &Home) {
    assert_eq!(not_bare(&home.store()), Vec::<PathBuf>::new());
    assert_eq!(holds_canary(home.path()), Vec::<PathBuf>::new());
    for folder in ["dms/canary-ann", "guilds/canary-house", "conversations", "backups"] {
        let folder = home.store().join(folder);
        let is_empty = || std::fs::read_dir(&folder).unwrap().next().is_none();
        assert!(!folder.exists() || is_empty(), "{}", folder.display());
    }
    for arguments in [
        &["search", "--all", "canary"][..],
        &["scopes"],
        &["context", "list", "--all"],
        &["persona", "list"],
        &["snapshot", "list"],
        &["artifact", "list"],
        &["conversations", "show"],
    ] {
        let output = home.run(arguments);
        let said = out(&output) + &err(&output);
        assert!(!said.contains(CANARY), "{arguments:?}: {said}");
    }
    assert_eq!(rows(&home.run(&["settings", "--json"]))[0]["maxMessages"], Value::Null);
    assert_eq!(code(&home.run(&["verify", "--all"])), 0);
}

#[test]
fn nothing_is_left_of_anything_after_everything_was_forgotten() {
    let home = planted();
    assert!(!holds_canary(home.path()).is_empty(), "names of folders say who is there");
    let unasked = home.run(&["forget", "--everything"]);
    assert_eq!(code(&unasked), 2);
    let said = err(&unasked);
    assert!(said.contains("6 conversations") && said.contains("3 contexts"), "{said}");
    assert!(said.contains("1 preset") && said.contains("backups"), "{said}");
    let one = home.run(&["--scope", "dm/canary-ann", "forget", "--everything", "--yes"]);
    assert_eq!(code(&one), 2, "one conversation is not everything");
    let forgotten = done(&home, &["forget", "--everything", "--yes"]);
    let said = err(&forgotten);
    assert!(said.contains("elsewhere") && said.contains(home.key().to_str().unwrap()), "{said}");
    assert_nothing_is_left(&home);
    home.keep(&["a new beginning"]);
    assert_eq!(home.words(), ["a new beginning"]);
}

#[test]
fn what_was_interrupted_is_finished_by_running_it_again() {
    let home = planted();
    for milliseconds in [5, 20, 40, 80] {
        let mut child = home.spawn(&["forget", "--everything", "--yes"]);
        std::thread::sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().unwrap();
    }
    done(&home, &["forget", "--everything", "--yes"]);
    assert_nothing_is_left(&home);
}

#[test]
fn a_process_that_has_the_store_open_brings_nothing_back() {
    let home = planted();
    let ann = ["--scope", "dm/canary-ann"];
    let mut other = home.spawn(&[&ann[..], &["append"]].concat());
    let mut input = other.stdin.take().unwrap();
    input.write_all(user("canary before").as_bytes()).unwrap();
    let tail = || out(&home.run(&[&ann[..], &["tail", "--json"]].concat()));
    for _ in 0..200 {
        if tail().contains("canary before") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(tail().contains("canary before"));
    done(&home, &["forget", "--everything", "--yes"]);
    // It stores what it is told now, or says that its folder is gone.
    let _ = input.write_all(user("said after").as_bytes());
    drop(input);
    let ended = ended(other);
    assert!([0, 1].contains(&code(&ended)), "{}", err(&ended));
    assert!(!tail().contains(CANARY), "{}", tail());
    done(&home, &["forget", "--everything", "--yes"]);
    assert_nothing_is_left(&home);
}
