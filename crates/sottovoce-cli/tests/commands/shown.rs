use super::*;

/// Starts it with nobody reading.
fn unread(home: &Home, arguments: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    home.command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn a_reader_that_is_gone_is_no_error() {
    let home = Home::new();
    for arguments in [&["completions", "bash"][..], &["config"], &["prompt", "x"], &["doctor"]] {
        let ended = unread(&home, arguments);
        assert_eq!(code(&ended), 0, "{arguments:?}: {}", err(&ended));
        assert!(!err(&ended).contains("panicked"), "{arguments:?}: {}", err(&ended));
    }
}

#[test]
fn json_holds_the_very_words() {
    let home = Home::new();
    let words = "a\u{1b}[31mb\u{9b}31mc\u{7f}d\u{202e}e\u{85}f\u{9d}0;g\u{9c}h";
    for arguments in [&["prompt"][..], &["prompt", "--json"], &["ask"]] {
        let shown = home.run(&[arguments, &[words]].concat());
        let request: Value = serde_json::from_str(&out(&shown)).unwrap();
        let message = request["messages"].as_array().unwrap().last().unwrap();
        assert!(message["content"].as_str().unwrap().ends_with(words), "{arguments:?}");
    }
    assert_eq!(home.words(), [words]);
}

#[test]
fn people_are_shown_nothing_that_turns_the_writing() {
    let home = Home::new();
    home.keep(&["a\u{202e}b\u{9b}31mc\u{2066}d"]);
    assert!(out(&home.run(&["tail"])).contains("a\u{fffd}b\u{fffd}31mc\u{fffd}d"));
}

#[test]
fn help_names_the_exit_codes_that_matter() {
    let home = Home::new();
    for (verb, code) in [("append", "130  "), ("verify", "3  "), ("doctor", "3  ")] {
        let help = out(&home.run(&[verb, "--help"]));
        assert!(help.contains("Exit codes:") && help.contains(code), "{help}");
    }
}
