//! JSON output has one shape, and tables fit the terminal.

use super::*;
use talk::Talk;
use terminal::Terminal;

const SCOPE: &str = "guild/home/kitchen/ann";

/// Every object in a value, nested ones included.
fn objects(value: &Value, found: &mut Vec<serde_json::Map<String, Value>>) {
    match value {
        Value::Object(fields) => {
            found.push(fields.clone());
            fields.values().for_each(|value| objects(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| objects(value, found)),
        _ => {}
    }
}

/// A home with one of everything in one conversation.
fn lived_in() -> (Talk, String) {
    let talk = Talk::new();
    let run = |arguments: &[&str]| {
        let done = talk.run(&[&["--scope", SCOPE], arguments].concat());
        assert_eq!(code(&done), 0, "{arguments:?}: {}", err(&done));
        done
    };
    let lines = [
        r#"{"role":"User","content":"canary, which lamp?"}"#,
        r#"{"role":"assistant","content":"","toolCalls":[{"id":"1","name":"lamps","arguments":{}}]}"#,
        r#"{"role":"TOOL","content":"canary lamp","toolCallId":"1","threadId":"7"}"#,
    ];
    assert_eq!(code(&talk.feed(&["--scope", SCOPE, "append"], lines.join("\n"))), 0);
    std::fs::write(talk.home.path().join("a list of all lamps in the house.txt"), "lamps").unwrap();
    run(&["artifact", "add", "a list of all lamps in the house.txt"]);
    run(&["conversations", "rename", "All the lamps that there are in the house, and more"]);
    run(&["conversations", "tag", "lamps", "house", "electricity", "kitchen"]);
    let saved = rows(&run(&["snapshot", "save", "--json"])).remove(0);
    let made = talk.run(&["context", "create", "--preset", "calm_counselor"]);
    assert_eq!(code(&made), 0, "{}", err(&made));
    (talk, saved["id"].as_str().unwrap().to_owned())
}

#[test]
fn roles_times_and_numbers_have_one_name_and_form_in_every_command() {
    let (talk, snapshot) = lived_in();
    for arguments in [
        &["tail"][..],
        &["stats"],
        &["scopes"],
        &["search", "canary", "-C", "1"],
        &["snapshot", "list"],
        &["snapshot", "show", &snapshot],
        &["conversations"],
        &["conversations", "show"],
        &["context"],
        &["context", "list"],
        &["context", "messages"],
        &["prune", "--max-tokens", "1", "--dry-run"],
        &["artifact", "list"],
        &["clear"],
        &["clear", "--undo"],
    ] {
        let shown = talk.run(&[&["--json", "--scope", SCOPE], arguments].concat());
        let mut found = Vec::new();
        rows(&shown).iter().for_each(|row| objects(row, &mut found));
        assert!(!found.is_empty(), "{arguments:?}");
        for (name, value) in found.iter().flatten() {
            if name == "role" {
                let role = value.as_str().unwrap();
                assert_eq!(role, role.to_lowercase(), "{arguments:?}");
            }
            let is_time =
                value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok());
            let fits = ["At", "Utc", "Start", "End"].iter().any(|end| name.ends_with(end));
            assert!(!is_time || fits, "{arguments:?}: the time {name}");
            assert!(name != "id" || value.is_string(), "{arguments:?}: a number is a seq");
        }
    }
}

#[test]
fn tables_fit_a_terminal_of_80_columns() {
    let (talk, _) = lived_in();
    for arguments in [
        &["scopes"][..],
        &["conversations"],
        &["context", "list"],
        &["persona", "list"],
        &["artifact", "list"],
    ] {
        let arguments = [&["--scope", SCOPE], arguments].concat();
        let whole = out(&talk.run(&arguments));
        assert!(whole.lines().count() > 1, "{arguments:?}: {whole}");
        let mut command = talk.command(&arguments);
        let Some(mut shown) = Terminal::sized(command.env("PAGER", "cat"), 80) else { return };
        for wanted in whole.lines() {
            let screen = shown.screen.until("\n");
            // Before the first line a bar stood in its place.
            let line = screen.trim_end().rsplit('\r').next().unwrap_or_default();
            let line = columns::lines(line).concat();
            let begin: String = wanted.chars().take(4).collect();
            assert!(line.starts_with(&begin), "{arguments:?}: {line}");
            let width = line.chars().count();
            assert!(width <= 80, "{arguments:?}: {width} columns: {line}");
        }
    }
}

#[test]
fn a_list_of_scopes_says_when_a_context_expires() {
    let home = Home::new();
    let made = home.run(&["context", "create", "--preset", "calm_counselor", "--expiry-days", "3"]);
    let scope = format!("named/{}", out(&made).trim());
    for arguments in [&["scopes"][..], &["--scope", &scope, "stats"]] {
        let shown = rows(&home.run(&[&["--json"], arguments].concat()));
        let row = shown.iter().find(|row| row["scope"] == *scope).unwrap();
        let left = row["expiresIn"].as_u64().unwrap();
        assert!((2 * 86_400_000..=3 * 86_400_000).contains(&left), "{row}");
        assert!(!out(&home.run(arguments)).contains("never"));
    }
}

#[test]
fn a_clear_is_taken_back_and_then_every_earlier_one() {
    let home = Home::new();
    let prompt = |home: &Home| out(&home.run(&["prompt", "And now?", "--renderer", "text"]));
    home.keep(&["canary one"]);
    assert_eq!(code(&home.run(&["clear"])), 0);
    home.keep(&["canary two"]);
    assert_eq!(code(&home.run(&["context", "clear"])), 0);
    assert!(!prompt(&home).contains("canary"));
    assert_eq!(code(&home.run(&["clear", "--undo"])), 0);
    let told = prompt(&home);
    assert!(told.contains("canary two") && !told.contains("canary one"), "{told}");
    assert_eq!(code(&home.run(&["context", "clear", "--undo"])), 0);
    assert!(prompt(&home).contains("canary one"));
    let nothing = home.run(&["clear", "--undo"]);
    assert!(err(&nothing).contains("is not cleared"), "{}", err(&nothing));
}

#[test]
fn what_has_no_price_has_no_cost() {
    let home = Home::new();
    home.keep(&["canary"]);
    let shown = out(&home.run(&["context"]));
    assert!(!shown.contains('$') && shown.contains("tokens"), "{shown}");
}
