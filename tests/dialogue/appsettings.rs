//! Configuration: accepted settings, and the errors for the others.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use sottovoce::admin::PLACEHOLDER_KEY;
use sottovoce::config::ConfiguredKey;
use sottovoce::{Config, Error, Scope};

fn load(json: &str, environment: &[(&str, &str)]) -> Result<Config, Error> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("appsettings.json");
    std::fs::write(&file, json).unwrap();
    load_file(&file, environment)
}

fn load_file(file: &Path, environment: &[(&str, &str)]) -> Result<Config, Error> {
    let environment = environment.iter().map(|(k, v)| (OsString::from(k), OsString::from(v)));
    Config::load_with(Some(file), environment)
}

fn refusal(json: &str, environment: &[(&str, &str)]) -> String {
    let error = load(json, environment).unwrap_err();
    assert!(matches!(error, Error::Config { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn the_sample_configuration_is_the_default() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("appsettings.json");
    let sample = load_file(&sample, &[]).unwrap();
    let default = load("{}", &[]).unwrap();
    assert!(matches!(default.key, ConfiguredKey::Absent));
    assert_eq!(sample.context, default.context);
    assert_eq!(sample.language_model, default.language_model);
    assert_eq!(sample.context.last_n, 6);
    assert_eq!(sample.context.storage_root, None);
    assert!(matches!(sample.key, ConfiguredKey::Placeholder));
}

#[test]
fn the_environment_wins_over_the_file_in_any_letter_case() {
    let file = r#"{"Context":{"LastN":3}}"#;
    for name in [
        "SOTTOVOCE__CONTEXT__LASTN",
        "SOTTOVOCE__Context__LastN",
        "sottovoce__context__lastn",
        "Sottovoce__ConText__lAsTn",
    ] {
        let config = load(file, &[(name, "9")]).unwrap();
        assert_eq!(config.context.last_n, 9, "{name}");
        let setting = config.settings().iter().find(|s| s.key == "Context.LastN").unwrap();
        assert_eq!(setting.origin, name);
    }
    assert_eq!(load(file, &[("CONTEXT__LASTN", "9")]).unwrap().context.last_n, 3);
}

#[test]
fn every_kind_of_setting_can_come_from_the_environment() {
    let config = load(
        r#"{"LanguageModel":{"NumCtx":2048,"KeepAlive":-1}}"#,
        &[
            ("SOTTOVOCE__CONTEXT__REDACT", "True"),
            ("SOTTOVOCE__CONTEXT__STORAGEROOT", "/somewhere"),
            ("SOTTOVOCE__LANGUAGEMODEL__TEMPERATURE", "0.5"),
            ("SOTTOVOCE__LANGUAGEMODEL__NUMCTX", ""),
            ("SOTTOVOCE__LANGUAGEMODEL__THINK", "false"),
        ],
    )
    .unwrap();
    assert!(config.context.redact);
    assert_eq!(config.storage_root().unwrap(), Path::new("/somewhere"));
    assert_eq!(config.language_model.temperature, Some(0.5));
    assert_eq!(config.language_model.num_ctx, None);
    assert_eq!(config.language_model.think, Some(false));
    assert_eq!(config.language_model.keep_alive.as_deref(), Some("-1"));
}

#[test]
fn an_unknown_key_is_named_with_its_file_and_the_nearest_known_one() {
    for (json, given, nearest) in [
        (r#"{"Context":{"LstN":3}}"#, "Context.LstN", "Context.LastN"),
        (r#"{"Contxt":{"LastN":3}}"#, "Contxt", "Context"),
        (r#"{"LanguageModel":{"Url":"x"}}"#, "LanguageModel.Url", "LanguageModel.BaseUrl"),
    ] {
        let message = refusal(json, &[]);
        for part in ["appsettings.json", given, nearest] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let message = refusal("{}", &[("SOTTOVOCE__CONTEXT__LASTNN", "3")]);
    assert!(message.contains("SOTTOVOCE__CONTEXT__LASTNN"), "{message}");
    assert!(message.contains("Context.LastN"), "{message}");
}

#[test]
fn names_may_be_in_any_letter_case_and_sections_within_sections() {
    for json in [
        r#"{"Context":{"lastN":3}}"#,
        r#"{"context":{"LASTN":3}}"#,
        r#"{"context":{"lastN":3,"recall":{"tokens":5}}}"#,
    ] {
        assert_eq!(load(json, &[]).unwrap().context.last_n, 3, "{json}");
    }
    let nested = load(r#"{"Context":{"Recall":{"Tokens":5}}}"#, &[]).unwrap();
    assert_eq!(nested.context.recall.tokens, 5);
    let twice = refusal(r#"{"Context":{"LastN":3,"lastN":4}}"#, &[]);
    assert!(twice.contains("given twice"), "{twice}");
    // Another program's section of that name.
    assert_eq!(load(r#"{"context":{"window":3},"serve":{}}"#, &[]).unwrap().context.last_n, 6);
}

#[test]
fn sections_of_other_programs_are_ignored_and_comments_and_trailing_commas_read() {
    let config = load(
        r#"{
            // as every .NET file has them
            "Logging": { "LogLevel": { "Default": "Warning", }, },
            "AllowedHosts": "*",
            "Elara": { "Context": { "LastN": 1 } }, /* and its own */
            "Content": { "Title": "x" },
            "Context": { "LastN": 9, /* "TtlSeconds": 3, */ },
        }"#,
        &[],
    )
    .unwrap();
    assert_eq!(config.context.last_n, 9);
    assert_eq!(config.context.ttl_seconds, None);
    let message = refusal("{\n  // \"a\n  \"Context\": { \"LastN\": ! } }", &[]);
    assert!(message.contains("line 3 column 25"), "{message}");
}

#[test]
fn a_file_without_an_end_or_too_large_for_settings_is_refused() {
    let error = load_file(Path::new("/dev/zero"), &[]).unwrap_err();
    assert!(error.to_string().contains("over 1 MiB"), "{error}");
    let many = format!("{{\"Other\": \"{}\"}}", "x".repeat(2 << 20));
    assert!(refusal(&many, &[]).contains("over 1 MiB"));
}

#[test]
fn a_wrong_kind_of_value_is_named_with_its_key() {
    for (json, key) in [
        (r#"{"Context":{"LastN":"six"}}"#, "Context.LastN"),
        (r#"{"Context":{"LastN":"6"}}"#, "Context.LastN"),
        (r#"{"Context":{"LastN":6.5}}"#, "Context.LastN"),
        (r#"{"Context":{"LastN":-1}}"#, "Context.LastN"),
        (r#"{"Context":{"LastN":1000000}}"#, "Context.LastN"),
        (r#"{"Context":{"LastN":null}}"#, "Context.LastN"),
        (r#"{"Context":{"Redact":1}}"#, "Context.Redact"),
        (r#"{"Context":{"EncryptionKey":12}}"#, "Context.EncryptionKey"),
        (r#"{"LanguageModel":{"Temperature":3}}"#, "LanguageModel.Temperature"),
        (r#"{"LanguageModel":{"Model":["a"]}}"#, "LanguageModel.Model"),
        (r#"{"Context":3}"#, "Context"),
        ("[]", "object"),
        ("{", "JSON"),
    ] {
        let message = refusal(json, &[]);
        assert!(message.contains(key), "{json}: {message}");
    }
    let message = refusal("{}", &[("SOTTOVOCE__CONTEXT__LASTN", "six")]);
    assert!(message.contains("Context.LastN") && message.contains("whole number"), "{message}");
}

#[test]
fn a_variable_set_twice_to_different_values_is_refused() {
    let twice = [("SOTTOVOCE__CONTEXT__LASTN", "1"), ("SOTTOVOCE__Context__LastN", "2")];
    refusal("{}", &twice);
    let same = [("SOTTOVOCE__CONTEXT__LASTN", "2"), ("SOTTOVOCE__Context__LastN", "2")];
    assert_eq!(load("{}", &same).unwrap().context.last_n, 2);
}

#[test]
fn the_key_string_shows_nowhere() {
    const SECRET: &str = "correct horse battery staple";
    let json = format!(r#"{{"Context":{{"EncryptionKey":"{SECRET}"}}}}"#);
    for config in [
        load(&json, &[]).unwrap(),
        load("{}", &[("SOTTOVOCE__CONTEXT__ENCRYPTIONKEY", SECRET)]).unwrap(),
        load("{}", &[("SOTTOVOCE__CONTEXT__PASSPHRASE", SECRET)]).unwrap(),
        load(&json.replace("EncryptionKey", "Passphrase"), &[]).unwrap(),
    ] {
        assert!(matches!(config.key, ConfiguredKey::Secret { short: false, .. }));
        let shown = format!("{config:?} {}", serde_json::to_string(config.settings()).unwrap());
        assert!(!shown.contains("horse"), "{shown}");
        assert!(shown.contains("(redacted)"));
    }
    let broken = format!(r#"{{"Context":{{"EncryptionKey":"{SECRET}","LastN":"x"}}}}"#);
    assert!(!refusal(&broken, &[]).contains("horse"));
}

#[test]
fn the_token_of_a_server_shows_neither_in_its_section_nor_in_the_list_of_settings() {
    let token = "a token that only this house knows";
    let variables = ["SOTTOVOCE__MCP__TOKEN", "SOTTOVOCE__SERVE__TOKEN", "SOTTOVOCE__PAGE__TOKEN"];
    let config = load("{}", &variables.map(|name| (name, token))).unwrap();
    for given in [&config.mcp.token, &config.serve.token, &config.page.token] {
        assert_eq!(given.as_ref().map(|given| given.0.as_str()), Some(token));
    }
    let shown = format!("{config:?} {}", serde_json::to_string(config.settings()).unwrap());
    assert!(!shown.contains(token), "{shown}");
}

#[test]
fn two_keys_at_once_are_refused_by_their_names_and_places() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sottovoce.key"), "a credential of this house\n").unwrap();
    std::fs::write(folder.path().join("text"), "a passphrase in a file").unwrap();
    let text = std::fs::File::open(folder.path().join("text")).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&text).to_string();
    let credentials = ("CREDENTIALS_DIRECTORY", folder.path().to_str().unwrap());
    let ways: [(&str, &[(&str, &str)]); 6] = [
        (
            "Context.EncryptionKey",
            &[("SOTTOVOCE__CONTEXT__ENCRYPTIONKEY", "a secret of this house")],
        ),
        ("Context.Passphrase", &[("SOTTOVOCE__CONTEXT__PASSPHRASE", "a passphrase of this house")]),
        ("Context.KeyFd", &[("SOTTOVOCE__CONTEXT__KEYFD", &fd)]),
        ("Context.KeyCredential", &[credentials]),
        (
            "Context.KeyCredential",
            &[credentials, ("SOTTOVOCE__CONTEXT__KEYCREDENTIAL", "sottovoce.key")],
        ),
        ("Context.KeyFile", &[("SOTTOVOCE__CONTEXT__KEYFILE", "/some/key")]),
    ];
    for (at, (first, variables)) in ways.iter().enumerate() {
        let alone = load("{}", variables).unwrap();
        let by_file = *first == "Context.KeyFile";
        assert_eq!(matches!(alone.key, ConfiguredKey::Absent), by_file, "{first}");
        for (second, others) in &ways[at + 1..] {
            if first == second {
                continue;
            }
            let message = refusal("{}", &[*variables, *others].concat());
            assert!(message.contains(first) && message.contains(second), "{message}");
        }
    }
    let file = r#"{"Context":{"Passphrase":"a passphrase of this house"}}"#;
    let hidden = load(file, &[("SOTTOVOCE__CONTEXT__PASSPHRASE", "")]).unwrap();
    assert!(matches!(hidden.key, ConfiguredKey::Absent));
    let message = refusal(file, ways[5].1);
    assert!(message.contains("appsettings.json") && message.contains("KEYFILE"), "{message}");
}

#[test]
fn an_unavailable_key_is_reported_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for (variables, part) in [
        (vec![("SOTTOVOCE__CONTEXT__KEYFD", "987")], "987"),
        (vec![("SOTTOVOCE__CONTEXT__KEYFD", "-1")], "Context.KeyFd"),
        (vec![("SOTTOVOCE__CONTEXT__KEYCREDENTIAL", "other.key")], "CREDENTIALS_DIRECTORY"),
        (
            vec![
                ("SOTTOVOCE__CONTEXT__KEYCREDENTIAL", "other.key"),
                ("CREDENTIALS_DIRECTORY", path),
            ],
            "other.key",
        ),
        (
            vec![("SOTTOVOCE__CONTEXT__KEYCREDENTIAL", "../key"), ("CREDENTIALS_DIRECTORY", path)],
            "without a folder",
        ),
    ] {
        let message = refusal("{}", &variables);
        assert!(message.contains(part), "{message}");
    }
    std::fs::write(folder.path().join("sottovoce.key"), " \n").unwrap();
    assert!(matches!(load("{}", &[("CREDENTIALS_DIRECTORY", path)]), Err(Error::EmptyPassphrase)));
    std::fs::write(folder.path().join("sottovoce.key"), vec![b'x'; 70_000]).unwrap();
    assert!(refusal("{}", &[("CREDENTIALS_DIRECTORY", path)]).contains("64 KiB"));
}

#[tokio::test]
async fn a_credential_is_a_key_file_or_a_passphrase() {
    let key = sottovoce::EncryptionKey::generate().unwrap().to_hex().unwrap();
    for (text, derivation) in [(key.as_str(), "file"), ("a passphrase of this house\n", "argon2id")]
    {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("sottovoce.key"), text).unwrap();
        let store = folder.path().join("store");
        let variables = [
            ("CREDENTIALS_DIRECTORY", folder.path().to_str().unwrap()),
            ("SOTTOVOCE__CONTEXT__STORAGEROOT", store.to_str().unwrap()),
        ];
        let config = load("{}", &variables).unwrap();
        let keys = [sottovoce::EncryptionKey::generate().unwrap().into()];
        let ConfiguredKey::Secret { key, short: false, .. } = &config.key else {
            panic!("{config:?}")
        };
        let shown = format!("{config:?}");
        assert!(!shown.contains(text.trim_end()), "{shown}");
        let store = sottovoce::StoreOptions::new(key.clone()).open(&store).await.unwrap();
        sottovoce::ConversationStore::append_message(
            &store,
            sottovoce::ChatMessage::at(
                sottovoce::ChatRole::User,
                "hello",
                "2025-08-24T16:36:25Z".parse().unwrap(),
            ),
        )
        .await
        .unwrap();
        let root = config.storage_root().unwrap();
        let named = sottovoce::admin::store_keys(&root, &keys).unwrap();
        assert_eq!((named[0].derivation(), named[0].is_held()), (derivation, false));
        let held = sottovoce::admin::store_keys(&root, std::slice::from_ref(key)).unwrap();
        assert!(held[0].is_held());
        let exported = sottovoce::EncryptionKey::from_hex(&held[0].export().unwrap()).unwrap();
        sottovoce::StoreOptions::new(exported).open(&root).await.unwrap();
    }
}

#[tokio::test]
async fn the_first_use_of_a_passphrase_keeps_its_salt_beside_the_key_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = load(&settings(folder.path(), ""), &[]).unwrap();
    let key = sottovoce::EncryptionKey::from_passphrase("a passphrase of this house".to_owned());
    let key = std::sync::Arc::new(key.unwrap());
    config.key = ConfiguredKey::Secret { key, short: false, from: "a test".to_owned() };
    let clock = || std::sync::Arc::new(sottovoce::SystemClock);
    assert!(matches!(config.open_store(Scope::Default, clock()).await, Err(Error::NoKey)));
    config.make_key_file().unwrap();
    config.open_store(Scope::Default, clock()).await.unwrap();
    let root = config.storage_root().unwrap();
    let named = sottovoce::admin::store_keys(&root, &[]).unwrap().remove(0);
    let copy = folder.path().join(named.copy_name());
    let keys = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["keys"].clone()
    };
    assert_eq!(keys(&copy), keys(&root.join("vault")));

    std::fs::remove_file(&copy).unwrap();
    assert!(!named.has_copy_in(folder.path()).unwrap());
    config.open_store(Scope::Default, clock()).await.unwrap();
    assert!(named.has_copy_in(folder.path()).unwrap());

    let asking = load(&settings(folder.path(), ""), &[]).unwrap();
    let needed = asking.open_store(Scope::Default, clock()).await;
    assert!(matches!(needed, Err(Error::PassphraseNeeded { .. })), "{needed:?}");
    assert!(matches!(asking.make_key_file(), Err(Error::PassphraseNeeded { .. })));
}

#[test]
fn an_empty_key_is_refused_and_the_placeholder_is_no_key() {
    let with = |key: &str| load(&format!(r#"{{"Context":{{"EncryptionKey":"{key}"}}}}"#), &[]);
    assert!(matches!(with("").unwrap_err(), Error::EmptyKey));
    assert!(matches!(with("  ").unwrap_err(), Error::EmptyKey));
    let placeholder = with(PLACEHOLDER_KEY).unwrap();
    assert!(matches!(placeholder.key, ConfiguredKey::Placeholder));
    assert!(matches!(with("short").unwrap().key, ConfiguredKey::Secret { short: true, .. }));
}

#[test]
fn relative_paths_are_meant_from_the_files_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("appsettings.json");
    std::fs::write(
        &file,
        "\u{feff}{\"Context\":{\"StorageRoot\":\"data\",\"KeyFile\":\"/abs/key\"}}",
    )
    .unwrap();
    let config = load_file(&file, &[]).unwrap();
    assert_eq!(config.storage_root().unwrap(), folder.path().join("data"));
    assert_eq!(config.key_file().unwrap(), Path::new("/abs/key"));
}

#[test]
fn a_missing_file_that_was_named_is_an_error() {
    let error = load_file(Path::new("/nowhere/appsettings.json"), &[]).unwrap_err();
    assert!(error.to_string().contains("/nowhere/appsettings.json"), "{error}");
}

#[test]
fn a_path_that_would_not_mean_what_it_says_is_refused() {
    for path in ["", "~", "~/sottovoce"] {
        let message = refusal(&format!(r#"{{"Context":{{"StorageRoot":"{path}"}}}}"#), &[]);
        assert!(message.contains("Context.StorageRoot"), "{message}");
    }
}

fn settings(folder: &Path, key: &str) -> String {
    let (store, file) = (folder.join("store"), folder.join("key"));
    let key = match key {
        "" => format!(r#""KeyFile":{file:?}"#),
        PLACEHOLDER_KEY => format!(r#""KeyFile":{file:?},"EncryptionKey":"{key}""#),
        key => format!(r#""EncryptionKey":"{key}""#),
    };
    format!(r#"{{"Context":{{"StorageRoot":{store:?},{key}}}}}"#)
}

#[tokio::test]
async fn a_host_starts_twice_the_same_way_with_a_key_string_and_without() {
    for key in ["", "replace-me-before-deployment", "a long secret of this house"] {
        let folder = tempfile::tempdir().unwrap();
        for start in 1..=2 {
            let config = load(&settings(folder.path(), key), &[]).unwrap();
            config.make_key_file().unwrap();
            let clock = std::sync::Arc::new(sottovoce::SystemClock);
            let store = std::sync::Arc::new(
                config.open_store(Scope::Default, clock.clone()).await.unwrap(),
            );
            // A second conversation of the same host.
            config.open_store(Scope::Default, clock.clone()).await.unwrap();
            let conversation = config.conversation(store).unwrap();
            assert_eq!(conversation.prepare_turn("hello").await.unwrap().message.seq, start);
        }
        assert_eq!(folder.path().join("key").exists(), !key.starts_with("a long"));
    }
}

#[tokio::test]
async fn the_configured_secret_is_used_again_after_a_failed_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = load(&settings(folder.path(), "a long secret of this house"), &[]).unwrap();
    std::fs::write(folder.path().join("store"), "in the way").unwrap();
    let clock = std::sync::Arc::new(sottovoce::SystemClock);
    assert!(config.open_store(Scope::Default, clock.clone()).await.is_err());
    std::fs::remove_file(folder.path().join("store")).unwrap();
    let store =
        std::sync::Arc::new(config.open_store(Scope::Default, clock.clone()).await.unwrap());
    config.conversation(store).unwrap().prepare_turn("hello").await.unwrap();
    let vault = std::fs::read_to_string(folder.path().join("store/vault")).unwrap();
    assert!(vault.contains(r#""kdf":"sha256""#), "{vault}");
}

#[test]
fn an_unset_key_is_distinguished_from_the_placeholder() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        |key| load(&settings(folder.path(), key), &[]).unwrap().encryption_keys().unwrap_err();
    assert!(matches!(error(""), Error::NoKey));
    assert!(matches!(error("replace-me-before-deployment"), Error::PlaceholderKey));
}

#[tokio::test]
async fn a_preview_is_masked_as_the_utterance_would_be() {
    let folder = tempfile::tempdir().unwrap();
    let config = load(
        &settings(folder.path(), "a long secret of this house"),
        &[("SOTTOVOCE__CONTEXT__REDACT", "true")],
    )
    .unwrap();
    let clock = std::sync::Arc::new(sottovoce::SystemClock);
    let store =
        std::sync::Arc::new(config.open_store(Scope::Default, clock.clone()).await.unwrap());
    let (prompt, _) =
        config.conversation(store).unwrap().prompt("mail anna@example.org").await.unwrap();
    assert_eq!(prompt.user_input.content, "mail [e-mail address]");
}

#[test]
fn a_configuration_that_is_there_but_cannot_be_read_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let dangling = folder.path().join("appsettings.json");
    std::os::unix::fs::symlink("/nowhere/at/all", &dangling).unwrap();
    assert!(load_file(&dangling, &[]).is_err());
}

#[tokio::test]
async fn a_folder_that_only_looks_like_a_store_is_a_beginning() {
    for name in ["conversations", "dms", "packs", "head", "20250824T163625123Z_0001_user.json"] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("store");
        std::fs::create_dir_all(&root).unwrap();
        match name.contains(['h', '.']) && name != "packs" {
            true => std::fs::write(root.join(name), "").unwrap(),
            false => std::fs::create_dir(root.join(name)).unwrap(),
        }
        let config = load(&settings(folder.path(), ""), &[]).unwrap();
        assert!(config.make_key_file().unwrap().is_some(), "{name}");
        let clock = std::sync::Arc::new(sottovoce::SystemClock);
        let store =
            std::sync::Arc::new(config.open_store(Scope::Default, clock.clone()).await.unwrap());
        config.conversation(store).unwrap().prepare_turn("hello").await.unwrap();
    }
}

#[test]
fn when_a_client_samples_is_a_word() {
    use sottovoce::config::Sampling::{Always, Fallback, Never};
    assert_eq!(load("{}", &[]).unwrap().mcp.prefer_sampling, Fallback);
    let expected = [
        ("\"never\"", "never", Never),
        ("\"fallback\"", "Fallback", Fallback),
        ("\"always\"", "ALWAYS", Always),
    ];
    for (json, text, sampling) in expected {
        let file = format!(r#"{{"Mcp":{{"PreferSampling":{json}}}}}"#);
        assert_eq!(load(&file, &[]).unwrap().mcp.prefer_sampling, sampling, "{json}");
        let environment = [("SOTTOVOCE__MCP__PREFERSAMPLING", text)];
        assert_eq!(load("{}", &environment).unwrap().mcp.prefer_sampling, sampling, "{text}");
    }
    for wrong in ["sometimes", "", "true"] {
        let reason = refusal("{}", &[("SOTTOVOCE__MCP__PREFERSAMPLING", wrong)]);
        assert!(reason.contains("one of never, fallback, always"), "{reason}");
    }
}

/// What the page says of a default that it does not show as it is.
const IN_WORDS: [(&str, &str); 3] = [
    ("LanguageModel.BaseUrl", "Ollama on this machine"),
    ("LanguageModel.SystemPrompt", "a short text"),
    ("Context.EncryptionKey", "a placeholder"),
];

#[test]
fn the_page_about_settings_names_every_setting_with_its_default() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |line: &str| {
        let (key, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((key.to_owned(), rest.split_once('|')?.0.trim().to_owned()))
    };
    let rows: BTreeMap<String, String> = page.lines().filter_map(row).collect();
    let shown = |setting: &sottovoce::config::Setting| {
        let in_words = IN_WORDS.iter().find(|(key, _)| *key == setting.key);
        let default = match (&setting.value, in_words) {
            (_, Some((_, words))) => (*words).to_owned(),
            (serde_json::Value::String(text), _) if text.is_empty() => String::new(),
            (serde_json::Value::String(text), _) => format!("`{text}`"),
            (serde_json::Value::Number(number), _) => number.as_f64().unwrap().to_string(),
            (other, _) => format!("`{other}`"),
        };
        (setting.key.to_owned(), default)
    };
    let config = load("{}", &[]).unwrap();
    let expected: BTreeMap<String, String> = config.settings().iter().map(shown).collect();
    assert_eq!(rows, expected);
}

#[test]
fn an_empty_token_is_an_error_and_not_none() {
    let place = "SOTTOVOCE__MCP__TOKEN";
    for empty in ["", "  "] {
        let reason = refusal("{}", &[(place, empty)]);
        assert!(reason.contains(place) && reason.contains("Mcp.Token is empty"), "{reason}");
        let reason = refusal(&format!(r#"{{"Mcp":{{"Token":"{empty}"}}}}"#), &[]);
        assert!(reason.contains("Mcp.Token is empty"), "{reason}");
    }
    for (place, token) in
        [("SOTTOVOCE__SERVE__TOKEN", "Serve.Token"), ("SOTTOVOCE__PAGE__TOKEN", "Page.Token")]
    {
        for empty in ["", "  "] {
            let reason = refusal("{}", &[(place, empty)]);
            assert!(reason.contains(&format!("{token} is empty")), "{reason}");
        }
    }
    let reason = refusal("{}", &[("SOTTOVOCE__SERVE__KEYSFILE", "")]);
    assert!(reason.contains("SOTTOVOCE__SERVE__KEYSFILE"), "{reason}");
    assert!(load(r#"{"Mcp":{"Token":null}}"#, &[]).unwrap().mcp.token.is_none());
    assert!(load("{}", &[(place, "long")]).unwrap().mcp.token.is_some());
}

#[test]
fn an_api_key_comes_from_the_environment_or_a_file_and_never_from_the_settings() {
    const VARIABLE: &str = "SOTTOVOCE__LANGUAGEMODEL__APIKEY";
    let in_clear = r#"{"LanguageModel":{"ApiKey":"sk-Drosselbart"}}"#;
    let said = refusal(in_clear, &[]);
    assert!(said.contains("LanguageModel.ApiKeyFile") && said.contains(VARIABLE), "{said}");
    assert!(!said.contains("Drosselbart"));
    assert!(
        load(r#"{"LanguageModel":{"ApiKey":null}}"#, &[]).unwrap().api_key().unwrap().is_none()
    );

    let config = load("{}", &[(VARIABLE, "sk-Drosselbart")]).unwrap();
    assert_eq!(config.api_key().unwrap().unwrap().as_str(), "sk-Drosselbart");
    assert!(!format!("{config:?}").contains("Drosselbart"));
    let setting = config.settings().iter().find(|s| s.key == "LanguageModel.ApiKey").unwrap();
    assert_eq!((&setting.value, setting.origin.as_str()), (&"(redacted)".into(), VARIABLE));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "sk-Drosselbart\n").unwrap();
    let named = format!(r#"{{"LanguageModel":{{"ApiKeyFile":{file:?}}}}}"#);
    assert_eq!(load(&named, &[]).unwrap().api_key().unwrap().unwrap().as_str(), "sk-Drosselbart");
    for kind in ["ollama", "openai"] {
        for unusable in ["\n", "\u{feff}sk-Drosselbart\n", "sk-Drossel\nbart\n"] {
            std::fs::write(&file, unusable).unwrap();
            let config = load(&named, &[("SOTTOVOCE__LANGUAGEMODEL__KIND", kind)]).unwrap();
            let refused = config.server().unwrap_err().to_string();
            assert!(refused.contains("one word of printable ASCII"), "{refused}");
        }
    }
    let both = load(&named, &[(VARIABLE, "other")]).unwrap().api_key().unwrap_err();
    assert!(both.to_string().contains("keep one of them"), "{both}");
    std::fs::remove_file(&file).unwrap();
    let gone = load(&named, &[]).unwrap().api_key().unwrap_err().to_string();
    assert!(gone.contains("ApiKeyFile") && gone.contains("could not be read"), "{gone}");
}

#[test]
fn the_kind_of_server_is_one_of_two_words() {
    use sottovoce::config::ModelKind;
    for (word, kind) in [
        ("openai", ModelKind::OpenAi),
        ("OpenAI", ModelKind::OpenAi),
        ("ollama", ModelKind::Ollama),
    ] {
        let json = format!(r#"{{"LanguageModel":{{"Kind":"{word}"}}}}"#);
        assert_eq!(load(&json, &[]).unwrap().language_model.kind, kind);
    }
    let said = refusal(r#"{"LanguageModel":{"Kind":"gemini"}}"#, &[]);
    assert!(said.contains("one of ollama, openai"), "{said}");
}
