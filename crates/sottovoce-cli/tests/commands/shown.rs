use super::*;

/// Starts a command whose output nobody reads.
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
    let words = "a\u{1b}[31mb\u{9b}31mc\u{7f}d\u{202e}ef\u{9d}0;g\u{9c}h";
    for arguments in [&["prompt"][..], &["prompt", "--json"], &["ask", "--show-request"]] {
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
    let help = out(&home.run(&["--help"]));
    let (_, codes) = help.split_once("Exit codes:").unwrap();
    for code in [0, 1, 2, 3, 4, 5, 6, 130] {
        assert_eq!(codes.matches(&format!("\n{code:>3}  ")).count(), 1, "{help}");
    }
    for verb in ["append", "verify", "doctor", "artifact", "conversations", "stats", "cleanup"] {
        let help = out(&home.run(&[verb, "--help"]));
        assert!(help.ends_with("Exit codes: sottovoce --help\n"), "{help}");
        let short = out(&home.run(&[verb, "-h"]));
        assert!(short.contains("Options for every command: --help"), "{short}");
        assert!(!short.contains("--passphrase-fd") && !short.contains("Exit codes"), "{short}");
    }
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

#[test]
fn verbose_output_has_no_words() {
    let home = Home::new();
    let said = home.run(&["--verbose", "--json", "append", "--role", "user", "canary sentence"]);
    assert!(err(&said).contains("DEBUG"), "{}", err(&said));
    assert!(!err(&said).contains("canary"));
}

#[test]
fn help_wraps_once_and_escapes_nothing() {
    let home = Home::new();
    for verb in [
        &["repair"][..],
        &["rekey"],
        &["verify"],
        &["forget"],
        &["import", "elara"],
        &["artifact"],
        &["artifact", "add"],
        &["artifact", "add-folder"],
        &["artifact", "add-search"],
        &["conversations"],
        &["cleanup"],
        &["stats"],
        &["persona"],
        &["persona", "create"],
        &["persona", "edit"],
        &["persona", "delete"],
        &["context"],
        &["context", "create"],
        &["context", "show"],
        &["context", "update"],
        &["context", "delete"],
    ] {
        let help = out(&home.run(&[verb, &["--help"]].concat()));
        assert!(!help.contains('\\'), "{help}");
        let lines: Vec<_> = help.lines().skip_while(|line| !line.contains("--version")).collect();
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        for (line, next) in lines.iter().zip(&lines[1..]) {
            let goes_on = is_prose(line) && is_prose(next);
            assert!(!goes_on || line.len() > 75, "{line:?} of {help}");
        }
    }
}

#[test]
fn what_asks_says_what_comes_of_it_where_nobody_is_there() {
    let home = Home::new();
    let codes = out(&home.run(&["--help"]));
    assert!(codes.contains("  2  ") && codes.contains("say --yes"), "{codes}");
    for verb in [
        &["repair"][..],
        &["forget"],
        &["key", "export"],
        &["artifact", "export"],
        &["artifact", "delete"],
        &["cleanup"],
        &["persona", "delete"],
        &["context", "delete"],
    ] {
        let help = out(&home.run(&[verb, &["--help"]].concat()));
        assert!(
            help.contains("--yes") && help.ends_with("Exit codes: sottovoce --help\n"),
            "{help}"
        );
    }
}
