//! `doctor --fix`: what it does, and what it leaves to the user.

use std::os::unix::fs::PermissionsExt;

use super::*;
use ollama::{Answer, Ask};
use talk::Talk;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn place(home: &Home) -> PathBuf {
    home.path().join(".local/share/sottovoce/Conversation")
}

#[test]
fn with_nobody_to_ask_nothing_is_changed_without_a_yes() {
    let home = Home::new();
    home.keep(&["one"]);
    allow(&home.store(), 0o755);
    let refused = home.run(&["doctor", "--fix"]);
    assert_eq!(code(&refused), 2);
    assert!(err(&refused).contains("say --yes"), "{}", err(&refused));
    assert_eq!(mode(&home.store()), 0o755);
    assert_eq!(code(&home.run(&["doctor", "--yes"])), 2, "there is nothing to say yes to");
}

#[test]
fn what_others_may_look_into_is_made_private() {
    let home = Home::new();
    home.keep(&["one"]);
    home.configure(format!(
        "{{\"Context\": {{\"StorageRoot\": {:?}}}}}",
        home.path().join("store")
    ));
    home.keep(&["one"]);
    let store = home.path().join("store");
    std::fs::remove_dir_all(home.store()).unwrap();
    allow(&store, 0o755);
    allow(&home.key(), 0o644);
    let told = home.run(&["doctor"]);
    assert_eq!(code(&told), 3);
    assert!(err(&told).contains("`sottovoce doctor --fix`"), "{}", err(&told));
    let fixed = home.run(&["doctor", "--fix", "--yes"]);
    assert_eq!(code(&fixed), 0, "{}{}", out(&fixed), err(&fixed));
    assert_eq!((mode(&store), mode(&home.key())), (0o700, 0o600));
    assert_eq!(err(&fixed).matches("fixed: other users may").count(), 2, "{}", err(&fixed));
    assert!(err(&fixed).contains("looking again"), "{}", err(&fixed));
}

#[test]
fn a_store_leaves_the_cache_folder_with_all_its_conversations_in_one_step() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    for arguments in [&["--scope", "kitchen", "append", "three"][..], &["artifact", "add", "x"]] {
        std::fs::write(home.path().join("x"), "an artifact").unwrap();
        assert_eq!(code(&home.run(arguments)), 0);
    }
    home.configure("{\n  // mine\n  \"Context\": { \"LastN\": 3 },\n}\n");
    let held = || {
        let scopes = rows(&home.run(&["scopes", "--json"]));
        let one = |row: &Value| {
            (row["scope"].clone(), row["messageCount"].clone(), row["artifacts"].clone())
        };
        (home.words(), scopes.iter().map(one).collect::<Vec<_>>())
    };
    let before = held();
    let fixed = home.run(&["doctor", "--fix", "--yes"]);
    assert_eq!(code(&fixed), 0, "{}{}", out(&fixed), err(&fixed));
    assert!(err(&fixed).contains(&format!("the store is in {} now", place(&home).display())));
    assert!(!home.store().exists() && place(&home).join("vault").is_file());
    assert_eq!((mode(&place(&home)), mode(&place(&home).join("vault"))), (0o700, 0o600));
    let settings = std::fs::read_to_string(home.settings()).unwrap();
    for part in ["// mine", "\"LastN\": 3", place(&home).to_str().unwrap()] {
        assert!(settings.contains(part), "{part}: {settings}");
    }
    assert_eq!(held(), before);
    assert_eq!(code(&home.run(&["verify", "--all"])), 0);
    assert_eq!(code(&home.run(&["append", "and on"])), 0);
    let after = home.run(&["doctor", "--json"]);
    assert!(parsed(&after).iter().all(|line| line["about"] != "cache"), "{}", out(&after));
}

#[test]
fn before_the_first_message_the_settings_name_a_lasting_place() {
    let home = Home::new();
    let fixed = home.run(&["doctor", "--fix", "--yes"]);
    assert_eq!(code(&fixed), 0, "{}", err(&fixed));
    assert!(home.key().is_file(), "the key file was advised too");
    assert_eq!(mode(&home.settings()), 0o600);
    home.keep(&["one"]);
    assert!(place(&home).is_dir() && !home.store().exists());
}

#[test]
fn what_is_in_the_way_or_set_elsewhere_is_left_to_people_with_the_reason() {
    let home = Home::new();
    home.keep(&["one"]);
    std::fs::create_dir_all(place(&home)).unwrap();
    let told = home.run(&["doctor", "--fix", "--yes"]);
    assert!(err(&told).contains("only you can choose one of the two"), "{}", err(&told));
    assert!(err(&told).contains("a server needs a terminal"), "{}", err(&told));
    std::fs::remove_dir(place(&home)).unwrap();
    let mut set = home.command(&["doctor", "--fix", "--yes"]);
    let told = set.env("SOTTOVOCE__CONTEXT__STORAGEROOT", home.store()).output().unwrap();
    assert!(err(&told).contains("is set by SOTTOVOCE__CONTEXT__STORAGEROOT"), "{}", err(&told));
    assert_eq!(home.words(), ["one"]);
    // Every line with advice is handled.
    let rows = parsed(&home.run(&["doctor", "--fix", "--yes", "--json"]));
    let advised = rows.iter().take_while(|row| row.get("state").is_some());
    let advised = advised.filter(|row| row["mend"].is_string()).count();
    let gone_through = rows.iter().filter(|row| row.get("fixed").is_some()).count();
    assert!(advised > 1 && advised == gone_through, "{rows:?}");
    assert!(rows.iter().all(|row| row["fixed"] != false || row["why"].is_string()), "{rows:?}");
}

#[test]
fn a_store_that_was_left_behind_is_reported() {
    let home = Home::new();
    home.keep(&["one"]);
    let copied =
        Command::new("cp").arg("-r").args([home.store(), home.path().join("copy")]).status();
    assert!(copied.unwrap().success());
    assert_eq!(code(&home.run(&["doctor", "--fix", "--yes"])), 0);
    // As if the power had failed before the old folder was removed.
    std::fs::rename(home.path().join("copy"), home.store()).unwrap();
    let said = out(&home.run(&["doctor"]));
    assert!(said.contains("a store that is not used is in"), "{said}");
    let mut moved = home.store().into_os_string();
    moved.push(".moved");
    std::fs::rename(home.store(), &moved).unwrap();
    let fixed = home.run(&["doctor", "--fix", "--yes"]);
    assert_eq!(code(&fixed), 0, "{}", err(&fixed));
    assert!(!Path::new(&moved).exists());
    assert_eq!(home.words(), ["one"]);
}

#[test]
fn a_setting_is_put_right_in_ones_own_file() {
    let talk = Talk::new();
    talk.stub.always_to(Ask::Version, Answer::json(serde_json::json!({ "version": "1" })));
    talk.home.configure("{\"LanguageModel\": {\"NumCtx\": 0}}");
    let fixed = talk.run(&["doctor", "--fix", "--yes"]);
    assert_eq!(code(&fixed), 0, "{}", err(&fixed));
    let settings = std::fs::read_to_string(talk.home.settings()).unwrap();
    assert!(settings.contains("\"NumCtx\": 4096"), "{settings}");
}

#[test]
fn a_store_that_needs_it_is_repaired() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    std::fs::remove_file(home.store().join("head")).unwrap();
    assert_eq!(code(&home.run(&["doctor"])), 3);
    let fixed = home.run(&["doctor", "--fix", "--yes"]);
    assert_eq!(code(&fixed), 0, "{}{}", out(&fixed), err(&fixed));
    assert_eq!(home.words(), ["one", "two"]);
}
