use super::*;

fn copied(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

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
fn an_older_copy_put_back_is_told_by_an_inventory_and_by_nothing_else() {
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
    // Checked against the last one, and the next one taken, in one go.
    let kept = home.run(&["verify", "--expect", named, "--save", named, "--json"]);
    assert_eq!(code(&kept), 0, "{}", err(&kept));
    assert_eq!(parsed(&kept)[0]["expected"], true);

    std::fs::remove_dir_all(home.store()).unwrap();
    copied(&old, &home.store());
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
