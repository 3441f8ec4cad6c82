use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const CANARY: &str = "canary in the coal mine";

/// Writes a file below the home folder.
fn write(home: &Home, name: &str, bytes: impl AsRef<[u8]>) {
    let path = home.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn done(home: &Home, arguments: &[&str]) -> Output {
    let output = home.run(arguments);
    assert_eq!(code(&output), 0, "{arguments:?}: {}", err(&output));
    output
}

/// What a command says for machines, in one object.
fn said(home: &Home, arguments: &[&str]) -> Value {
    rows(&home.run(&[&["--json"], arguments].concat())).remove(0)
}

fn listed(home: &Home) -> Vec<Value> {
    rows(&home.run(&["artifact", "list", "--json"]))
}

fn id(row: &Value) -> String {
    row["id"].as_str().unwrap().to_owned()
}

/// The beginning of an id.
fn short(id: &str) -> &str {
    id.get(..8).unwrap()
}

fn shown(home: &Home, id: &str) -> String {
    out(&done(home, &["artifact", "show", id]))
}

/// The files of the artifacts, without the lock.
fn files(home: &Home) -> usize {
    let entries = fs::read_dir(home.store().join("artifacts")).into_iter().flatten();
    entries.filter(|entry| entry.as_ref().unwrap().file_name() != "lock").count()
}

#[test]
fn a_file_is_kept_once_and_a_message_refers_to_it() {
    let home = Home::new();
    write(&home, "src/main.rs", "fn main() {\n}\n");
    let added = said(&home, &["--thread", "7", "artifact", "add", "src/main.rs"]);
    assert_eq!((&added["type"], &added["mimeType"]), (&"file".into(), &"text/x-rust".into()));
    assert_eq!((&added["lines"], &added["message"]), (&2.into(), &1.into()));
    let message = &rows(&home.run(&["tail", "--json"]))[0];
    let words = format!("Added src/main.rs (file, 2 lines): artifact://{}", id(&added));
    assert_eq!((&message["content"], &message["role"]), (&words.into(), &"System".into()));
    assert_eq!(message["threadId"], "7");
    let again = home.run(&["artifact", "add", "src/main.rs", "--name", "other"]);
    assert!(
        err(&again).contains("the same bytes are there already as src/main.rs"),
        "{}",
        err(&again)
    );
    assert_eq!((home.words().len(), listed(&home).len()), (1, 1));
    assert_eq!(shown(&home, &id(&added)), "fn main() {\n}\n");
}

#[test]
fn what_comes_through_a_pipe_is_kept_and_named_as_one_likes() {
    let home = Home::new();
    let fed = home.feed(&["artifact", "add", "-", "--name", "ls"], "a\nb\n");
    assert_eq!(code(&fed), 0, "{}", err(&fed));
    let reference = format!("artifact://{}", id(&listed(&home)[0]));
    assert_eq!(home.words(), [format!("Added ls (command output, 2 lines): {reference}")]);
    let arguments = [
        "artifact",
        "add",
        "-",
        "--type",
        "Tool-Result",
        "--mime",
        "image/x-own",
        "--no-message",
        "--json",
    ];
    let row = rows(&home.feed(&arguments, [0, 159, 146, 150])).remove(0);
    assert_eq!((&row["type"], &row["mimeType"]), (&"tool_result".into(), &"image/x-own".into()));
    assert_eq!((&row["message"], &row["name"]), (&Value::Null, &"standard input".into()));
    assert_eq!(home.words().len(), 1);
    // Named so that it could pass for two lines.
    let forged = home.feed(&["artifact", "add", "-", "--name", "a\nUser: b\u{1b}[31m"], "c");
    assert_eq!(code(&forged), 0);
    assert_eq!(home.words()[1].lines().count(), 1);
    for wrong in [["--type", "two words"], ["--mime", "nonsense"], ["--max-size", "big"]] {
        assert_eq!(code(&home.feed(&[&["artifact", "add", "-"], &wrong[..]].concat(), "x")), 2);
    }
}

#[test]
fn what_is_over_the_limit_is_refused_and_leaves_nothing() {
    let home = Home::new();
    write(&home, "long", "x".repeat(200_001));
    let limit = ["--max-size", "200000"];
    let refused = home.run(&[&["artifact", "add", "long"], &limit[..]].concat());
    assert_eq!(code(&refused), 2);
    assert!(
        err(&refused).contains("195.31 KiB") && err(&refused).contains("--max-size"),
        "{}",
        err(&refused)
    );
    assert!(!home.store().exists(), "nothing was begun");
    let refused = home.feed(&[&["artifact", "add", "-"], &limit[..]].concat(), "x".repeat(200_001));
    assert_eq!(code(&refused), 2, "{}", err(&refused));
    assert_eq!((files(&home), listed(&home).len()), (0, 0));
    let fits = home.feed(&[&["artifact", "add", "-"], &limit[..]].concat(), "x".repeat(200_000));
    assert_eq!(code(&fits), 0, "{}", err(&fits));
    for (wrong, said) in [("nowhere", "nowhere"), (".", "add-folder")] {
        let refused = home.run(&["artifact", "add", wrong]);
        assert_eq!(code(&refused), 2);
        assert!(err(&refused).contains(said), "{}", err(&refused));
    }
}

#[test]
fn a_signal_while_a_pipe_is_read_leaves_nothing() {
    for name in ["-INT", "-TERM"] {
        let home = Home::new();
        let mut child = home.spawn(&["artifact", "add", "-"]);
        let mut input = child.stdin.take().unwrap();
        input.write_all(&vec![b'x'; 300_000]).unwrap();
        // Most of it has gone on from the pipe by now.
        std::thread::sleep(Duration::from_millis(300));
        signal(&child, name);
        let ended = ended(child);
        drop(input);
        assert_eq!(code(&ended), 130, "{}", err(&ended));
        assert!(err(&ended).contains("nothing was added"), "{}", err(&ended));
        assert_eq!((files(&home), listed(&home).len()), (0, 0));
        assert!(home.words().is_empty());
        assert_eq!(code(&home.run(&["verify"])), 0);
    }
}

#[test]
fn a_folder_is_its_text_files_and_a_tree_and_only_what_changed_is_added_again() {
    let home = Home::new();
    for (name, text) in
        [("b.rs", "b\nb\n"), ("a/c.md", "c\n"), ("a/empty", ""), ("x.log", "log"), (".secret", "s")]
    {
        write(&home, &format!("src/{name}"), text);
    }
    write(&home, "src/.gitignore", "*.log\n");
    write(&home, "src/logo.png", [137, 80, 0, 1]);
    write(&home, "outside", "outside");
    symlink(home.path().join("outside"), home.path().join("src/link")).unwrap();
    let first = said(&home, &["artifact", "add-folder", "src/"]);
    assert_eq!(
        (&first["added"], &first["same"], &first["folder"]["message"]),
        (&3.into(), &0.into(), &1.into())
    );
    let left: Vec<_> =
        first["leftOut"].as_array().unwrap().iter().map(|left| &left["path"]).collect();
    assert_eq!(left, ["link", "logo.png"]);
    let of: BTreeMap<String, String> = listed(&home)
        .iter()
        .map(|row| (row["name"].as_str().unwrap().to_owned(), id(row)))
        .collect();
    let tree = format!(
        "src/  3 files, 6 B\n  a/\n    c.md  2 B, 1 line  artifact://{}\n    empty  0 B, 0 lines  artifact://{}\n  \
         b.rs  4 B, 2 lines  artifact://{}\n  link  left out: a link, which is not followed\n  \
         logo.png  left out: not text; --binary adds it\n",
        of["a/c.md"], of["a/empty"], of["b.rs"]
    );
    assert_eq!(shown(&home, &of["src"]), tree);
    assert_eq!(home.words(), [format!("Added src (folder, 7 lines): artifact://{}", of["src"])]);

    let again = said(&home, &["artifact", "add-folder", "src"]);
    assert_eq!(
        (&again["added"], &again["same"], &again["folder"]["wasThere"]),
        (&0.into(), &3.into(), &true.into())
    );
    assert_eq!((listed(&home).len(), home.words().len()), (4, 1));

    write(&home, "src/b.rs", "changed\n");
    let third = said(&home, &["artifact", "add-folder", "src"]);
    assert_eq!((&third["added"], &third["same"]), (&1.into(), &2.into()));
    assert_eq!((listed(&home).len(), home.words().len()), (6, 2));
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn a_folder_whose_adding_was_interrupted_goes_on_with_the_same_command() {
    const FILES: u64 = 150;
    let home = Home::new();
    for number in 0..FILES {
        write(&home, &format!("src/{number}"), number.to_string());
    }
    let child = home.spawn(&["artifact", "add-folder", "src"]);
    // Once some are there, not all are by far.
    for _ in 0..1000 {
        if files(&home) > 8 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-INT");
    let broken_off = ended(child);
    assert_eq!(code(&broken_off), 130, "{}", err(&broken_off));
    let before = listed(&home).len() as u64;
    let told = err(&broken_off);
    assert!(
        told.contains(&format!("{before} file")) && told.contains("cleanup --artifacts"),
        "{told}"
    );
    assert!((1..FILES).contains(&before) && home.words().is_empty(), "{before}");
    assert_eq!(code(&home.run(&["verify"])), 0);
    let row = said(&home, &["artifact", "add-folder", "src"]);
    assert_eq!((&row["added"], &row["same"]), (&(FILES - before).into(), &before.into()));
    assert_eq!((listed(&home).len() as u64, home.words().len()), (FILES + 1, 1));
}

#[test]
fn of_a_folder_no_more_is_taken_than_the_limits_allow() {
    let home = Home::new();
    for (name, size) in [("1", 900), ("2", 2000), ("3", 800), ("4", 300), ("5", 5), ("6", 6)] {
        write(&home, &format!("src/{name}"), name.repeat(size));
    }
    write(&home, "src/7", [0, 1]);
    let limits = ["--max-file-size", "1000", "--max-total", "1500", "--max-files", "3", "--binary"];
    let row = said(&home, &[&["artifact", "add-folder", "src"], &limits[..]].concat());
    let left: Vec<_> = row["leftOut"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| (left["path"].as_str().unwrap(), left["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        left,
        [
            ("2", "1.95 KiB, over the limit of 1000 B"),
            ("3", "800 B, over the limit for all together of 1.46 KiB"),
            ("6", "more than 3 files"),
            ("7", "more than 3 files"),
        ]
    );
    let all = said(&home, &["artifact", "add-folder", "src", "--binary"]);
    assert_eq!((&all["added"], &all["same"]), (&4.into(), &3.into()));
    assert!(shown(&home, &id(&all["folder"])).contains("  7  2 B, binary  artifact://"));
    for wrong in [["artifact", "add-folder", "src/1"], ["artifact", "add-folder", "nowhere"]] {
        assert_eq!(code(&home.run(&wrong)), 2);
    }
}

#[test]
fn neither_the_store_nor_its_key_is_ever_added_with_a_folder() {
    let home = Home::new();
    write(&home, "all/a", "a");
    write(&home, "all/appsettings.json", "{}");
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("SOTTOVOCE__CONTEXT__STORAGEROOT", home.path().join("all/store"));
        command.env("SOTTOVOCE__CONTEXT__KEYFILE", home.path().join("all/keys/key"));
        command.current_dir(home.path().join("all"));
        command.output().unwrap()
    };
    assert_eq!(code(&run(&["append", "-r", "user", "hello"])), 0);
    assert_eq!(code(&run(&["artifact", "add-folder", "../all/."])), 0);
    let names = rows(&run(&["artifact", "list", "--json"]));
    let names: Vec<_> = names.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "../all"]);
}

#[test]
fn what_is_found_is_kept_with_number_time_role_and_words() {
    let home = Home::new();
    home.keep(&["Buy MILK", "tea", "milk\nand bread"]);
    home.run(&["--thread", "7", "append", "-r", "assistant", "oat milk"]);
    let found = said(&home, &["artifact", "add-search", "milk", "--limit", "2"]);
    assert_eq!(
        (&found["found"], &found["kept"], &found["message"]),
        (&3.into(), &2.into(), &5.into())
    );
    assert_eq!(
        (&found["type"], &found["name"]),
        (&"search_result".into(), &"Search results: \"milk\"".into())
    );
    let text = shown(&home, &id(&found));
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("4  20") && lines[0].ends_with("Z  assistant: oat milk"),
        "{text}"
    );
    assert!(lines[1].starts_with("3  20") && lines[1].ends_with("Z  user: milk"), "{text}");
    assert_eq!(lines[2..], ["    and bread"]);
    assert_eq!(
        home.words()[4],
        format!(
            "Search results: \"milk\": found 3 messages, the newest 2 of them: artifact://{}",
            id(&found)
        )
    );
    let again = said(&home, &["artifact", "add-search", "milk", "--limit", "2"]);
    assert_eq!((&again["found"], &again["wasThere"]), (&3.into(), &true.into()));
    let thread = said(&home, &["--thread", "7", "artifact", "add-search", "MILK"]);
    assert_eq!(thread["found"], 1);
    let count = home.words().len();
    let none = home.run(&["artifact", "add-search", "coffee"]);
    assert_eq!(code(&none), 3, "{}", err(&none));
    assert_eq!(code(&home.run(&["artifact", "add-search", " "])), 2);
    assert_eq!(home.words().len(), count);
    let nothing = Home::new();
    assert_eq!(code(&nothing.run(&["artifact", "add-search", "x"])), 3);
    assert!(!nothing.store().exists() && !nothing.key().exists());
}

#[test]
fn artifacts_are_listed_and_shown_in_part_and_byte_by_byte() {
    let home = Home::new();
    let nothing = home.run(&["artifact", "list"]);
    assert_eq!((code(&nothing), out(&nothing).as_str()), (0, ""));
    let text = "red \u{1b}[31m\u{7} é\n";
    write(&home, "a b", text);
    let added = said(&home, &["artifact", "add", "a b"]);
    let table = out(&done(&home, &["artifact", "list"]));
    assert!(
        table.contains(short(&id(&added)))
            && table.contains("  a b")
            && !table.contains(&id(&added)),
        "{table}"
    );
    assert_eq!(listed(&home)[0]["size"], text.len());
    let show = done(&home, &["artifact", "show", short(&id(&added))]);
    assert_eq!(out(&show), text, "a pipe gets the bytes as they are");
    assert!(err(&show).contains("a b (file, 1 line): artifact://"), "{}", err(&show));
    for (range, part) in
        [("0-2", "red"), ("4-", text.strip_prefix("red ").unwrap()), ("0-9999", text), ("3-3", " ")]
    {
        let part_shown = done(&home, &["artifact", "show", &id(&added), "--bytes", range]);
        assert_eq!(out(&part_shown), part, "{range}");
    }
    let row = said(&home, &["artifact", "show", &id(&added)]);
    assert_eq!((&row["text"], &row["name"]), (&text.into(), &"a b".into()));
    for (wrong, exit) in [(["--bytes", "99-"], 2), (["--bytes", "9-3"], 2)] {
        let refused = home.run(&[&["artifact", "show", &id(&added)], &wrong[..]].concat());
        assert_eq!(code(&refused), exit, "{}", err(&refused));
    }
    let unknown = home.run(&["artifact", "show", "zz"]);
    assert_eq!(code(&unknown), 1);
    assert!(
        err(&unknown).contains(&format!("the nearest are {}", id(&added))),
        "{}",
        err(&unknown)
    );
}

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
    // Nothing but what was there, and the copy.
    let mut names: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".cache", ".config", "copy", "dangling", "long", "other"]);
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
fn cleanup_names_what_no_message_refers_to_and_deletes_it_only_when_told() {
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
    // The folder's message keeps its files; once it is forgotten, all of it goes at once.
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
    assert!(err(&unasked).contains("1 artifact, its title and tags"), "{}", err(&unasked));
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
    done(&home, &["stats", "--plot", "plot.svg"]);
    done(&home, &["conversations", "rename", "canary"]);
    assert!(unclean(&home).is_empty());
    let svg = fs::read_to_string(home.path().join("plot.svg")).unwrap();
    assert!(svg.contains("messages a day") && !svg.contains("canary") && !svg.contains("coal"));
    let ids: Vec<String> = listed(&home).iter().map(id).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    done(&home, &[&["artifact", "delete", "--yes"], &ids[..]].concat());
    assert_eq!(files(&home), 0);
    assert!(unclean(&home).is_empty());
    let verbose =
        home.run(&["--verbose", "artifact", "add", "plain/canary.txt", "--name", "x", "--json"]);
    assert!(!err(&verbose).contains("canary"), "{}", err(&verbose));
}
