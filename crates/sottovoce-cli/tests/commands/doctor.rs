use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use sottovoce::{Clock, SystemClock};

use super::*;
use ollama::{Answer, Ask};
use talk::Talk;

fn lines(home: &Home) -> Vec<Value> {
    out(&home.run(&["doctor", "--json"]))
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The doctor's lines about a matter.
fn about(home: &Home, matter: &str) -> Vec<Value> {
    lines(home).into_iter().filter(|line| line["about"] == matter).collect()
}

fn configure(home: &Home, settings: &Value) {
    home.configure(settings.to_string());
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_its_user_cannot_write_is_bad() {
    let home = Home::new();
    home.keep(&["one"]);
    for mode in [0o000, 0o500] {
        allow(&home.store(), mode);
        let said = &about(&home, "folder")[0];
        allow(&home.store(), 0o700);
        assert_eq!(said["state"], "bad", "{said}");
        let mend = format!("chmod 700 '{}'", home.store().display());
        assert_eq!(said["mend"], mend);
    }
    assert_eq!(about(&home, "folder")[0]["state"], "good");
}

#[test]
fn a_folder_or_key_that_others_may_look_into_is_bad() {
    let home = Home::new();
    home.run(&["init"]);
    home.keep(&["one"]);
    for (path, matter, private) in [(home.store(), "folder", 0o700), (home.key(), "key", 0o600)] {
        for lax in [private | 0o040, private | 0o004, private | 0o077] {
            allow(&path, lax);
            let said = &about(&home, matter)[0];
            assert_eq!(said["state"], "bad", "{lax:o}: {said}");
            let mend = format!("chmod {private:o} '{}'", path.display());
            assert_eq!(said["mend"], mend);
        }
        allow(&path, private);
        assert_eq!(about(&home, matter)[0]["state"], "good");
    }
}

#[test]
fn a_folder_that_belongs_to_another_user_is_reported() {
    let home = Home::new();
    home.keep(&["one"]);
    if std::os::unix::fs::chown(home.store(), Some(65_534), None).is_err() {
        eprintln!("SKIPPED: only root can give a folder away");
        return;
    }
    let said = &about(&home, "folder")[0];
    assert_eq!(said["state"], "warn", "{said}");
    assert!(said["what"].as_str().unwrap().contains("another user"), "{said}");
    assert!(said["mend"].as_str().unwrap().starts_with("chown "), "{said}");
}

#[test]
fn what_a_repair_mends_is_said_to_be_for_it() {
    let home = Home::new();
    home.keep(&["one", "two"]);
    for lost in ["head", "vault"] {
        let file = home.store().join(lost);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let said = &about(&home, "store")[0];
        assert_eq!((&said["state"], &said["mend"]), (&"bad".into(), &"sottovoce repair".into()));
        let mended = home.run(&["repair", "--yes"]);
        assert_eq!(code(&mended), 0, "{lost}: {}", err(&mended));
        assert_eq!(about(&home, "store")[0]["state"], "good", "{lost}");
        std::fs::write(&file, bytes).unwrap();
    }
    std::fs::remove_file(&home.records()[1]).unwrap();
    assert_eq!(about(&home, "store")[0]["mend"], "sottovoce verify");
}

#[test]
fn a_folder_that_cannot_be_made_is_bad() {
    let home = Home::new();
    let above = home.path().join("it's mine");
    std::fs::create_dir(&above).unwrap();
    configure(&home, &serde_json::json!({"Context": {"StorageRoot": above.join("a/store")}}));
    assert_eq!(about(&home, "folder")[0]["state"], "good");
    for mode in [0o000, 0o500] {
        allow(&above, mode);
        let said = &about(&home, "folder")[0];
        allow(&above, 0o700);
        assert_eq!(said["state"], "bad", "{said}");
        let mend = said["mend"].as_str().unwrap();
        assert!(mend.starts_with("chmod ") && mend.ends_with(r"/it'\''s mine'"), "{mend}");
    }
    std::fs::write(above.join("a"), "").unwrap();
    assert_eq!(about(&home, "folder")[0]["state"], "bad");
}

#[test]
fn a_clock_a_little_behind_the_newest_message_is_good() {
    let home = Home::new();
    let soon = SystemClock.now().timestamp() + jiff::SignedDuration::from_hours(23);
    home.run(&["append", "--role", "user", "--at", &soon.to_string(), "x"]);
    assert_eq!(about(&home, "clock")[0]["state"], "good");
}

#[test]
fn a_window_without_room_for_a_prompt_is_named() {
    let home = Home::new();
    for (ctx, predict, state) in [(4096, 512, None), (512, 512, Some("warn")), (0, 1, Some("warn"))]
    {
        configure(
            &home,
            &serde_json::json!({"LanguageModel": {"NumCtx": ctx, "NumPredict": predict}}),
        );
        let mut said = about(&home, "model");
        // The other line is about the missing server.
        said.retain(|line| !line["what"].as_str().unwrap().contains("cannot be reached"));
        assert_eq!(said.first().and_then(|line| line["state"].as_str()), state, "{ctx} {predict}");
        assert!(said.iter().all(|line| line["what"].as_str().unwrap().contains("NumCtx")));
    }
}

#[test]
fn the_way_out_of_the_cache_can_be_pasted() {
    let home = Home::new();
    let place = home.path().join(".local/share/sottovoce/Conversation");
    let setting = format!("\"StorageRoot\": \"{}\"", place.display());
    let before = &about(&home, "cache")[0];
    let mend = before["mend"].as_str().unwrap();
    assert!(mend.contains(&setting) && !mend.contains("mv "), "{mend}");
    assert!(about(&home, "store").is_empty(), "there is none yet");
    assert!(!before["what"].as_str().unwrap().contains("store"), "{before}");

    home.keep(&["one"]);
    let mend = about(&home, "cache")[0]["mend"].as_str().unwrap().to_owned();
    assert!(mend.contains(&setting), "{mend}");
    // A user pastes all of it.
    let pasted = Command::new("sh")
        .args(["-c", &mend])
        .env("HOME", home.path())
        .current_dir(home.path())
        .status()
        .unwrap();
    assert!(pasted.success() && !home.store().exists());
    configure(&home, &serde_json::json!({"Context": {"StorageRoot": place}}));
    assert_eq!(home.words(), ["one"]);
    assert!(about(&home, "cache").is_empty());
    assert_eq!(about(&home, "store")[0]["state"], "good");
}

#[test]
fn doctor_names_what_is_wrong_and_the_command_that_mends_it() {
    let home = Home::new();
    home.run(&["ask", "x"]);
    let well = home.run(&["doctor", "--json"]);
    assert_eq!(code(&well), 0);
    assert!(out(&well).contains("cache"));
    std::fs::set_permissions(home.key(), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::set_permissions(home.store(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ill = home.run(&["doctor"]);
    assert_eq!(code(&ill), 3);
    for mend in ["chmod 600", "chmod 700"] {
        assert!(out(&ill).contains(mend), "{}", out(&ill));
    }
}

/// The doctor's lines about the model, and the exit code.
fn of_the_model(talk: &Talk, settings: &[(&str, &str)]) -> (Vec<Value>, i32) {
    let mut command = talk.command(&["doctor", "--json"]);
    for (name, value) in settings {
        command.env(format!("SOTTOVOCE__LANGUAGEMODEL__{name}"), value);
    }
    let said = command.output().unwrap();
    let all = out(&said);
    let all = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (all.filter(|line| line["about"] == "model").collect(), code(&said))
}

#[test]
fn a_server_that_is_not_there_is_a_warning_that_says_how_to_start_it() {
    let home = Home::new();
    let said = home.run(&["doctor", "--json"]);
    assert_eq!(code(&said), 0, "without a model all else works");
    let said = &about(&home, "model")[0];
    assert_eq!(said["state"], "warn");
    assert_eq!(said["mend"], "ollama serve");
}

#[test]
fn a_model_that_is_there_and_fits_is_good() {
    let talk = Talk::new();
    let (said, code) = of_the_model(&talk, &[]);
    assert_eq!(code, 0);
    assert_eq!(said.len(), 2);
    assert!(said.iter().all(|line| line["state"] == "good"), "{said:?}");
    assert!(talk.stub.seen(Ask::Load).is_empty(), "looking loads nothing");
}

#[test]
fn a_server_of_chat_completions_is_looked_at_too() {
    let talk = Talk::new();
    let openai = |settings: &[(&str, &str)]| {
        of_the_model(&talk, &[&[("KIND", "openai")], settings].concat())
    };
    let (said, code) = openai(&[]);
    assert_eq!(code, 0);
    assert!(said.iter().all(|line| line["state"] == "good"), "{said:?}");
    assert!(said[1].to_string().contains("window of 8192"), "{said:?}");
    let (said, _) = openai(&[("NUMCTX", "16384")]);
    assert_eq!(said[1]["state"], "warn", "{said:?}");
    let other = json!({ "data": [{ "id": "other" }] });
    talk.stub.always_to(Ask::Models, Answer::json(other));
    let (said, _) = openai(&[]);
    assert_eq!((&said[1]["state"], &said[1]["mend"]), (&json!("bad"), &json!("sottovoce models")));
    assert!(talk.stub.seen(Ask::Reply).is_empty(), "looking says nothing to it");
}

#[test]
fn what_is_wrong_with_the_model_is_named_with_what_mends_it() {
    let missing = Answer::refusal(404, "model 'llama3.2' not found");
    let cloud = Answer::json(serde_json::json!({
        "capabilities": ["completion"], "remote_host": "https://ollama.com:443"
    }));
    let embedder = Answer::json(serde_json::json!({ "capabilities": ["embedding"] }));
    let allowed = ("ALLOWCLOUD", "true");
    for (show, settings, state, what, mend) in [
        (Some(missing), &[][..], "bad", "does not have", "ollama pull llama3.2"),
        (Some(cloud.clone()), &[], "bad", "runs in a cloud", "AllowCloud"),
        (Some(cloud), &[allowed], "warn", "leaves this network", "of this machine"),
        (Some(embedder), &[], "bad", "cannot answer", "sottovoce models"),
        (None, &[("NUMCTX", "16384")], "warn", "made for 8192", "8192 or less"),
        (None, &[("THINK", "true")], "warn", "does not think", "LanguageModel.Think"),
    ] {
        let talk = Talk::new();
        if let Some(show) = show {
            talk.stub.always_to(Ask::Show, show);
        }
        let (said, code) = of_the_model(&talk, settings);
        let line = said.iter().find(|line| line["what"].as_str().unwrap().contains(what));
        let line = line.unwrap_or_else(|| panic!("{what}: {said:?}"));
        assert_eq!(line["state"], state, "{line}");
        assert!(line["mend"].as_str().unwrap().contains(mend), "{line}");
        assert_eq!(code, if state == "bad" { 3 } else { 0 }, "{line}");
    }
}

#[test]
fn a_model_loaded_with_a_smaller_window_is_a_warning() {
    let talk = Talk::new();
    assert_eq!(code(&talk.run(&["ask", "Load it"])), 0);
    assert!(of_the_model(&talk, &[]).0.iter().all(|line| line["state"] == "good"));
    let (said, code) = of_the_model(&talk, &[("NUMCTX", "8192")]);
    assert_eq!(code, 0);
    assert!(said[1]["what"].as_str().unwrap().contains("window of 4096"), "{said:?}");
}

#[test]
fn what_a_server_says_steers_no_terminal() {
    let talk = Talk::new();
    let version = serde_json::json!({ "version": "1\u{1b}]0;title\u{7}\u{9b}31m" });
    talk.stub.always_to(Ask::Version, Answer::json(version));
    let said = out(&talk.run(&["doctor"]));
    assert!(said.contains("version 1\u{fffd}]0;title\u{fffd}\u{fffd}31m"), "{said:?}");
}

#[test]
fn a_lost_key_file_comes_back_private_and_in_a_folder_that_is_gone_too() {
    let home = Home::new();
    home.keep(&["one"]);
    std::fs::rename(home.key(), home.path().join("backup")).unwrap();
    std::fs::remove_dir_all(home.key().parent().unwrap()).unwrap();
    let said = &about(&home, "key")[0];
    let mend = said["mend"].as_str().unwrap().replace("YOUR-BACKUP", "backup");
    let mended = Command::new("sh").args(["-c", &mend]).current_dir(home.path()).status();
    assert!(mended.unwrap().success(), "{mend}");
    assert_eq!(about(&home, "key")[0]["state"], "good");
    assert_eq!(home.words(), ["one"]);
}

#[test]
fn a_time_zone_that_is_not_known_is_named() {
    let home = Home::new();
    home.keep(&["one"]);
    for (zone, is_known) in [("Foo/Bar", false), ("Europe/Berlin", true), ("CET-1", true)] {
        let run = |arguments: &[&str]| home.command(arguments).env("TZ", zone).output().unwrap();
        let doctor = run(&["doctor"]);
        let said = String::from_utf8_lossy(&doctor.stdout).contains("no time zone \"Foo/Bar\"");
        assert_eq!(said, !is_known, "{zone}");
        let prompt = run(&["prompt", "Hello"]);
        let said = String::from_utf8_lossy(&prompt.stderr).contains("times are in UTC");
        assert_eq!(said, !is_known, "{zone}");
    }
    assert!(jiff::tz::TimeZoneDatabase::bundled().get("Europe/Berlin").is_ok());
}
