//! Settings of a file in the current folder, which another person may have written.

use super::*;

fn local(home: &Home, settings: &Value) {
    std::fs::write(home.path().join("appsettings.json"), settings.to_string()).unwrap();
}

/// The origin of a setting.
fn origin(home: &Home, key: &str) -> String {
    let all = rows(&home.run(&["config", "--json"]));
    let setting = all.into_iter().find(|row| row["key"] == key).unwrap();
    setting["origin"].as_str().unwrap().to_owned()
}

#[test]
fn a_strangers_file_in_the_current_folder_moves_neither_words_nor_keys() {
    let home = Home::new();
    home.keep(&["one"]);
    let stranger = home.path().join("stranger");
    local(
        &home,
        &serde_json::json!({
            "Context": {
                "StorageRoot": stranger, "KeyFile": stranger.join("key"), "MaxMessages": 1,
                "EncryptionKey": "canary, a key of somebody else", "Passphrase": "canary passphrase",
                "KeyFd": 0, "KeyCredential": "canary", "TtlSeconds": 1, "LastN": 3,
            },
            "LanguageModel": { "BaseUrl": "http://192.0.2.1:1", "AllowCloud": true },
            "Personas": { "BackupFolder": stranger, "RemoveAfterDays": 0, "DailyBackups": 0 },
            "Mcp": { "Scopes": "default", "Token": "canary" },
        }),
    );
    let asked = home
        .command(&["ask", "two"])
        .env("SOTTOVOCE__LANGUAGEMODEL__BASEURL", "http://127.0.0.1:1")
        .output()
        .unwrap();
    assert_eq!(code(&asked), 6, "{}", err(&asked));
    let said = err(&asked);
    let note = said.lines().next().unwrap();
    for key in [
        "Context.StorageRoot",
        "Context.KeyFile",
        "Context.MaxMessages",
        "Context.EncryptionKey",
        "Context.Passphrase",
        "Context.KeyFd",
        "Context.KeyCredential",
        "Context.TtlSeconds",
        "LanguageModel.AllowCloud",
        "Personas.BackupFolder",
        "Personas.RemoveAfterDays",
        "Personas.DailyBackups",
        "Mcp.Scopes",
        "Mcp.Token",
    ] {
        assert!(note.contains(key), "{key}: {note}");
    }
    assert!(note.contains("appsettings.json in this folder is not followed"), "{note}");
    assert!(note.contains(home.settings().to_str().unwrap()), "{note}");
    // The environment sets that one anyway, and this one is harmless.
    assert!(
        !note.contains("BaseUrl") && !note.contains("LastN") && !said.contains("canary"),
        "{said}"
    );
    assert_eq!(said.matches("not followed").count(), 1, "{said}");
    assert!(!stranger.exists());
    assert_eq!(home.words(), ["one", "two"]);
    assert_eq!(origin(&home, "Context.LastN"), "appsettings.json");
    assert_eq!(origin(&home, "Context.StorageRoot"), "default");
    let shown = home.command(&["config"]).env_remove("SOTTOVOCE__LANGUAGEMODEL__BASEURL").output();
    let shown = shown.unwrap();
    assert!(err(&shown).contains("LanguageModel.BaseUrl"), "{}", err(&shown));
    assert!(out(&shown).contains("not followed: Mcp.Token \"(redacted)\""), "{}", out(&shown));
    assert!(out(&home.run(&["doctor"])).contains("is not followed in"));
}

#[test]
fn the_users_own_file_and_one_that_is_named_are_followed_in_everything() {
    let home = Home::new();
    let (mine, named) = (home.path().join("mine"), home.path().join("named"));
    let root = |root: &Path| serde_json::json!({"Context": {"StorageRoot": root, "LastN": 3}});
    home.configure(root(&mine).to_string());
    // A value equal to the user's own needs no note.
    local(&home, &serde_json::json!({"Context": {"StorageRoot": mine, "LastN": 4}}));
    let kept = home.run(&["append", "one"]);
    assert_eq!(code(&kept), 0);
    assert!(mine.is_dir() && !err(&kept).contains("not followed"), "{}", err(&kept));
    assert_eq!(origin(&home, "Context.LastN"), "appsettings.json");

    local(&home, &root(&named));
    let kept = home.run(&["--config", "appsettings.json", "append", "two"]);
    assert_eq!(code(&kept), 0);
    assert!(named.is_dir() && !err(&kept).contains("not followed"), "{}", err(&kept));
    // In the configuration folder the file is the user's own.
    let mut inside = home.command(&["append", "three"]);
    let inside = inside.current_dir(home.settings().parent().unwrap()).output().unwrap();
    assert!(!err(&inside).contains("not followed"), "{}", err(&inside));
    std::fs::remove_file(home.path().join("appsettings.json")).unwrap();
    assert_eq!(home.words(), ["one", "three"]);
}

#[test]
fn the_sample_of_this_project_in_the_current_folder_is_nothing_to_speak_of() {
    let home = Home::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../appsettings.json");
    std::fs::copy(sample, home.path().join("appsettings.json")).unwrap();
    let asked = home.run(&["ask", "What's the weather like tomorrow?"]);
    assert!(err(&asked).starts_with("made the key file "), "{}", err(&asked));
    assert!(!err(&asked).contains("not followed"), "{}", err(&asked));
}

#[test]
fn what_waits_for_ever_in_the_place_of_a_file_is_refused() {
    let home = Home::new();
    let pipe = home.path().join("appsettings.json");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|made| made.success()) {
        eprintln!("SKIPPED: there is no mkfifo");
        return;
    }
    let refused = ended(home.spawn(&["tail"]));
    assert_eq!(code(&refused), 5, "{}", err(&refused));
    assert!(err(&refused).contains("is not a file"), "{}", err(&refused));
}
