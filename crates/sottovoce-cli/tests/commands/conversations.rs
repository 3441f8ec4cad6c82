use super::*;

fn keep_in(home: &Home, scope: &str, words: &str, at: &str) {
    let line = serde_json::json!({"role": "user", "content": words, "timestampUtc": at});
    let fed = home.feed(&["--scope", scope, "append"], format!("{line}\n"));
    assert_eq!(code(&fed), 0, "{}", err(&fed));
}

/// Three conversations; the second has a title, the third tags.
fn three() -> Home {
    let home = Home::new();
    keep_in(&home, "default", "one", "2025-03-01T00:00:00Z");
    keep_in(&home, "dm/42", "two", "2025-01-01T00:00:00Z");
    keep_in(&home, "dm/42", "three", "2025-02-01T00:00:00Z");
    keep_in(&home, "named/kitchen", "four", "2025-04-01T00:00:00Z");
    let done = [
        &["--scope", "dm/42", "conversations", "rename", "Ferien", "in", "Øvre"][..],
        &["--scope", "named/kitchen", "conversations", "tag", "Recipes", "family life"],
    ];
    for arguments in done {
        assert_eq!(code(&home.run(arguments)), 0);
    }
    home
}

fn scopes(home: &Home, arguments: &[&str]) -> Vec<String> {
    let listed = rows(&home.run(&[&["conversations", "--json"], arguments].concat()));
    listed.iter().map(|row| row["scope"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn conversations_are_listed_the_latest_first_with_title_tags_and_times() {
    let home = three();
    assert_eq!(scopes(&home, &[]), ["named/kitchen", "default", "dm/42"]);
    let rows = rows(&home.run(&["conversations", "--json"]));
    let expected = serde_json::json!({
        "scope": "dm/42", "title": "Ferien in Øvre", "tags": [], "messages": 2, "artifacts": 0,
        "createdAt": "2025-01-01T00:00:00Z", "updatedAt": "2025-02-01T00:00:00Z",
    });
    assert_eq!(rows[2], expected);
    assert_eq!(rows[0]["tags"], serde_json::json!(["Recipes", "family life"]));
    let table = out(&home.run(&["conversations"]));
    for part in ["Ferien in Øvre", "Recipes, family life", "2025-02-01", "2025-04-01"] {
        assert!(table.contains(part), "{table}");
    }
    let nothing = Home::new().run(&["conversations"]);
    assert_eq!((code(&nothing), out(&nothing).as_str()), (0, ""));
    assert!(err(&nothing).contains("nothing is remembered yet"));
}

#[test]
fn words_are_looked_for_in_title_tags_and_scope_and_tags_in_any_letter_case() {
    let home = three();
    for (arguments, found) in [
        (&["FERIEN", "øvre"][..], &["dm/42"][..]),
        (&["kitchen"], &["named/kitchen"]),
        (&["RECIPES", "Kitchen"], &["named/kitchen"]),
        (&["--tag", "recipes"], &["named/kitchen"]),
        (&["--tag", "recipes", "--tag", "Family Life"], &["named/kitchen"]),
        (&["--tag", "recipes", "ferien"], &[]),
        (&["--tag", "rec"], &[]),
        (&["four"], &[]),
    ] {
        assert_eq!(scopes(&home, arguments), *found, "{arguments:?}");
    }
}

#[test]
fn a_title_and_tags_are_given_and_taken_away() {
    let home = three();
    let run = |arguments: &[&str]| {
        home.run(&[&["--scope", "dm/42", "--json", "conversations"], arguments].concat())
    };
    let row = |arguments: &[&str]| rows(&run(arguments)).remove(0);
    assert_eq!(row(&["rename", "New", "title"])["title"], "New title");
    assert_eq!(row(&["rename", "--clear"])["title"], Value::Null);
    assert_eq!(row(&["tag", "b", "a", "b"])["tags"], serde_json::json!(["a", "b"]));
    assert_eq!(row(&["untag", "b"])["tags"], serde_json::json!(["a"]));
    let absent = run(&["untag", "a", "z"]);
    assert_eq!(code(&absent), 2);
    assert!(err(&absent).contains("no tag z"), "{}", err(&absent));
    assert_eq!(row(&["show"])["tags"], serde_json::json!(["a"]));
    for wrong in [
        &["rename"][..],
        &["rename", " "],
        &["tag"],
        &["tag", ""],
        &["tag", "a,b"],
        &["rename", "x", "--clear"],
    ] {
        assert_eq!(code(&run(wrong)), 2, "{wrong:?}");
    }
    let forged = row(&["rename", "a\nb\u{1b}[31m"]);
    assert!(!forged["title"].as_str().unwrap().contains(char::is_control));
    let shown = home.run(&["conversations", "show"]);
    assert!(out(&shown).contains("title      none"), "the others have theirs: {}", out(&shown));
}

#[test]
fn a_conversation_that_cannot_be_read_is_named_and_the_others_are_listed() {
    let home = three();
    std::os::unix::fs::symlink("/", home.store().join("dms/42/packs")).unwrap();
    let listed = home.run(&["conversations"]);
    assert_eq!(code(&listed), 3, "{}{}", out(&listed), err(&listed));
    assert!(out(&listed).contains("default") && !out(&listed).contains("dm/42"));
    assert!(err(&listed).contains("dm/42: "), "{}", err(&listed));
}

#[test]
fn a_title_that_cannot_be_read_is_not_passed_off_as_none() {
    let home = three();
    std::fs::write(home.store().join("dms/42/profile"), "rubbish").unwrap();
    let listed = home.run(&["conversations"]);
    assert_eq!(code(&listed), 3, "{}{}", out(&listed), err(&listed));
    assert!(err(&listed).contains("dm/42: ") && err(&listed).contains("profile"));
    assert_eq!(code(&home.run(&["--scope", "dm/42", "conversations", "show"])), 3);
    assert_eq!(code(&home.run(&["conversations", "show"])), 0);
}

#[test]
fn the_passphrase_is_asked_for_once_for_all_conversations() {
    let home = Home::new();
    let with = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("SOTTOVOCE__CONTEXT__PASSPHRASE", "four words of mine").output().unwrap()
    };
    for scope in ["dm/1", "dm/2"] {
        assert_eq!(code(&with(&["--scope", scope, "append", "-r", "user", "x"])), 0);
    }
    // A descriptor can be read only once.
    let mut child = home
        .command(&["conversations", "--json", "--passphrase-fd", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"four words of mine\n").unwrap();
    assert_eq!(rows(&child.wait_with_output().unwrap()).len(), 2);
}
