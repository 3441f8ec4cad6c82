use super::*;

#[test]
fn verify_tells_by_its_exit_code_and_names_what_it_found_and_what_to_do() {
    let home = Home::new();
    home.keep(&["one", "two", "three"]);
    assert_eq!(code(&home.run(&["verify"])), 0);
    std::fs::remove_file(&home.records()[1]).unwrap();
    let found = home.run(&["verify", "--json"]);
    assert_eq!(code(&found), 3);
    let rows = parsed(&found);
    assert_eq!(rows[0]["finding"], "missing");
    assert_eq!(rows[0]["seqs"], serde_json::json!([2, 2]));
    assert_eq!(rows[0]["problem"], true);
    assert!(rows[0]["help"].as_str().unwrap().contains("sottovoce forget"));
    let last = rows.last().unwrap();
    assert_eq!((&last["v"], &last["sound"]), (&1.into(), &false.into()));
    let shown = home.run(&["verify"]);
    assert!(out(&shown).contains("number 2: ") && out(&shown).contains("sottovoce forget NUMBER"));
}

#[test]
fn a_finding_in_a_file_names_the_number_that_the_file_claims() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    std::fs::write(&home.records()[1], "rubbish").unwrap();
    let found = parsed(&home.run(&["verify", "--json"]));
    let damaged = found.iter().find(|row| row["finding"] == "damaged").unwrap();
    assert_eq!(damaged["seqs"], serde_json::json!([2, 2]));
    assert!(damaged["help"].as_str().unwrap().contains("repair --quarantine"), "{damaged}");
}

#[test]
fn a_restored_older_copy_is_noticed_at_once_and_on_another_machine_by_an_inventory() {
    let home = Home::new();
    let inventory = home.path().join("elsewhere");
    let named = inventory.to_str().unwrap();
    home.keep(&["one", "two"]);
    let old = home.path().join("old");
    copied(&home.store(), &old);
    home.keep(&["three"]);
    let saved = home.run(&["verify", "--save", named]);
    assert_eq!(code(&saved), 0, "{}", err(&saved));
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(&inventory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&inventory).unwrap().contains("three"));
    home.keep(&["four"]);
    // One command checks against the last inventory and saves the next.
    let kept = home.run(&["verify", "--expect", named, "--save", named, "--json"]);
    assert_eq!(code(&kept), 0, "{}", err(&kept));
    assert_eq!(parsed(&kept)[0]["expected"], true);

    std::fs::remove_dir_all(home.store()).unwrap();
    copied(&old, &home.store());
    for command in [&["verify"][..], &["tail"], &["prompt", "hello"]] {
        let noticed = home.run(command);
        let told = format!("{}{}", out(&noticed), err(&noticed));
        assert!(told.contains("numbers 3 to 4: this store is older than it was on"), "{told}");
    }
    std::fs::remove_dir_all(home.path().join(".local/state")).unwrap();
    assert_eq!(code(&home.run(&["verify"])), 0);
    let held = std::fs::read(&inventory).unwrap();
    let told = home.run(&["verify", "--expect", named, "--save", named, "--json"]);
    assert_eq!(code(&told), 3);
    let rows = parsed(&told);
    assert_eq!(
        (&rows[0]["finding"], &rows[0]["seqs"]),
        (&"rolled-back".into(), &serde_json::json!([3, 4]))
    );
    assert_eq!(rows.last().unwrap()["expected"], false);
    assert_eq!(std::fs::read(&inventory).unwrap(), held, "a good one is not replaced by a bad one");
}

#[test]
fn what_is_no_inventory_is_refused_before_anything_is_read() {
    let home = Home::new();
    home.keep(&["one"]);
    let file = home.path().join("file");
    std::fs::write(&file, "{}").unwrap();
    for named in [file.as_path(), Path::new("/nowhere/at/all")] {
        let refused = home.run(&["verify", "--expect", named.to_str().unwrap()]);
        assert_eq!(code(&refused), 2);
        assert!(err(&refused).contains("verify --save"), "{}", err(&refused));
        assert!(out(&refused).is_empty());
    }
    let refused = home.run(&["verify", "--save", "/nowhere/at/all"]);
    assert_eq!(code(&refused), 2, "{}", err(&refused));
}

#[test]
fn an_inventory_takes_the_place_of_nothing_but_an_inventory() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    let at = |name: &str| home.path().join(name);
    std::fs::write(at("words"), "mine").unwrap();
    std::fs::write(at("json"), "{\"v\":1}").unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    let pipe = Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(pipe.success());
    let link = |from: &Path, name: &str| std::os::unix::fs::symlink(from, at(name)).unwrap();
    link(&home.key(), "link to the key");
    link(&at("nothing"), "link to nothing");
    link(&home.store(), "link to the store");
    std::fs::write(at("appsettings.json"), "{}").unwrap();
    std::fs::create_dir(at("elsewhere")).unwrap();
    assert_eq!(code(&home.run(&["verify", "--save", "elsewhere/inventory"])), 0);
    link(&at("elsewhere/inventory"), "link to an inventory");
    let [key, store] = [home.key(), home.store()];
    let before = listing(&home);
    for named in [
        key.as_path(),
        &key.with_extension("new"),
        &key.parent().unwrap().join("inventory"),
        &store.join("head"),
        &store.join("vault"),
        &store.join("inventory"),
        &home.records()[0],
        Path::new("appsettings.json"),
        Path::new("beside the settings"),
        Path::new("link to the store/inventory"),
        Path::new("words"),
        Path::new("json"),
        Path::new("folder"),
        Path::new("pipe"),
        Path::new("link to the key"),
        Path::new("link to nothing"),
        Path::new("link to an inventory"),
        Path::new("/dev/null"),
        Path::new("/dev/stdout"),
        Path::new(".."),
    ] {
        let refused = ended(home.spawn(&["verify", "--save", named.to_str().unwrap()]));
        assert_eq!(code(&refused), 2, "{named:?}: {}", err(&refused));
        assert!(out(&refused).is_empty(), "{named:?} was refused only after the check");
        assert_eq!(listing(&home), before, "{named:?}");
    }
    // Nothing else beside it is changed.
    std::fs::write(at("elsewhere/inventory.new"), "mine").unwrap();
    std::fs::write(at("elsewhere/inventory.1.new"), "mine").unwrap();
    home.keep(&["three"]);
    let older = std::fs::read(at("elsewhere/inventory")).unwrap();
    assert_eq!(code(&home.run(&["verify", "--save", "elsewhere/inventory"])), 0);
    assert_ne!(std::fs::read(at("elsewhere/inventory")).unwrap(), older);
    for name in ["elsewhere/inventory.new", "elsewhere/inventory.1.new"] {
        assert_eq!(std::fs::read(at(name)).unwrap(), b"mine");
    }
    assert_eq!(at("elsewhere").read_dir().unwrap().count(), 3);
}

/// Everything in a home: names, types and contents.
fn listing(home: &Home) -> String {
    let script = r#"find . ! -name lock -printf '%p %y %l\n' | sort; find . -type f | sort | xargs -d '\n' sha256sum"#;
    out(&Command::new("sh").args(["-c", script]).current_dir(home.path()).output().unwrap())
}

#[test]
fn an_inventory_from_under_another_key_is_compared_by_number_and_taken_anew() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    std::fs::create_dir(home.path().join("elsewhere")).unwrap();
    let file = "elsewhere/inventory";
    assert_eq!(code(&home.run(&["verify", "--save", file])), 0);
    let changed = home.run(&["rekey"]);
    assert_eq!(code(&changed), 0);
    assert!(err(&changed).contains("save new inventories"), "{}", err(&changed));
    let rows = rows(&home.run(&["verify", "--expect", file, "--save", file, "--json"]));
    assert_eq!((&rows[0]["finding"], &rows[0]["problem"]), (&"not-compared".into(), &false.into()));
    assert_eq!((&rows[1]["sound"], &rows[1]["expected"]), (&true.into(), &true.into()));
    let again = home.run(&["verify", "--expect", file]);
    assert_eq!(code(&again), 0);
    assert!(!out(&again).contains("not-compared"), "{}", out(&again));
}

#[test]
fn one_number_is_not_numbers() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    home.run(&["forget", "1", "--yes"]);
    let verified = out(&home.run(&["verify"]));
    assert!(verified.contains("1 message") && verified.contains("1 number recorded"), "{verified}");
}

#[test]
fn a_conversation_that_was_moved_away_and_files_between_are_named_by_a_check_of_all() {
    let home = Home::new();
    home.keep(&["one"]);
    for scope in ["dm/42", "dm/43"] {
        let fed = home.feed(&["--scope", scope, "append"], user("hello"));
        assert_eq!(code(&fed), 0, "{}", err(&fed));
    }
    let inventory = home.path().join("elsewhere");
    let named = inventory.to_str().unwrap();
    let sound = home.run(&["verify", "--all", "--save", named]);
    assert_eq!(code(&sound), 0, "{}", out(&sound));
    assert_eq!(code(&home.run(&["verify", "--all", "--expect", named])), 0);
    std::fs::rename(home.store().join("dms/42"), home.path().join("42")).unwrap();
    std::fs::write(home.store().join("dms/notes.txt"), "x").unwrap();
    let found = home.run(&["verify", "--all"]);
    assert_eq!(code(&found), 3);
    assert!(
        out(&found).contains("dms/42: ") && out(&found).contains("dms/notes.txt: "),
        "{}",
        out(&found)
    );
    assert_eq!(code(&home.run(&["verify", "--all", "--expect", named])), 3);
    std::fs::remove_file(home.store().join("dms/notes.txt")).unwrap();
    assert_eq!(code(&home.run(&["repair", "--catalog"])), 2);
    assert_eq!(code(&home.run(&["repair", "--catalog", "--yes"])), 0);
    assert_eq!(code(&home.run(&["verify", "--all"])), 0);
    let told = home.run(&["verify", "--all", "--expect", named]);
    assert_eq!(code(&told), 0, "accepted as gone: {}", out(&told));
}
