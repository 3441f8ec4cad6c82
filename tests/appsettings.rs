//! What a configuration may say, and how it is told when it says something else.

#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::path::Path;

use sottovoce::config::ConfiguredKey;
use sottovoce::{Config, Error};

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
        (r#"{"Context":{"lastN":3}}"#, "Context.lastN", "Context.LastN"),
        (r#"{"Contxt":{}}"#, "Contxt", "Context"),
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
fn an_empty_key_is_refused_and_the_placeholder_is_no_key() {
    let with = |key: &str| load(&format!(r#"{{"Context":{{"EncryptionKey":"{key}"}}}}"#), &[]);
    assert!(matches!(with("").unwrap_err(), Error::EmptyKey));
    assert!(matches!(with("  ").unwrap_err(), Error::EmptyKey));
    let placeholder = with("replace-me-before-deployment").unwrap();
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
    format!(
        r#"{{"Context":{{"StorageRoot":{store:?},"KeyFile":{file:?}{}}}}}"#,
        if key.is_empty() { String::new() } else { format!(r#","EncryptionKey":"{key}""#) }
    )
}

#[tokio::test]
async fn a_host_starts_twice_the_same_way_with_a_key_string_and_without() {
    for key in ["", "replace-me-before-deployment", "a long secret of this house"] {
        let folder = tempfile::tempdir().unwrap();
        for start in 1..=2 {
            let config = load(&settings(folder.path(), key), &[]).unwrap();
            config.make_key_file().unwrap();
            let clock = std::sync::Arc::new(sottovoce::SystemClock);
            let store = std::sync::Arc::new(config.open_store(clock.clone()).await.unwrap());
            // A second conversation of the same host.
            config.open_store(clock.clone()).await.unwrap();
            let conversation = config.conversation(store, clock).unwrap();
            assert_eq!(conversation.hear("hello").await.unwrap().message.seq, start);
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
    assert!(config.open_store(clock.clone()).await.is_err());
    std::fs::remove_file(folder.path().join("store")).unwrap();
    let store = std::sync::Arc::new(config.open_store(clock.clone()).await.unwrap());
    config.conversation(store, clock).unwrap().hear("hello").await.unwrap();
    let vault = std::fs::read_to_string(folder.path().join("store/vault")).unwrap();
    assert!(vault.contains(r#""kdf":"sha256""#), "{vault}");
}

#[test]
fn what_was_never_configured_is_told_apart_from_the_placeholder() {
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
    let store = std::sync::Arc::new(config.open_store(clock.clone()).await.unwrap());
    let (prompt, _) =
        config.conversation(store, clock).unwrap().prompt("mail anna@example.org").await.unwrap();
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
        let store = std::sync::Arc::new(config.open_store(clock.clone()).await.unwrap());
        config.conversation(store, clock).unwrap().hear("hello").await.unwrap();
    }
}
