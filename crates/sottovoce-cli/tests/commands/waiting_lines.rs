//! Lines that are typed or pasted early in a chat.

use super::*;
use ollama::Answer;
use talk::Talk;
use terminal::{CTRL_C, CTRL_D, Terminal};

#[test]
fn lines_that_are_typed_while_a_command_or_an_answer_is_under_way_come_in_their_order() {
    let talk = Talk::new();
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    // All at once: the editor reads them together.
    chat.press("one\r/explain\rtwo\rthree\r");
    for _ in 0..3 {
        chat.screen.until("Fine.");
    }
    chat.prompt();
    // During an answer, the terminal keeps them, even after Ctrl-C.
    talk.stub.next(Answer::saying(&["It will "]).silence());
    chat.press("four\r");
    chat.screen.until("It will ");
    chat.press("five\rsix\r");
    chat.screen.until("six");
    chat.press(CTRL_C);
    chat.screen.until("what was shown is kept");
    for _ in 0..2 {
        chat.screen.until("Fine.");
    }
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    let asked: Vec<String> = talk.home.words();
    let expected = [
        "one", "Fine.", "two", "Fine.", "three", "Fine.", "four", "It will ", "five", "Fine.",
        "six", "Fine.",
    ];
    assert_eq!(asked, expected);
}

#[test]
fn a_paste_of_several_lines_is_one_utterance_and_no_command() {
    let talk = Talk::new();
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    for pasted in ["one\ntwo\n\n/explain\nthree", "/etc/hosts holds\nnames"] {
        chat.press(&format!("\u{1b}[200~{pasted}\u{1b}[201~\r"));
        chat.screen.until("Fine.");
        chat.prompt();
    }
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    let said = ["one\ntwo\n\n/explain\nthree", "Fine.", "/etc/hosts holds\nnames", "Fine."];
    assert_eq!(talk.home.words(), said);
}

#[test]
fn lines_that_come_together_are_said_to_be_asked_one_by_one() {
    let talk = Talk::new();
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("one\rtwo\rthree\r");
    let mut shown = chat.screen.until("lines that come together are asked one by one");
    for _ in 0..2 {
        shown.push_str(&chat.screen.until("Fine."));
    }
    shown.push_str(&chat.prompt());
    assert_eq!(shown.matches("one by one").count(), 1, "{shown}");
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    assert_eq!(talk.home.words().len(), 6);
}

#[test]
fn a_terminal_without_a_line_editor_ends_the_chat_with_ctrl_d_too() {
    let talk = Talk::new();
    let mut command = talk.command(&["chat"]);
    command.env("TERM", "dumb");
    let Some(mut chat) = Terminal::running(&command) else { return };
    chat.screen.until("Ctrl-D ends the chat");
    chat.press("Hello\n");
    chat.screen.until("first word after");
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    assert_eq!(talk.home.words(), ["Hello", "Fine."]);
}

#[test]
fn a_line_that_was_typed_before_a_question_neither_answers_it_nor_is_lost() {
    let talk = Talk::new();
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("one\r/forget last\ryesterday it rained\r");
    chat.screen.until("nothing was deleted");
    chat.screen.until("Fine.");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    assert_eq!(talk.home.words(), ["one", "Fine.", "yesterday it rained", "Fine."]);
}

#[test]
fn a_long_line_that_is_pasted_during_an_answer_is_asked_whole() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It will "]).hold().text("rain."));
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("one\r");
    chat.screen.until("It will ");
    let long = format!("L{}é", "y ".repeat(5000));
    chat.press(&long);
    chat.press("\rafter\r");
    talk.stub.release();
    for _ in 0..2 {
        chat.screen.until("Fine.");
    }
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.ended(), 0);
    let expected = ["one", "It will rain.", &long, "Fine.", "after", "Fine."];
    assert!(talk.home.words() == expected, "{:?}", talk.home.words());
}

#[test]
fn ctrl_d_during_an_answer_ends_the_chat_after_it() {
    let talk = Talk::new();
    talk.stub.next(Answer::saying(&["It will "]).hold().text("rain."));
    let Some(mut chat) = Terminal::chat(&talk, &["chat"]) else { return };
    chat.press("one\r");
    chat.screen.until("It will ");
    chat.press(&format!("two\r{CTRL_D}"));
    talk.stub.release();
    assert_eq!(chat.ended(), 0);
    assert_eq!(talk.home.words(), ["one", "It will rain.", "two", "Fine."]);
}
