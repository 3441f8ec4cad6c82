//! Help, version and shell completions.

use super::*;
use ollama::{Answer, Ask};
use talk::Talk;

#[test]
fn help_shows_the_commands_in_groups_and_global_options_apart() {
    let home = Home::new();
    let help = out(&home.run(&["--help"]));
    let headings =
        ["Talk:", "Remember:", "Forget:", "Back up:", "Share:", "Look after:", "Import:", "Serve:"];
    let all = headings.into_iter().chain(["Global options:", "Exit codes:"]);
    let at = all.map(|heading| help.find(heading).unwrap_or_else(|| panic!("{heading}: {help}")));
    assert!(at.is_sorted(), "{help}");
    assert!(!help.contains("Commands:"), "{help}");
    for line in ["  6  no model answered", "sottovoce chat "] {
        assert!(help.contains(line), "{line}: {help}");
    }
    let ask = out(&home.run(&["ask", "--help"]));
    let (own, global) = ask.split_once("Global options:").unwrap();
    assert!(own.contains("--off-record") && !own.contains("--scope"), "{ask}");
    assert!(global.contains("--scope") && !global.contains("--off-record"), "{ask}");
    assert_eq!(
        out(&home.run(&["--version"])),
        concat!("sottovoce ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

/// The completions of a typed line.
fn candidates(command: &mut Command, words: &[&str]) -> Vec<String> {
    let index = words.len().to_string();
    let output = command
        .args(["--", "sottovoce"])
        .args(words)
        .env("SOTTOVOCE_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", index)
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "true")
        .env("_CLAP_IFS", "\n")
        .output()
        .unwrap();
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    out(&output).lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_scopes_contexts_threads_and_models() {
    let talk = Talk::new();
    talk.home.keep(&["one"]);
    talk.run(&["--scope", "kitchen", "--thread", "7", "append", "x"]);
    for name in ["Cellar", "Evening talk"] {
        let made = ["context", "create", "--name", name, "--preset", "calm-counselor"];
        assert_eq!(code(&talk.run(&made)), 0);
    }
    let told = |words: &[&str]| candidates(&mut talk.command(&[]), words);
    let scopes = told(&["--scope", ""]);
    assert!(
        scopes.contains(&"default".into()) && scopes.contains(&"named/kitchen".into()),
        "{scopes:?}"
    );
    let contexts = told(&["tail", "--context", ""]);
    assert!(contexts.contains(&"Cellar".into()) && contexts.len() == 2, "{contexts:?}");
    assert!(!contexts.contains(&"Evening talk".into()), "it would need quotes: {contexts:?}");
    assert_eq!(told(&["--scope", "kitchen", "tail", "--thread", ""]), ["7"]);
    assert_eq!(told(&["--thread", ""]), [""; 0]);
    assert_eq!(told(&["--model", ""]), ["llama3.2:latest"]);
    assert!(told(&["doc"]).contains(&"doctor".into()));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = out(&talk.run(&["completions", shell]));
        assert!(script.contains("SOTTOVOCE_COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn completing_a_line_waits_for_nobody_and_asks_for_nothing() {
    let talk = Talk::new();
    talk.stub.always_to(Ask::Tags, Answer::silent());
    assert_eq!(candidates(&mut talk.command(&[]), &["--model", ""]), [""; 0]);
    // Before the first use nothing is created.
    for option in ["--scope", "--context", "--thread"] {
        candidates(&mut talk.command(&[]), &[option, ""]);
    }
    assert_eq!(std::fs::read_dir(talk.home.path()).unwrap().count(), 0);
    let mut init = talk.command(&["init", "--passphrase"]);
    init.env("SOTTOVOCE__CONTEXT__PASSPHRASE", "a passphrase of this house");
    assert_eq!(code(&init.output().unwrap()), 0);
    assert_eq!(candidates(&mut talk.command(&[]), &["--context", ""]), [""; 0]);
}
