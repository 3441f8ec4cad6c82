//! Search, and suggestions for mistyped commands, which never destroy anything.

use super::*;

fn found(home: &Home, arguments: &[&str]) -> Vec<Value> {
    rows(&home.run(&[&["search", "--json"], arguments].concat()))
}

fn contents(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["content"].as_str().unwrap()).collect()
}

#[test]
fn search_finds_exact_words_with_what_was_said_around_them() {
    let home = Home::new();
    home.keep(&["good morning", "the team meets", "a Téa for me", "with milk", "bye"]);
    let tea = found(&home, &["TEA", "-C", "1"]);
    assert_eq!(contents(&tea), ["a Téa for me"]);
    let first = &tea[0];
    assert_eq!(
        (&first["scope"], &first["seq"], &first["role"], &first["thread"]),
        (&"default".into(), &3.into(), &"user".into(), &Value::Null)
    );
    assert!(first["timestampUtc"].as_str().unwrap().starts_with("20"));
    assert_eq!(contents(first["before"].as_array().unwrap()), ["the team meets"]);
    assert_eq!(contents(first["after"].as_array().unwrap()), ["with milk"]);
    let text = out(&home.run(&["search", "tea"]));
    assert!(text.lines().next().unwrap().contains("user       a Téa for me"), "{text}");
    assert_eq!(contents(&found(&home, &["te*"])), ["a Téa for me", "the team meets"]);
    assert_eq!(contents(&found(&home, &["te*", "-n", "1"])), ["a Téa for me"]);
}

#[test]
fn search_takes_phrases_and_filters_and_says_what_it_does_not_understand() {
    let home = Home::new();
    home.keep(&["oat milk", "milk and oat"]);
    assert_eq!(code(&home.run(&["append", "-r", "assistant", "oat milk it is"])), 0);
    // The shell takes quotes away; an argument with blanks is a phrase.
    assert_eq!(found(&home, &["oat milk"]).len(), 2);
    assert_eq!(found(&home, &["oat", "milk"]).len(), 3);
    assert_eq!(contents(&found(&home, &["oat milk", "from:assistant"])), ["oat milk it is"]);
    assert_eq!(contents(&found(&home, &["\"oat milk\" from:me"])), ["oat milk"]);
    assert_eq!(found(&home, &["milk", "after:2020", "before:2999"]).len(), 3);
    assert_eq!(code(&home.run(&["search", "milk", "before:2020-05"])), 3);
    let refused = home.run(&["search", "milk", "before:tomorrow"]);
    assert_eq!(code(&refused), 2);
    assert!(err(&refused).contains("'before:tomorrow' is not understood"), "{}", err(&refused));
}

#[test]
fn search_is_of_one_conversation_unless_all_are_asked_for_and_of_one_thread_if_it_is_named() {
    let home = Home::new();
    home.keep(&["leek soup"]);
    for arguments in [
        &["--scope", "named/kitchen", "append", "-r", "user", "leek pie"][..],
        &["--thread", "7", "append", "-r", "user", "leek stew"],
    ] {
        assert_eq!(code(&home.run(arguments)), 0);
    }
    assert_eq!(found(&home, &["leek"]).len(), 2);
    assert_eq!(contents(&found(&home, &["--thread", "7", "leek"])), ["leek stew"]);
    assert_eq!(contents(&found(&home, &["--scope", "named/kitchen", "leek"])), ["leek pie"]);
    let all = found(&home, &["leek", "--all"]);
    let mut scopes: Vec<_> = all.iter().map(|row| row["scope"].as_str().unwrap()).collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["default", "default", "named/kitchen"]);
    assert!(out(&home.run(&["search", "leek", "--all"])).contains("named/kitchen"));
    let none = home.run(&["search", "leek", "bread"]);
    assert_eq!(code(&none), 3);
    assert!(err(&none).contains("no message has all of this"), "{}", err(&none));
    // The owner finds cleared messages, as `tail` shows them.
    assert_eq!(code(&home.run(&["clear"])), 0);
    assert_eq!(found(&home, &["leek"]).len(), 2);
    let nothing = Home::new();
    assert_eq!((code(&nothing.run(&["search", "x"])), nothing.key().exists()), (0, false));
}

#[test]
fn search_goes_on_to_what_fits_and_to_what_was_meant_and_says_so() {
    let home = Home::new();
    home.keep(&["My doctor's appointment is on Monday", "the tram is late", "bye"]);
    let exact = home.run(&["search", "doctors", "appointment"]);
    assert_eq!((code(&exact), err(&exact)), (0, String::new()));
    assert!(out(&exact).contains("My doctor's appointment"), "{}", out(&exact));
    let fitting = home.run(&["search", "appointment", "cancelled"]);
    assert_eq!(code(&fitting), 3);
    assert!(
        err(&fitting).contains("no message has all of this; these fit best"),
        "{}",
        err(&fitting)
    );
    assert!(out(&fitting).contains("\n        says “appointment”"), "{}", out(&fitting));
    assert!(!out(&fitting).contains("bye"), "{}", out(&fitting));
    let stages = |words: &[&str]| -> Vec<Value> {
        let all = out(&home.run(&[&["search", "--json"], words].concat()));
        let rows = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| row["found"].clone()).collect()
    };
    assert_eq!(stages(&["tram"]), ["exact"]);
    // As meanings come by and by, more may fit.
    let fitting = stages(&["appointment", "cancelled"]);
    assert!(!fitting.is_empty() && fitting.iter().all(|stage| stage == "fitting"), "{fitting:?}");
    let meant = home.run(&["search", "Tramm", "apointment"]);
    assert_eq!(code(&meant), 3);
    assert!(err(&meant).contains("did you mean: tram appointment"), "{}", err(&meant));
    let none = home.run(&["search", "zebra"]);
    assert_eq!((code(&none), out(&none)), (3, String::new()));
    assert!(err(&none).contains("none fits") && !err(&none).contains("mean"), "{}", err(&none));
}

#[test]
fn search_says_which_other_conversations_have_the_words() {
    let home = Home::new();
    home.keep(&["hello"]);
    for (scope, text) in [("dm/ann", "Besançon"), ("dm/ann", "besancon!"), ("dm/bob", "no")] {
        assert_eq!(code(&home.run(&["--scope", scope, "append", text])), 0);
    }
    let hinted = err(&home.run(&["search", "Besancon"]));
    assert!(hinted.contains("2 messages in dm/ann: --all shows them"), "{hinted}");
    let own = err(&home.run(&["--scope", "dm/ann", "search", "besancon"]));
    assert!(!own.contains("--all"), "{own}");
    assert!(!err(&home.run(&["search", "--all", "Besancon"])).contains("--all"));
}

#[test]
fn a_hit_in_a_long_message_shows_the_passage_that_has_the_words() {
    let home = Home::new();
    let long = format!("{}the leek is here {}", "before ".repeat(300), "after ".repeat(300));
    home.keep(&[&long]);
    let shown = out(&home.run(&["search", "leek"]));
    assert!(shown.len() < 600 && shown.contains("before the leek is here after"), "{shown}");
    assert!(shown.contains("… before") && shown.contains("after …"), "{shown}");
    assert_eq!(contents(&found(&home, &["leek"])), [long]);
}

#[test]
fn a_mistyped_command_is_never_answered_with_one_that_destroys() {
    let home = Home::new();
    for (mistyped, told) in [("remove", "unrecognized"), ("serch", "'search'")] {
        let refused = home.run(&[mistyped]);
        assert_eq!(code(&refused), 2);
        assert!(err(&refused).contains(told), "{}", err(&refused));
        assert!(!err(&refused).contains("rekey"), "{}", err(&refused));
    }
    for (mistyped, destroys) in [("clea", "clear"), ("forgt", "forget"), ("reky", "rekey")] {
        let told = err(&home.run(&[mistyped]));
        assert!(!told.contains(&format!("'{destroys}'")), "{told}");
    }
    let help = out(&home.run(&["conversations", "--help"]));
    assert!(help.contains("does not look into what was said"), "{help}");
}
