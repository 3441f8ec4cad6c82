//! The program as a clone builds it, with the features of a household alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::process::{Command, Output};

fn run(home: &tempfile::TempDir, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sottovoce"));
    command.args(arguments).current_dir(home.path()).env_clear().env("HOME", home.path());
    command.envs(settings.iter().copied()).output().unwrap()
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_command_that_is_not_built_in_says_which_feature_brings_it() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, feature, is_here) in [
        (&["mcp", "--print-config"][..], "mcp", cfg!(feature = "mcp")),
        (&["sync", "status"], "share", cfg!(feature = "share")),
        (&["device", "list"], "share", cfg!(feature = "share")),
        (&["team", "status"], "share", cfg!(feature = "share")),
        (&["import", "chorus", "."], "sqlite", cfg!(feature = "sqlite")),
    ] {
        let told = run(&home, arguments, &[]);
        let text = error_of(&told);
        assert_eq!(text.contains("this program was built without"), !is_here, "{text}");
        assert_eq!(text.contains(&format!("--features {feature}")), !is_here, "{text}");
        assert!(is_here || told.status.code() == Some(2), "{text}");
    }
}

#[test]
fn up_without_an_address_names_the_settings_that_give_one() {
    let home = tempfile::tempdir().unwrap();
    let no_address = [("SOTTOVOCE__SERVE__ADDRESS", ""), ("SOTTOVOCE__WYOMING__ADDRESSES", "")];
    let refused = run(&home, &["up"], &no_address);
    assert_eq!(refused.status.code(), Some(2), "{}", error_of(&refused));
    assert!(error_of(&refused).contains("Page.Address"), "{}", error_of(&refused));
    if cfg!(not(feature = "mcp")) {
        let settings = [no_address[0], no_address[1], ("SOTTOVOCE__MCP__ADDRESS", "127.0.0.1:0")];
        let refused = run(&home, &["up"], &settings);
        assert_eq!(refused.status.code(), Some(2), "{}", error_of(&refused));
        assert!(error_of(&refused).contains("without `mcp`"), "{}", error_of(&refused));
    }
}
