//! A chat on a terminal, with typed keys.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use super::*;
use ollama::{Answer, Ask};
use talk::{Pipe, Talk};

pub(super) const CTRL_C: &str = "\u{3}";
pub(super) const CTRL_D: &str = "\u{4}";

/// A terminal with a chat on it.
pub(super) struct Terminal {
    keys: File,
    line: OwnedFd,
    pub(super) screen: Pipe,
    child: Child,
    before: Termios,
}

impl Terminal {
    /// `None` if the program that provides a terminal is missing.
    pub(super) fn chat(talk: &Talk, arguments: &[&str]) -> Option<Self> {
        let mut terminal = Self::running(&talk.command(arguments))?;
        terminal.prompt();
        Some(terminal)
    }

    /// The same before the first read of the screen.
    pub(super) fn chat_from_the_start(talk: &Talk, arguments: &[&str]) -> Option<Self> {
        Self::running(&talk.command(arguments))
    }

    /// A command on a terminal of unknown width.
    pub(super) fn running(plain: &Command) -> Option<Self> {
        Self::sized(plain, 0)
    }

    /// A command on a terminal of so many columns.
    pub(super) fn sized(plain: &Command, columns: u16) -> Option<Self> {
        let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&own).unwrap();
        unlockpt(&own).unwrap();
        let name = ptsname(&own, Vec::new()).unwrap();
        let line =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
                .unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).unwrap();
        let before = tcgetattr(&line).unwrap();
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", env!("CARGO_BIN_EXE_sottovoce")])
            .args(plain.get_args())
            .current_dir(plain.get_current_dir().unwrap())
            .env_clear()
            .env("TERM", "xterm")
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(line.try_clone().unwrap())
            .stdout(line.try_clone().unwrap())
            .stderr(line.try_clone().unwrap());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let child = match command.env("PATH", path).spawn() {
            Ok(child) => child,
            Err(error) => {
                eprintln!("SKIPPED: there is no setsid to give a terminal to a program: {error}");
                return None;
            }
        };
        let keys = File::from(own);
        let screen = Pipe::new(keys.try_clone().unwrap());
        Some(Self { keys, line, screen, child, before })
    }

    pub(super) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the prompt, and returns the output until then.
    pub(super) fn prompt(&mut self) -> String {
        let shown = self.screen.until("> ");
        self.until_edited(true);
        shown
    }

    /// Waits until the editor reads keys, or until it no longer does and Ctrl-C is a signal.
    fn until_edited(&self, edited: bool) {
        for _ in 0..2000 {
            if tcgetattr(&self.line).unwrap().local_modes.contains(LocalModes::ISIG) != edited {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the terminal's mode did not change");
    }

    /// Waits for the end, and returns the exit code. The terminal's mode must be restored.
    pub(super) fn ended(self) -> i32 {
        let ended = ended(self.child);
        let after = tcgetattr(&self.line).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        code(&ended)
    }
}

#[test]
fn a_passphrase_is_asked_for_without_being_shown() {
    const WORDS: &str = "canary of this house";
    let home = Home::new();
    let start = |arguments: &[&str]| Terminal::running(&home.command(arguments));
    let Some(mut init) = start(&["init", "--passphrase"]) else { return };
    init.screen.until("New passphrase: ");
    init.press(&format!("{WORDS}\r"));
    init.screen.until("The same again: ");
    init.press("something else\r");
    init.screen.until("not the same");
    assert_eq!(init.ended(), 2);
    assert!(!home.store().exists());

    let mut init = start(&["init", "--passphrase"]).unwrap();
    for question in ["New passphrase: ", "The same again: "] {
        init.screen.until(question);
        init.press(&format!("{WORDS}\r"));
    }
    let shown = init.screen.until("back it up");
    assert!(!shown.contains("canary"), "{shown}");
    assert_eq!(init.ended(), 0);

    for (typed, code) in [(format!("{WORDS}\r"), 0), ("wrong\r".into(), 4), (CTRL_C.into(), 130)] {
        let mut tail = start(&["tail"]).unwrap();
        tail.screen.until("Passphrase of ");
        tail.screen.until(": ");
        tail.press(&typed);
        // The terminal's mode must be restored, even after Ctrl-C.
        assert_eq!(tail.ended(), code, "{typed:?}");
    }
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

#[test]
fn what_is_typed_is_answered_and_stands_nowhere_in_the_clear() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["canary \u{1b}]0;title\u{7}", "answer"]));
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("canary question\r");
    let shown = chat.screen.until("first word after");
    assert!(shown.contains("canary \u{fffd}]0;title\u{fffd}answer\r\n"), "{shown:?}");
    chat.prompt();
    chat.press(&format!("canary given up{CTRL_C}"));
    chat.prompt();
    // The arrow key recalls the last line.
    chat.press("\u{1b}[A\r");
    chat.screen.until("Fine.");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    let sealed =
        ["canary question", "canary \u{1b}]0;title\u{7}answer", "canary question", "Fine."];
    assert_eq!(talk.home.words(), sealed);
    let mut files = Vec::new();
    files_below(talk.home.path(), &mut files);
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|some| some == b"canary"), "{}", file.display());
    }
}

#[test]
fn ctrl_c_stops_the_answer_and_gives_the_prompt_back() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It will "]).silence());
    talk.stub.next(Answer::refusal(500, "broken"));
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("Tomorrow?\r");
    chat.screen.until("It will ");
    chat.press(CTRL_C);
    let shown = chat.screen.until("what was shown is kept");
    assert!(shown.contains("\r\n"), "on a line of its own: {shown:?}");
    talk.stub.wait_until_closed_early();
    for _ in 0..2 {
        chat.prompt();
        chat.press(CTRL_C);
    }
    chat.prompt();
    chat.press("And now?\r");
    chat.screen.until("status 500");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0, "whoever sat there has seen it");
    assert_eq!(talk.home.words(), ["Tomorrow?", "It will ", "And now?"]);
}

#[test]
fn a_model_that_is_slow_to_load_holds_nobody_back() {
    let talk = Talk::new();
    talk.stub.always_to(Ask::WarmUp, Answer::silent());
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    talk.stub.wait_for(Ask::WarmUp, 1);
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    talk.stub.wait_until_closed_early();

    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    talk.stub.wait_for(Ask::WarmUp, 2);
    chat.press("Hello\r");
    chat.screen.until("Fine.");
    chat.prompt();

    let loading = Talk::new();
    loading.stub.always_to(Ask::Load, Answer::silent());
    let Some(mut chat) = Terminal::chat(&loading, &["chat"]) else { return };
    loading.stub.wait_for(Ask::Load, 1);
    chat.press("Hello\r");
    chat.until_edited(false);
    // The editor hands the line to the conversation.
    std::thread::sleep(Duration::from_millis(200));
    chat.press(CTRL_C);
    chat.screen.until("interrupted; the utterance is kept");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    assert_eq!(loading.home.words(), ["Hello"]);
}

#[test]
fn a_chat_without_a_model_says_so_before_it_greets_and_keeps_what_is_said() {
    let talk = Talk::new();
    let mut command = talk.command(&["chat"]);
    command.env("SOTTOVOCE__LANGUAGEMODEL__BASEURL", "http://127.0.0.1:1");
    let Some(mut chat) = Terminal::running(&command) else { return };
    let shown = chat.prompt();
    let parts =
        ["no model is running at http://127.0.0.1:1", "ollama serve", "is kept", "/help lists"];
    let at = parts.map(|part| shown.find(part).unwrap_or_else(|| panic!("{part}: {shown}")));
    assert!(at.is_sorted(), "{shown}");
    chat.press("Hello\r");
    chat.screen.until("/retry asks again");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    assert_eq!(talk.home.words(), ["Hello"]);
}

#[test]
fn sigterm_ends_a_chat_that_waits_for_a_key_and_gives_the_terminal_back() {
    let talk = Talk::new();
    let Some(chat) = Terminal::chat(&talk, &["chat"]) else { return };
    signal(&chat.child, "-TERM");
    assert_eq!(chat.ended(), 130);
}

#[test]
fn a_terminal_that_is_closed_takes_nothing_along_that_was_shown() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It will "]).silence());
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("Tomorrow?\r");
    chat.screen.until("It will ");
    signal(&chat.child, "-HUP");
    assert_eq!(chat.ended(), 130);
    assert_eq!(talk.home.words(), ["Tomorrow?", "It will "]);
    talk.stub.wait_until_closed_early();
}

#[test]
fn forgetting_shows_what_goes_and_asks() {
    let talk = Talk::new();
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("Hello\r");
    chat.screen.until("Fine.");
    for (answer, said) in
        [("n\r", "nothing was deleted"), ("", "nothing was deleted"), ("y\r", "deleted 2 messages")]
    {
        chat.prompt();
        chat.press("/forget last\r");
        let shown = chat.screen.until("Really delete 2 messages for ever? [y/N] ");
        assert!(shown.contains("Hello") && shown.contains("Fine."), "{shown:?}");
        chat.until_edited(true);
        chat.press(if answer.is_empty() { CTRL_C } else { answer });
        chat.screen.until(said);
    }
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    assert!(talk.home.words().is_empty());
}

#[test]
fn forgetting_in_a_chat_shows_originals_and_counts_them() {
    let talk = Talk::new();
    talk.home.keep(&["first words"]);
    let saved = rows(&talk.home.run(&["snapshot", "save", "--json"])).remove(0);
    talk.home.run(&["clear"]);
    talk.home.run(&["snapshot", "restore", saved["id"].as_str().unwrap()]);
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("/forget last\r");
    let asked =
        "Really delete 2 messages (1 asked for, 1 original) for ever; also delete 1 snapshot?";
    let shown = chat.screen.until(asked);
    assert_eq!(shown.matches("first words").count(), 2, "{shown:?}");
    chat.until_edited(true);
    chat.press("y\r");
    chat.screen.until("deleted 2 messages for ever (1 asked for, 1 original)");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    assert!(talk.home.words().is_empty());
}

/// An import that asks for keys on a terminal.
fn import(home: &Home) -> Option<Terminal> {
    let folder =
        format!("{}/../sottovoce-import/tests/fixtures/elara/mixed", env!("CARGO_MANIFEST_DIR"));
    let mut terminal =
        Terminal::running(&home.command(&["import", "elara", &folder, "--ask-key"]))?;
    terminal.screen.until("): ");
    Some(terminal)
}

#[test]
fn keys_that_are_asked_for_are_not_shown() {
    let home = Home::new();
    let Some(mut terminal) = import(&home) else { return };
    for key in ["test-key", "kitchen-hub-2"] {
        terminal.press(&format!("{key}\n"));
        assert!(!terminal.screen.until("): ").contains(key));
    }
    terminal.press("\n");
    assert!(terminal.screen.until("forms").contains("imported 11 messages"));
    assert_eq!(terminal.ended(), 3);
}

#[test]
fn giving_up_at_a_key_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    let Some(mut terminal) = import(&home) else { return };
    terminal.press("test");
    terminal.press(CTRL_C);
    assert_eq!(terminal.ended(), 130);
    assert!(!home.store().exists());
}

#[test]
fn an_artifact_on_a_terminal_steers_nothing_and_binary_is_refused() {
    let home = Home::new();
    let add = |bytes: &[u8]| {
        let added = rows(&home.feed(&["artifact", "add", "-", "--json"], bytes)).remove(0);
        added["id"].as_str().unwrap().to_owned()
    };
    let (text, binary) = (add("red \u{1b}[31m\u{9b}é the end\n".as_bytes()), add(&[0, 27, 7]));
    let start = |id: &str| Terminal::running(&home.command(&["artifact", "show", id]));
    let Some(mut shown) = start(&text) else { return };
    let screen = shown.screen.until("the end");
    assert!(screen.contains("red \u{fffd}[31m\u{fffd}é"), "{screen:?}");
    assert_eq!(shown.ended(), 0);
    let mut refused = start(&binary).unwrap();
    refused.screen.until("is no text");
    assert_eq!(refused.ended(), 2);
}

#[test]
fn deleting_and_exporting_an_artifact_ask_and_tell_who_refers_to_it() {
    let home = Home::new();
    let added = rows(&home.feed(&["artifact", "add", "-", "--json"], "words")).remove(0);
    let id = added["id"].as_str().unwrap();
    for (answer, said) in [("n\r", "nothing was deleted"), ("y\r", "deleted 1 artifact for ever")] {
        let Some(mut delete) = Terminal::running(&home.command(&["artifact", "delete", id])) else {
            return;
        };
        let shown = delete.screen.until("[y/N]");
        assert!(
            shown.contains("message 1 refers to it") && shown.contains(id.get(..8).unwrap()),
            "{shown:?}"
        );
        if answer.starts_with('y') {
            let export = ["artifact", "export", id, "copy"];
            let mut export = Terminal::running(&home.command(&export)).unwrap();
            export.screen.until("can read it without the key. [y/N]");
            export.press("n\r");
            export.screen.until("nothing was written");
            assert_eq!(export.ended(), 0);
            assert!(!home.path().join("copy").exists());
        }
        delete.press(answer);
        delete.screen.until(said);
        assert_eq!(delete.ended(), 0);
    }
}

#[test]
fn cleanup_names_the_artifacts_that_it_would_delete_and_asks() {
    let home = Home::new();
    let fed = home.feed(&["artifact", "add", "-", "--no-message", "--name", "old"], "words");
    assert_eq!(code(&fed), 0, "{}", err(&fed));
    for (answer, said) in
        [("n\r", "no message refers to 1 artifact"), ("y\r", "deleted 1 artifact")]
    {
        let start = Terminal::running(&home.command(&["cleanup", "--artifacts"]));
        let Some(mut cleanup) = start else { return };
        let shown = cleanup.screen.until("Really delete 1 artifact of default for ever? [y/N]");
        assert!(shown.contains("old"), "{shown:?}");
        cleanup.press(answer);
        cleanup.screen.until(said);
        assert_eq!(cleanup.ended(), 0);
    }
}
