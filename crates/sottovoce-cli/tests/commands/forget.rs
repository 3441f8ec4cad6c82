use super::contexts::{PROMPT, kitchen, list};
use super::*;

#[test]
fn each_message_is_counted_once() {
    let home = Home::new();
    home.keep(&["one", "two", "three", "four"]);
    let unasked = home.run(&["forget", "2", "2-3", "1-2"]);
    assert!(err(&unasked).contains("delete 3 messages"), "{}", err(&unasked));
    let done = home.run(&["--json", "forget", "--yes", "2", "2-3", "1-2"]);
    assert_eq!(rows(&done)[0]["removed"], serde_json::json!([1, 2, 3]));
    assert_eq!(home.words(), ["four"]);
}

#[test]
fn forgetting_a_copy_announces_the_original_and_all_that_goes() {
    let home = Home::new();
    home.keep(&["one", "two", "three"]);
    let saved = rows(&home.run(&["snapshot", "save", "--json"])).remove(0);
    home.run(&["clear"]);
    let id = saved["id"].as_str().unwrap();
    assert_eq!(code(&home.run(&["snapshot", "restore", id])), 0);
    let unasked = home.run(&["forget", "4"]);
    let said = err(&unasked);
    assert_eq!(code(&unasked), 2);
    assert!(said.contains("delete 2 messages (1 asked for, 1 original) for ever"), "{said}");
    assert!(said.contains("take them out of 1 snapshot"), "{said}");
    let unasked = err(&home.run(&["forget", "1"]));
    assert!(unasked.contains("delete 2 messages (1 asked for, 1 restored copy)"), "{unasked}");
    let unasked = err(&home.run(&["forget", "4-6"]));
    assert!(unasked.contains("delete 6 messages (3 asked for, 3 originals)"), "{unasked}");
    assert!(unasked.contains("delete 1 snapshot"), "{unasked}");
    assert_eq!(home.records().len(), 6);
    let done = rows(&home.run(&["forget", "4", "--yes", "--json"])).remove(0);
    assert_eq!(done["removed"], serde_json::json!([1, 4]));
    assert_eq!(
        (&done["asked"], &done["originals"], &done["copies"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert_eq!((&done["snapshots"], &done["snapshotsDeleted"]), (&1.into(), &0.into()));
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn a_lost_number_can_be_settled_by_naming_it() {
    let home = Home::new();
    home.keep(&["one", "two", "three", "four"]);
    std::fs::remove_file(&home.records()[2]).unwrap();
    assert_eq!(code(&home.run(&["verify"])), 3);
    let unasked = home.run(&["forget", "3"]);
    assert_eq!(code(&unasked), 2);
    let said = "number 3 holds no readable message; it will be recorded as gone";
    assert!(err(&unasked).contains(said), "{}", err(&unasked));
    let settled = home.run(&["forget", "3", "--yes"]);
    assert_eq!(code(&settled), 0, "{}", err(&settled));
    assert!(err(&settled).contains(said) && err(&settled).contains("recorded 1 number as gone"));
    assert_eq!(code(&home.run(&["verify"])), 0);
    assert_eq!(home.words(), ["one", "two", "four"]);
    for (again, said) in [("3", "is forgotten already"), ("99", "there is no such message")] {
        let gone = home.run(&["forget", again, "--yes"]);
        assert_eq!(code(&gone), 2);
        assert!(err(&gone).contains(said), "{}", err(&gone));
    }
}

#[test]
fn a_range_takes_only_the_messages_that_were_shown() {
    let home = Home::new();
    home.keep(&["one", "two", "three", "four"]);
    std::fs::remove_file(&home.records()[2]).unwrap();
    // An unreadable message is not shown, so it is not deleted as part of a range.
    assert_eq!(code(&home.run(&["forget", "2-4", "--yes"])), 0);
    assert_eq!(home.words(), ["one"]);
    let verified = home.run(&["verify", "--json"]);
    assert_eq!(code(&verified), 3);
    assert!(out(&verified).contains(r#""seqs":[3,3]"#), "{}", out(&verified));
    assert_eq!(code(&home.run(&["forget", "90-99", "--yes"])), 2);
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
fn forgetting_everything_said_in_a_context_keeps_its_personality() {
    let home = Home::new();
    let id = kitchen(&home, &["--expiry-days", "9"]);
    let kitchen = |rest: &[&str]| home.run(&[&["--context", "Kitchen"][..], rest].concat());
    assert_eq!(code(&kitchen(&["append", "-r", "user", "canary"])), 0);
    assert_eq!(code(&kitchen(&["conversations", "tag", "birds"])), 0);
    assert_eq!(code(&kitchen(&["settings", "--max-messages", "40"])), 0);
    assert_eq!(code(&kitchen(&["snapshot", "save"])), 0);
    assert_eq!(code(&home.run(&["export", "--sealed", "--all", ".cache/backup"])), 0);
    let before = list(&home, &[]).remove(0);
    let asked = kitchen(&["forget", "--all"]);
    let said = err(&asked);
    assert!(said.contains("1 message") && said.contains("delete 1 snapshot"), "{said}");
    assert!(said.contains("take away its tags and notes"), "{said}");
    let forgotten = kitchen(&["forget", "--all", "--yes"]);
    assert_eq!(code(&forgotten), 0, "{}", err(&forgotten));
    assert!(
        err(&forgotten).contains("stays, with its name, its personality"),
        "{}",
        err(&forgotten)
    );
    let check = || {
        let after = list(&home, &[]).remove(0);
        assert_eq!((&after["id"], &after["name"]), (&id.as_str().into(), &"Kitchen".into()));
        assert_eq!((&after["systemPrompt"], &after["expiryDays"]), (&PROMPT.into(), &9.into()));
        assert_eq!((&after["createdAt"], &after["messages"]), (&before["createdAt"], &0.into()));
        assert_eq!(rows(&kitchen(&["settings", "--json"]))[0]["maxMessages"], 40);
        let shown = out(&kitchen(&["conversations", "show", "--json"]));
        assert!(!shown.contains("birds"), "{shown}");
        assert!(out(&kitchen(&["snapshot", "list"])).is_empty());
    };
    check();
    // Forgotten messages stay forgotten, and the personality is restored.
    assert_eq!(code(&home.run(&["import", "backup", ".cache/backup"])), 0);
    check();
    assert_eq!(code(&home.run(&["verify", "--all"])), 0);
}

#[test]
fn the_answer_that_repeats_a_secret_goes_with_it_unless_only_the_named_is_meant() {
    let home = Home::new();
    let exchange = || {
        home.keep(&["My bank PIN is 4711."]);
        home.run(&["append", "--role", "assistant", "Noted: your bank PIN is 4711."]);
    };
    exchange();
    home.keep(&["And what is for lunch?"]);
    let said = err(&home.run(&["forget", "1"]));
    assert!(said.contains("delete 2 messages (1 asked for, 1 answer) for ever"), "{said}");
    let only = err(&home.run(&["forget", "1", "--only"]));
    assert!(only.contains("delete 1 message for ever"), "{only}");
    let done = home.run(&["forget", "1", "--yes"]);
    assert!(err(&done).contains("deleted 2 messages for ever (1 asked for, 1 answer)"));
    assert_eq!(home.words(), ["And what is for lunch?"]);
    exchange();
    let done = rows(&home.run(&["forget", "--last", "--yes", "--json"])).remove(0);
    assert_eq!((&done["asked"], &done["answers"]), (&1.into(), &1.into()));
    exchange();
    assert_eq!(code(&home.run(&["forget", "--last", "--only", "--yes"])), 0);
    assert_eq!(home.words(), ["And what is for lunch?", "My bank PIN is 4711."]);
}

#[test]
fn what_else_holds_the_same_words_is_said_by_place_and_count() {
    let home = Home::new();
    home.keep(&["My bank PIN is 4711.", "Tomorrow it rains."]);
    home.run(&["--user", "ann", "append", "-r", "user", "Tell nobody: 4711."]);
    home.run(&["--user", "ann", "append", "-r", "assistant", "I keep 4711 to myself."]);
    home.run(&["--user", "ben", "append", "-r", "user", "I have 47110 stamps."]);
    home.keep(&["Was it 4711?"]);
    home.run(&["snapshot", "save"]);
    let forgotten = home.run(&["forget", "1", "--yes"]);
    let said = err(&forgotten);
    assert!(said.contains("2 messages in dm/ann") && !said.contains("dm/ben"), "{said}");
    assert!(said.contains("1 message here, 1 snapshot here"), "{said}");
    assert!(said.contains("`sottovoce search --all 4711`"), "{said}");
    let silent = home.run(&["forget", "2", "--yes"]);
    assert!(!err(&silent).contains("elsewhere"), "{}", err(&silent));
}

#[test]
fn a_day_a_search_and_a_person_are_forgotten_here_or_everywhere() {
    let home = Home::new();
    let say = |whose: &[&str], more: &[&str]| {
        let said = home.run(&[whose, &["append", "-r", "user"], more].concat());
        assert_eq!(code(&said), 0, "{}", err(&said));
    };
    say(&[], &["--at", "2026-11-20T12:00:00Z", "on that day"]);
    say(&[], &["about leeks"]);
    say(&["--user", "anna"], &["I am at home"]);
    say(&["--room", "hall"], &["leeks again"]);
    say(&["--room", "hall"], &["--metadata", "speaker=Anna", "I am in the hall"]);
    say(&["--room", "hall"], &["--metadata", "speaker=Ben", "So am I"]);
    assert_eq!(code(&home.run(&["forget", "--on", "2026-11-20", "--yes"])), 0);
    assert_eq!(home.words(), ["about leeks"]);
    let asked = home.run(&["forget", "--matching", "leeks", "--everywhere"]);
    assert_eq!(code(&asked), 2);
    assert!(err(&asked).contains("delete 2 messages in 2 conversations"), "{}", err(&asked));
    assert_eq!(code(&home.run(&["forget", "--matching", "leeks", "--yes"])), 0);
    assert!(home.words().is_empty());
    let gone = home.run(&["--user", "anna", "forget", "--everywhere", "--yes"]);
    assert_eq!(code(&gone), 0, "{}", err(&gone));
    let left = home.run(&["search", "--all", "home"]);
    assert_eq!(code(&left), 3, "{}", out(&left));
    let hall = rows(&home.run(&["--room", "hall", "tail", "--json"]));
    let hall: Vec<_> = hall.iter().map(|row| row["content"].as_str().unwrap()).collect();
    assert_eq!(hall, ["leeks again", "So am I"]);
    assert_eq!(code(&home.run(&["forget", "--everywhere"])), 2);
}

#[test]
fn everywhere_is_every_conversation_and_not_one_that_is_named_beside_it() {
    let home = Home::new();
    home.keep(&["canary"]);
    for whose in [&["--user", "ann"][..], &["--thread", "work"], &["--scope", "named/kitchen"]] {
        let which = ["forget", "--matching", "canary", "--everywhere", "--yes"];
        let refused = home.run(&[whose, &which].concat());
        assert_eq!(code(&refused), 2, "{whose:?}: {}", err(&refused));
    }
    assert_eq!(home.words(), ["canary"]);
    let done = home.run(&["forget", "--matching", "canary", "--everywhere", "--yes"]);
    assert_eq!((code(&done), home.words().len()), (0, 0), "{}", err(&done));
}
