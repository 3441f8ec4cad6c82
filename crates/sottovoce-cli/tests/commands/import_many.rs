use super::*;

fn fixtures(system: &str) -> String {
    format!("{}/../sottovoce-import/tests/fixtures/{system}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs with its own folder for temporary files, which must be empty in the end.
fn import(home: &Home, arguments: &[&str]) -> Output {
    let temporary = home.path().join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let output = home.command(arguments).env("TMPDIR", &temporary).output().unwrap();
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{arguments:?}");
    output
}

fn tail(home: &Home, scope: &str) -> Vec<Value> {
    rows(&home.run(&["--scope", scope, "tail", "--json", "-n", "100"]))
}

#[test]
fn the_discord_bots_conversations_go_into_scopes_of_their_own_once() {
    let home = Home::new();
    let folder = fixtures("discord");
    let dry = import(&home, &["import", "discord", &folder, "--dry-run"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    assert!(out(&dry).ends_with(
        "would import 55 messages in 7 conversations, 7 of the conversations expired\n"
    ));
    assert!(!home.key().exists() && !home.store().exists());

    let taken = import(&home, &["import", "discord", &folder]);
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert!(home.key().is_file());
    assert_eq!(
        out(&taken).lines().take(3).collect::<Vec<_>>(),
        [
            "dm/1300000000000000001  imported 12 messages, expired",
            "dm/1300000000000000001 thread emma  imported 4 messages, expired",
            "dm/1300000000000000009  imported 4 messages, expired",
        ]
    );
    let stored = tail(&home, "dm/1300000000000000001");
    assert_eq!(stored.len(), 16);
    assert_eq!(stored.iter().filter(|row| row["threadId"] == "emma").count(), 4);
    let scope = "guild/1100000000000000001/1200000000000000002/1300000000000000002";
    assert_eq!(tail(&home, scope).last().unwrap()["metadata"]["expiresAt"], "2025-08-25T21:00:10Z");
    assert_eq!(code(&home.run(&["--scope", scope, "verify"])), 0);

    let again = parsed(&import(&home, &["--json", "import", "discord", &folder]));
    assert_eq!(again.len(), 8);
    assert_eq!(
        again[1],
        serde_json::json!({
            "conversation": "dm/1300000000000000001", "thread": "emma", "taken": 0, "alreadyThere": 4,
            "forgotten": 0, "removed": 0, "refused": 0, "expired": true, "snapshots": 0, "artifacts": 0, "hidden": 0,
            "leftOut": [{"setting": "limits", "retention": {"maxMessages": 15, "ttlSeconds": 86400}}],
            "passedOver": 0, "passedOverKinds": {},
        })
    );
    assert_eq!((&again[7]["taken"], &again[7]["alreadyThere"]), (&0.into(), &55.into()));
    let skipped = import(&home, &["import", "discord", &folder, "--skip-expired"]);
    assert_eq!(
        out(&skipped),
        "imported 0 messages in 0 conversations, 7 left out because they expired\n"
    );
}

#[test]
fn the_bots_limits_are_reported_and_set_only_on_request() {
    let home = Home::new();
    let folder = fixtures("discord");
    let refused = import(&home, &["import", "discord", &folder, "--with-limits"]);
    assert_eq!(code(&refused), 2);
    let said = err(&refused);
    assert!(said.contains("at most 15 messages, for 1 d") && said.contains("--yes"), "{said}");
    assert!(said.contains("hide at least 55"), "{said}");
    let taken = import(&home, &["import", "discord", &folder]);
    assert!(err(&taken).contains("--with-limits imports them"), "{}", err(&taken));
    assert_eq!(tail(&home, "dm/1300000000000000001").len(), 16);
    let limited = import(&home, &["import", "discord", &folder, "--with-limits", "--yes"]);
    assert_eq!(code(&limited), 0, "{}", err(&limited));
    let first = out(&limited).lines().next().unwrap().to_owned();
    assert!(first.contains("16 messages hidden by the limits here"), "{first}");
    assert!(tail(&home, "dm/1300000000000000001").is_empty());
}

#[test]
fn any_conversation_can_be_given_a_personality_and_loses_no_word_by_it() {
    let home = Home::new();
    for scope in ["dm/42", "named/mira"] {
        let kept = home.feed(&["--scope", scope, "append"], user("the words"));
        assert_eq!(code(&kept), 0, "{}", err(&kept));
    }
    let attach = ["--scope", "dm/42", "persona", "attach", "calm-counselor"];
    assert_eq!(code(&home.run(&attach)), 0);
    let again = home.run(&attach);
    assert_eq!(code(&again), 2);
    assert!(err(&again).contains("persona detach"), "{}", err(&again));
    let prompt =
        || out(&home.run(&["--scope", "dm/42", "prompt", "x", "--renderer", "openai-chat"]));
    assert!(prompt().contains("counselor") && prompt().contains("the words"), "{}", prompt());
    assert_eq!(code(&home.run(&["--scope", "dm/42", "persona", "detach"])), 0);
    assert!(!prompt().contains("counselor") && prompt().contains("the words"), "{}", prompt());

    let create = ["--scope", "named/mira", "context", "create", "--preset", "calm-counselor"];
    let made = home.run(&create);
    assert_eq!((code(&made), out(&made).trim()), (0, "mira"), "{}", err(&made));
    let listed = rows(&home.run(&["context", "list", "--json"]));
    assert_eq!((&listed[0]["id"], &listed[0]["messages"]), (&"mira".into(), &1.into()));
    assert_eq!((&listed[0]["name"], &listed[0]["expiryDays"]), (&"mira".into(), &36_500.into()));
    let other = home.run(&["--scope", "dm/42", "context", "create", "--preset", "calm-counselor"]);
    assert_eq!(code(&other), 2);
}

#[test]
fn no_plain_copy_of_a_database_ever_has_a_name() {
    let home = Home::new();
    // Even without a folder for temporary files.
    let nowhere = home.path().join("nowhere");
    let taken = home
        .command(&["import", "chorus", &fixtures("chorus")])
        .env("TMPDIR", &nowhere)
        .output()
        .unwrap();
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert!(!nowhere.exists());
}

#[test]
fn chorus_comes_with_its_snapshots_and_leaves_nothing_plain_behind() {
    let home = Home::new();
    let folder = fixtures("chorus");
    let dry = import(&home, &["import", "chorus", &folder, "--dry-run"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    assert!(!home.key().exists() && !home.store().exists());
    let taken = import(&home, &["import", "chorus", &folder]);
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert_eq!(
        out(&taken),
        "named/kitchen-2  imported 14 messages, 1 artifact\n\
         named/mira  imported 29 messages, 1 snapshot, 2 artifacts\n\
         imported 43 messages in 2 conversations, 1 snapshot, 3 artifacts; passed over: \
         names and states of threads (12), steps of threads (1)\n"
    );
    assert_eq!(out(&dry), out(&taken).replace("imported", "would import"));
    let stored = tail(&home, "named/mira");
    let call = stored.iter().find(|row| row.get("toolCalls").is_some()).unwrap();
    assert_eq!(call["toolCalls"][0]["name"], "create_reminder");
    assert_eq!(call["threadId"], "4");

    home.run(&["--scope", "named/mira", "forget", "--yes", "--only", "1"]);
    let again = import(&home, &["import", "chorus", &folder]);
    assert!(
        out(&again)
            .contains("named/mira  imported 0 messages, 28 already there, 1 forgotten here\n")
    );
    assert_eq!(code(&home.run(&["--scope", "named/mira", "verify"])), 0);
}

#[test]
fn contexts_of_mcp_llm_generator_come_with_their_presets_once() {
    let home = Home::new();
    let folder = fixtures("mcp-llm-generator");
    let run =
        |more: &[&str]| import(&home, &[more, &["import", "mcp-llm-generator", &folder]].concat());
    let dry = import(&home, &["import", "mcp-llm-generator", &folder, "--dry-run"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    assert!(!home.key().exists() && !home.store().exists());
    let taken = run(&[]);
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert_eq!(
        out(&taken),
        "named/context-mep92q9v-mkorf9  imported 28 messages, expired\n\
         named/context-mepaalnu-gck64a  imported 7 messages, expired\n\
         named/context-mepkttns-q515ad  imported 4 messages, expired\n\
         imported 39 messages in 3 conversations, 6 presets, 3 of the conversations expired; \
         passed over: rows of other tables (16)\n"
    );
    assert_eq!(out(&dry), out(&taken).replace("imported", "would import"));
    let scope = "named/context-mepaalnu-gck64a";
    let stored = tail(&home, scope);
    assert_eq!((stored.len(), &stored[6]["content"]), (7, &"What's 17% of 349?".into()));
    for scope in [scope, "default"] {
        assert_eq!(code(&home.run(&["--scope", scope, "verify"])), 0);
    }

    let again = parsed(&run(&["--json"]));
    assert_eq!((&again[0]["taken"], &again[0]["alreadyThere"]), (&0.into(), &28.into()));
    let total = &again[3];
    assert_eq!((&total["taken"], &total["presets"]), (&0.into(), &0.into()));
    assert_eq!((&total["presetsAlreadyThere"], &total["passedOver"]), (&6.into(), &16.into()));
}

#[test]
fn mimirs_conversations_come_with_their_titles_snapshots_and_artifacts_once() {
    let home = Home::new();
    let folder = fixtures("mimir");
    let dry = import(&home, &["import", "mimir", &folder, "--dry-run"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    assert!(!home.key().exists() && !home.store().exists());
    let taken = import(&home, &["import", "mimir", &folder]);
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert_eq!(
        out(&taken),
        "named/conv-mep92pvzx9164urj24  imported 8 messages\n\
         named/conv-mep9o8bxovaooktzhh  imported 12 messages, 1 artifact\n\
         named/conv-meph3g5nsdd5cv78rvl  imported 23 messages, 2 snapshots, 1 artifact\n\
         imported 43 messages in 3 conversations, 2 snapshots, 2 artifacts\n"
    );
    assert_eq!(out(&dry), out(&taken).replace("imported", "would import"));
    let scope = "named/conv-meph3g5nsdd5cv78rvl";
    let stored = tail(&home, scope);
    assert_eq!(stored[1]["metadata"]["result:call_7f3"], r#"{"ok":true,"id":17}"#);
    assert_eq!(stored[2]["toolCallId"], "call_7f3");
    assert_eq!(code(&home.run(&["--scope", scope, "verify"])), 0);

    let again = parsed(&import(&home, &["--json", "import", "mimir", &folder]));
    assert_eq!((&again[2]["alreadyThere"], &again[2]["artifacts"]), (&23.into(), &0.into()));
    assert_eq!((&again[3]["taken"], &again[3]["artifacts"]), (&0.into(), &0.into()));
}

#[test]
fn chatgpts_export_and_completions_come_under_their_own_names_once() {
    let home = Home::new();
    let folder = format!("{}/export", fixtures("openai"));
    let dry = import(&home, &["import", "openai", &folder, "--dry-run"]);
    assert_eq!(code(&dry), 0, "{}", err(&dry));
    assert!(!home.key().exists() && !home.store().exists());
    let taken = import(&home, &["import", "openai", &folder]);
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    let end = "imported 8 messages in 3 conversations; passed over: messages of other branches (1), \
               messages without words (4), parts that are no text (3)\n";
    assert!(out(&taken).ends_with(end), "{}", out(&taken));
    let stored = tail(&home, "named/6f0a3c1e-1111-4aaa-8bbb-000000000001");
    assert_eq!(stored[3]["content"], "Four hours, at 24 °C.");

    let file = format!("{}/training.jsonl", fixtures("openai"));
    for (messages, there) in [(8, 0), (0, 8)] {
        let total = parsed(&import(&home, &["--json", "import", "openai", &file])).pop().unwrap();
        assert_eq!((&total["taken"], &total["alreadyThere"]), (&messages.into(), &there.into()));
    }
    assert_eq!(tail(&home, "named/training-2").len(), 3);
}

#[test]
fn lines_of_any_program_go_into_the_conversation_that_is_named() {
    let home = Home::new();
    let file = home.path().join("chat.jsonl");
    let good = r#"{"id":1,"role":"human","content":"a","date":"2025-08-24T18:36:25+02:00"}"#;
    std::fs::write(&file, format!("{good}\n{{\"role\":\"ai\",\"content\":\"b\"}}\nnonsense\n"))
        .unwrap();
    let file = file.to_str().unwrap();
    let scope = ["--scope", "named/kitchen", "--thread", "7"];
    let run = |more: &[&str]| import(&home, &[&scope[..], &["import", "jsonl"], more].concat());
    let dry = run(&[file, "--dry-run"]);
    assert_eq!(code(&dry), 3, "{}", err(&dry));
    assert!(!home.key().exists() && !home.store().exists());
    let taken = run(&[file]);
    assert_eq!(
        out(&taken),
        "refused  chat.jsonl#2: it has no time\n\
         refused  chat.jsonl#3: it is not a JSON object\n\
         imported 1 message, 2 refused; forms: 1 message\n"
    );
    let taken = run(&[file, "--at-now"]);
    assert_eq!(code(&taken), 3);
    assert!(
        out(&taken).ends_with("imported 1 message, 1 already there, 1 refused; forms: 2 message\n")
    );
    let printed = home.run(&[&scope[..], &["tail", "--json"]].concat());
    let stored = rows(&printed);
    assert_eq!((&stored[0]["threadId"], &stored[0]["offsetMinutes"]), (&"7".into(), &120.into()));

    // One conversation's output is another's input.
    let arguments = ["--scope", "named/study", "import", "jsonl", "-"];
    let piped = home.feed(&arguments, out(&printed));
    assert_eq!(code(&piped), 0, "{}", err(&piped));
    assert!(out(&piped).starts_with("imported 2 messages"), "{}", out(&piped));
}

#[test]
fn what_was_refused_is_listed_and_the_exit_code_says_so() {
    let home = Home::new();
    let folder = home.path().join("bot/dms");
    std::fs::create_dir_all(&folder).unwrap();
    let good = r#"{"messages":[{"role":"user","content":"x","timestamp":1},{"role":"nobody"}]}"#;
    std::fs::write(folder.join("1.json"), good).unwrap();
    std::fs::write(folder.join("2.json"), "{").unwrap();
    let taken = import(&home, &["import", "discord", "bot"]);
    assert_eq!(code(&taken), 3, "{}", err(&taken));
    assert_eq!(
        out(&taken),
        "dm/1  imported 1 message, 1 refused\n\
         refused  dms/2.json: it is cut off\n\
         refused  dms/1.json#2: its fields are not those of a message\n\
         imported 1 message in 1 conversation, 2 refused\n"
    );
    let told = parsed(&import(&home, &["--json", "import", "discord", "bot"]));
    assert_eq!(told.len(), 4);
    assert_eq!(
        (&told[1]["refused"], &told[1]["reason"]),
        (&"dms/2.json".into(), &"corrupt".into())
    );
    assert_eq!(told[3]["refused"], 2);
}

#[test]
fn a_scope_or_what_is_no_source_is_a_mistake_and_nothing_is_made() {
    let home = Home::new();
    for (system, folder) in ["discord", "chorus", "mcp-llm-generator", "mimir", "openai"]
        .map(|name| (name, fixtures(name)))
    {
        for option in [["--scope", "dm/1"], ["--thread", "x"]] {
            let refused = import(&home, &[&option[..], &["import", system, &folder]].concat());
            assert_eq!(code(&refused), 2, "{}", err(&refused));
            assert!(err(&refused).contains("leave out --scope and --thread"));
        }
        let elsewhere = import(&home, &["import", system, &fixtures("elara")]);
        assert_eq!(code(&elsewhere), 1, "{}", err(&elsewhere));
    }
    let file = format!("{}/expected.json", fixtures("chorus"));
    let no_database = import(&home, &["import", "chorus", &file]);
    assert_eq!(code(&no_database), 1);
    assert!(err(&no_database).contains("not an SQLite database"), "{}", err(&no_database));
    assert!(!home.key().exists() && !home.store().exists());
}

#[test]
fn a_first_import_under_a_passphrase_makes_its_salt_and_no_key_file() {
    let home = Home::new();
    let folder = fixtures("chorus");
    let taken = home
        .command(&["import", "chorus", &folder])
        .env("SOTTOVOCE__CONTEXT__PASSPHRASE", "several words of this house")
        .output()
        .unwrap();
    assert_eq!(code(&taken), 0, "{}", err(&taken));
    assert!(out(&taken).contains("imported 43 messages in 2 conversations"));
    assert!(!home.key().exists());
}
