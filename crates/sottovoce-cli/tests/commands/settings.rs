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
        std::fs::write(home.path().join("appsettings.json"), file).unwrap();
        let shown = out(&home.run(&["config"]));
        assert!(shown.contains("(placeholder)") && !shown.contains("(redacted)"), "{shown}");
    }
    std::fs::write(
        home.path().join("appsettings.json"),
        r#"{"Context":{"EncryptionKey":"a secret of this house"},
            "LanguageModel":{"BaseUrl":"http://anna:canary@host:1/x"}}"#,
    )
    .unwrap();
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
