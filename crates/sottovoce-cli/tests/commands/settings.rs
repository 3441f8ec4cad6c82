use super::*;

#[test]
fn init_speaks_as_the_other_commands_do() {
    let home = Home::new();
    let made = &rows(&home.run(&["init", "--json"]))[0];
    assert_eq!(made["keyFile"], home.key().to_str().unwrap());
    assert_eq!(made["made"], true);
}

#[test]
fn config_tells_a_secret_from_the_placeholder_and_shows_no_password() {
    let home = Home::new();
    for file in ["{}", r#"{"Context":{"EncryptionKey":"replace-me-before-deployment"}}"#] {
        home.configure(file);
        let shown = out(&home.run(&["config"]));
        assert!(shown.contains("(placeholder)") && !shown.contains("(redacted)"), "{shown}");
    }
    home.configure(
        r#"{"Context":{"EncryptionKey":"a secret of this house"},
            "LanguageModel":{"BaseUrl":"http://anna:canary@host:1/x"}}"#,
    );
    for arguments in [&["config"][..], &["config", "--json"], &["ask", "x"]] {
        let shown =
            home.command(arguments).env_remove("SOTTOVOCE__LANGUAGEMODEL__BASEURL").output();
        let shown = shown.unwrap();
        let shown = out(&shown) + &err(&shown);
        assert!(!shown.contains("canary") && !shown.contains("anna"), "{shown}");
        assert!(shown.contains("host:1/x"), "{shown}");
        assert!(!shown.contains("(placeholder)"), "{shown}");
        assert_eq!(shown.contains("(redacted)"), arguments[0] == "config", "{shown}");
    }
}

#[test]
fn a_preview_recalls_at_most_ten_thousand() {
    let home = Home::new();
    assert_eq!(code(&home.run(&["prompt", "-n", "10000", "x"])), 0);
    assert_eq!(code(&home.run(&["prompt", "-n", "10001", "x"])), 2);
}

#[test]
fn a_configuration_that_cannot_be_used_says_which_key_and_file() {
    let home = Home::new();
    std::fs::write(home.path().join("appsettings.json"), r#"{"Context":{"LstN":3}}"#).unwrap();
    for arguments in [&["ask", "x"][..], &["tail"], &["config"]] {
        let refused = home.run(arguments);
        assert_eq!(code(&refused), 5);
        let said = err(&refused);
        assert!(said.contains("LstN") && said.contains("Context.LastN"), "{said}");
        assert!(said.starts_with("error: ") && said.contains("\nhelp: "), "{said}");
    }
    assert_eq!(code(&home.run(&["doctor"])), 3);
}

#[test]
fn the_columns_of_config_hold_whatever_a_setting_is_called() {
    let shown = out(&Home::new().run(&["config"]));
    let lines: Vec<_> = shown.lines().take_while(|line| !line.is_empty()).collect();
    let width = lines.iter().map(|line| line.find(' ').unwrap()).max().unwrap();
    assert!(lines.len() > 10 && lines.iter().any(|line| line.contains("RefuseWhenBusy")));
    for line in lines {
        let (name, value) = line.split_at(width);
        assert!(value.starts_with(' ') && !value.starts_with("  "), "{shown}");
        assert!(!name.trim_end().contains(' '), "{shown}");
    }
}

/// How many messages of history a prompt holds.
fn recalled(home: &Home, arguments: &[&str]) -> usize {
    let mut all = vec!["prompt", "--json"];
    all.extend_from_slice(arguments);
    all.push("And now?");
    let prompt = rows(&home.run(&all)).remove(0);
    prompt["messages"].as_array().unwrap().iter().filter(|said| said["role"] != "system").count()
        - 1
}

#[test]
fn a_prompt_recalls_from_n_to_four_times_n_or_exactly_n() {
    let home = Home::new();
    let said = |n: i32| format!("{{\"role\":\"user\",\"content\":\"{n}\"}}\n");
    assert_eq!(code(&home.feed(&["append"], (1..=30).map(said).collect::<String>())), 0);
    let about = recalled(&home, &["-n", "3"]);
    assert!((4..=12).contains(&about), "{about}");
    assert_eq!(recalled(&home, &["-n", "3", "--exact"]), 3);
    assert_eq!(recalled(&home, &["--exact"]), 6);
    for command in ["prompt", "ask", "chat"] {
        let help = out(&home.run(&[command, "--help"]));
        assert!(help.contains("four times as many") && help.contains("--exact"), "{help}");
    }
}

#[test]
fn a_window_is_set_for_one_conversation() {
    let home = Home::new();
    let old = ["append", "--role", "user", "--at", "2025-01-01T00:00:00Z", "old"];
    assert_eq!(code(&home.run(&old)), 0, "{}", err(&home.run(&old)));
    assert_eq!(recalled(&home, &[]), 1);
    let set = |arguments: &[&str]| {
        let mut all = vec!["settings", "--json"];
        all.extend_from_slice(arguments);
        rows(&home.run(&all)).remove(0)
    };
    let rolls = set(&["--window", "24h"]);
    assert_eq!((&rolls["rollingWindow"], &rolls["windowSeconds"]), (&true.into(), &86_400.into()));
    assert_eq!(recalled(&home, &[]), 0);
    assert!(out(&home.run(&["settings"])).contains("window         1 d"));
    assert_eq!(set(&["--window", "none"])["rollingWindow"], false);
    assert_eq!(recalled(&home, &[]), 1);
    set(&["--window", "1h"]);
    let usual = set(&["--default"]);
    assert_eq!((&usual["rollingWindow"], &usual["ownWindow"]), (&false.into(), &false.into()));
    assert_eq!(recalled(&home, &[]), 1);
}

#[test]
fn a_clients_configuration_is_printed_beside_variables_that_are_no_text_and_shows_no_secret() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9");
    let printed = home
        .command(&["mcp", "--print-config"])
        .envs([("LESS", odd), ("SOTTOVOCE__MCP__TOKEN", "open sesame".as_ref())])
        .env("SOTTOVOCE__MCP__SCOPES", "default")
        .output()
        .unwrap();
    assert_eq!(code(&printed), 0, "{}", err(&printed));
    let printed = out(&printed);
    assert!(printed.contains("SOTTOVOCE__MCP__SCOPES") && !printed.contains("sesame"), "{printed}");
}

#[test]
fn a_setting_is_set_and_taken_out_again_and_the_rest_of_the_file_stays() {
    let home = Home::new();
    home.configure("{\n  // mine\n  \"context\": { \"lastN\": 3 }, // few\n}\n");
    let value = |key: &str| {
        let all = rows(&home.run(&["config", "--json"]));
        all.iter().find(|row| row["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(value("Context.LastN"), 3);
    for (arguments, key, expected) in [
        (&["set", "context.lastn", "12"][..], "Context.LastN", 12.into()),
        (&["set", "Context.Recall.Tokens", "99"], "Context.Recall.Tokens", 99.into()),
        (&["set", "LanguageModel.Model", "qwen3:4b"], "LanguageModel.Model", "qwen3:4b".into()),
        (&["set", "Context.MaxMessages", "null"], "Context.MaxMessages", Value::Null),
        (&["unset", "Context.LastN"], "Context.LastN", 6.into()),
    ] {
        let done = home.run(&[&["config"], arguments].concat());
        assert_eq!(code(&done), 0, "{arguments:?}: {}", err(&done));
        assert_eq!(value(key), expected, "{arguments:?}");
    }
    let text = std::fs::read_to_string(home.settings()).unwrap();
    assert!(text.contains("// mine") && text.contains("// few"), "{text}");
    for (arguments, said) in [
        (&["set", "Context.LastM", "3"][..], "Context.LastN"),
        (&["set", "Context.LastN", "many"], "a whole number"),
        (&["set", "Context.Passphrase", "canary"], "a secret"),
        (&["set", "LanguageModel.ApiKey", "canary"], "not read from a settings file"),
        (
            &["set", "Context.StorageRoot", "$HOME/memory"],
            &format!("{}/memory", home.path().display()),
        ),
        (&["unset", "Context.LastM"], "Context.LastN"),
    ] {
        let refused = home.run(&[&["config"], arguments].concat());
        assert_eq!(code(&refused), 5, "{arguments:?}: {}", err(&refused));
        assert!(
            err(&refused).contains(said) && !err(&refused).contains("canary"),
            "{}",
            err(&refused)
        );
        assert_eq!(std::fs::read_to_string(home.settings()).unwrap(), text, "{arguments:?}");
    }
    home.configure(r#"{"Context":{"LastN":3},"context":{"lastN":4}}"#);
    let twice = home.run(&["config"]);
    assert!(err(&twice).contains("given twice"), "{}", err(&twice));
}
