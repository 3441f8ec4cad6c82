//! The commands as a user or a script runs them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

mod append;
mod artifact;
mod artifact_folder;
mod artifact_gone;
mod ask;
mod backup;
mod chat;
mod columns;
mod context;
mod contexts;
mod conversations;
mod device;
mod doctor;
mod doctor_fix;
mod documented;
mod forget;
mod forget_everything;
mod golden;
mod help;
mod import;
mod import_many;
mod interrupted;
mod keys;
mod limits;
mod local_file;
mod many_conversations;
mod models;
#[path = "../../../../tests/common/ollama.rs"]
mod ollama;
mod pack;
mod page;
mod persona;
mod privacy;
mod reading;
mod remotes;
mod repair;
mod scopes;
mod search;
mod serve;
mod settings;
mod shapes;
mod shown;
mod shrink;
mod sync;
mod tail;
mod talk;
mod team;
mod terminal;
mod up;
mod verify;
mod waiting_lines;
mod whose;

/// A home folder for each test, so that nothing of the user's is read or written.
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
            // No server ever listens there.
            .env("SOTTOVOCE__LANGUAGEMODEL__BASEURL", "http://127.0.0.1:1")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs with lines on standard input.
    fn feed(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
        let mut child = self.spawn(arguments);
        // It may exit before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        child.wait_with_output().unwrap()
    }

    /// Starts a command with pipes for all streams.
    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Stores messages with these texts, one line each.
    fn keep(&self, words: &[&str]) {
        let lines: String = words.iter().map(|words| user(words)).collect();
        let fed = self.feed(&["append"], lines);
        assert_eq!(code(&fed), 0, "{}", err(&fed));
    }

    /// The texts of all messages, in order.
    fn words(&self) -> Vec<String> {
        let tail = self.run(&["tail", "--json", "-n", "1000000"]);
        let word = |row: &Value| row["content"].as_str().unwrap().to_owned();
        rows(&tail).iter().map(word).collect()
    }

    fn store(&self) -> PathBuf {
        self.path().join(".cache/sottovoce/Conversation")
    }

    /// The user's own settings.
    fn settings(&self) -> PathBuf {
        self.path().join(".config/sottovoce/appsettings.json")
    }

    /// Writes the user's own settings.
    fn configure(&self, settings: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.settings().parent().unwrap()).unwrap();
        std::fs::write(self.settings(), settings).unwrap();
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

/// Copies a folder with all that is in it to a place where nothing is.
fn copied(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
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

/// Waits for the end, with a time limit.
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
    parsed(output)
}

/// The JSON lines of a command that found something.
fn parsed(output: &Output) -> Vec<Value> {
    out(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_first_question_makes_the_key_and_seals_it_without_a_model_too() {
    let home = Home::new();
    let asked = home.run(&["ask", "--show-request", "What's the weather like tomorrow?"]);
    assert_eq!(code(&asked), 6, "{}", err(&asked));
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

    let again = home.run(&["--json", "ask", "--show-request", "And", "the", "day", "after?"]);
    let row: Value = serde_json::from_str(&out(&again)).unwrap();
    assert_eq!(row["seq"], 2);
    assert_eq!(row["request"]["messages"].as_array().unwrap().len(), 3);
    assert!(!err(&again).contains("key file"));
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
