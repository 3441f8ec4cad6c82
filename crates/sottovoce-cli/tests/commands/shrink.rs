//! Pruning, summaries and other ways to shorten the context, and showing it.

use super::*;
use ollama::{Answer, Ask};
use talk::Talk;

fn prompt(home: &Home) -> String {
    out(&home.run(&["prompt", "And now?", "--renderer", "text"]))
}

#[test]
fn what_is_pruned_is_shown_first_when_asked_and_comes_back() {
    let home = Home::new();
    home.keep(&["canary one", "canary two", "canary three", "canary four"]);
    let arguments = ["prune", "--strategy", "oldest", "--max-tokens", "1", "--keep-recent", "2"];
    let planned = home.run(&[&arguments[..], &["--dry-run", "--json"]].concat());
    let stays: Vec<_> =
        rows(&planned).iter().filter_map(|row| row.get("stays").and_then(Value::as_bool)).collect();
    assert_eq!(stays, [false, false, true, true], "{}", out(&planned));
    assert!(prompt(&home).contains("canary one"), "it was only a plan");
    let pruned = home.run(&arguments);
    assert_eq!(code(&pruned), 0, "{}", err(&pruned));
    assert!(err(&pruned).contains("nothing was deleted"), "{}", err(&pruned));
    assert!(!prompt(&home).contains("canary two") && prompt(&home).contains("canary three"));
    assert_eq!(home.words().len(), 4);
    let shown = out(&home.run(&["context", "messages"]));
    assert_eq!(shown.matches("in no prompt: pruned").count(), 2, "{shown}");
    assert_eq!(code(&home.run(&["prune", "--undo", "2"])), 0);
    assert!(!prompt(&home).contains("canary one") && prompt(&home).contains("canary two"));
    assert_eq!(code(&home.run(&["prune", "--undo"])), 0);
    assert!(prompt(&home).contains("canary one"));
}

#[test]
fn what_is_worth_nothing_is_worth_zero() {
    let home = Home::new();
    let old = r#"{"role":"system","content":"canary","timestampUtc":"2020-01-01T00:00:00Z"}"#;
    assert_eq!(code(&home.feed(&["append"], old)), 0);
    home.keep(&["another"]);
    let arguments = ["prune", "--max-tokens", "1", "--keep-recent", "1", "--dry-run"];
    let told = out(&home.run(&arguments));
    assert!(told.contains("worth    0") && !told.contains("-0"), "{told}");
    let rows = rows(&home.run(&[&arguments[..], &["--json"]].concat()));
    assert_eq!(rows[0]["worth"].to_string(), "0.0");
}

#[test]
fn a_summary_is_shown_sent_to_the_model_and_undone() {
    let talk = Talk::new();
    talk.home.keep(&["My sister is called Siobhán", "and my brother Øyvind", "That is all"]);
    talk.stub.next(Answer::saying(&["The siblings are Siobhán and Øyvind."]));
    let compacted = talk.run(&["compact", "--keep", "1", "--json"]);
    assert_eq!(code(&compacted), 0, "{}", err(&compacted));
    assert_eq!(rows(&compacted)[0]["messages"], 2);
    assert!(talk.stub.seen(Ask::Reply)[0].body.contains("my brother"));
    let told = prompt(&talk.home);
    assert!(told.contains("The siblings are") && !told.contains("my brother"), "{told}");
    assert!(told.contains("That is all"));
    let shown = out(&talk.run(&["compact", "--show"]));
    assert!(shown.contains("The siblings are"), "{shown}");
    assert_eq!(code(&talk.run(&["compact", "--undo"])), 0);
    assert!(prompt(&talk.home).contains("my brother"));
    let nobody = talk.home.run(&["compact", "--keep", "1"]);
    assert_eq!(code(&nobody), 6, "{}", err(&nobody));
    assert!(prompt(&talk.home).contains("my brother"));
}

#[test]
fn a_proposed_title_is_shown() {
    let talk = Talk::new();
    talk.home.keep(&["My sister is called Siobhán"]);
    talk.stub.next(Answer::saying(&["\"The Family\""]));
    let named = talk.run(&["conversations", "rename", "--propose", "--json"]);
    assert_eq!(code(&named), 0, "{}", err(&named));
    assert_eq!(rows(&named)[0]["title"], "The Family");
    assert_eq!(rows(&talk.run(&["conversations", "--json"]))[0]["title"], "The Family");
}

#[test]
fn the_context_is_shown_on_one_screen_and_as_json() {
    let talk = Talk::new();
    talk.home.keep(&["My sister is called Siobhán"]);
    talk.stub.next(Answer::saying(&["A lovely name."]));
    assert_eq!(code(&talk.run(&["ask", "Nice", "name?"])), 0);
    let shown = out(&talk.run(&["context"]));
    for part in
        ["Messages: 3 (2 user, 1 assistant)", "Artifacts: 0", "Tokens: ", "Used: ", "[user]"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let row = rows(&talk.run(&["context", "--json"])).remove(0);
    assert!(row.is_object(), "{row}");
    let users = out(&talk.run(&["context", "messages", "--role", "user", "-n", "1"]));
    assert!(users.contains("Nice name?") && !users.contains("lovely"), "{users}");
}

#[test]
fn a_chat_prunes_shows_and_compacts_by_the_same_words_as_the_shell() {
    let talk = Talk::new();
    talk.home.keep(&["canary one", "canary two", "canary three"]);
    for answer in ["Two canaries were named.", "Yes."] {
        talk.stub.next(Answer::saying(&[answer]));
    }
    let lines = "/context\n/context prune --max-tokens 1 --keep-recent 2\n/context compact --keep 1\nHello\n/context \"\n";
    let chat = talk.feed(&["chat"], lines);
    assert_eq!(code(&chat), 2, "{}", err(&chat));
    assert!(out(&chat).contains("Context summary"), "{}", out(&chat));
    assert!(err(&chat).contains("quotation mark"), "{}", err(&chat));
    let asked = talk.stub.seen(Ask::Reply);
    let (summarized, told) = (&asked[0].body, &asked[1].body);
    assert!(!summarized.contains("canary one") && summarized.contains("canary two"));
    assert!(told.contains("Two canaries were named.") && told.contains("canary three"), "{told}");
    assert!(!told.contains("canary two"));
}

#[test]
fn ask_reports_when_the_prompt_is_nearly_full() {
    let talk = Talk::new();
    talk.home.keep(&["My sister is called Siobhán"]);
    for (share, is_told) in [("0.01", true), ("0.9", false)] {
        talk.stub.next(Answer::saying(&["A lovely name."]));
        let mut command = talk.command(&["ask", "Nice", "name?"]);
        let asked = command.env("SOTTOVOCE__CONTEXT__COMPACTAT", share).output().unwrap();
        assert_eq!(code(&asked), 0, "{}", err(&asked));
        assert_eq!(err(&asked).contains("sottovoce compact"), is_told, "{}", err(&asked));
    }
}
