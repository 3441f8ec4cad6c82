//! Limits of a conversation: what they hide is announced, and comes back only on request.

use super::*;

const FOUR: [&str; 4] = ["one", "two", "three", "four"];

#[test]
fn a_bare_number_is_no_time_limit() {
    let home = Home::new();
    home.keep(&FOUR);
    for option in ["--ttl", "--window"] {
        let refused = home.run(&["settings", option, "3", "--yes"]);
        assert_eq!(code(&refused), 2, "{}", err(&refused));
        assert!(err(&refused).contains("3s, 3m, 3h or 3d"), "{}", err(&refused));
    }
    assert_eq!(home.words(), FOUR);
    assert_eq!(rows(&home.run(&["settings", "--json"]))[0]["ownRetention"], false);
}

#[test]
fn a_limit_that_hides_messages_says_how_many_and_asks() {
    let home = Home::new();
    home.keep(&FOUR);
    let unasked = home.run(&["settings", "--max-messages", "3"]);
    assert_eq!(code(&unasked), 2, "{}", err(&unasked));
    let said = err(&unasked);
    assert!(said.contains("would hide 1 message, said at 20") && said.contains("--yes"), "{said}");
    assert!(said.contains("cannot come back"), "{said}");
    let unasked = home.run(&["settings", "--max-messages", "2"]);
    let said = err(&unasked);
    assert!(said.contains("2 messages, said from 20") && said.contains(" to 20"), "{said}");
    assert_eq!(home.words(), FOUR, "nothing was changed");
    assert_eq!(code(&home.run(&["settings", "--ttl", "1h", "--max-messages", "4"])), 0);
    let sure = home.run(&["settings", "--max-messages", "3", "--yes"]);
    assert_eq!(code(&sure), 0, "{}", err(&sure));
    assert!(err(&sure).contains("are hidden, and will be deleted"), "{}", err(&sure));
    assert_eq!(home.words(), FOUR[1..]);
    assert_eq!(home.records().len(), 4, "no file goes by it");
}

#[test]
fn loosened_limits_offer_to_keep_what_is_still_there() {
    let home = Home::new();
    home.keep(&FOUR);
    let set = |rest: &[&str]| home.run(&[&["settings"][..], rest].concat());
    assert_eq!(code(&set(&["--max-messages", "2", "--yes"])), 0);
    for loosened in [&["--max-messages", "none", "--yes"][..], &["--default"]] {
        let refused = set(loosened);
        assert_eq!(code(&refused), 2, "{}", err(&refused));
        let said = err(&refused);
        assert!(said.contains("2 messages, said from") && said.contains("still stored"), "{said}");
        assert!(said.contains("--keep-hidden") && said.contains("--drop-hidden"), "{said}");
        assert_eq!(home.words(), FOUR[2..]);
        assert_eq!(home.records().len(), 4);
    }
    assert_eq!(code(&set(&["--default", "--keep-hidden", "--drop-hidden"])), 2);
    let kept = rows(&set(&["--default", "--keep-hidden", "--json"])).remove(0);
    assert_eq!((&kept["shownAgain"], &kept["deleted"]), (&2.into(), &0.into()));
    assert_eq!(home.words(), FOUR);
    assert_eq!(code(&set(&["--max-messages", "2", "--yes"])), 0);
    let dropped = rows(&set(&["--default", "--drop-hidden", "--json"])).remove(0);
    assert_eq!((&dropped["shownAgain"], &dropped["deleted"]), (&0.into(), &2.into()));
    assert_eq!(home.words(), FOUR[2..]);
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn restored_messages_return_to_their_own_threads() {
    let home = Home::new();
    home.keep(&["main"]);
    for thread in ["3", "5"] {
        let said = home.run(&["--thread", thread, "append", "-r", "user", &format!("in {thread}")]);
        assert_eq!(code(&said), 0, "{}", err(&said));
    }
    let saved = rows(&home.run(&["snapshot", "save", "--json"])).remove(0);
    let id = saved["id"].as_str().unwrap();
    home.run(&["clear"]);
    let restored = rows(&home.run(&["--thread", "3", "snapshot", "restore", id, "--json"]));
    assert_eq!(
        restored[0]["threads"],
        serde_json::json!([{"thread": "3", "restored": 1}]),
        "in a thread, only that thread's"
    );
    let restored = home.run(&["snapshot", "restore", id]);
    assert!(
        err(&restored)
            .contains("2 messages back into the window: 1 outside all threads, 1 into thread 5"),
        "{}",
        err(&restored)
    );
    let threads = |home: &Home| {
        let tail = rows(&home.run(&["tail", "--json", "-n", "3"]));
        let thread = |row: &Value| (row["content"].clone(), row["threadId"].clone());
        tail.iter().map(thread).collect::<Vec<_>>()
    };
    let at = |words: &str, thread: Value| (Value::from(words), thread);
    assert_eq!(
        threads(&home),
        [at("in 3", "3".into()), at("main", Value::Null), at("in 5", "5".into())]
    );
    let moved = home.run(&["context", "restore", id, "--into", "7"]);
    assert!(err(&moved).contains("3 into thread 7"), "{}", err(&moved));
    let moved = home.run(&["snapshot", "restore", id, "--into", ""]);
    assert!(err(&moved).contains("brought 2 messages back"), "{}", err(&moved));
}
