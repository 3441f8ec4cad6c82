//! The commands as a person or a script runs them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

mod append;
mod doctor;
mod forget;
mod settings;
mod shown;
mod tail;

/// A home folder of its own, so that nothing of the user's is read or written.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sottovoce"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs with lines on standard input.
    fn feed(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
        let mut child = self.spawn(arguments);
        // It may have had enough before all is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        child.wait_with_output().unwrap()
    }

    /// Starts it with pipes all around.
    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Keeps messages with these words, one line each.
    fn keep(&self, words: &[&str]) {
        let lines: String = words.iter().map(|words| user(words)).collect();
        let fed = self.feed(&["append"], lines);
        assert_eq!(code(&fed), 0, "{}", err(&fed));
    }

    /// The words of all messages, in order.
    fn words(&self) -> Vec<String> {
        let tail = self.run(&["tail", "--json", "-n", "1000000"]);
        let word = |row: &Value| row["content"].as_str().unwrap().to_owned();
        rows(&tail).iter().map(word).collect()
    }

    fn store(&self) -> PathBuf {
        self.path().join(".cache/sottovoce/Conversation")
    }

    fn key(&self) -> PathBuf {
        self.path().join(".config/sottovoce/key")
    }

    fn records(&self) -> Vec<PathBuf> {
        let mut records: Vec<_> = std::fs::read_dir(self.store())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
            .collect();
        records.sort();
        records
    }
}

/// A line that `append` takes.
fn user(words: &str) -> String {
    format!("{}\n", serde_json::json!({"role": "user", "content": words}))
}

/// Sends a signal.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits for the end, but not for ever.
fn ended(mut child: Child) -> Output {
    for _ in 0..400 {
        if child.try_wait().unwrap().is_some() {
            return child.wait_with_output().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    panic!("still running after 20 seconds");
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    assert_eq!(code(output), 0, "{}", err(output));
    out(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_first_question_makes_the_key_seals_it_and_prints_the_request() {
    let home = Home::new();
    let asked = home.run(&["ask", "What's the weather like tomorrow?"]);
    assert_eq!(code(&asked), 0, "{}", err(&asked));
    assert!(home.key().is_file());
    assert!(err(&asked).contains(home.key().to_str().unwrap()), "{}", err(&asked));
    assert_eq!(home.records().len(), 1);
    let sealed = std::fs::read_to_string(&home.records()[0]).unwrap();
    assert!(sealed.starts_with(r#"{"v":1,"alg":"AES-256-GCM","#) && !sealed.contains("weather"));
    let request: Value = serde_json::from_str(&out(&asked)).unwrap();
    let messages = request["messages"].as_array().unwrap();
    assert!(
        messages[1]["content"].as_str().unwrap().ends_with("] What's the weather like tomorrow?")
    );

    let again = home.run(&["--json", "ask", "And", "the", "day", "after?"]);
    let row: Value = serde_json::from_str(&out(&again)).unwrap();
    assert_eq!(row["id"], 2);
    assert_eq!(row["request"]["messages"].as_array().unwrap().len(), 3);
    assert!(!err(&again).contains("key file"));
}

#[test]
fn what_tail_prints_can_be_appended_to_another_store() {
    let (one, other) = (Home::new(), Home::new());
    let lines = "{\"role\":\"user\",\"content\":\"a \\\"quoted\\\" line\\nand another\",\"timestampUtc\":\"2023-05-08T13:56:00Z\",\"metadata\":{\"speaker\":\"Anna\"}}\n\n{\"role\":\"ASSISTANT\",\"content\":\"b\",\"timestampUtc\":\"2023-05-08T13:56:20.5Z\"}\n";
    let kept = rows(&one.feed(&["append", "--json"], lines));
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[0]["id"], 1);
    let tail = one.run(&["tail", "--json"]);
    assert_eq!(rows(&tail), kept);
    let copied = other.feed(&["append"], out(&tail));
    assert_eq!(code(&copied), 0, "{}", err(&copied));
    assert_eq!(rows(&other.run(&["tail", "--json", "-n", "9"])), kept);
}

#[test]
fn a_bad_line_is_named_and_the_lines_before_it_are_kept() {
    let home = Home::new();
    let lines = "{\"role\":\"user\",\"content\":\"one\"}\n{\"role\":\"user\",\"content\":\"two\"}\n{\"role\":\"user\",\"content\":[\"canary\"]}\n";
    let fed = home.feed(&["append"], lines);
    assert_eq!(code(&fed), 2);
    assert!(err(&fed).contains("line 3") && err(&fed).contains("content"), "{}", err(&fed));
    assert!(err(&fed).contains("kept 2 messages"), "{}", err(&fed));
    assert!(!err(&fed).contains("canary"));
    assert_eq!(rows(&home.run(&["tail", "--json"])).len(), 2);
}

#[test]
fn each_printed_line_is_durable_when_the_program_is_killed() {
    let home = Home::new();
    assert_eq!(code(&home.run(&["init"])), 0);
    let mut child = home
        .command(&["append", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::spawn(move || {
        for n in 0..100_000 {
            if writeln!(input, "{{\"role\":\"user\",\"content\":\"message {n}\"}}").is_err() {
                break;
            }
        }
    });
    let mut acknowledged = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let row: Value = serde_json::from_str(&line.unwrap()).unwrap();
        acknowledged = row["id"].as_u64().unwrap();
        if acknowledged == 50 {
            child.kill().unwrap();
            break;
        }
    }
    child.wait().unwrap();
    let kept = rows(&home.run(&["tail", "--json", "-n", "100000"]));
    assert!(kept.len() as u64 >= acknowledged);
    for (n, row) in kept.iter().enumerate() {
        assert_eq!(row["content"], format!("message {n}"));
    }
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn forgetting_asks_first_and_then_leaves_nothing() {
    let home = Home::new();
    for text in ["one", "two", "three", "four"] {
        assert_eq!(code(&home.run(&["append", "--role", "user", text])), 0);
    }
    let unasked = home.run(&["forget", "2"]);
    assert_eq!(code(&unasked), 2);
    assert!(err(&unasked).contains("--yes"));
    assert_eq!(home.records().len(), 4);
    assert_eq!(code(&home.run(&["forget", "2-3", "--yes"])), 0);
    assert_eq!(code(&home.run(&["forget", "--last", "--yes"])), 0);
    let left = rows(&home.run(&["tail", "--json"]));
    assert_eq!(left.iter().map(|row| &row["content"]).collect::<Vec<_>>(), ["one"]);
    assert_eq!(home.records().len(), 2, "one message and one forget record");
    assert_eq!(code(&home.run(&["verify"])), 0);
    assert_eq!(code(&home.run(&["forget", "2", "--yes"])), 2, "it is gone already");
}

#[test]
fn verify_tells_by_its_exit_code_and_names_what_it_found() {
    let home = Home::new();
    for text in ["one", "two", "three"] {
        home.run(&["append", "--role", "user", text]);
    }
    assert_eq!(code(&home.run(&["verify"])), 0);
    std::fs::remove_file(&home.records()[1]).unwrap();
    let found = home.run(&["verify", "--json"]);
    assert_eq!(code(&found), 3);
    let rows: Vec<Value> =
        out(&found).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows[0]["finding"], "missing");
    assert_eq!(rows[0]["seqs"], serde_json::json!([2, 2]));
    assert_eq!(rows.last().unwrap()["sound"], false);
}

#[test]
fn a_wrong_or_lost_key_is_an_error_of_its_own_and_changes_nothing() {
    let home = Home::new();
    home.run(&["append", "--role", "user", "one"]);
    let before = std::fs::read(&home.records()[0]).unwrap();
    let key = std::fs::read(home.key()).unwrap();

    std::fs::remove_file(home.key()).unwrap();
    for arguments in [&["ask", "two"][..], &["init"], &["tail"], &["prompt", "x"]] {
        let lost = home.run(arguments);
        assert_eq!(code(&lost), 4, "{arguments:?}: {}", err(&lost));
        assert!(!home.key().exists(), "{arguments:?} made a key for a store that has one");
    }
    let other = home
        .command(&["ask", "two"])
        .env("SOTTOVOCE__CONTEXT__ENCRYPTIONKEY", "another key of this house")
        .output()
        .unwrap();
    assert_eq!(code(&other), 4, "{}", err(&other));
    assert_eq!(home.records().len(), 1);
    assert_eq!(std::fs::read(&home.records()[0]).unwrap(), before);

    std::fs::write(home.key(), key).unwrap();
    assert_eq!(rows(&home.run(&["tail", "--json"])).len(), 1);
}

#[test]
fn a_configuration_that_cannot_be_used_says_which_key_and_file() {
    let home = Home::new();
    std::fs::write(home.path().join("appsettings.json"), r#"{"Context":{"LstN":3}}"#).unwrap();
    for arguments in [&["ask", "x"][..], &["tail"], &["config"]] {
        let refused = home.run(arguments);
        assert_eq!(code(&refused), 5);
        let said = err(&refused);
        assert!(said.contains("LstN") && said.contains("Context.LastN"), "{said}");
        assert!(said.starts_with("error: ") && said.contains("\nhelp: "), "{said}");
    }
    assert_eq!(code(&home.run(&["doctor"])), 3);
}

#[test]
fn a_preview_keeps_nothing_and_makes_nothing() {
    let home = Home::new();
    let shown = home.run(&["prompt", "--explain", "hello"]);
    assert_eq!(code(&shown), 0, "{}", err(&shown));
    assert!(err(&shown).contains("the system prompt"));
    assert!(!home.store().exists() && !home.key().exists());
    for renderer in ["ollama-chat", "ollama-generate", "openai-chat"] {
        let shown = home.run(&["prompt", "--json", "--renderer", renderer, "hello"]);
        assert_eq!(rows(&shown).len(), 1);
    }
    let text = out(&home.run(&["prompt", "--renderer", "text", "hello"]));
    assert!(
        text.starts_with("Current time: ") && text.ends_with("User: hello\nAssistant:\n"),
        "{text}"
    );
}

#[test]
fn pipes_get_no_colours_and_terminals_no_control_characters() {
    let home = Home::new();
    home.run(&["append", "--role", "user", "red \u{1b}[31malert\u{7}"]);
    let tail = home.run(&["tail"]);
    assert!(!out(&tail).contains('\u{1b}') && !out(&tail).contains('\u{7}'));
    assert!(out(&tail).contains("alert"));
    for arguments in [&["--help"][..], &["doctor"], &["config"], &["nonsense"]] {
        let shown = home.run(arguments);
        assert!(!out(&shown).contains('\u{1b}') && !err(&shown).contains('\u{1b}'));
    }
}

#[test]
fn doctor_names_what_is_wrong_and_the_command_that_mends_it() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.run(&["ask", "x"]);
    let well = home.run(&["doctor", "--json"]);
    assert_eq!(code(&well), 0);
    assert!(out(&well).contains("cache"));
    std::fs::set_permissions(home.key(), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::set_permissions(home.store(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ill = home.run(&["doctor"]);
    assert_eq!(code(&ill), 3);
    for mend in ["chmod 600", "chmod 700"] {
        assert!(out(&ill).contains(mend), "{}", out(&ill));
    }
}

#[test]
fn verbose_output_has_no_words() {
    let home = Home::new();
    let said = home.run(&["--verbose", "--json", "append", "--role", "user", "canary sentence"]);
    assert!(err(&said).contains("DEBUG"), "{}", err(&said));
    assert!(!err(&said).contains("canary"));
}

#[test]
fn completions_are_made_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let made = home.run(&["completions", shell]);
        assert!(out(&made).contains("verify"), "{shell}");
    }
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let home = Home::new();
    let lines: String =
        (0..2000).map(|n| format!("{{\"role\":\"user\",\"content\":\"{n}\"}}\n")).collect();
    assert_eq!(code(&home.feed(&["append"], lines)), 0);
    let mut child = home
        .command(&["tail", "-n", "2000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut reader = BufReader::with_capacity(64, child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let ended = child.wait_with_output().unwrap();
    assert!(ended.stderr.is_empty(), "{}", err(&ended));
    assert_eq!(code(&ended), 0);
}
