use super::*;
use ollama::{Answer, Ask};
use serde_json::json;
use talk::Talk;

/// A model that runs on another machine.
fn cloud() -> Answer {
    Answer::json(json!({ "capabilities": ["completion"], "remote_host": "https://ollama.com:443" }))
}

#[test]
fn the_first_words_are_shown_while_the_model_still_answers() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["Sunny, "]).hold().text("then rain."));
    let mut asked = talk.spawn(&["ask", "And", "tomorrow?"]);
    assert_eq!(asked.until_shown("Sunny, "), "Sunny, ");
    talk.stub.release();
    let asked = asked.ended();
    assert_eq!(code(&asked), 0, "{}", err(&asked));
    assert_eq!(out(&asked), "Sunny, then rain.\n");
    assert!(err(&asked).contains("first word after"), "{}", err(&asked));
    let kept = talk.kept();
    assert_eq!(kept[0]["content"], "And tomorrow?");
    assert_eq!(
        (&kept[1]["role"], &kept[1]["content"]),
        (&json!("assistant"), &json!("Sunny, then rain."))
    );
    assert!(kept[1]["metadata"]["cutOff"].is_null(), "{}", kept[1]);
}

#[test]
fn machines_get_events_and_last_one_that_names_both_messages() {
    let talk = Talk::new();
    let words = "a\u{1b}[31mb\u{202e}c";
    talk.stub.next(Answer::saying(&[words]));
    let asked = talk.run(&["--json", "ask", "What?"]);
    let all = rows(&asked);
    let events: Vec<_> = all.iter().map(|row| row["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["text", "done"]);
    assert_eq!(all[0]["text"], words);
    let row = &all[1];
    let (kept, file) = (talk.kept(), talk.home.records()[0].clone());
    assert_eq!(row["seq"], kept[0]["seq"]);
    assert_eq!(row["file"], file.file_name().unwrap().to_str().unwrap());
    assert_eq!(row["answerSeq"], kept[1]["seq"]);
    assert_eq!(row["answer"], words);
    assert!(row["cutOff"].is_null() && row["report"]["requestBytes"].is_u64(), "{row}");
    // The answer, the file and the keys are the only text.
    let keys = row.to_string().replace(row["file"].as_str().unwrap(), "");
    assert!(!keys.contains('_'), "camelCase throughout: {row}");
}

#[test]
fn json_output_distinguishes_a_part_of_an_answer_from_a_whole_one() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["half"]).error("out of memory"));
    talk.stub.next(Answer::saying(&["too long"]).cut_at_length());
    let broken = talk.run(&["--json", "ask", "one"]);
    assert_eq!(code(&broken), 6);
    let row = parsed(&broken).pop().unwrap();
    assert_eq!((&row["answer"], &row["cutOff"]), (&json!("half"), &json!("failed")));
    assert!(row["report"].is_null() && row["answerSeq"].is_null(), "{row}");
    let cut = &rows(&talk.run(&["--json", "ask", "two"]))[1];
    assert_eq!(cut["cutOff"], "length");
    let kept = talk.kept();
    assert_eq!(kept[1]["metadata"]["cutOff"], "failed");
    assert_eq!(kept[3]["metadata"]["cutOff"], "length");
}

#[test]
fn without_a_model_the_words_are_kept_and_what_to_do_is_said_instead_of_a_request() {
    let talk = Talk::new();
    talk.stub.always_to(Ask::Show, Answer::refusal(404, "model 'llama3.2' not found"));
    talk.stub.always_to(Ask::Reply, Answer::refusal(404, "model 'llama3.2' not found"));
    let nobody = Home::new();
    for (home, asked, what, commands) in [
        (
            &nobody,
            nobody.run(&["ask", "Hello"]),
            "no model is running at http://127.0.0.1:1 (",
            "\n        ollama serve\n        ollama pull llama3.2\n",
        ),
        (
            &talk.home,
            talk.run(&["ask", "Hello"]),
            "has no model \"llama3.2\"",
            ":\n        ollama pull llama3.2\n",
        ),
    ] {
        let said = err(&asked);
        assert_eq!((code(&asked), out(&asked).as_str()), (6, ""), "{said}");
        for part in ["what you said is kept as number 1", what, commands] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(home.words(), ["Hello"]);
    }
    let shown = talk.run(&["ask", "--show-request", "Again"]);
    assert_eq!(code(&shown), 6);
    let request: Value = serde_json::from_str(&out(&shown)).unwrap();
    assert_eq!(request["model"], "llama3.2");
}

#[test]
fn without_a_model_json_output_says_what_was_stored_and_no_answer() {
    let nobody = Home::new();
    let asked = nobody.run(&["--json", "ask", "Hello"]);
    assert_eq!(code(&asked), 6);
    let row = &parsed(&asked)[0];
    assert_eq!((&row["seq"], &row["commands"][0]), (&json!(1), &json!("ollama serve")));
    assert!(row["reason"].as_str().unwrap().contains("no model") && row["file"].is_string());
    assert!(row.get("request").is_none() && row.get("answer").is_none(), "{row}");
    let shown = nobody.run(&["--json", "ask", "--show-request", "--model", "phi4", "Again"]);
    let row = &parsed(&shown)[0];
    assert_eq!((&row["path"], &row["request"]["model"]), (&json!("/api/chat"), &json!("phi4")));
    assert_eq!(row["commands"][1], "ollama pull phi4");
}

#[test]
fn an_answer_that_breaks_off_is_an_error_below_what_was_shown() {
    for answer in [
        Answer::saying(&["It will "]).error("out of memory"),
        Answer::saying(&["It will "]).cut(),
        Answer::saying(&["It will "]).unfinished(),
    ] {
        let talk = Talk::new();
        talk.stub.next(answer);
        let asked = talk.run(&["ask", "Tomorrow?"]);
        assert_eq!(code(&asked), 6);
        assert_eq!(out(&asked), "It will \n");
        assert!(err(&asked).contains("what was shown is kept"), "{}", err(&asked));
        assert_eq!(talk.kept()[1]["metadata"]["cutOff"], "failed");
        assert_eq!(talk.home.words(), ["Tomorrow?", "It will "]);
    }
}

#[test]
fn a_model_that_fails_without_a_word_is_an_error_and_no_request_is_printed() {
    for (answer, part) in [
        (Answer::refusal(500, "llama runner process has terminated"), "status 500"),
        (Answer::saying(&[]), "empty answer"),
        (Answer::body(200, "<html>"), "not understood"),
        (
            Answer::saying(&[]).tools(json!([{"function": {"name": "f", "arguments": {}}}])),
            "function",
        ),
    ] {
        let talk = Talk::new();
        talk.stub.next(answer);
        let asked = talk.run(&["ask", "Tomorrow?"]);
        assert_eq!(code(&asked), 6, "{part}");
        assert_eq!(out(&asked), "");
        assert!(err(&asked).contains(part) && err(&asked).contains("help: "), "{}", err(&asked));
        assert_eq!(talk.home.words(), ["Tomorrow?"]);
    }
}

#[test]
fn off_the_record_leaves_no_trace_and_claims_none() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["Secret."]));
    talk.stub.next(Answer::saying(&["Half"]).error("out of memory"));
    talk.stub.next(Answer::refusal(400, "the input length exceeds the context length"));
    let shown = talk.run(&["ask", "--off-record", "Psst"]);
    assert_eq!((code(&shown), out(&shown)), (0, "Secret.\n".to_owned()), "{}", err(&shown));
    for _ in 0..2 {
        let failed = talk.run(&["ask", "--off-record", "Psst"]);
        assert_eq!(code(&failed), 6);
        let said = err(&failed);
        assert!(said.contains("nothing is kept") && !said.contains(" is kept;"), "{said}");
        assert!(!said.contains("utterance is kept") && !said.contains("shown is kept"), "{said}");
    }
    let row = rows(&talk.run(&["--json", "ask", "--off-record", "Psst"])).pop().unwrap();
    assert!(row["seq"].is_null() && row["answerSeq"].is_null(), "{row}");
    assert_eq!(row["answer"], "Fine.");
    assert_eq!(std::fs::read_dir(talk.home.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_sent_to_a_model_in_a_cloud_unless_that_is_allowed() {
    let talk = Talk::new();
    talk.stub.always_to(Ask::Show, cloud());
    let refused = talk.run(&["ask", "Hello"]);
    assert_eq!((code(&refused), out(&refused).as_str()), (6, ""));
    assert!(err(&refused).contains("LanguageModel.AllowCloud"), "{}", err(&refused));
    assert!(talk.stub.seen(Ask::Reply).is_empty());
    assert_eq!(talk.home.words(), ["Hello"]);
    let mut allowed = talk.command(&["ask", "Hello"]);
    let allowed = allowed.env("SOTTOVOCE__LANGUAGEMODEL__ALLOWCLOUD", "true").output().unwrap();
    assert_eq!((code(&allowed), out(&allowed).as_str()), (0, "Fine.\n"), "{}", err(&allowed));
}

#[test]
fn an_answer_steers_no_terminal_even_through_a_pipe() {
    let talk = Talk::new();
    // Control sequences that are split between pieces, too.
    talk.stub.next(Answer::saying(&["a\u{1b}", "[31mb\u{9b}", "31mc\u{202e}d\u{7}e\r", "f\n\tg"]));
    let asked = talk.run(&["ask", "Hello"]);
    assert_eq!(out(&asked), "a\u{fffd}[31mb\u{fffd}31mc\u{fffd}d\u{fffd}e\u{fffd}f\n\tg\n");
    let tail = out(&talk.home.run(&["tail"]));
    assert!(tail.contains("a\u{fffd}[31mb\u{fffd}31mc\u{fffd}d\u{fffd}e\u{fffd}f"), "{tail}");
}

#[test]
fn what_a_model_thinks_is_never_shown() {
    let talk = Talk::new();
    talk.stub
        .always_to(Ask::Show, Answer::json(json!({ "capabilities": ["completion", "thinking"] })));
    talk.stub.next(Answer::saying(&[]).thinking("canary one").text("Yes."));
    talk.stub.next(Answer::saying(&["<thi", "nk>canary two</th", "ink>Yes."]));
    for _ in 0..2 {
        let asked = talk.run(&["--verbose", "ask", "Hello"]);
        assert_eq!(out(&asked).trim(), "Yes.");
        assert!(!err(&asked).contains("canary"), "{}", err(&asked));
    }
    assert!(!talk.home.words().concat().contains("canary"));
}

#[test]
fn an_answer_that_ends_its_line_is_not_followed_by_an_empty_one() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["One.\nTwo.\n"]));
    assert_eq!(out(&talk.run(&["ask", "Count"])), "One.\nTwo.\n");
}

#[test]
fn a_server_of_chat_completions_is_asked_in_its_own_form() {
    let talk = Talk::new();
    let key = talk.home.path().join("api-key");
    std::fs::write(&key, "sk-Drosselbart\n").unwrap();
    talk.stub.next(Answer::saying(&["Sunny, ", "then rain."]));
    let mut command = talk.command(&["ask", "And", "tomorrow?"]);
    command.env("SOTTOVOCE__LANGUAGEMODEL__KIND", "openai");
    command.env("SOTTOVOCE__LANGUAGEMODEL__APIKEYFILE", &key);
    let asked = command.output().unwrap();
    assert_eq!(out(&asked), "Sunny, then rain.\n", "{}", err(&asked));
    assert!(err(&asked).contains("26 tokens read"), "{}", err(&asked));
    let seen = talk.stub.seen(Ask::Reply);
    assert_eq!(seen[0].path, "/v1/chat/completions");
    assert_eq!(seen[0].headers["authorization"], "Bearer sk-Drosselbart");
    assert_eq!(seen[0].json()["stream_options"]["include_usage"], true);
}

#[test]
fn an_answer_without_an_end_is_cut_off_at_the_configured_limit() {
    let talk = Talk::new();
    let line = json!({ "message": { "role": "assistant", "content": "la la " }, "done": false });
    let line = format!("{line}\n");
    talk.stub.next(Answer::saying(&[]).forever(line.as_bytes(), Duration::ZERO));
    let mut command = talk.command(&["ask", "Sing"]);
    let asked = command.env("SOTTOVOCE__LANGUAGEMODEL__MAXANSWERBYTES", "20").output().unwrap();
    assert_eq!(code(&asked), 0, "{}", err(&asked));
    assert_eq!(out(&asked), "la la la la la la la\n");
    assert!(err(&asked).contains("cut off at 20 bytes"), "{}", err(&asked));
    assert_eq!(talk.kept()[1]["metadata"]["cutOff"], "length");
}

#[test]
fn the_prompt_that_is_shown_is_the_prompt_that_is_asked() {
    for capabilities in [json!(["completion"]), json!(["completion", "tools"])] {
        let talk = Talk::new();
        talk.stub.always_to(Ask::Show, Answer::json(json!({ "capabilities": capabilities })));
        artifact::write(&talk.home, "notes.md", "The key hangs behind the teapot.\n");
        assert_eq!(code(&talk.home.run(&["artifact", "add", "notes.md"])), 0);
        let parts = |request: &Value| {
            let mut messages = request["messages"].as_array().unwrap().clone();
            // Only the last one holds the time.
            assert!(messages.pop().unwrap()["content"].as_str().unwrap().ends_with("the key?"));
            (messages, request["tools"].clone(), request["options"].clone())
        };
        let previewed = rows(&talk.run(&["--json", "prompt", "Where is the key?"])).remove(0);
        assert_eq!(code(&talk.run(&["ask", "--off-record", "Where is the key?"])), 0);
        let asked = talk.stub.seen(Ask::Reply)[0].json();
        assert_eq!(parts(&previewed), parts(&asked));
        let has_tools = capabilities.as_array().unwrap().len() == 2;
        assert_eq!(asked["tools"].is_array(), has_tools);
        assert_eq!(previewed.to_string().contains("behind the teapot"), !has_tools);
        // If no server listens, nothing is known of the model, so no function is offered.
        let unasked = talk.home.run(&["ask", "--show-request", "Where is the key?"]);
        let request: Value = serde_json::from_str(&out(&unasked)).unwrap();
        assert!(request["tools"].is_null() && request.to_string().contains("behind the teapot"));
    }
}

#[test]
fn a_system_without_certificates_lacks_nothing_for_plain_http_and_is_told_what_https_needs() {
    let talk = Talk::new();
    let asking = |address: &str| {
        let mut command = talk.command(&["ask", "And", "tomorrow?"]);
        command.env("SSL_CERT_FILE", "/nowhere").env("SSL_CERT_DIR", "/nowhere");
        command.env("SOTTOVOCE__LANGUAGEMODEL__BASEURL", address).output().unwrap()
    };
    talk.stub.next(Answer::saying(&["Sunny."]));
    let asked = asking(&talk.stub.url());
    assert_eq!(out(&asked), "Sunny.\n", "{}", err(&asked));
    assert!(!err(&asked).contains("certificates"), "{}", err(&asked));
    let asked = asking("https://127.0.0.1:1");
    assert!(err(&asked).contains("ca-certificates"), "{}", err(&asked));
}
