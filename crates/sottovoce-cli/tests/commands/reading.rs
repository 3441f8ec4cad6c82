//! A model reads artifacts and earlier messages with functions.

use super::artifact::{done, id, said, write};
use super::*;
use ollama::{Answer, Ask};
use serde_json::json;
use talk::Talk;

#[test]
fn a_model_reads_a_file_that_was_added_and_the_stream_shows_only_the_answer() {
    let talk = Talk::new();
    write(&talk.home, "notes.md", "leeks\nbread\n");
    let added = said(&talk.home, &["artifact", "add", "notes.md"]);
    let call =
        json!([{ "function": { "name": "read_artifact", "arguments": { "id": id(&added) } } }]);
    talk.stub.next(Answer::saying(&[]).tools(call));
    talk.stub.next(Answer::saying(&["Leeks and ", "bread."]));
    let asked = talk.run(&["ask", "What do I need?"]);
    assert_eq!((code(&asked), out(&asked).as_str()), (0, "Leeks and bread.\n"), "{}", err(&asked));
    assert!(err(&asked).contains("1 lookup"), "{}", err(&asked));
    let told = talk.stub.seen(Ask::Reply)[1].json();
    let last = told["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["role"], "tool");
    assert!(last["content"].as_str().unwrap().ends_with(":\nleeks\nbread\n"), "{last}");
    let kept = talk.kept();
    assert_eq!(kept.len(), 5);
    assert_eq!(kept[2]["toolCalls"][0]["name"], "read_artifact");
    assert!(!kept[3]["content"].as_str().unwrap().contains("leeks"), "{}", kept[3]);
    let tail = out(&talk.run(&["tail"]));
    assert!(tail.contains("assistant  (calls read_artifact)\n"), "{tail}");
    // The user can switch it off.
    let mut quiet = talk.command(&["ask", "And?"]);
    let quiet = quiet.env("SOTTOVOCE__CONTEXT__MEMORYCALLS", "0").output().unwrap();
    assert_eq!(code(&quiet), 0, "{}", err(&quiet));
    let told = talk.stub.seen(Ask::Reply)[2].json();
    assert!(told["tools"].is_null(), "{told}");
    assert!(told["messages"][1]["content"].as_str().unwrap().contains("Its text:"), "{told}");
}

#[test]
fn a_file_that_is_added_again_after_a_clear_is_referred_to_anew() {
    let home = Home::new();
    write(&home, "notes.md", "leeks\n");
    let first = said(&home, &["artifact", "add", "notes.md"]);
    let again = said(&home, &["artifact", "add", "notes.md"]);
    assert_eq!((&again["wasThere"], &again["message"]), (&true.into(), &Value::Null));
    done(&home, &["clear"]);
    let anew = said(&home, &["artifact", "add", "notes.md"]);
    assert_eq!((&anew["wasThere"], &anew["message"]), (&true.into(), &2.into()));
    assert_eq!(id(&anew), id(&first), "the contents are kept once");
    let other = said(&home, &["--thread", "7", "artifact", "add", "notes.md"]);
    assert_eq!(other["message"], 3, "another thread knows nothing of it");
    assert_eq!(said(&home, &["artifact", "add", "notes.md"])["message"], Value::Null);
}

#[test]
fn a_long_result_of_a_tool_that_is_appended_becomes_an_artifact() {
    let home = Home::new();
    let long = "rain in Bergen ".repeat(2000);
    done(&home, &["append", "-r", "tool", &long]);
    let line = format!("{}\n", json!({ "role": "tool", "content": long }));
    assert_eq!(code(&home.feed(&["append"], &line)), 0);
    done(&home, &["append", "-r", "user", &long]);
    let words = home.words();
    for result in &words[..2] {
        assert!(result.contains("is kept as artifact://") && result.len() < 1000, "{result}");
    }
    assert_eq!(words[2], long);
    let all = rows(&home.run(&["artifact", "list", "--json"]));
    assert_eq!(all.len(), 2);
    assert_eq!(out(&done(&home, &["artifact", "show", &id(&all[1])])), long);
}
