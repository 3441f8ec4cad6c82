use super::*;
use ollama::{Answer, Ask};
use talk::Talk;

#[test]
fn a_context_is_cleared_saved_and_restored_from_the_shell() {
    let talk = Talk::new();
    talk.home.keep(&["My sister is called Siobhán", "and my brother Øyvind"]);
    talk.stub.next(Answer::saying(&["Names of the family were told. Nothing is open."]));
    let saved = talk.run(&["snapshot", "save", "The", "family", "--json"]);
    assert_eq!(code(&saved), 0, "{}", err(&saved));
    let saved = rows(&saved).remove(0);
    assert_eq!(saved["description"], "The family");
    assert_eq!(saved["summary"], "Names of the family were told. Nothing is open.");
    assert_eq!(saved["messageCount"], 2);
    let id = saved["id"].as_str().unwrap();

    let cleared = talk.run(&["clear"]);
    assert!(err(&cleared).contains("nothing was deleted"), "{}", err(&cleared));
    let prompt = |home: &Home| out(&home.run(&["prompt", "Who?", "--renderer", "text"]));
    assert!(!prompt(&talk.home).contains("Siobhán"));
    assert_eq!(talk.home.words().len(), 2);

    let listed = out(&talk.run(&["snapshot", "list"]));
    assert!(
        listed.contains(id) && listed.contains("2 messages") && listed.contains("The family"),
        "{listed}"
    );
    let shown = out(&talk.run(&["snapshot", "show", id.get(..8).unwrap()]));
    assert!(shown.contains("Øyvind"), "{shown}");
    let restored = talk.run(&["snapshot", "restore", id.get(..8).unwrap()]);
    assert!(err(&restored).contains("brought 2 messages back"), "{}", err(&restored));
    assert!(prompt(&talk.home).contains("Siobhán"));
    let again = talk.run(&["snapshot", "restore", id, "--json"]);
    assert_eq!(rows(&again), [serde_json::json!({"restored": 0, "seqs": [], "threads": []})]);

    let unknown = talk.run(&["snapshot", "show", "ffffffff"]);
    assert_eq!(code(&unknown), 1);
    assert!(err(&unknown).contains(&format!("the nearest are {id}")), "{}", err(&unknown));
    let unsure = talk.run(&["snapshot", "delete", id]);
    assert_eq!(code(&unsure), 2);
    let deleted = talk.run(&["snapshot", "delete", id, "--yes"]);
    assert_eq!(code(&deleted), 0, "{}", err(&deleted));
    assert_eq!(out(&talk.run(&["snapshot", "list"])), "");
    assert_eq!(code(&talk.run(&["verify"])), 0);
}

#[test]
fn a_snapshot_without_a_model_says_so_and_is_saved() {
    let home = Home::new();
    home.keep(&["Hello"]);
    let saved = home.run(&["snapshot", "save", "--json"]);
    assert_eq!(code(&saved), 0, "{}", err(&saved));
    assert_eq!(rows(&saved)[0]["summary"], "(summary generation failed)");
    assert_eq!(rows(&home.run(&["snapshot", "list", "--json"])).len(), 1);
}

#[test]
fn a_chat_clears_saves_and_restores_its_context() {
    let talk = Talk::new();
    for answer in ["Hi.", "Greetings were exchanged.", "Who are you?", "Welcome back."] {
        talk.stub.next(Answer::saying(&[answer]));
    }
    let lines = "I am Ann\n/context save First meeting\n/context clear\nHello\n/context history\n/context restore ff\n/context stats\n";
    let chat = talk.feed(&["chat"], lines);
    assert_eq!(code(&chat), 1, "an unknown id is an error, and the chat goes on: {}", err(&chat));
    let shown = out(&chat);
    assert!(
        shown.contains("First meeting") && shown.contains("Greetings were exchanged."),
        "{shown}"
    );
    assert!(shown.contains("messages     4"), "{shown}");
    assert!(err(&chat).contains("cleared default at"), "{}", err(&chat));
    let asked = |at: usize| talk.stub.seen(Ask::Reply)[at].body.clone();
    assert!(!asked(2).contains("Ann"), "{}", asked(2));

    let id = rows(&talk.run(&["snapshot", "list", "--json"]))[0]["id"].as_str().unwrap().to_owned();
    let chat = talk
        .feed(&["chat"], format!("/context restore {id}\nDo you know me?\n/context nonsense\n"));
    assert_eq!(code(&chat), 2, "{}", err(&chat));
    assert!(err(&chat).contains("Usage: /context [COMMAND]"), "{}", err(&chat));
    assert!(asked(3).contains("I am Ann"), "{}", asked(3));
}

#[test]
fn a_chat_can_go_over_to_another_conversation() {
    let talk = Talk::new();
    for answer in ["Hi in the room.", "Hi in private."] {
        talk.stub.next(Answer::saying(&[answer]));
    }
    let lines = "/scope\nroom canary\n/scope dm/7\nwhat was said?\n/scope dms/7\n";
    let chat = talk.feed(&["--scope", "guild/1/2/7", "chat"], lines);
    assert_eq!(code(&chat), 2);
    assert!(out(&chat).starts_with("guild/1/2/7\n"), "{}", out(&chat));
    assert!(err(&chat).contains("switched to dm/7"), "{}", err(&chat));
    assert!(!talk.stub.seen(Ask::Reply)[1].body.contains("canary"));
    let kept = rows(&talk.run(&["--scope", "dm/7", "tail", "--json"]));
    assert_eq!(kept[0]["content"], "what was said?");
    assert!(talk.home.words().is_empty());
}

#[test]
fn no_utterance_in_a_chat_clears_anything() {
    let talk = Talk::new();
    let phrases = ["reset", "start over", "forget everything", "//context clear", "clear context"];
    for _ in phrases {
        talk.stub.next(Answer::saying(&["All right."]));
    }
    let chat = talk.feed(&["chat"], phrases.join("\n"));
    assert_eq!(code(&chat), 0, "{}", err(&chat));
    assert_eq!(talk.home.words().len(), phrases.len() * 2);
    let stats = rows(&talk.run(&["stats", "--json"]));
    assert!(stats[0]["clearedAt"].is_null());
}
