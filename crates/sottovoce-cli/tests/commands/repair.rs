use super::*;

#[test]
fn a_lost_head_is_renewed_after_a_yes_and_the_second_check_counts() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    let nothing = home.run(&["repair"]);
    assert_eq!(code(&nothing), 0);
    assert!(err(&nothing).contains("nothing that can be repaired"), "{}", err(&nothing));
    std::fs::remove_file(home.store().join("head")).unwrap();
    assert_eq!(code(&home.run(&["verify"])), 3);

    let told = home.run(&["repair", "--dry-run", "--json"]);
    assert_eq!(code(&told), 3);
    assert_eq!(parsed(&told)[0]["remedy"], "renew-head");
    assert_eq!(parsed(&told)[0]["done"], false);
    for asked in [&["repair"][..], &["repair", "--json"]] {
        let refused = home.run(asked);
        assert_eq!(code(&refused), 2, "nobody is there to ask");
        assert!(err(&refused).contains("--yes"), "{}", err(&refused));
    }
    assert!(!home.store().join("head").exists());

    let mended = home.run(&["repair", "--yes", "--json"]);
    assert_eq!(code(&mended), 0, "{}", err(&mended));
    let rows = parsed(&mended);
    assert_eq!((&rows[0]["remedy"], &rows[0]["done"]), (&"renew-head".into(), &true.into()));
    assert_eq!(rows.last().unwrap()["sound"], true);
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn a_repair_does_not_excuse_what_it_cannot_mend() {
    let home = Home::new();
    home.keep(&["one", "two", "three"]);
    std::fs::remove_file(home.store().join("head")).unwrap();
    std::fs::remove_file(&home.records()[1]).unwrap();
    let mended = home.run(&["repair", "--yes"]);
    assert_eq!(code(&mended), 3);
    let said = out(&mended);
    assert!(said.contains("repaired") && said.contains("number 2: "), "{said}");
}

#[test]
fn what_is_not_the_stores_moves_only_when_asked() {
    let home = Home::new();
    home.keep(&["one"]);
    std::fs::write(home.store().join("notes"), "mine").unwrap();
    assert_eq!(code(&home.run(&["repair", "--yes"])), 3);
    assert!(home.store().join("notes").exists());
    let moved = home.run(&["repair", "--yes", "--quarantine"]);
    assert_eq!(code(&moved), 0, "{}", err(&moved));
    assert_eq!(std::fs::read(home.store().join("quarantine/notes")).unwrap(), b"mine");
    assert!(out(&home.run(&["verify"])).contains("quarantined"));
}

#[test]
fn a_copy_under_another_name_is_set_aside_and_never_removed() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    let record = &home.records()[1];
    let copy = record.to_str().unwrap().replace("user", "tool");
    std::fs::copy(record, &copy).unwrap();
    home.run(&["repair", "--yes"]);
    assert!(Path::new(&copy).exists(), "nothing that does not open is touched unasked");
    let mended = home.run(&["repair", "--yes", "--quarantine"]);
    assert_eq!(code(&mended), 0, "{}", err(&mended));
    let name = Path::new(&copy).file_name().unwrap();
    assert!(!Path::new(&copy).exists() && home.store().join("quarantine").join(name).exists());
    assert_eq!(home.words(), ["one", "two"]);
}

#[test]
fn a_pack_that_is_wrong_in_two_ways_is_mended_once() {
    let home = Home::new();
    let lines: String = (0..200).map(|number| user(&number.to_string())).collect();
    assert_eq!(code(&home.feed(&["append"], lines)), 0);
    assert_eq!(code(&home.run(&["pack"])), 0);
    let packs = home.store().join("packs").read_dir().unwrap();
    let pack = packs.map(|entry| entry.unwrap().path()).next().unwrap();
    let text = std::fs::read_to_string(&pack).unwrap();
    // One record fewer than its name says, and malformed lines.
    let (_, rest) = text.split_once('\n').unwrap();
    std::fs::write(&pack, format!("{rest}rubbish\n")).unwrap();
    let found = parsed(&home.run(&["verify", "--json"]));
    assert!(found.iter().filter(|row| row["finding"] == "damaged").count() > 1, "{found:?}");
    let mended = out(&home.run(&["repair", "--yes"]));
    assert_eq!(mended.matches("make a sound pack").count(), 1, "{mended}");
}
