//! Keys: asked for, checked, exported and changed.

use std::os::unix::fs::PermissionsExt;

use super::*;

const WORDS: &str = "a passphrase of this house";

/// A command that finds the texts on file descriptors from 3 on.
fn given(home: &Home, arguments: &[&str], texts: &[&str]) -> Output {
    let redirections: String = (3..)
        .zip(texts)
        .map(|(fd, text)| format!(" {fd}<<'END'\n{text}\nEND\n"))
        .collect::<Vec<_>>()
        .join("");
    // Each here-document follows its line, so every redirection is a command of its own.
    let script: String =
        redirections.split_inclusive("END\n").map(|one| format!("exec{one}")).collect();
    let command = home.command(arguments);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{script}exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_sottovoce")])
        .args(arguments)
        .current_dir(home.path())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null());
    shell.output().unwrap()
}

fn vault(home: &Home) -> String {
    std::fs::read_to_string(home.store().join("vault")).unwrap()
}

fn checked(home: &Home) -> Value {
    rows(&home.run(&["key", "check", "--json"])).remove(0)
}

#[test]
fn a_store_of_a_passphrase_opens_with_it_alone_and_asks_nobody_who_is_not_there() {
    let home = Home::new();
    let made = given(&home, &["init", "--passphrase", "--passphrase-fd", "3"], &[WORDS]);
    assert_eq!(code(&made), 0, "{}", err(&made));
    assert!(vault(&home).contains("argon2id") && !home.key().exists());
    let fd = ["--passphrase-fd", "3"];
    let kept = given(&home, &[&["append", "--role", "user", "hello"], &fd[..]].concat(), &[WORDS]);
    assert_eq!(code(&kept), 0, "{}", err(&kept));

    let unasked = home.run(&["tail"]);
    assert_eq!(code(&unasked), 4);
    assert!(err(&unasked).contains("opens with a passphrase"), "{}", err(&unasked));
    let wrong = given(&home, &[&["tail"], &fd[..]].concat(), &["some other words here"]);
    assert_eq!(code(&wrong), 4, "{}", err(&wrong));
    let tail = given(&home, &[&["tail"], &fd[..]].concat(), &[WORDS]);
    assert!(out(&tail).contains("hello"), "{}", err(&tail));
    let configured = home.command(&["tail"]).env("SOTTOVOCE__CONTEXT__PASSPHRASE", WORDS).output();
    assert!(out(&configured.unwrap()).contains("hello"));
    let twice = given(&home, &[&["init", "--passphrase"], &fd[..]].concat(), &[WORDS]);
    assert_eq!(code(&twice), 2, "{}", err(&twice));

    let said = given(&home, &[&["doctor", "--json"], &fd[..]].concat(), &[WORDS]);
    let said = out(&said);
    assert!(said.contains(r#""about":"salt","state":"good""#), "{said}");
    let copies = home.key().parent().unwrap().read_dir().unwrap();
    let copy = copies.map(|entry| entry.unwrap().path()).next().unwrap();
    std::fs::remove_file(home.store().join("vault")).unwrap();
    let lost = given(&home, &[&["tail"], &fd[..]].concat(), &[WORDS]);
    assert_ne!(code(&lost), 0);
    let said = out(&given(&home, &[&["doctor", "--json"], &fd[..]].concat(), &[WORDS]));
    assert!(said.contains("cp -n "), "{said}");
    std::fs::copy(copy, home.store().join("vault")).unwrap();
    let tail = given(&home, &[&["tail"], &fd[..]].concat(), &[WORDS]);
    assert!(out(&tail).contains("hello"), "{}", err(&tail));
}

#[test]
fn a_key_is_exported_to_a_private_file_that_opens_the_store() {
    let home = Home::new();
    assert!(err(&home.run(&["key", "check"])).contains("nothing is remembered"));
    home.keep(&["one"]);
    let shown = home.run(&["key", "export"]);
    assert_eq!((code(&shown), out(&shown).as_str()), (2, ""));
    let shown = home.run(&["key", "export", "--yes"]);
    assert_eq!(out(&shown), std::fs::read_to_string(home.key()).unwrap());

    let copy = home.path().join("copy of the key");
    let arguments = ["key", "export", "--to", copy.to_str().unwrap()];
    assert_eq!(code(&home.run(&arguments)), 0);
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = home.run(&arguments);
    assert_eq!(code(&again), 2, "{}", err(&again));
    let check = |file: &Path| home.run(&["key", "check", "--key-file", file.to_str().unwrap()]);
    assert_eq!(code(&check(&copy)), 0);
    assert_eq!(code(&check(&home.path().join("none"))), 4);
    std::fs::write(&copy, "0".repeat(64)).unwrap();
    assert_eq!(code(&check(&copy)), 4);
    assert_eq!(checked(&home)["opens"], true);
}

#[test]
fn the_export_of_a_passphrases_key_is_a_key_file_of_its_store() {
    let home = Home::new();
    let fd = ["--passphrase-fd", "3"];
    given(&home, &[&["append", "--role", "user", "hello"], &fd[..]].concat(), &[WORDS]);
    let copy = home.path().join("copy");
    let export = ["key", "export", "--to", copy.to_str().unwrap()];
    let exported = given(&home, &[&export, &fd[..]].concat(), &[WORDS]);
    assert_eq!(code(&exported), 0, "{}", err(&exported));
    let tail = home.command(&["tail"]).env("SOTTOVOCE__CONTEXT__KEYFILE", &copy).output().unwrap();
    assert!(out(&tail).contains("hello"), "{}", err(&tail));
}

#[test]
fn a_new_key_file_takes_the_old_ones_place_and_the_old_one_is_kept() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    let old = std::fs::read_to_string(home.key()).unwrap();
    let old_id = checked(&home)["keys"][0]["id"].as_str().unwrap().to_owned();
    let changed = rows(&home.run(&["rekey", "--json"])).remove(0);
    assert_eq!(
        (changed["done"].as_bool(), &changed["retired"][0]),
        (Some(true), &old_id.clone().into())
    );
    let new = std::fs::read_to_string(home.key()).unwrap();
    assert_ne!(new, old);
    assert_eq!(home.words(), ["one", "two"]);
    let folder = home.key().parent().unwrap().to_owned();
    let kept = folder.join(format!("key.{}.old", old_id.get(..8).unwrap()));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), old);
    assert_eq!(folder.read_dir().unwrap().count(), 2);
    let check = home.run(&["key", "check", "--key-file", kept.to_str().unwrap()]);
    assert_eq!(code(&check), 4, "{}", err(&check));
    assert_eq!(checked(&home)["keys"][0]["id"], changed["id"]);
}

#[test]
fn a_change_to_a_passphrase_and_from_it_to_a_file_again() {
    let home = Home::new();
    home.keep(&["one"]);
    let to = ["rekey", "--to-passphrase", "--new-passphrase-fd", "3"];
    let changed = given(&home, &to, &[WORDS]);
    assert_eq!(code(&changed), 0, "{}", err(&changed));
    assert!(!home.key().exists() && vault(&home).contains("argon2id"));
    assert_eq!(code(&home.run(&["tail"])), 4);
    let back = given(&home, &["rekey", "--passphrase-fd", "3"], &[WORDS]);
    assert_eq!(code(&back), 0, "{}", err(&back));
    assert!(home.key().exists() && vault(&home).contains(r#""kdf":"file""#));
    assert_eq!(home.words(), ["one"]);
}

#[test]
fn a_change_killed_at_any_moment_leaves_a_store_that_opens_and_the_next_run_ends_it() {
    let home = Home::new();
    let lines: String = (0..300).map(|number| user(&number.to_string())).collect();
    assert_eq!(code(&home.feed(&["append"], lines)), 0);
    let id = checked(&home)["keys"][0]["id"].clone();
    let mut killed = 0;
    for round in 0..15 {
        let mut child = home.spawn(&["rekey"]);
        std::thread::sleep(Duration::from_millis(8 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(home.words().len(), 300, "round {round}");
        killed += usize::from(checked(&home)["unfinished"] == true);
    }
    assert!(killed > 0, "no round was killed half-way");
    let ended = home.run(&["rekey"]);
    assert_eq!(code(&ended), 0, "{}", err(&ended));
    let now = checked(&home);
    assert_eq!(
        (now["unfinished"].as_bool(), now["keys"][0]["held"].as_bool()),
        (Some(false), Some(true))
    );
    assert_ne!(now["keys"][0]["id"], id);
    assert!(!home.key().with_extension("new").exists());
    assert_eq!(home.words().len(), 300);
}

#[test]
fn a_wrong_key_begins_no_change_and_leaves_nothing_behind() {
    let home = Home::new();
    home.keep(&["one"]);
    let before = vault(&home);
    std::fs::write(home.key(), "ab".repeat(32) + "\n").unwrap();
    let refused = home.run(&["rekey"]);
    assert_eq!(code(&refused), 4, "{}", err(&refused));
    assert_eq!(vault(&home), before);
    assert_eq!(home.key().parent().unwrap().read_dir().unwrap().count(), 1);
}
