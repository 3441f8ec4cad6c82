//! What the owner is told about the store.

use super::*;

#[test]
fn the_owner_is_told_what_is_stored_where_and_who_could_read_it() {
    let home = Home::new();
    let before = home.run(&["privacy"]);
    assert!(err(&before).contains("nothing is remembered yet"), "{}", err(&before));
    assert!(!home.key().exists());
    home.keep(&["canary one", "canary two"]);
    assert_eq!(code(&home.feed(&["--scope", "dm/ann", "append"], user("canary three"))), 0);
    let shown = out(&home.run(&["privacy"]));
    let (folder, key) = (home.store(), home.key());
    for part in [
        "3 messages in 2 conversations",
        "people: ann",
        &folder.display().to_string(),
        &key.display().to_string(),
        "rekey --to-passphrase",
        "restore backup.sottovoce --key-file key.backup",
        "Holds: message",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.lines().count() <= 24, "{shown}");
    let told = &rows(&home.run(&["privacy", "--json"]))[0];
    assert_eq!((&told["messages"], &told["seal"]["broken"]), (&3.into(), &Value::Null));
    assert_eq!(told["key"]["file"]["onDiskOfStore"], true);
}

#[test]
fn a_seal_that_does_not_hold_is_not_said_to_hold() {
    let home = Home::new();
    home.keep(&["canary"]);
    let files = std::fs::read_dir(home.store()).unwrap().map(|entry| entry.unwrap().path());
    let file =
        files.into_iter().find(|path| path.display().to_string().contains("_0001_")).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let shown = out(&home.run(&["privacy"]));
    assert!(!shown.contains("Holds") && !shown.contains("canary"), "{shown}");
    assert!(shown.contains("cannot be read, see `verify --all`"), "{shown}");
}
