//! Keys: entered, checked, exported and changed.

use std::os::unix::fs::PermissionsExt;

use super::*;

const WORDS: &str = "a passphrase of this house";

/// A command with texts on the file descriptors from 3 on.
fn given(home: &Home, arguments: &[&str], texts: &[&str]) -> Output {
    let redirections: String = (3..)
        .zip(texts)
        .map(|(fd, text)| format!(" {fd}<<'END'\n{text}\nEND\n"))
        .collect::<Vec<_>>()
        .join("");
    // Each here-document follows its line, so every redirection needs its own command.
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
    for round in 0..30 {
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

#[test]
fn a_new_key_that_the_store_does_not_know_is_put_aside_and_never_brought_back() {
    let home = Home::new();
    home.keep(&["one"]);
    let waiting = home.key().with_extension("new");
    let retired = "ab".repeat(32) + "\n";
    std::fs::write(&waiting, &retired).unwrap();
    // A taken name is never overwritten.
    let taken = home.key().with_extension("new.1.old");
    std::fs::write(&taken, "cd".repeat(32)).unwrap();
    let changed = home.run(&["rekey"]);
    assert_eq!(code(&changed), 0, "{}", err(&changed));
    assert_ne!(std::fs::read_to_string(home.key()).unwrap(), retired);
    assert!(!waiting.exists());
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "cd".repeat(32));
    let kept = home.key().with_extension("new.2.old");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), retired);
    assert!(err(&changed).contains(kept.to_str().unwrap()), "{}", err(&changed));
    assert_eq!(home.words(), ["one"]);
}

#[test]
fn a_change_that_was_begun_is_ended_under_the_key_that_waits_for_it() {
    let home = Home::new();
    home.keep(&["one"]);
    let old = std::fs::read(home.key()).unwrap();
    assert_eq!(code(&home.run(&["rekey"])), 0);
    let new = std::fs::read(home.key()).unwrap();
    // As a kill before the last step leaves them.
    std::fs::write(home.key().with_extension("new"), &new).unwrap();
    std::fs::write(home.key(), old).unwrap();
    assert_eq!(code(&home.run(&["rekey"])), 0);
    assert_eq!(std::fs::read(home.key()).unwrap(), new);
    assert!(!home.key().with_extension("new").exists());
    assert_eq!(home.words(), ["one"]);
}

#[test]
fn no_change_begins_beside_another_nor_without_a_vault_and_none_leaves_a_key_behind() {
    let home = Home::new();
    home.keep(&["one"]);
    let entries = || home.key().parent().unwrap().read_dir().unwrap().count();
    let folder = std::fs::File::open(home.store()).unwrap();
    folder.lock().unwrap();
    let refused = home.run(&["rekey"]);
    assert_eq!(code(&refused), 2, "{}", err(&refused));
    drop(folder);
    std::fs::remove_file(home.store().join("vault")).unwrap();
    for arguments in [&["rekey"][..], &["rekey", "--to-key-file", "other"]] {
        let refused = home.run(arguments);
        assert_eq!(code(&refused), 1, "{}", err(&refused));
        assert!(err(&refused).contains("`vault` file is missing"), "{}", err(&refused));
        assert_eq!(entries(), 1);
        assert!(!home.path().join("other").exists());
    }
}

#[test]
fn a_named_key_file_is_shown_in_full_with_the_advice_to_back_it_up() {
    let home = Home::new();
    home.keep(&["one"]);
    let changed = home.run(&["rekey", "--to-key-file", "other"]);
    assert_eq!(code(&changed), 0, "{}", err(&changed));
    let said = err(&changed);
    let file = home.path().canonicalize().unwrap().join("other");
    assert!(said.contains(&format!("set Context.KeyFile to {}", file.display())), "{said}");
    assert!(said.contains("back it up"), "{said}");
    let words = home.command(&["tail"]).env("SOTTOVOCE__CONTEXT__KEYFILE", "other").output();
    assert!(out(&words.unwrap()).contains("one"));
}

#[test]
fn a_damaged_vault_is_no_dead_end() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    let file = home.store().join("vault");
    std::fs::write(&file, "").unwrap();
    for arguments in [&["tail"][..], &["ask", "x"], &["verify"], &["repair", "--yes"], &["rekey"]] {
        let refused = home.run(arguments);
        assert_eq!(code(&refused), 1, "{arguments:?}: {}", err(&refused));
        let said = err(&refused);
        assert!(said.contains("`vault.…`") && said.contains("sottovoce repair"), "{said}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"");
    let told = parsed(&home.run(&["doctor", "--json"]));
    let store = told.iter().find(|line| line["about"] == "store").unwrap();
    let mend = store["mend"].as_str().unwrap();
    let (away, repair) = mend.split_once('\n').unwrap();
    assert!(Command::new("sh").args(["-c", away]).status().unwrap().success());
    assert_eq!(repair, "sottovoce repair");
    let mended = home.run(&["repair", "--yes"]);
    assert_eq!(code(&mended), 0, "{}", err(&mended));
    assert_eq!(home.words(), ["one", "two"]);
}

#[test]
fn a_damaged_vault_of_a_passphrase_comes_back_from_its_copy() {
    let home = Home::new();
    let fd = ["--passphrase-fd", "3"];
    given(&home, &[&["init", "--passphrase"], &fd[..]].concat(), &[WORDS]);
    given(&home, &[&["append", "--role", "user", "hello"], &fd[..]].concat(), &[WORDS]);
    std::fs::write(home.store().join("vault"), "{").unwrap();
    let told = parsed(&home.run(&["doctor", "--json"]));
    assert!(told.iter().all(|line| !line.to_string().contains("lost its key file")), "{told:?}");
    let store = told.iter().find(|line| line["about"] == "store").unwrap();
    let mend = store["mend"].as_str().unwrap();
    assert!(Command::new("sh").args(["-c", mend]).status().unwrap().success(), "{mend}");
    let tail = given(&home, &[&["tail"], &fd[..]].concat(), &[WORDS]);
    assert!(out(&tail).contains("hello"), "{}", err(&tail));
}

#[test]
fn an_empty_passphrase_is_called_one_and_a_short_one_is_warned_of() {
    let home = Home::new();
    let fd = ["--passphrase-fd", "3"];
    let init = [&["init", "--passphrase"], &fd[..]].concat();
    let to = ["rekey", "--to-passphrase", "--new-passphrase-fd", "3"];
    let unset = home.command(&["tail"]).env("SOTTOVOCE__CONTEXT__PASSPHRASE", " ").output();
    for empty in [given(&home, &init, &[""]), unset.unwrap()] {
        assert_eq!(code(&empty), 4);
        let said = err(&empty);
        assert!(said.contains("passphrase is empty") && !said.contains("EncryptionKey"), "{said}");
    }
    let short = given(&home, &init, &["seven77"]);
    assert_eq!(code(&short), 0, "{}", err(&short));
    assert!(err(&short).contains("warning: so short a passphrase"), "{}", err(&short));

    let home = Home::new();
    home.keep(&["one"]);
    assert_eq!(code(&given(&home, &to, &[""])), 4);
    for (words, is_short) in [("seven77", true), ("eight888", false)] {
        let arguments = [&to[..], &["--passphrase-fd", "4"]].concat();
        let before = ["seven77"];
        let changed = match is_short {
            true => given(&home, &to, &[words]),
            false => given(&home, &arguments, &[words, before[0]]),
        };
        assert_eq!(code(&changed), 0, "{}", err(&changed));
        assert_eq!(err(&changed).contains("so short a passphrase"), is_short, "{}", err(&changed));
    }
}
