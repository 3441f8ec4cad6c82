use super::*;
use ollama::{Answer, Ask};
use talk::Talk;

#[test]
fn a_signal_during_an_answer_stops_the_model_and_keeps_what_was_shown() {
    for name in ["-INT", "-TERM"] {
        let talk = Talk::new();
        talk.stub.next(Answer::saying(&["It will "]).silence());
        let mut asked = talk.spawn(&["ask", "Tomorrow?"]);
        asked.until_shown("It will ");
        signal(&asked.child, name);
        talk.stub.wait_until_closed_early();
        let asked = asked.ended();
        assert_eq!(code(&asked), 130, "{}", err(&asked));
        assert_eq!(out(&asked), "It will \n");
        assert!(err(&asked).contains("what was shown is kept"), "{}", err(&asked));
        let kept = talk.kept();
        assert_eq!(kept[1]["content"], "It will ");
        assert_eq!(kept[1]["metadata"]["cutOff"], "interrupted");
    }
}

#[test]
fn a_signal_before_the_first_word_leaves_the_utterance_alone() {
    let talk = Talk::new();
    talk.stub.next(Answer::silent());
    let asked = talk.spawn(&["ask", "Tomorrow?"]);
    talk.stub.wait_for(Ask::Reply, 1);
    signal(&asked.child, "-INT");
    let asked = asked.ended();
    assert_eq!((code(&asked), out(&asked).as_str()), (130, ""));
    assert!(err(&asked).contains("interrupted; the utterance is kept"), "{}", err(&asked));
    assert_eq!(talk.home.words(), ["Tomorrow?"]);
}

#[test]
fn json_output_says_what_was_stored_of_an_interrupted_answer() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It will "]).silence());
    let asked = talk.spawn(&["--json", "--verbose", "ask", "Tomorrow?"]);
    talk.stub.wait_for(Ask::Reply, 1);
    // Nothing shows that the piece has arrived.
    std::thread::sleep(Duration::from_millis(500));
    signal(&asked.child, "-INT");
    let asked = asked.ended();
    assert_eq!(code(&asked), 130);
    let row = parsed(&asked).pop().unwrap();
    assert_eq!((&row["seq"], &row["cutOff"]), (&1.into(), &"interrupted".into()));
    assert_eq!(talk.home.words(), ["Tomorrow?", row["answer"].as_str().unwrap()]);
}

#[test]
fn an_interrupted_answer_off_the_record_is_not_said_to_be_kept() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It will "]).silence());
    let mut asked = talk.spawn(&["ask", "--off-record", "Tomorrow?"]);
    asked.until_shown("It will ");
    signal(&asked.child, "-INT");
    let asked = asked.ended();
    assert_eq!(code(&asked), 130);
    assert!(err(&asked).contains("interrupted; nothing is kept"), "{}", err(&asked));
    assert_eq!(std::fs::read_dir(talk.home.path()).unwrap().count(), 0);
}

/// Asks, reads the first piece, and disconnects before the second.
fn walk_away(talk: &Talk, arguments: &[&str], input: &str) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = talk.command(arguments);
    command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The test still holds its end of the pipe.
    drop(command);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let mut reader = BufReader::with_capacity(1, reader);
    let mut first = Vec::new();
    reader.read_until(b' ', &mut first).unwrap();
    assert_eq!(first, b"One ");
    drop(reader);
    talk.stub.release();
    ended(child)
}

#[test]
fn of_an_answer_that_nobody_reads_to_its_end_only_what_was_shown_is_kept() {
    for (arguments, input) in [(&["ask", "Count"][..], ""), (&["chat"], "Count\nAnd on\n")] {
        let talk = Talk::new();
        talk.stub.next(Answer::saying(&["One "]).hold().text("two ").silence());
        let gone = walk_away(&talk, arguments, input);
        assert_eq!(code(&gone), 0, "{}", err(&gone));
        assert!(
            !err(&gone).contains("error") && !err(&gone).contains("panicked"),
            "{}",
            err(&gone)
        );
        assert_eq!(talk.home.words(), ["Count", "One "]);
        assert_eq!(talk.kept()[1]["metadata"]["cutOff"], "interrupted");
        talk.stub.wait_until_closed_early();
    }
}

#[test]
fn a_signal_ends_a_chat_that_waits_for_a_line() {
    for name in ["-INT", "-TERM"] {
        let talk = Talk::new();
        let mut chat = talk.spawn(&["chat"]);
        chat.type_line("Hello");
        chat.until_shown("Fine.");
        chat.until_said("first word after");
        signal(&chat.child, name);
        let open = chat.input.take();
        let chat = chat.ended();
        drop(open);
        assert_eq!(code(&chat), 130, "{}", err(&chat));
        assert_eq!(talk.home.words(), ["Hello", "Fine."]);
    }
}

#[test]
fn ctrl_c_in_the_middle_of_an_answer_leaves_the_chat_going() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It will "]).silence());
    let mut chat = talk.spawn(&["chat"]);
    chat.type_line("Tomorrow?");
    chat.until_shown("It will ");
    signal(&chat.child, "-INT");
    chat.until_said("interrupted; what was shown is kept");
    chat.type_line("And now?");
    chat.until_shown("Fine.");
    let chat = chat.ended();
    assert_eq!(code(&chat), 0, "{}", err(&chat));
    assert_eq!(out(&chat), "It will \nFine.\n");
    assert_eq!(talk.home.words(), ["Tomorrow?", "It will ", "And now?", "Fine."]);
}

#[test]
fn sigterm_in_the_middle_of_an_answer_ends_the_chat() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It will "]).silence());
    let mut chat = talk.spawn(&["chat"]);
    chat.type_line("Tomorrow?");
    chat.type_line("This is not asked any more.");
    chat.until_shown("It will ");
    signal(&chat.child, "-TERM");
    let chat = chat.ended();
    assert_eq!(code(&chat), 130, "{}", err(&chat));
    assert_eq!(talk.home.words(), ["Tomorrow?", "It will "]);
}
