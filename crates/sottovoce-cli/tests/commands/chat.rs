use super::*;
use ollama::{Answer, Ask};
use talk::Talk;

#[test]
fn lines_are_answered_in_order_and_all_is_kept() {
    let talk = Talk::new();
    for answer in ["First.", "Second.", "Third."] {
        talk.stub.next(Answer::saying(&[answer]));
    }
    let chat = talk.feed(&["chat"], "one\n\n  \ntwo  \n\nthree");
    assert_eq!(code(&chat), 0, "{}", err(&chat));
    assert_eq!(out(&chat), "First.\nSecond.\nThird.\n");
    assert_eq!(talk.home.words(), ["one", "First.", "two", "Second.", "three", "Third."]);
    let last = talk.stub.seen(Ask::Reply)[2].json();
    assert_eq!(last["messages"].as_array().unwrap().len(), 6, "the history is in the prompt");
}

#[test]
fn asking_again_does_not_keep_the_utterance_twice() {
    let talk = Talk::new();
    talk.stub.next(Answer::refusal(500, "llama runner process has terminated"));
    let chat = talk.feed(&["chat"], "Hello\n/retry\n/retry\n");
    let said = err(&chat);
    assert!(said.contains("the utterance is kept; /retry asks again"), "{said}");
    assert!(
        said.contains("no utterance waits"),
        "the second time there is nothing to retry: {said}"
    );
    assert_eq!(out(&chat), "Fine.\n");
    assert_eq!(code(&chat), 1, "{said}");
    assert_eq!(talk.home.words(), ["Hello", "Fine."]);
}

#[test]
fn asking_again_replaces_what_was_shown_of_a_failed_answer() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It "]).error("out of memory"));
    talk.stub.next(Answer::saying(&["It rains."]));
    let chat = talk.feed(&["chat"], "Weather?\n/retry\n");
    assert_eq!(out(&chat), "It \nIt rains.\n");
    assert_eq!(talk.home.words(), ["Weather?", "It rains."]);
}

#[test]
fn what_is_said_off_the_record_is_neither_kept_nor_recalled() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["canary answer"]));
    talk.stub.next(Answer::saying(&["Half"]).error("out of memory"));
    let chat = talk.feed(&["chat"], "/off canary question\n/off another\nHello\n");
    assert_eq!(code(&chat), 0, "{}", err(&chat));
    assert!(err(&chat).contains("nothing is kept; /retry asks again"), "{}", err(&chat));
    assert_eq!(out(&chat), "canary answer\nHalf\nFine.\n");
    assert_eq!(talk.home.words(), ["Hello", "Fine."]);
    assert!(!talk.stub.seen(Ask::Reply)[2].body.contains("canary"));
    let empty = talk.feed(&["chat"], "/off\n");
    assert_eq!(code(&empty), 2);
}

#[test]
fn forgetting_through_a_pipe_needs_a_yes() {
    let talk = Talk::new();
    let unsure = talk.feed(&["chat"], "one\ntwo\n/forget last\n");
    assert_eq!(code(&unsure), 2);
    assert!(err(&unsure).contains("/forget last yes"), "{}", err(&unsure));
    assert_eq!(talk.home.words().len(), 4);
    let sure = talk.feed(&["chat"], "/forget last yes\n/forget last yes\n/forget last yes\n");
    assert_eq!(code(&sure), 0, "{}", err(&sure));
    assert!(
        err(&sure).contains("deleted 2 messages") && err(&sure).contains("nothing is kept yet")
    );
    assert!(talk.home.words().is_empty());
    assert_eq!(code(&talk.home.run(&["verify"])), 0);
}

#[test]
fn a_prompt_is_explained_in_numbers_beside_the_answers() {
    let talk = Talk::new();
    let chat = talk.feed(&["chat"], "/explain\ncanary question\n/explain\n");
    assert_eq!(out(&chat), "Fine.\n");
    let said = err(&chat);
    assert!(said.contains("no prompt was sent yet"), "{said}");
    for part in ["the system prompt", "of 4096 tokens", "time     loading 0.00 s"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("canary") && !said.contains("Fine."), "{said}");
}

#[test]
fn the_functions_of_a_prompt_are_counted_apart_from_the_system_prompt() {
    let talk = Talk::new();
    let said = err(&talk.feed(&["chat"], "Hello\n/explain\n"));
    let tokens = |what: &str| -> usize {
        let row =
            said.lines().find(|line| line.ends_with(what)).unwrap_or_else(|| panic!("{said}"));
        row.split_whitespace().find_map(|word| word.parse().ok()).unwrap()
    };
    let functions = tokens("in: the functions that the model may call");
    assert!(functions > 100 && tokens("in: the system prompt") < functions, "{said}");
}

#[test]
fn what_a_chat_says_of_itself_fits_80_columns() {
    let talk = Talk::new();
    let chat = talk.feed(&["chat"], "/help\n");
    let wide = |text: &str| text.lines().find(|line| line.chars().count() > 80).map(str::to_owned);
    assert_eq!(wide(&out(&chat)), None);
    let Some(mut chat) = terminal::Terminal::chat_from_the_start(&talk, &["chat"]) else { return };
    let shown = chat.prompt();
    assert!(shown.contains("/help lists") && wide(&shown).is_none(), "{shown:?}");
}

#[test]
fn a_line_that_is_no_command_is_named_and_never_sent() {
    let talk = Talk::new();
    let chat = talk.feed(&["chat"], "/help\n/frobnicate canary\n/forget everything\n/quit now\n");
    assert_eq!(code(&chat), 2);
    assert!(out(&chat).contains("/retry") && out(&chat).contains("Ctrl-C"), "{}", out(&chat));
    assert!(err(&chat).contains("/frobnicate") && !err(&chat).contains("canary"), "{}", err(&chat));
    assert_eq!(talk.stub.seen(Ask::Reply).len(), 0);
    assert!(!talk.home.store().exists() || talk.home.records().is_empty());
}

#[test]
fn a_command_of_the_shell_or_a_mistyped_one_leads_to_the_one_of_the_chat() {
    let talk = Talk::new();
    for (typed, hint) in [
        ("/clear", "`/context clear` does that"),
        ("/history", "`/context history` does that"),
        ("/save", "`/context save` does that"),
        ("/search tea", "outside the chat `sottovoce search` does that"),
        ("/hlep", "did you mean `/help`?"),
        ("/context sho", "'show'"),
        ("/context foo", "/context help lists the verbs"),
        ("/context restore zz", "`/context history` shows all of them"),
    ] {
        let said = err(&talk.feed(&["chat"], format!("{typed}\n")));
        assert!(said.contains(hint), "{typed}: {said}");
    }
    let help = out(&talk.feed(&["chat"], "/context compact --help\n"));
    assert!(
        help.contains("/context compact --keep") && !help.contains("sottovoce compact"),
        "{help}"
    );
}

#[test]
fn a_failed_command_leaves_the_last_prompt_to_be_explained() {
    let talk = Talk::new();
    let said = err(&talk.feed(&["chat"], "Hello\n/context restore zz\n/explain\n"));
    assert!(said.contains("no such snapshot") && said.contains("the system prompt"), "{said}");
    assert!(!said.contains("no prompt was sent"), "{said}");
}

#[test]
fn what_was_cleared_is_marked_in_the_summary_of_the_context() {
    let talk = Talk::new();
    let shown = out(&talk.feed(&["chat"], "before\n/context clear\nafter\n/context\n"));
    assert!(shown.contains("[user] before (cleared)\n"), "{shown}");
    assert!(shown.contains("[user] after\n"), "{shown}");
}

#[test]
fn a_byte_order_mark_before_piped_lines_is_no_part_of_what_is_said() {
    let talk = Talk::new();
    talk.feed(&["chat"], "\u{feff}one\n");
    talk.home.feed(&["append", "--role", "user", "-"], "\u{feff}two");
    let line = format!("\u{feff}{}", user("three"));
    assert_eq!(code(&talk.home.feed(&["append"], line)), 0);
    assert_eq!(talk.home.words(), ["one", "Fine.", "two", "three"]);
}

#[test]
fn quitting_leaves_the_lines_behind_it_unread() {
    let talk = Talk::new();
    let chat = talk.feed(&["chat"], "one\n/quit\ntwo\n");
    assert_eq!((code(&chat), out(&chat).as_str()), (0, "Fine.\n"));
    assert_eq!(talk.home.words(), ["one", "Fine."]);
}

#[test]
fn the_exit_code_is_that_of_the_last_turn() {
    let talk = Talk::new();
    talk.stub.next(Answer::refusal(500, "broken"));
    assert_eq!(code(&talk.feed(&["chat"], "one\ntwo\n")), 0);
    talk.stub.next(Answer::saying(&["Fine."]));
    talk.stub.next(Answer::refusal(500, "broken"));
    assert_eq!(code(&talk.feed(&["chat"], "one\ntwo\n")), 6);
    let nobody = Home::new();
    let alone = nobody.feed(&["chat"], "one\ntwo\n");
    assert_eq!((code(&alone), out(&alone).as_str()), (6, ""));
    assert!(err(&alone).contains("\n        ollama serve\n"), "{}", err(&alone));
    assert_eq!(nobody.words(), ["one", "two"]);
}

#[test]
fn a_line_too_long_for_the_model_is_said_to_be_and_the_next_one_works() {
    let talk = Talk::new();
    talk.stub.most_bytes(50_000);
    let long = "word ".repeat(20_000);
    let chat = talk.feed(&["chat"], format!("{long}\nShort\n"));
    let said = err(&chat);
    assert!(said.contains("longer than the model's window"), "{said}");
    assert!(!said.contains("/retry"), "it would be as long again: {said}");
    assert_eq!((code(&chat), out(&chat).as_str()), (0, "Fine.\n"), "{said}");
    let kept: Vec<usize> = talk.home.words().iter().map(String::len).collect();
    assert_eq!(kept, [long.len() - 1, 5, 5]);
}

#[test]
fn a_line_that_is_no_text_is_passed_over() {
    let talk = Talk::new();
    let chat = talk.feed(&["chat"], b"\xff\xfe\nHello\n");
    assert_eq!((code(&chat), out(&chat).as_str()), (0, "Fine.\n"), "{}", err(&chat));
    assert!(err(&chat).contains("UTF-8"), "{}", err(&chat));
    assert_eq!(code(&talk.feed(&["chat"], b"Hello\n\xff\n")), 2);
}

#[test]
fn machines_are_sent_to_ask() {
    let talk = Talk::new();
    let refused = talk.feed(&["--json", "chat"], "");
    assert_eq!(code(&refused), 2);
    assert!(err(&refused).contains("--json ask"), "{}", err(&refused));
    assert!(!talk.home.key().exists());
}

#[test]
fn nothing_that_is_said_about_a_chat_repeats_its_words() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["canary ", "one"]));
    talk.stub.next(Answer::saying(&["canary "]).error("failed at \"canary\" in canary two"));
    talk.stub.next(Answer::saying(&["canary"]).line(serde_json::json!({ "canary": 1 })));
    talk.stub.next(Answer::refusal(400, "cannot parse canary question three"));
    talk.stub.next(Answer::saying(&["canary off"]));
    let lines = "canary question one\ncanary question two\n/retry\ncanary question three\n\
                 /off canary question four\n/explain\n/forget last yes\n";
    let chat = talk.feed(&["--verbose", "chat", "--speaker", "canary"], lines);
    assert!(err(&chat).contains("DEBUG") && !err(&chat).contains("canary"), "{}", err(&chat));
    for arguments in [&["ask"][..], &["--json", "ask"], &["ask", "--off-record"]] {
        talk.stub.next(Answer::saying(&["canary "]).error("canary"));
        let asked = talk.run(&[&["--verbose"], arguments, &["canary question"]].concat());
        assert_eq!(code(&asked), 6);
        assert!(
            err(&asked).contains("DEBUG") && !err(&asked).contains("canary"),
            "{}",
            err(&asked)
        );
    }
}

#[test]
fn a_prompt_whose_answer_failed_is_explained_too() {
    let talk = Talk::new();
    talk.stub.next(Answer::refusal(500, "broken"));
    let chat = talk.feed(&["chat"], "canary question\n/explain\n");
    let said = err(&chat);
    assert!(said.contains("status 500") && said.contains("the system prompt"), "{said}");
    assert!(!said.contains("no prompt was sent yet"), "{said}");

    // No server listens: the receipt describes the request that would have been sent.
    let home = Home::new();
    let said = err(&home.feed(&["chat"], "canary question\n/explain\n"));
    assert!(said.contains("the system prompt") && !said.contains("canary"), "{said}");
}

#[test]
fn an_answer_to_what_another_process_forgets_is_not_kept_and_that_is_reported() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["1234, "]).hold().text("I see."));
    let mut chat = talk.spawn(&["chat"]);
    chat.type_line("My pin is 1234");
    chat.until_shown("1234, ");
    let forgotten = talk.home.run(&["forget", "--all", "--yes"]);
    assert_eq!(code(&forgotten), 0, "{}", err(&forgotten));
    talk.stub.release();
    chat.until_said("was forgotten meanwhile");
    let ended = chat.ended();
    assert!(!err(&ended).contains("is kept"), "{}", err(&ended));
    assert!(talk.home.words().is_empty());

    // Interrupted as well.
    talk.stub.next(Answer::saying(&["1234, "]).silence());
    let mut chat = talk.spawn(&["chat"]);
    chat.type_line("My pin is 1234");
    chat.until_shown("1234, ");
    assert_eq!(code(&talk.home.run(&["forget", "--all", "--yes"])), 0);
    signal(&chat.child, "-INT");
    chat.until_said("was forgotten meanwhile");
    drop(chat.ended());
    assert!(talk.home.words().is_empty());
}
