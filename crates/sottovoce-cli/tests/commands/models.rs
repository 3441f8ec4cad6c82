use super::*;
use ollama::{Answer, Ask};
use serde_json::json;
use talk::Talk;

#[test]
fn the_configured_model_is_starred_and_its_window_shown() {
    let talk = Talk::new();
    let tags = json!({ "models": [
        { "name": "qwen3:8b", "size": 5_200_000_000_u64, "details": {} },
        { "name": "llama3.2:latest", "size": 2_019_393_189_u64,
          "details": { "parameter_size": "3.2B", "quantization_level": "Q4_K_M" } },
        { "name": "large:cloud\u{1b}[31m", "remote_host": "https://ollama.com:443" },
    ] });
    talk.stub.always_to(Ask::Tags, Answer::json(tags));
    assert_eq!(code(&talk.run(&["ask", "Load it"])), 0);
    let shown = talk.run(&["models"]);
    assert_eq!(code(&shown), 0, "{}", err(&shown));
    let shown = out(&shown);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains("name") && lines.len() == 4, "{shown}");
    let cloud = lines.iter().find(|line| line.contains("large")).unwrap();
    assert!(cloud.contains("runs in a cloud") && !cloud.contains('\u{1b}'), "{shown}");
    for part in ["3.2B", "Q4_K_M", "8192", "2.02 GB", "loaded with 4096", "tools"] {
        assert!(lines[2].starts_with("*  llama3.2:latest") && lines[2].contains(part), "{shown}");
    }
    assert_eq!(shown.matches('*').count(), 1);
}

#[test]
fn programs_get_the_whole_name_of_a_model_that_is_called_by_a_path() {
    let talk = Talk::new();
    let path = format!("/srv/{}/SmolLM2-135M-Instruct-Q8_0.gguf", "models/".repeat(12));
    let tags = json!({ "models": [
        { "name": path, "size": 144_000_000_u64,
          "details": { "parameter_size": "134.52M", "quantization_level": "Q8_0" } },
        { "name": "llama3.2:latest", "size": 2_019_393_189_u64, "details": {} },
    ] });
    talk.stub.always_to(Ask::Tags, Answer::json(tags));
    let shown = out(&talk.run(&["models"]));
    assert!(shown.contains(&format!("{path}  ")), "{shown}");
    let names: Vec<Value> =
        rows(&talk.run(&["models", "--json"])).iter().map(|row| row["name"].clone()).collect();
    assert!(names.contains(&json!(path)), "{names:?}");
}

#[test]
fn machines_get_one_object_a_model() {
    let talk = Talk::new();
    let row = &rows(&talk.run(&["models", "--json"]))[0];
    let expected = json!({
        "name": "llama3.2:latest", "configured": true, "bytes": 2_019_393_189_u64,
        "parameters": "3.2B", "quantization": "Q4_K_M", "contextLength": 8192, "loadedWindow": null,
        "cloud": false, "capabilities": ["completion", "tools"],
    });
    assert_eq!(*row, expected);
}

#[test]
fn a_configured_model_that_is_missing_is_named_with_what_fetches_it() {
    let talk = Talk::new();
    let mut command = talk.command(&["models"]);
    let shown = command.env("SOTTOVOCE__LANGUAGEMODEL__MODEL", "qwen3:8b").output().unwrap();
    assert_eq!(code(&shown), 0);
    assert!(err(&shown).contains("`ollama pull qwen3:8b`"), "{}", err(&shown));
    assert!(!out(&shown).contains('*'), "{}", out(&shown));
    talk.stub.always_to(Ask::Tags, Answer::json(json!({ "models": [] })));
    for arguments in [&["models"][..], &["models", "--json"]] {
        let none = talk.run(arguments);
        assert_eq!((code(&none), out(&none).as_str()), (0, ""));
    }
    assert!(err(&talk.run(&["models"])).contains("`ollama pull llama3.2`"));
}

#[test]
fn one_broken_model_does_not_hide_the_others() {
    let talk = Talk::new();
    let tags = json!({ "models": [{ "name": "a" }, { "name": "b" }] });
    talk.stub.always_to(Ask::Tags, Answer::json(tags));
    for refusal in
        [Answer::refusal(404, "model 'a' not found"), Answer::refusal(500, "unsupported manifest")]
    {
        talk.stub.next_to(Ask::Show, refusal);
        let all = rows(&talk.run(&["models", "--json"]));
        assert_eq!(all.len(), 2);
        assert_eq!(
            (&all[0]["contextLength"], &all[1]["contextLength"]),
            (&Value::Null, &json!(8192))
        );
    }
}

#[test]
fn without_a_server_there_is_no_list() {
    let home = Home::new();
    for arguments in [&["models"][..], &["--json", "models"]] {
        let shown = home.run(arguments);
        assert_eq!((code(&shown), out(&shown).as_str()), (6, ""));
        assert!(err(&shown).contains("`ollama serve`"), "{}", err(&shown));
    }
}

#[test]
fn a_server_of_chat_completions_lists_its_models_too() {
    let talk = Talk::new();
    let listed = || {
        let mut command = talk.command(&["models", "--json"]);
        rows(&command.env("SOTTOVOCE__LANGUAGEMODEL__KIND", "openai").output().unwrap())
    };
    let expected = json!({
        "name": "llama3.2", "configured": true, "bytes": 2_011_539_712_u64, "parameters": "3.2B",
        "quantization": "Q4_K_M", "contextLength": 131_072, "loadedWindow": 8192, "cloud": false, "capabilities": [],
    });
    assert_eq!(listed()[0], expected);
    let two = json!({ "data": [{ "id": "a" }, { "id": "b" }] });
    talk.stub.always_to(Ask::Models, Answer::json(two));
    let mut command = talk.command(&["models"]);
    let shown = command.env("SOTTOVOCE__LANGUAGEMODEL__KIND", "openai").output().unwrap();
    assert!(err(&shown).contains("set LanguageModel.Model to one of them"), "{}", err(&shown));
    assert!(!err(&shown).contains("ollama pull"), "{}", err(&shown));
}
