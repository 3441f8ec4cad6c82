//! What people see on a terminal of some width, and programs through a pipe do not.

use super::*;
use ollama::Answer;
use talk::Talk;
use terminal::{CTRL_C, Terminal};

/// The lines of a screen without styles.
pub(super) fn lines(screen: &str) -> Vec<String> {
    let (mut plain, mut is_style) = (String::new(), false);
    for c in screen.chars() {
        match c {
            '\u{1b}' => is_style = true,
            _ if is_style => is_style = !c.is_ascii_alphabetic(),
            '\r' => {}
            c => plain.push(c),
        }
    }
    plain.lines().map(str::to_owned).collect()
}

#[test]
fn an_answer_breaks_between_words_and_shows_its_markdown_on_a_terminal_alone() {
    const ANSWER: [&str; 5] = [
        "Water **the toma",
        "toes** early",
        ":\n\n- in the shade of",
        " the pear tree, ",
        "`drip`",
    ];
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&ANSWER));
    talk.stub.next(Answer::saying(&ANSWER));
    let ask = talk.command(&["ask", "When?"]);
    let Some(mut asked) = Terminal::sized(&ask, 26) else { return };
    let shown = lines(&asked.screen.until("first word after"));
    let answer = ["Water the tomatoes early:", "", "• in the shade of the pear", "  tree, drip"];
    assert!(shown.windows(4).any(|some| some == answer), "{shown:?}");
    assert_eq!(asked.ended(), 0);
    assert_eq!(out(&talk.run(&["ask", "When?"])), format!("{}\n", ANSWER.concat()));
}

#[test]
fn messages_and_errors_break_between_words_below_their_beginning() {
    let home = Home::new();
    home.keep(&["one two three four five six seven eight nine ten eleven"]);
    let Some(mut tail) = Terminal::sized(&home.command(&["tail", "--no-pager"]), 60) else {
        return;
    };
    let shown = lines(&tail.screen.until("eleven"));
    assert!(shown.last().unwrap().starts_with("        six seven"), "{shown:?}");
    assert!(shown.first().unwrap().ends_with("five"), "{shown:?}");
    assert_eq!(tail.ended(), 0);
    let mut ask = Terminal::sized(&home.command(&["ask", "Hello"]), 40).unwrap();
    let shown = lines(&ask.screen.until("ollama pull"));
    assert!(shown.iter().all(|line| line.chars().count() <= 40), "{shown:?}");
    assert_eq!(ask.ended(), 6);
}

#[test]
fn a_long_message_is_shown_by_its_first_lines_on_a_terminal_and_whole_elsewhere() {
    let home = Home::new();
    let all: Vec<String> = (1..=100).map(|n| format!("line {n}")).collect();
    home.keep(&[&all.join("\n")]);
    let Some(mut tail) = Terminal::sized(&home.command(&["tail", "--no-pager"]), 60) else {
        return;
    };
    let shown = tail.screen.until("--full");
    assert!(shown.contains("line 40\r\n") && !shown.contains("line 41"), "{shown}");
    assert!(shown.contains("60 more lines"), "{shown}");
    assert_eq!(tail.ended(), 0);
    let whole = home.command(&["tail", "--no-pager", "--full"]);
    Terminal::sized(&whole, 60).unwrap().screen.until("line 100");
    assert!(out(&home.run(&["tail"])).contains("line 100\n"));
}

#[test]
fn lists_go_through_the_pager_of_a_terminal_unless_told_otherwise() {
    let home = Home::new();
    home.keep(&["words"]);
    let run = |arguments: &[&str], pager: &str| {
        let mut command = home.command(arguments);
        command.env("PAGER", pager);
        let mut terminal = Terminal::sized(&command, 60)?;
        let shown = terminal.screen.until("ords");
        assert_eq!(terminal.ended(), 0);
        Some(shown)
    };
    const PAGER: &str = "sed 's/words/paged words/'";
    for list in
        [&["tail"][..], &["search", "words"], &["recall", "words"], &["context", "messages"]]
    {
        let Some(shown) = run(list, PAGER) else { return };
        assert!(shown.contains("paged words"), "{list:?}: {shown}");
    }
    for (list, pager) in [
        (&["tail", "--no-pager"][..], PAGER),
        (&["tail"], ""),
        (&["tail"], "cat"),
        (&["tail"], "/no"),
    ] {
        let shown = run(list, pager).unwrap();
        assert!(shown.contains("words") && !shown.contains("paged"), "{list:?}: {shown}");
    }
    let mut piped = home.command(&["tail"]);
    assert!(!out(&piped.env("PAGER", PAGER).output().unwrap()).contains("paged"));
}

#[test]
fn a_pager_that_is_left_early_is_no_error_and_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    home.keep(&["words"; 2000]);
    let has_less = Command::new("less").arg("--version").output().is_ok();
    let less = if has_less { "less" } else { "true" };
    for (pager, seen, keys) in [
        ("true", "", &[][..]),
        (less, if has_less { "words" } else { "" }, &[CTRL_C, "q"]),
        ("sh -c 'echo here; sleep 9'", "here", &[CTRL_C]),
    ] {
        let mut command = home.command(&["tail", "-n", "2000"]);
        let Some(mut tail) = Terminal::sized(command.env("PAGER", pager), 60) else { return };
        if !seen.is_empty() {
            tail.screen.until(seen);
        }
        for key in keys {
            tail.press(key);
            // After Ctrl-C, `less` passes over what came with it.
            std::thread::sleep(Duration::from_millis(500));
        }
        assert_eq!(tail.ended(), 0, "{pager}");
    }
}

#[test]
fn a_model_that_reads_is_seen_to_and_ctrl_c_leaves_a_clean_line() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&[]).silence());
    let Some(mut asked) = Terminal::sized(&talk.command(&["ask", "Hello"]), 60) else { return };
    asked.screen.until("reading ");
    asked.screen.until(" tokens");
    asked.press(CTRL_C);
    let shown = asked.screen.until("interrupted; the utterance is kept");
    assert!(shown.contains("\r\u{1b}[K"), "{shown:?}");
    assert_eq!(asked.ended(), 130);
    talk.stub.next(Answer::saying(&[]).silence());
    let asked = talk.spawn(&["ask", "Hello"]);
    std::thread::sleep(Duration::from_millis(900));
    signal(&asked.child, "-INT");
    assert!(!err(&asked.ended()).contains("reading"), "a pipe is told nothing");
}

#[test]
fn without_a_model_a_terminal_shows_the_prompt_that_was_built_and_a_pipe_nothing() {
    let home = Home::new();
    home.keep(&["My sister is called Ada."]);
    let ask = home.command(&["ask", "What is my sister called?"]);
    let Some(mut asked) = Terminal::sized(&ask, 80) else { return };
    let shown = asked.screen.until("ollama pull");
    let parts = [
        "is kept as number 2",
        "a model would get this prompt",
        "User: My sister is called Ada.",
        "Current time: ",
        "User: What is my sister called?",
        "in: the system prompt",
        "no model is running",
        "ollama serve",
    ];
    let at = parts.map(|part| shown.find(part).unwrap_or_else(|| panic!("{part}: {shown}")));
    assert!(at.is_sorted() && !shown.contains('{'), "{shown}");
    assert_eq!(asked.ended(), 6);
    assert_eq!(out(&home.run(&["ask", "And now?"])), "");
}

#[test]
fn a_model_that_thinks_is_seen_to_think_and_the_line_goes_with_the_first_word() {
    let talk = Talk::new();
    let capabilities = serde_json::json!({ "capabilities": ["completion", "thinking"] });
    talk.stub.always_to(ollama::Ask::Show, Answer::json(capabilities));
    let pause = Duration::from_millis(200);
    let thoughts = (0..8).fold(Answer::saying(&[]), |all, _| all.thinking("canary ").wait(pause));
    talk.stub.next(thoughts.text("Yes."));
    let Some(mut asked) = Terminal::sized(&talk.command(&["ask", "Well?"]), 60) else { return };
    asked.screen.until("thinking … 0 s");
    let shown = asked.screen.until("Yes.");
    assert!(shown.contains("thinking … 1 s") && shown.ends_with("\r\u{1b}[KYes."), "{shown:?}");
    assert!(!shown.contains("canary"), "{shown:?}");
    assert_eq!(asked.ended(), 0);
}
