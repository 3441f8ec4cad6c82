use super::*;

const PROMPT: &str = "You are a sous chef.\nSay what to cook.";

/// Creates a preset called Chef, and returns its id.
fn chef(home: &Home) -> String {
    let made = home.run(&["persona", "create", "Chef", "--system-prompt", PROMPT]);
    assert_eq!(code(&made), 0, "{}", err(&made));
    out(&made).trim().to_owned()
}

fn show(home: &Home, preset: &str) -> Value {
    rows(&home.run(&["persona", "show", preset, "--json"])).remove(0)
}

#[test]
fn a_stranger_sees_what_is_built_in_and_nothing_is_made() {
    let home = Home::new();
    let listed = rows(&home.run(&["persona", "list", "--json"]));
    assert_eq!(listed.len(), 6);
    assert!(listed.iter().all(|row| row["isBuiltIn"] == true && row["isActive"] == true));
    let table = out(&home.run(&["persona", "list"]));
    assert!(table.contains("preset-calm-counselor") && table.contains("Calm Counselor"), "{table}");
    for spelt in ["preset-calm-counselor", "calm_counselor", "CALM COUNSELOR"] {
        assert_eq!(show(&home, spelt)["id"], "preset-calm-counselor", "{spelt}");
    }
    let shown = out(&home.run(&["persona", "show", "calm-counselor"]));
    assert!(shown.contains("built in") && shown.contains("system-prompt"), "{shown}");
    for refused in [&["persona", "show", "nobody"][..], &["persona", "delete", "nobody", "--yes"]] {
        let refused = home.run(refused);
        assert_eq!(code(&refused), 1);
        assert!(err(&refused).contains("preset-calm-counselor"), "{}", err(&refused));
    }
    assert!(!home.store().exists() && !home.key().exists());
}

#[test]
fn the_first_preset_makes_the_key_and_is_sealed() {
    let home = Home::new();
    let id = chef(&home);
    assert!(home.key().is_file());
    let row = show(&home, "chef");
    assert_eq!(row["id"], *id);
    assert_eq!(row["systemPrompt"], PROMPT);
    let told =
        [&row["temperature"], &row["maxTokens"], &row["maxHistoryTokens"], &row["expiryDays"]];
    assert_eq!(told, [&0.7.into(), &Value::from(1000), &15_000.into(), &7.into()]);
    let sealed = std::fs::read_to_string(home.store().join("profile")).unwrap();
    assert!(!sealed.contains("chef") && !sealed.contains("Chef"));
    let again = home.run(&["persona", "create", "CHEF", "--system-prompt", "x"]);
    assert_eq!(code(&again), 1);
    assert!(err(&again).contains("another preset has that name"), "{}", err(&again));
}

#[test]
fn what_is_wrong_with_a_preset_is_named_and_makes_no_key() {
    let home = Home::new();
    for (options, said) in [
        (&[][..], "--system-prompt"),
        (&["--system-prompt", "x", "--temperature", "1.5"], "temperature"),
        (&["--system-prompt", "x", "--max-tokens", "0"], "maxTokens"),
        (&["--system-prompt", "x", "--max-history-tokens", "10"], "maxHistoryTokens"),
        (&["--system-prompt", "x", "--expiry-days", "0"], "expiryDays"),
        (&["--system-prompt", " "], "systemPrompt"),
        (&["--system-prompt-file", "missing.txt"], "missing.txt"),
        (&["--system-prompt", "x", "--system-prompt-file", "y"], "cannot be used with"),
    ] {
        let refused = home.run(&[&["persona", "create", "Chef"], options].concat());
        assert_eq!(code(&refused), 2, "{options:?}: {}", err(&refused));
        assert!(err(&refused).contains(said), "{options:?}: {}", err(&refused));
    }
    assert!(!home.store().exists() && !home.key().exists());
}

#[test]
fn a_system_prompt_comes_from_a_file_or_a_pipe() {
    let home = Home::new();
    std::fs::write(home.path().join("chef.txt"), format!("{PROMPT}\n")).unwrap();
    let made = home.run(&["persona", "create", "A", "--system-prompt-file", "chef.txt"]);
    assert_eq!(code(&made), 0, "{}", err(&made));
    let piped = home.feed(&["persona", "create", "B", "--system-prompt-file", "-"], PROMPT);
    assert_eq!(code(&piped), 0, "{}", err(&piped));
    for name in ["A", "B"] {
        assert_eq!(show(&home, name)["systemPrompt"], PROMPT);
    }
}

#[test]
fn a_preset_starts_from_another_and_keeps_what_is_not_given() {
    let home = Home::new();
    let options = ["--from", "calm-counselor", "--temperature", "0.1", "--metadata", "house=ours"];
    let made = home.run(&[&["persona", "create", "Calmer"], &options[..]].concat());
    assert_eq!(code(&made), 0, "{}", err(&made));
    let (row, from) = (show(&home, "Calmer"), show(&home, "calm-counselor"));
    for kept in ["systemPrompt", "personality", "maxTokens", "expiryDays", "description"] {
        assert_eq!(row[kept], from[kept], "{kept}");
    }
    assert_eq!((&row["temperature"], &row["metadata"]["house"]), (&0.1.into(), &"ours".into()));
    assert_eq!((&row["isBuiltIn"], &from["temperature"]), (&false.into(), &0.6.into()));
}

#[test]
fn an_edit_changes_what_is_named_and_an_inactive_preset_leaves_the_list() {
    let home = Home::new();
    chef(&home);
    let edit = |options: &[&str]| home.run(&[&["persona", "edit", "chef"], options].concat());
    assert_eq!(code(&edit(&["--metadata", "a=1", "--metadata", "b=2"])), 0);
    assert_eq!(code(&edit(&["--metadata", "a=", "--metadata", "c=3", "--max-tokens", "40"])), 0);
    let row = show(&home, "chef");
    assert_eq!(row["metadata"], serde_json::json!({"b": "2", "c": "3"}));
    assert_eq!((&row["maxTokens"], &row["systemPrompt"]), (&40.into(), &PROMPT.into()));
    let nothing = edit(&[]);
    assert_eq!(code(&nothing), 2);
    assert_eq!(code(&edit(&["--temperature", "7"])), 2);
    assert_eq!(code(&edit(&["--active", "false", "--description", "Cooks"])), 0);
    assert_eq!(rows(&home.run(&["persona", "list", "--json"])).len(), 6);
    let all = rows(&home.run(&["persona", "list", "--all", "--json"]));
    assert_eq!((all.len(), &all[6]["isActive"]), (7, &false.into()));
    assert!(out(&home.run(&["persona", "show", "chef"])).contains("Cooks"));
}

#[test]
fn a_changed_built_in_preset_goes_back_to_what_is_built_in() {
    let home = Home::new();
    let before = show(&home, "calm-counselor");
    let never = home.run(&["persona", "delete", "calm-counselor", "--yes"]);
    assert_eq!(code(&never), 1);
    assert!(err(&never).contains("built in"), "{}", err(&never));
    let edited = home.run(&["persona", "edit", "calm-counselor", "--system-prompt", "Be brief."]);
    assert_eq!(code(&edited), 0, "{}", err(&edited));
    assert_eq!(show(&home, "calm-counselor")["systemPrompt"], "Be brief.");
    let unsure = home.run(&["persona", "delete", "calm-counselor"]);
    assert_eq!(code(&unsure), 2);
    assert!(err(&unsure).contains("take back all changes"), "{}", err(&unsure));
    let back = home.run(&["persona", "delete", "calm-counselor", "--yes"]);
    assert!(err(&back).contains("is what is built in again"), "{}", err(&back));
    assert_eq!(show(&home, "calm-counselor"), before);
}

#[test]
fn a_preset_of_ones_own_is_deleted_after_a_yes() {
    let home = Home::new();
    let id = chef(&home);
    assert_eq!(code(&home.run(&["persona", "delete", "chef"])), 2);
    let deleted = home.run(&["persona", "delete", "chef", "--yes", "--json"]);
    assert_eq!(rows(&deleted), [serde_json::json!({"deleted": id, "isBuiltIn": false})]);
    assert_eq!(code(&home.run(&["persona", "show", "chef"])), 1);
}

#[test]
fn the_columns_hold_wide_characters() {
    let home = Home::new();
    let made = home.run(&["persona", "create", "主厨", "--system-prompt", PROMPT]);
    assert_eq!(code(&made), 0, "{}", err(&made));
    let table = out(&home.run(&["persona", "list"]));
    let column = |line: &str| line.rsplit_once(' ').unwrap().0.chars().count();
    let lines: Vec<_> = table.lines().collect();
    let wide = lines.iter().find(|line| line.contains("主厨")).unwrap();
    assert_eq!(column(wide) + 2, column(lines[1]), "two characters of two columns each: {table}");
}
