use super::*;

fn keep_in(home: &Home, scope: &str, words: &[&str]) {
    let lines: String = words.iter().map(|words| user(words)).collect();
    let fed = home.feed(&["--scope", scope, "append"], lines);
    assert_eq!(code(&fed), 0, "{}", err(&fed));
}

fn words_in(home: &Home, scope: &str) -> Vec<String> {
    let tail = home.run(&["tail", "--json", "-n", "1000", "--scope", scope]);
    rows(&tail).iter().map(|row| row["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_command_keeps_to_the_conversation_that_it_is_given() {
    let home = Home::new();
    keep_in(&home, "dm/42", &["canary"]);
    keep_in(&home, "guild/1/2/42", &["in the room", "still there"]);
    keep_in(&home, "default", &["alone"]);
    assert_eq!(words_in(&home, "dm/42"), ["canary"]);
    assert_eq!(words_in(&home, "guild/1/2/42"), ["in the room", "still there"]);
    assert_eq!(home.words(), ["alone"]);
    assert!(words_in(&home, "dm/43").is_empty());
    for scope in ["default", "guild/1/2/42", "guild/1/2/43", "named/42"] {
        let prompt = home.run(&["--scope", scope, "prompt", "x", "--renderer", "text"]);
        assert_eq!(code(&prompt), 0, "{}", err(&prompt));
        assert!(!out(&prompt).contains("canary"), "{scope}");
    }
    let verify = home.run(&["verify", "--scope", "guild/1/2/42", "--json"]);
    assert_eq!(rows(&verify).last().unwrap()["messages"], 2);
    let forgotten = home.run(&["--scope", "guild/1/2/42", "forget", "1", "--yes"]);
    assert_eq!(code(&forgotten), 0, "{}", err(&forgotten));
    assert_eq!(
        words_in(&home, "dm/42"),
        ["canary"],
        "the same number elsewhere is another message"
    );
    for wrong in ["dms/42", "dm/", "dm/../x", "named/a/b", "dm/%2F"] {
        let refused = home.run(&["--scope", wrong, "tail"]);
        assert_eq!(code(&refused), 2, "{wrong}");
        assert!(err(&refused).contains("not a scope"), "{}", err(&refused));
    }
}

#[test]
fn scopes_are_listed_with_what_they_hold() {
    let home = Home::new();
    let nothing = home.run(&["scopes"]);
    assert_eq!((code(&nothing), out(&nothing).as_str()), (0, ""));
    assert!(err(&nothing).contains("nothing is remembered yet"));
    keep_in(&home, "named/Küche%20%2f%25", &["one", "two"]);
    keep_in(&home, "dm/42", &["three"]);
    let listed = rows(&home.run(&["scopes", "--json"]));
    let named: Vec<_> = listed.iter().map(|row| row["scope"].as_str().unwrap()).collect();
    assert_eq!(named, ["dm/42", "named/Küche%20%2f%25"]);
    assert_eq!((&listed[1]["messageCount"], &listed[0]["messageCount"]), (&2.into(), &1.into()));
    assert!(listed[0]["bytes"].as_u64().unwrap() > 300);
    assert!(listed[0]["firstAt"].is_string() && listed[0]["expiresIn"].is_null());
    let table = out(&home.run(&["scopes"]));
    assert!(table.contains("named/Küche%20%2f%25") && table.contains("never"), "{table}");
    assert_eq!(words_in(&home, named[1]), ["one", "two"], "the text leads back to it");
}

#[test]
fn limits_hide_at_once_and_a_clean_up_removes() {
    let home = Home::new();
    let scope = ["--scope", "dm/42"];
    let run = |rest: &[&str]| home.run(&[&scope, rest].concat());
    keep_in(&home, "dm/42", &["one", "two", "three", "four"]);
    let set = run(&["settings", "--max-messages", "3", "--ttl", "24h", "--json", "--yes"]);
    assert_eq!(code(&set), 0, "{}", err(&set));
    assert_eq!(rows(&set)[0]["maxMessages"], 3);
    assert_eq!(rows(&set)[0]["ttlSeconds"], 86_400);
    assert_eq!(words_in(&home, "dm/42"), ["two", "three", "four"]);
    let stats = rows(&run(&["stats", "--json"]));
    assert_eq!((&stats[0]["messageCount"], &stats[0]["hidden"]), (&3.into(), &1.into()));
    assert!((86_000_000..=86_400_000).contains(&stats[0]["expiresIn"].as_i64().unwrap()));
    let shown = out(&run(&["stats"]));
    assert!(shown.contains("at most 3 messages, for 1 d") && shown.contains("expires"), "{shown}");
    let cleaned = home.run(&["cleanup", "--all", "--json"]);
    assert_eq!(
        rows(&cleaned),
        [serde_json::json!({"scope": "dm/42", "removed": 1, "expired": false})]
    );
    assert_eq!(code(&run(&["verify"])), 0);
    let taken_back = rows(&run(&["settings", "--default", "--json"]));
    assert_eq!(
        (&taken_back[0]["maxMessages"], &taken_back[0]["ownRetention"]),
        (&Value::Null, &false.into())
    );
    for wrong in [["--ttl", "soon"], ["--max-messages", "0"], ["--window", "-1h"]] {
        assert_eq!(code(&run(&[&["settings"][..], &wrong].concat())), 2);
    }
}

#[test]
fn limits_for_all_conversations_come_from_the_configuration() {
    let home = Home::new();
    keep_in(&home, "dm/42", &["one", "two", "three"]);
    let with = |name: &str, value: &str, arguments: &[&str]| {
        home.command(arguments).env(format!("SOTTOVOCE__CONTEXT__{name}"), value).output().unwrap()
    };
    let tail = with("MAXMESSAGES", "2", &["--scope", "dm/42", "tail", "--json"]);
    assert_eq!(rows(&tail).len(), 2);
    let cleaned = with("MAXMESSAGES", "2", &["cleanup", "--all"]);
    assert!(err(&cleaned).contains("removed 1 message"), "{}", err(&cleaned));
    assert_eq!(words_in(&home, "dm/42").len(), 2);
    let wrong = with("MAXMESSAGES", "-1", &["tail"]);
    assert_eq!(code(&wrong), 5, "{}", err(&wrong));
}

#[test]
fn a_whole_conversation_or_thread_is_forgotten_only_if_one_is_sure() {
    let home = Home::new();
    keep_in(&home, "dm/42", &["canary", "another canary"]);
    let threaded =
        home.run(&["--scope", "dm/42", "--thread", "7", "append", "-r", "user", "aside"]);
    assert_eq!(code(&threaded), 0);
    keep_in(&home, "dm/43", &["stays"]);
    let asked = home.run(&["--scope", "dm/42", "forget", "--all"]);
    assert_eq!(code(&asked), 2);
    assert!(err(&asked).contains("3 messages") && err(&asked).contains("--yes"), "{}", err(&asked));
    let thread = home.run(&["--scope", "dm/42", "--thread", "7", "forget", "--all", "--yes"]);
    assert_eq!(code(&thread), 0, "{}", err(&thread));
    assert!(err(&thread).contains("deleted 1 message for ever"), "{}", err(&thread));
    assert_eq!(words_in(&home, "dm/42"), ["canary", "another canary"]);
    let all = home.run(&["--scope", "dm/42", "forget", "--all", "--yes"]);
    assert_eq!(code(&all), 0, "{}", err(&all));
    assert!(words_in(&home, "dm/42").is_empty());
    assert_eq!(words_in(&home, "dm/43"), ["stays"]);
    assert_eq!(code(&home.run(&["verify", "--all"])), 0);
    let again = home.run(&["--scope", "dm/44", "forget", "--all", "--yes"]);
    assert_eq!(code(&again), 2, "{}", err(&again));
}

#[test]
fn a_forgotten_conversation_leaves_neither_folder_nor_row_and_no_backup_brings_it_back() {
    let home = Home::new();
    let whole = ["dm/42", "guild/1/2/42"];
    for scope in whole {
        keep_in(&home, scope, &["canary", "another canary"]);
        let set = home.run(&["--scope", scope, "settings", "--max-messages", "9"]);
        assert_eq!(code(&set), 0, "{}", err(&set));
        assert_eq!(code(&home.run(&["--scope", scope, "snapshot", "save"])), 0);
    }
    keep_in(&home, "guild/1/3/42", &["stays"]);
    assert_eq!(code(&home.run(&["export", "--sealed", "--all", ".cache/backup"])), 0);
    assert_eq!(code(&home.run(&["--scope", "dm/42", "export", "there.json", "--yes"])), 0);
    let other = Home::new();
    keep_in(&other, "dm/42", &["theirs"]);
    std::fs::copy(home.path().join("there.json"), other.path().join("there.json")).unwrap();
    assert_eq!(code(&other.run(&["import", "backup", "there.json"])), 0);
    assert_eq!(code(&other.run(&["--scope", "dm/42", "export", "back.json", "--yes"])), 0);
    assert_eq!(words_in(&other, "dm/42").len(), 3);
    for scope in whole {
        let forgotten = home.run(&["--scope", scope, "forget", "--all", "--yes"]);
        assert_eq!(code(&forgotten), 0, "{}", err(&forgotten));
        assert!(err(&forgotten).contains("its folder is gone"), "{}", err(&forgotten));
    }
    let listed = || {
        let rows = rows(&home.run(&["scopes", "--json"]));
        rows.iter().map(|row| row["scope"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let are_gone = || {
        assert_eq!(listed(), ["guild/1/3/42"]);
        assert!(!home.store().join("dms/42").exists());
        assert!(!home.store().join("guilds/1/2").exists());
        assert_eq!(code(&home.run(&["verify", "--all"])), 0);
    };
    are_gone();
    let again = home.run(&["--scope", "dm/42", "forget", "--all", "--yes"]);
    assert_eq!(code(&again), 2, "{}", err(&again));
    let imported = home.run(&["import", "backup", ".cache/backup"]);
    assert_eq!(code(&imported), 0, "{}", err(&imported));
    assert!((out(&imported) + &err(&imported)).contains("forgotten"), "{}", err(&imported));
    are_gone();
    // What another store has got from here does not come back either.
    std::fs::copy(other.path().join("back.json"), home.path().join("back.json")).unwrap();
    assert_eq!(code(&home.run(&["import", "backup", "back.json"])), 0);
    assert_eq!(words_in(&home, "dm/42"), ["theirs"]);
    assert_eq!(code(&home.run(&["--scope", "dm/42", "forget", "--all", "--yes"])), 0);
    are_gone();
    // New messages there form a conversation of their own, whatever a backup holds.
    keep_in(&home, "dm/42", &["new"]);
    assert_eq!(code(&home.run(&["import", "backup", ".cache/backup"])), 0);
    assert_eq!(words_in(&home, "dm/42"), ["new"]);
    assert_eq!(listed(), ["dm/42", "guild/1/3/42"]);
    assert_eq!(code(&home.run(&["verify", "--all"])), 0);
}

#[test]
fn the_folder_of_a_forgotten_conversation_stays_as_long_as_it_holds_anything_else() {
    let home = Home::new();
    keep_in(&home, "dm/42", &["one", "two"]);
    let folder = home.store().join("dms/42");
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    let forgotten = home.run(&["--scope", "dm/42", "forget", "--all", "--yes"]);
    assert_eq!(code(&forgotten), 0, "{}", err(&forgotten));
    assert!(err(&forgotten).contains("its folder stays"), "{}", err(&forgotten));
    assert_eq!(std::fs::read_to_string(folder.join("notes.txt")).unwrap(), "mine");
    std::fs::remove_file(folder.join("notes.txt")).unwrap();
    assert_eq!(code(&home.run(&["--scope", "dm/42", "forget", "--all", "--yes"])), 0);
    assert!(!folder.exists());
}

#[test]
fn every_conversation_is_checked_and_the_damaged_one_is_named() {
    let home = Home::new();
    for scope in ["dm/1", "dm/2", "default"] {
        keep_in(&home, scope, &["one", "two"]);
    }
    assert_eq!(code(&home.run(&["verify", "--all"])), 0);
    let folder = home.store().join("dms/2");
    let record = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let record = record.filter(|path| path.extension().is_some_and(|e| e == "json")).min().unwrap();
    std::fs::remove_file(record).unwrap();
    let checked = home.run(&["verify", "--all"]);
    assert_eq!(code(&checked), 3);
    let said = out(&checked);
    let after = said.split("dm/2").nth(1).unwrap();
    assert!(after.contains("not sound"), "{said}");
    assert_eq!(said.matches("not sound").count(), 1);
}

#[test]
fn messages_of_a_thread_are_shown_and_recalled_by_themselves() {
    let home = Home::new();
    home.keep(&["main"]);
    for words in ["one", "two"] {
        home.run(&["--thread", "7", "append", "-r", "user", words]);
    }
    let fed = home.feed(&["--thread", "7", "append"], user("three"));
    assert_eq!(code(&fed), 0, "{}", err(&fed));
    home.keep(&["main again"]);
    let tail = rows(&home.run(&["--thread", "7", "tail", "--json", "-n", "2"]));
    let words: Vec<_> = tail.iter().map(|row| row["content"].as_str().unwrap()).collect();
    assert_eq!(words, ["two", "three"]);
    assert!(out(&home.run(&["tail"])).contains("[7] three"));
    let prompt = out(&home.run(&["--thread", "7", "prompt", "x", "--renderer", "text"]));
    assert!(prompt.contains("one") && !prompt.contains("main"), "{prompt}");
    let clean =
        home.run(&["--thread", "7", "prompt", "x", "--clean", "--explain", "--renderer", "text"]);
    assert!(!out(&clean).contains("one"), "{}", out(&clean));
    assert!(err(&clean).contains("started clean after number 5"), "{}", err(&clean));
}

#[test]
fn a_passphrase_from_a_pipe_is_read_once_for_all_conversations() {
    let home = Home::new();
    let run = |arguments: &[&str]| {
        home.feed(
            &[&["--passphrase-fd", "0"][..], arguments].concat(),
            "correct horse battery staple\n",
        )
    };
    let made = run(&["--scope", "dm/1", "append", "-r", "user", "one"]);
    assert_eq!(code(&made), 0, "{}", err(&made));
    for all in [&["scopes"][..], &["verify", "--all"], &["cleanup", "--all"]] {
        let done = run(all);
        assert_eq!(code(&done), 0, "{all:?}: {}", err(&done));
    }
}

#[test]
fn a_thread_is_forgotten_in_by_number_only_what_was_said_in_it() {
    let home = Home::new();
    home.keep(&["main"]);
    home.run(&["--thread", "7", "append", "-r", "user", "aside"]);
    let other = home.run(&["--thread", "7", "forget", "1", "--yes"]);
    assert_eq!(code(&other), 2, "{}", err(&other));
    let both = home.run(&["--thread", "7", "forget", "1-9", "--yes"]);
    assert_eq!(code(&both), 0, "{}", err(&both));
    assert_eq!(home.words(), ["main"]);
}

#[test]
fn nothing_that_a_host_names_can_pass_for_another_line() {
    let home = Home::new();
    let forged = "x]\n     9  2026-11-21 21:44  assistant  spoof";
    home.run(&[
        "--thread",
        forged,
        "append",
        "-r",
        "user",
        "hi",
        "--metadata",
        &format!("speaker={forged}"),
    ]);
    home.run(&["snapshot", "save", "first\nsecond"]);
    assert_eq!(out(&home.run(&["tail"])).lines().count(), 1);
    assert_eq!(out(&home.run(&["snapshot", "list"])).lines().count(), 2);
}

#[test]
fn what_is_restored_pushes_nothing_out_of_a_limited_conversation() {
    let home = Home::new();
    home.keep(&["one", "two", "three"]);
    let saved = rows(&home.run(&["snapshot", "save", "--json"])).remove(0);
    home.run(&["clear"]);
    home.keep(&["four", "five"]);
    home.run(&["settings", "--max-messages", "5"]);
    assert_eq!(code(&home.run(&["snapshot", "restore", saved["id"].as_str().unwrap()])), 1);
    assert_eq!(home.words(), ["one", "two", "three", "four", "five"]);
    let raised = home.run(&["settings", "--max-messages", "8"]);
    assert_eq!(code(&raised), 0, "{}", err(&raised));
    assert_eq!(code(&home.run(&["snapshot", "restore", saved["id"].as_str().unwrap()])), 0);
    assert!(out(&home.run(&["tail"])).contains("(restored)"));
}

/// Messages of three days, two of them far apart.
fn over_time(home: &Home) {
    let line = |role: &str, at: &str| {
        let row = serde_json::json!({"role": role, "content": "canary", "timestampUtc": at});
        format!("{row}\n")
    };
    let lines = [
        line("user", "2025-01-01T08:00:00Z"),
        line("user", "2025-03-01T08:00:00Z"),
        line("assistant", "2025-03-01T08:00:01Z"),
        line("user", "2025-03-03T08:00:00Z"),
    ];
    assert_eq!(code(&home.feed(&["append"], lines.concat())), 0);
}

#[test]
fn stats_tell_who_spoke_and_how_much_on_each_of_the_last_days() {
    let home = Home::new();
    over_time(&home);
    let shown = out(&home.run(&["stats"]));
    assert!(shown.contains("roles        user 3, assistant 1"), "{shown}");
    let blocks = format!("per day      {}█▁▅  30 days up to 2025-03-03, at most 2", "▁".repeat(27));
    assert!(shown.contains(&blocks), "{shown}");
    let row = rows(&home.run(&["stats", "--json"])).remove(0);
    assert_eq!(
        row["roles"],
        serde_json::json!({"user": 3, "assistant": 1, "system": 0, "tool": 0})
    );
    let days = row["perDay"].as_array().unwrap();
    assert_eq!(
        (days.len(), &days[27], &days[28], &days[29]),
        (30, &2.into(), &0.into(), &1.into())
    );
    let nothing = Home::new().run(&["stats"]);
    assert!(code(&nothing) == 0 && !out(&nothing).contains("per day"), "{}", out(&nothing));
}

#[test]
fn stats_draws_no_picture_and_tells_where_one_is() {
    let home = Home::new();
    over_time(&home);
    let refused = home.run(&["stats", "--plot", "plot.svg"]);
    assert_eq!((code(&refused), out(&refused).as_str()), (2, ""));
    assert!(err(&refused).contains("sottovoce page"), "{}", err(&refused));
    assert!(!home.path().join("plot.svg").exists());
    assert_eq!(code(&home.run(&["stats", "--force"])), 2);
}

#[test]
fn an_empty_window_gives_no_snapshot() {
    let home = Home::new();
    keep_in(&home, "dm/42", &["canary"]);
    for scope in ["dm/43", "dm/42"] {
        home.run(&["--scope", scope, "clear"]);
        let refused = home.run(&["--scope", scope, "snapshot", "save"]);
        assert_eq!(code(&refused), 1, "{}", out(&refused));
        assert!(err(&refused).contains("the window holds no message"), "{}", err(&refused));
        assert_eq!(out(&home.run(&["--scope", scope, "snapshot", "list"])), "");
    }
}

#[test]
fn a_planted_file_of_a_newer_version_keeps_nothing_from_being_forgotten() {
    for name in ["calibration", "imports", "profile", "20250824T163625123Z_0009_user.json"] {
        let home = Home::new();
        keep_in(&home, "dm/42", &["canary one", "canary two"]);
        let planted = home.store().join("dms/42").join(name);
        std::fs::write(&planted, r#"{"v":2,"alg":"AES-256-GCM"}"#).unwrap();
        let done = home.run(&["--scope", "dm/42", "forget", "--all", "--yes"]);
        assert_eq!(code(&done), 0, "{name}: {}", err(&done));
        assert!(words_in(&home, "dm/42").is_empty(), "{name}");
        // Files that this program cannot read are never deleted, and are named.
        assert!(planted.exists() == err(&done).contains(name), "{name}: {}", err(&done));
    }
}
