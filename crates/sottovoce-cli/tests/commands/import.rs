use super::*;

fn fixtures(folder: &str) -> String {
    format!("{}/../sottovoce-import/tests/fixtures/elara/{folder}", env!("CARGO_MANIFEST_DIR"))
}

/// The rows of refused files, and the summary.
fn told(output: &Output) -> (Vec<Value>, Value) {
    let mut rows: Vec<Value> =
        out(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = rows.pop().unwrap();
    (rows, summary)
}

/// Elara's default folder in a home, with `n` messages.
pub(super) fn usual(home: &Home, n: usize) -> PathBuf {
    let folder = home.path().join(".cache/ElaraAi/Conversation");
    std::fs::create_dir_all(&folder).unwrap();
    for at in 0..n {
        let record = serde_json::json!({
            "Role": at % 2, "Content": format!("m{at}"), "Metadata": null,
            "TimestampUtc": format!("2025-08-24T{:02}:{:02}:00+00:00", at / 60, at % 60),
        });
        std::fs::write(folder.join(format!("x_{at:04}_y.json")), record.to_string()).unwrap();
    }
    folder
}

#[test]
fn elaras_usual_folder_is_found_and_taken_once() {
    let home = Home::new();
    let folder = usual(&home, 3);
    home.keep(&["newer"]);
    let dry = home.run(&["import", "elara", "--dry-run"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    assert!(out(&dry).contains("would import 3 messages"), "{}", out(&dry));
    assert_eq!(home.words(), ["newer"]);

    let taken = home.run(&["import", "elara"]);
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert!(err(&taken).contains(folder.to_str().unwrap()), "{}", err(&taken));
    assert_eq!(out(&taken), "imported 3 messages; forms: 3 bare\n");
    assert_eq!(home.words(), ["m0", "m1", "m2", "newer"]);

    home.run(&["forget", "--yes", "3"]);
    let again = home.run(&["import", "elara"]);
    assert_eq!(
        out(&again),
        "imported 0 messages, 2 already there, 1 forgotten here; forms: 3 bare\n"
    );
    assert_eq!(home.words(), ["m0", "m2", "newer"]);
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn a_dry_run_before_the_first_use_makes_no_key() {
    let home = Home::new();
    usual(&home, 1);
    let dry = home.run(&["import", "elara", "--dry-run"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    assert!(!home.key().exists() && !home.store().exists());
}

#[test]
fn json_output_lists_every_refused_file_and_the_exit_code_says_so() {
    let home = Home::new();
    let imported = home
        .command(&["--json", "import", "elara", &fixtures("mixed"), "--key-env", "ELARA_KEY"])
        .env("ELARA_KEY", "test-key")
        .output()
        .unwrap();
    assert_eq!(code(&imported), 3, "{}", err(&imported));
    let (refused, summary) = told(&imported);
    let reasons: Vec<_> = refused.iter().map(|row| row["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["undecryptable", "undecryptable", "corrupt", "undecryptable"]);
    assert_eq!(refused[0]["why"], "wrong key or damaged");
    assert_eq!((&summary["taken"], &summary["refused"]), (&9.into(), &4.into()));
    assert_eq!(
        summary["forms"],
        serde_json::json!({"bare": 1, "design": 1, "plaintext": 2, "v1": 1, "v2": 4})
    );

    // A second key, from a file: only the refused messages are imported now.
    let keys = home.path().join("keys");
    std::fs::write(&keys, "test-key\r\n\nkitchen-hub-2\n").unwrap();
    let keys = keys.to_str().unwrap();
    let more = home.run(&["--json", "import", "elara", &fixtures("mixed"), "--key-file", keys]);
    let (refused, summary) = told(&more);
    assert_eq!((code(&more), refused.len()), (3, 2));
    assert_eq!((&summary["taken"], &summary["alreadyThere"]), (&2.into(), &9.into()));
    assert_eq!(home.words().len(), 11);
}

#[test]
fn keys_come_from_a_pipe_too_and_never_show() {
    let home = Home::new();
    let arguments = ["--verbose", "import", "elara", &fixtures("v1"), "--key-file", "-"];
    let imported = home.feed(&arguments, "test-key\n");
    assert_eq!(code(&imported), 0, "{}", err(&imported));
    assert!(out(&imported).contains("imported 10 messages"));
    assert!(!err(&imported).contains("test-key") && !out(&imported).contains("test-key"));
}

#[test]
fn keys_that_are_not_there_are_a_mistake_of_the_command() {
    let home = Home::new();
    usual(&home, 1);
    let empty = home.path().join("empty");
    std::fs::write(&empty, "\n").unwrap();
    for arguments in [
        &["--key-env", "NOT_SET"][..],
        &["--key-file", "absent"],
        &["--key-file", empty.to_str().unwrap()],
    ] {
        let arguments = [&["import", "elara"], arguments].concat();
        let refused = home.run(&arguments);
        assert_eq!(code(&refused), 2, "{arguments:?}: {}", err(&refused));
    }
    let absent = home.run(&["import", "elara", "nowhere"]);
    assert_eq!(code(&absent), 1, "{}", err(&absent));
    assert!(!home.store().exists());
}

#[test]
fn an_import_that_is_interrupted_is_gone_on_with() {
    let home = Home::new();
    usual(&home, 1400);
    let import = home.spawn(&["import", "elara"]);
    for _ in 0..2000 {
        if home.store().exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&import, "-INT");
    // It may have ended by then, or have started too late to listen.
    let _ = import.wait_with_output().unwrap();
    assert_eq!(code(&home.run(&["import", "elara"])), 0);
    assert_eq!(home.words(), (0..1400).map(|n| format!("m{n}")).collect::<Vec<_>>());
}

#[test]
fn a_file_whose_name_is_not_utf_8_is_said_to_be_there() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let name = OsStr::from_bytes(b"chat\xff.jsonl");
    std::fs::write(home.path().join(name), user("hello")).unwrap();
    for system in ["jsonl", "openai", "chorus", "mcp-llm-generator", "backup"] {
        let refused = home.command(&["import", system]).arg(name).output().unwrap();
        assert_ne!(code(&refused), 0);
        let said = err(&refused);
        assert!(said.contains("is not UTF-8"), "{system}: {said}");
    }
}
