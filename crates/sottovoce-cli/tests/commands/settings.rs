use super::*;

#[test]
fn a_lost_head_is_rebuilt_on_request_and_the_second_check_counts() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    let kept = home.run(&["verify", "--rebuild-head"]);
    assert_eq!(code(&kept), 0);
    assert!(!err(&kept).contains("rebuilt"), "{}", err(&kept));
    std::fs::remove_file(home.store().join("head")).unwrap();
    assert_eq!(code(&home.run(&["verify"])), 3);
    let rebuilt = home.run(&["verify", "--rebuild-head", "--json"]);
    assert_eq!(code(&rebuilt), 0, "{}", err(&rebuilt));
    assert!(err(&rebuilt).contains("rebuilt the head"), "{}", err(&rebuilt));
    assert_eq!(rows(&rebuilt)[0]["rebuiltHead"], true);
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn a_rebuilt_head_does_not_excuse_what_else_is_wrong() {
    let home = Home::new();
    home.keep(&["one", "two", "three"]);
    std::fs::remove_file(home.store().join("head")).unwrap();
    std::fs::remove_file(&home.records()[1]).unwrap();
    let rebuilt = home.run(&["verify", "--rebuild-head"]);
    assert_eq!(code(&rebuilt), 3);
    assert!(!out(&rebuilt).contains("head-missing") && out(&rebuilt).contains("missing"));
}

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
fn verify_tells_by_its_exit_code_and_names_what_it_found() {
    let home = Home::new();
    for text in ["one", "two", "three"] {
        home.run(&["append", "--role", "user", text]);
    }
    assert_eq!(code(&home.run(&["verify"])), 0);
    std::fs::remove_file(&home.records()[1]).unwrap();
    let found = home.run(&["verify", "--json"]);
    assert_eq!(code(&found), 3);
    let rows: Vec<Value> =
        out(&found).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows[0]["finding"], "missing");
    assert_eq!(rows[0]["seqs"], serde_json::json!([2, 2]));
    assert_eq!(rows.last().unwrap()["sound"], false);
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
