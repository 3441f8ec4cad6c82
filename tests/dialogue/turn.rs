//! Turns with a model: what is stored when they succeed, fail or are interrupted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use crate::common::open;
use crate::common::scripted::{House, broke_off, done, said};
use sottovoce::conversation::TurnOutcome;
use sottovoce::model::{ModelFailure, ReplyPart, Usage};
use sottovoce::{
    Answer, AnswerEvent, ChatRole, Conversation, ConversationStore, Error, Result, ToolCall,
};

fn calls(names: &[&str]) -> Result<ReplyPart> {
    let call = |name: &&str| ToolCall {
        id: String::new(),
        name: (*name).to_owned(),
        arguments: serde_json::json!({"room": "kitchen"}),
    };
    Ok(ReplyPart::ToolCalls(names.iter().map(call).collect()))
}

async fn next_text(answer: &mut Answer) -> String {
    match soon(answer.next()).await {
        Some(Ok(AnswerEvent::Text(text))) => text,
        other => panic!("{other:?}"),
    }
}

/// The result, or a failure instead of a test that hangs.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("in time")
}

async fn failed(answer: Answer) -> Error {
    soon(answer.whole()).await.expect_err("a failed turn")
}

fn cut(words: &str, why: &str) -> (ChatRole, String, Option<String>) {
    (ChatRole::Assistant, words.to_owned(), Some(why.to_owned()))
}

fn user(words: &str) -> (ChatRole, String, Option<String>) {
    (ChatRole::User, words.to_owned(), None)
}

fn assistant(words: &str) -> (ChatRole, String, Option<String>) {
    (ChatRole::Assistant, words.to_owned(), None)
}

#[tokio::test]
async fn a_turn_hands_over_the_pieces_and_ends_in_the_sealed_answer() {
    let house = House::new().await;
    house.model.answers([said("It "), said("rains."), done()]);
    let mut answer = house.conversation.ask("Weather?").await.unwrap();
    assert_eq!(answer.utterance().unwrap().seq, 1);
    assert_eq!(next_text(&mut answer).await, "It ");
    assert_eq!(next_text(&mut answer).await, "rains.");
    let Some(Ok(AnswerEvent::Done(kept))) = soon(answer.next()).await else { panic!() };
    assert_eq!(kept.message.unwrap().seq, 2);
    assert!(soon(answer.next()).await.is_none());
    assert_eq!(house.kept().await, [user("Weather?"), assistant("It rains.")]);
}

#[tokio::test]
async fn a_dropped_answer_stops_the_model_and_keeps_what_was_handed_out() {
    let house = House::new().await;
    let hand = house.model.hand();
    let mut answer = house.conversation.ask("Tell me a story").await.unwrap();
    hand.send(said("Once upon ")).unwrap();
    hand.send(said("a time ")).unwrap();
    assert_eq!(next_text(&mut answer).await, "Once upon ");
    drop(answer);
    soon(hand.closed()).await;
    soon(house.conversation.close()).await.unwrap();
    assert_eq!(house.kept().await, [user("Tell me a story"), cut("Once upon ", "interrupted")]);

    house.model.says("Good night.");
    let answer = house.conversation.ask("Enough").await.unwrap();
    soon(answer.whole()).await.unwrap();
    assert_eq!(house.model.read(1)[1], "Once upon ", "what the model has read already");
}

#[tokio::test]
async fn nothing_is_kept_of_an_answer_that_nobody_heard() {
    let house = House::new().await;
    let hand = house.model.hand();
    let answer = house.conversation.ask("Hello").await.unwrap();
    hand.send(said("Hi")).unwrap();
    drop(answer);
    soon(house.conversation.close()).await.unwrap();
    assert_eq!(house.kept().await, [user("Hello")]);
}

#[tokio::test]
async fn an_interrupted_answer_is_kept_before_the_next_utterance() {
    for _ in 0..20 {
        let house = House::new().await;
        let hand = house.model.hand();
        let mut answer = house.conversation.ask("One").await.unwrap();
        hand.send(said("First")).unwrap();
        next_text(&mut answer).await;
        drop(answer);
        house.model.says("Second");
        let answer = soon(house.conversation.ask("Two")).await.unwrap();
        soon(answer.whole()).await.unwrap();
        assert_eq!(
            house.kept().await,
            [user("One"), cut("First", "interrupted"), user("Two"), assistant("Second")]
        );
    }
}

#[tokio::test]
async fn only_what_was_heard_is_kept_before_the_end_and_behind_it() {
    let house = House::new().await;
    house.model.answers([said("Grüße aus "), said("Köln"), done()]);
    let mut answer = house.conversation.ask("One").await.unwrap();
    next_text(&mut answer).await;
    let kept = soon(answer.spoken_up_to(5)).await.unwrap();
    assert_eq!(kept.message.unwrap().message.content, "Grüße");
    assert_eq!(house.kept().await, [user("One"), cut("Grüße", "interrupted")]);

    house.model.says("It will rain all day.");
    let mut answer = house.conversation.ask("Two").await.unwrap();
    while soon(answer.next()).await.is_some() {}
    assert_eq!(house.words().await.last().unwrap(), "It will rain all day.");
    let kept = soon(answer.spoken_up_to(12)).await.unwrap();
    assert_eq!(kept.message.unwrap().message.content, "It will rain");
    let kept = house.kept().await;
    assert_eq!(kept[2..], [user("Two"), cut("It will rain", "interrupted")]);

    house.model.says("Three.");
    let mut answer = house.conversation.ask("Three").await.unwrap();
    while soon(answer.next()).await.is_some() {}
    house.conversation.prepare_turn("Four").await.unwrap();
    assert!(soon(answer.spoken_up_to(2)).await.is_err());
    assert_eq!(house.words().await[4..], ["Three", "Three.", "Four"]);
}

#[tokio::test]
async fn a_failed_model_leaves_the_utterance_and_a_retry_does_not_double_it() {
    let house = House::new().await;
    house.model.refuses(ModelFailure::Busy);
    let answer = house.conversation.ask("Weather?").await.unwrap();
    assert!(matches!(failed(answer).await, Error::Model { failure: ModelFailure::Busy, .. }));
    assert_eq!(house.kept().await, [user("Weather?")]);

    house.model.answers([said("It ra"), Err(broke_off())]);
    failed(house.conversation.retry().await.unwrap()).await;
    assert_eq!(house.kept().await, [user("Weather?")]);

    house.model.says("It rains.");
    soon(house.conversation.retry().await.unwrap().whole()).await.unwrap();
    assert_eq!(house.kept().await, [user("Weather?"), assistant("It rains.")]);
    for at in 0..3 {
        assert_eq!(house.model.read(at).len(), 1, "the utterance stands alone");
    }
    assert!(matches!(house.conversation.retry().await, Err(Error::NothingToRetry)));
}

#[tokio::test]
async fn what_was_heard_of_a_failed_answer_is_kept_before_the_next_utterance() {
    let house = House::new().await;
    house.model.answers([said("It ra"), Err(broke_off())]);
    failed(house.conversation.ask("Weather?").await.unwrap()).await;
    house.model.says("Fine.");
    soon(house.conversation.ask("And you?").await.unwrap().whole()).await.unwrap();
    assert_eq!(
        house.kept().await,
        [user("Weather?"), cut("It ra", "failed"), user("And you?"), assistant("Fine.")]
    );
    house.model.answers([said("By"), Err(broke_off())]);
    failed(house.conversation.ask("Bye").await.unwrap()).await;
    house.conversation.close().await.unwrap();
    assert_eq!(house.kept().await[4..], [user("Bye"), cut("By", "failed")]);
}

#[tokio::test]
async fn an_utterance_without_an_answer_is_found_again_after_a_restart() {
    let house = House::new().await;
    house.model.says("Hello.");
    soon(house.conversation.ask("Hi").await.unwrap().whole()).await.unwrap();
    house.conversation.prepare_turn("Weather?").await.unwrap();
    house.model.says("It rains.");
    let answer = house.conversation.retry().await.unwrap();
    assert_eq!(answer.utterance().unwrap().seq, 3);
    soon(answer.whole()).await.unwrap();
    assert_eq!(house.words().await, ["Hi", "Hello.", "Weather?", "It rains."]);
}

#[tokio::test]
async fn an_ending_without_an_end_is_no_answer() {
    let house = House::new().await;
    for parts in [vec![said("It rains.")], vec![], vec![done()], vec![said(" \n"), done()]] {
        house.model.answers(parts);
        failed(house.conversation.ask("Weather?").await.unwrap()).await;
        assert!(house.kept().await.iter().all(|(_, _, cut)| cut.is_none()));
        house.model.says("x");
        soon(house.conversation.retry().await.unwrap().whole()).await.unwrap();
    }
    assert!(house.words().await.iter().all(|words| words != "It rains."));
}

#[tokio::test]
async fn an_answer_cut_at_its_greatest_length_is_marked() {
    let house = House::new().await;
    let mut usage = Usage::default();
    usage.cut = true;
    house.model.answers([said("Once upon a"), Ok(ReplyPart::Done(usage))]);
    let (_, kept) = soon(house.conversation.ask("Story").await.unwrap().whole()).await.unwrap();
    assert_eq!(kept.message.unwrap().message.cut_off(), Some("length"));
}

#[tokio::test]
async fn thoughts_are_neither_spoken_nor_kept() {
    let house = House::new().await;
    house.model.answers([
        Ok(ReplyPart::Thinking),
        said("<thi"),
        said("nk>secret"),
        said(" plan</think>\n\nIt "),
        said("rains."),
        done(),
    ]);
    let (words, _) = soon(house.conversation.ask("Weather?").await.unwrap().whole()).await.unwrap();
    assert_eq!(words, "It rains.");
    assert_eq!(house.words().await, ["Weather?", "It rains."]);
}

#[tokio::test]
async fn what_turns_out_to_be_thoughts_is_no_part_of_the_stored_answer() {
    let house = House::new().await;
    let thinks = || [said("Let me"), said(" see.\n</think>\n\nIt "), said("rains."), done()];
    house.model.answers(thinks());
    let (_, kept) = soon(house.conversation.ask("Weather?").await.unwrap().whole()).await.unwrap();
    assert_eq!(kept.message.unwrap().message.content, "It rains.");

    house.model.answers(thinks());
    let mut answer = house.conversation.ask("And now?").await.unwrap();
    let heard = next_text(&mut answer).await.chars().count();
    assert_eq!(next_text(&mut answer).await, "It ");
    soon(answer.spoken_up_to(heard + 2)).await.unwrap();
    soon(house.conversation.close()).await.unwrap();
    assert_eq!(house.words().await, ["Weather?", "It rains.", "And now?", "It"]);

    house.model.answers([said("Hm.</think>"), done()]);
    let error = failed(house.conversation.ask("Well?").await.unwrap()).await;
    assert!(matches!(error, Error::Model { failure: ModelFailure::Empty, .. }), "{error}");
}

#[tokio::test]
async fn calls_are_kept_with_their_results_and_read_again_as_they_were() {
    let house = House::new().await;
    house.model.answers([said("One moment."), calls(&["light", "heat"]), done()]);
    let (_, kept) =
        soon(house.conversation.ask("Warm and bright").await.unwrap().whole()).await.unwrap();
    assert!(kept.message.is_none());
    assert_eq!(house.words().await, ["Warm and bright"], "no call without its result");

    let wrong = house.conversation.tool_results(vec!["on".to_owned()]).await;
    assert!(matches!(wrong, Err(Error::ToolResults { called: 2, given: 1 })));
    house.model.says("Done.");
    let results = vec!["on".to_owned(), "21 degrees".to_owned()];
    soon(house.conversation.tool_results(results).await.unwrap().whole()).await.unwrap();
    assert_eq!(
        house.words().await,
        ["Warm and bright", "One moment.", "on", "21 degrees", "Done."]
    );
    let all = house.store.read_tail(5).await.unwrap().messages;
    assert_eq!(all[1].message.tool_calls.len(), 2);
    assert_eq!(all[2].message.role, ChatRole::Tool);
    let first = house.model.read(1);
    assert_eq!(first.len(), 4, "the utterance, the calls, both results");
    assert_eq!(house.model.request(1)["messages"][3]["tool_name"], "light");

    house.model.says("You are welcome.");
    soon(house.conversation.ask("Thanks").await.unwrap().whole()).await.unwrap();
    assert_eq!(house.model.read(2)[..4], first[..]);
}

#[tokio::test]
async fn calls_without_results_leave_no_trace() {
    let house = House::new().await;
    house.model.answers([calls(&["light"]), done()]);
    soon(house.conversation.ask("Light").await.unwrap().whole()).await.unwrap();
    house.model.says("Hello.");
    soon(house.conversation.ask("Hi").await.unwrap().whole()).await.unwrap();
    assert_eq!(house.words().await, ["Light", "Hi", "Hello."]);
    let none = house.conversation.tool_results(vec!["on".to_owned()]).await;
    assert!(matches!(none, Err(Error::ToolResults { .. })));
}

#[tokio::test]
async fn a_turn_off_the_record_leaves_nothing_behind() {
    let house = House::new().await;
    house.model.says("It rains.");
    soon(house.conversation.ask("Weather?").await.unwrap().whole()).await.unwrap();
    let secret = house.conversation.message(ChatRole::User, "My secret");
    house.model.says("I keep it.");
    let answer = house.conversation.ask_off_record(secret.clone()).await.unwrap();
    assert!(answer.utterance().is_none());
    let (words, kept) = soon(answer.whole()).await.unwrap();
    assert_eq!((words.as_str(), kept.message.is_none()), ("I keep it.", true));
    assert!(house.model.read(1)[2].ends_with("My secret"), "the history is there all the same");

    house.model.answers([said("I k"), Err(broke_off())]);
    failed(house.conversation.ask_off_record(secret).await.unwrap()).await;
    house.model.says("Here.");
    soon(house.conversation.ask("Still there?").await.unwrap().whole()).await.unwrap();
    assert_eq!(house.words().await, ["Weather?", "It rains.", "Still there?", "Here."]);
    assert!(!house.model.requests.lock().unwrap()[3].contains("secret"));
}

#[tokio::test]
async fn a_doubtful_exchange_is_answered_and_kept_but_not_recalled() {
    let house = House::with(|builder| builder.min_confidence(0.5)).await;
    for (words, confidence) in [("Play jazz", "0.9"), ("Pay tax", "0.3"), ("Louder", "n/a")] {
        house.model.says("Yes.");
        let message = house.conversation.message(ChatRole::User, words);
        let message = message.with_metadata("confidence", confidence);
        soon(house.conversation.ask_message(message).await.unwrap().whole()).await.unwrap();
    }
    assert_eq!(house.words().await.len(), 6);
    assert!(house.model.read(1)[2].ends_with("Pay tax"), "it is answered");
    let third = house.model.read(2);
    assert_eq!(third.len(), 3);
    assert!(third[0].ends_with("Play jazz") && third[2].ends_with("Louder"));
}

#[tokio::test]
async fn a_second_turn_waits_or_is_refused() {
    let house = House::new().await;
    let hand = house.model.hand();
    let mut first = house.conversation.ask("One").await.unwrap();
    house.model.says("Second");
    let other = house.conversation.clone();
    let second = tokio::spawn(async move { other.ask("Two").await.unwrap().whole().await });
    hand.send(said("First")).unwrap();
    next_text(&mut first).await;
    assert_eq!(house.words().await, ["One"]);
    hand.send(done()).unwrap();
    soon(first.whole()).await.unwrap();
    soon(second).await.unwrap().unwrap();
    assert_eq!(house.words().await, ["One", "First", "Two", "Second"]);

    let house = House::with(|c| c.refuse_when_busy(true)).await;
    let hand = house.model.hand();
    let mut first = house.conversation.ask("One").await.unwrap();
    assert!(matches!(house.conversation.ask("Two").await, Err(Error::TurnInProgress)));
    assert_eq!(house.words().await, ["One"], "what is refused is not kept");
    hand.send(said("First")).unwrap();
    next_text(&mut first).await;
    drop(first);
    house.model.says("Second");
    soon(house.conversation.ask("Two").await.expect("an interrupted turn ends at once").whole())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_sent_once_more_with_less_history() {
    let house = House::new().await;
    for at in 0..12 {
        house.conversation.prepare_turn(format!("Utterance number {at}")).await.unwrap();
        house.conversation.store_reply("A reply of a few words.").await.unwrap();
    }
    house.model.refuses(ModelFailure::PromptTooLong);
    house.model.says("Short.");
    let (_, kept) = soon(house.conversation.ask("So?").await.unwrap().whole()).await.unwrap();
    assert_eq!(kept.report.retries, 1);
    let (first, second) = (house.model.read(0), house.model.read(1));
    assert!(second.len() < first.len() && first.ends_with(&second[1..]));

    house.model.refuses(ModelFailure::PromptTooLong);
    house.model.refuses(ModelFailure::PromptTooLong);
    let error = failed(house.conversation.ask("And?").await.unwrap()).await;
    assert!(matches!(error, Error::Model { failure: ModelFailure::PromptTooLong, .. }));
    assert_eq!(house.words().await.last().unwrap(), "And?");

    let empty = House::new().await;
    empty.model.refuses(ModelFailure::PromptTooLong);
    failed(empty.conversation.ask("x").await.unwrap()).await;
    assert_eq!(empty.model.requests.lock().unwrap().len(), 1, "less than that cannot be sent");
}

#[tokio::test]
async fn a_report_says_how_much_of_the_request_is_old() {
    let house = House::new().await;
    let mut shares = Vec::new();
    for words in ["One", "Two", "Three", "Four", "Five", "Six"] {
        house.model.says("A reply of a few words, as they are given to be heard.");
        let (_, kept) = soon(house.conversation.ask(words).await.unwrap().whole()).await.unwrap();
        assert!(kept.report.time_to_first_token <= kept.report.whole_time);
        assert_eq!(kept.report.window, Some(4096));
        shares.push(kept.report.unchanged_share());
    }
    assert_eq!(shares[0], None);
    assert!(shares[5].unwrap() > 0.6, "{shares:?}");
}

#[tokio::test]
async fn preparing_sends_what_the_next_prompt_begins_with_and_keeps_nothing() {
    let house = House::new().await;
    house.model.says("Hello.");
    soon(house.conversation.ask("Hi").await.unwrap().whole()).await.unwrap();
    soon(house.conversation.warm_up()).await.unwrap();
    house.model.says("It rains.");
    soon(house.conversation.ask("Weather?").await.unwrap().whole()).await.unwrap();
    let warmed: serde_json::Value =
        serde_json::from_str(&house.model.warmed.lock().unwrap()[0]).unwrap();
    let asked = house.model.request(1);
    assert_eq!(
        warmed["messages"].as_array().unwrap()[..3],
        asked["messages"].as_array().unwrap()[..3]
    );
    assert_eq!(house.words().await.len(), 4);
}

#[tokio::test]
async fn sentences_come_whole_and_only_those_handed_out_are_kept() {
    let house = House::new().await;
    let hand = house.model.hand();
    let mut sentences = house.conversation.ask("Weather?").await.unwrap().sentences();
    for part in ["It ra", "ins. Take", " a coat! And", " a hat"] {
        hand.send(said(part)).unwrap();
    }
    for expected in ["It rains. ", "Take a coat! "] {
        let Some(Ok(AnswerEvent::Text(sentence))) = soon(sentences.next()).await else { panic!() };
        assert_eq!(sentence, expected);
    }
    drop(sentences);
    soon(house.conversation.close()).await.unwrap();
    assert_eq!(house.kept().await[1], cut("It rains. Take a coat! ", "interrupted"));

    house.model.answers([said("Sun"), said(" and wind"), done()]);
    let mut sentences = house.conversation.ask("Now?").await.unwrap().sentences();
    let Some(Ok(AnswerEvent::Text(sentence))) = soon(sentences.next()).await else { panic!() };
    assert_eq!(sentence, "Sun and wind");
    assert_eq!(
        house.words().await.last().unwrap(),
        "Now?",
        "not kept before it was asked for more"
    );
    let Some(Ok(AnswerEvent::Done(kept))) = soon(sentences.next()).await else { panic!() };
    assert_eq!(kept.message.unwrap().message.content, "Sun and wind");
    assert!(soon(sentences.next()).await.is_none());
}

#[tokio::test]
async fn an_endless_answer_is_cut_and_marked() {
    let house = House::new().await;
    let hand = house.model.hand();
    for _ in 0..70 {
        hand.send(said(&"la ".repeat(1366))).unwrap();
    }
    let (_, kept) = soon(house.conversation.ask("Sing").await.unwrap().whole()).await.unwrap();
    assert!(hand.is_closed());
    assert_eq!(kept.message.unwrap().message.cut_off(), Some("length"));
}

#[tokio::test]
async fn preparing_keeps_no_utterance_waiting_and_refuses_none() {
    let house = House::with(|c| c.refuse_when_busy(true)).await;
    for at in 0..20 {
        let preparing = tokio::spawn({
            let conversation = house.conversation.clone();
            async move { conversation.warm_up().await }
        });
        tokio::task::yield_now().await;
        house.model.says("Yes.");
        let answer = soon(house.conversation.ask(format!("{at}"))).await.expect("not refused");
        soon(answer.whole()).await.unwrap();
        soon(preparing).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn results_are_kept_once_even_if_the_host_does_not_wait_for_them() {
    let house = House::new().await;
    house.model.answers([calls(&["light"]), done()]);
    soon(house.conversation.ask("Light").await.unwrap().whole()).await.unwrap();
    house.model.says("It is on.");
    {
        let results = house.conversation.tool_results(vec!["on".to_owned()]);
        tokio::pin!(results);
        let _ = tokio::time::timeout(Duration::ZERO, &mut results).await;
    }
    soon(house.conversation.close()).await.unwrap();
    for _ in 0..100 {
        if house.words().await.len() >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let again = house.conversation.tool_results(vec!["on".to_owned()]).await;
    assert!(matches!(again, Err(Error::ToolResults { called: 0, given: 1 })));
    assert_eq!(house.words().await, ["Light", "", "on"]);
}

#[tokio::test]
async fn nothing_said_in_a_turn_shows_in_debug() {
    let house = House::new().await;
    house.model.answers([said("canary-answer"), calls(&["canary-call"]), done()]);
    let mut answer = house.conversation.ask("canary-question").await.unwrap();
    let mut shown = format!("{answer:?} {:?}", house.conversation);
    while let Some(piece) = soon(answer.next()).await {
        shown += &format!("{piece:?} {answer:?}");
    }
    assert!(!shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn without_a_model_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn ConversationStore> = Arc::new(open(folder.path()).await);
    let builder = Conversation::builder(store.clone());
    let conversation = builder.last_n(6).build();
    assert!(matches!(conversation.ask("Hi").await, Err(Error::NoModel)));
    assert!(store.read_tail(1).await.unwrap().messages.is_empty());
}

#[allow(dead_code)]
fn kept_is_shared_between_threads(kept: TurnOutcome, answer: Answer) {
    fn send<T: Send + 'static>(_: T) {}
    send(kept);
    send(answer);
}

/// Forgets as another process would: through its own store.
async fn forget_elsewhere(house: &House, seqs: std::ops::RangeInclusive<u64>) {
    open(house.folder.path()).await.forget(&[seqs]).await.unwrap();
}

#[tokio::test]
async fn an_answer_to_what_another_process_has_forgotten_is_not_kept_and_that_is_reported() {
    let house = House::new().await;
    let hand = house.model.hand();
    let mut answer = house.conversation.ask("My pin is 1234").await.unwrap();
    hand.send(said("1234, ")).unwrap();
    next_text(&mut answer).await;
    forget_elsewhere(&house, 1..=1).await;
    hand.send(said("I see.")).unwrap();
    hand.send(done()).unwrap();
    let error = failed(answer).await;
    assert!(matches!(error, Error::UtteranceForgotten), "{error}");
    assert!(house.kept().await.is_empty());
    let nothing = house.conversation.retry().await;
    assert!(matches!(nothing, Err(Error::NothingToRetry)), "{nothing:?}");

    // Interrupted in two ways: by dropping it, and by saying how much was heard.
    for drops in [true, false] {
        let hand = house.model.hand();
        let mut answer = house.conversation.ask("My pin is 1234").await.unwrap();
        hand.send(said("1234, ")).unwrap();
        next_text(&mut answer).await;
        forget_elsewhere(&house, 1..=99).await;
        if drops {
            drop(answer);
        } else {
            let error = soon(answer.spoken_up_to(4)).await.unwrap_err();
            assert!(matches!(error, Error::UtteranceForgotten), "{error}");
        }
        soon(house.conversation.close()).await.unwrap();
        assert!(house.kept().await.is_empty());
    }

    // Failed, and not stored before the next utterance either.
    house.model.answers([said("1234, "), Err(broke_off())]);
    failed(house.conversation.ask("My pin is 1234").await.unwrap()).await;
    forget_elsewhere(&house, 1..=99).await;
    house.model.says("Hello.");
    soon(house.conversation.ask("Hi").await.unwrap().whole()).await.unwrap();
    assert_eq!(house.kept().await, [user("Hi"), assistant("Hello.")]);

    // Shortened after the whole answer was forgotten.
    house.model.says("1234, I see.");
    let mut answer = house.conversation.ask("My pin is 1234").await.unwrap();
    while soon(answer.next()).await.is_some() {}
    forget_elsewhere(&house, 1..=99).await;
    soon(answer.spoken_up_to(4)).await.unwrap_err();
    assert!(house.kept().await.is_empty());
}

#[tokio::test]
async fn results_of_tools_for_what_another_process_has_forgotten_are_not_kept() {
    let house = House::with(|conversation| conversation.long_result(64)).await;
    house.model.answers([calls(&["lookup"]), done()]);
    let answer = house.conversation.ask("What is my pin?").await.unwrap();
    soon(answer.whole()).await.unwrap();
    forget_elsewhere(&house, 1..=99).await;
    let results = vec!["The pin is 1234. ".repeat(9)];
    let error = soon(house.conversation.tool_results(results)).await.unwrap_err();
    assert!(matches!(error, Error::UtteranceForgotten), "{error}");
    assert!(house.kept().await.is_empty());
    assert!(
        house.store.artifact_store().unwrap().artifacts().await.unwrap().0.is_empty(),
        "the result's words"
    );
    house.model.says("Hello.");
    soon(house.conversation.ask("Hi").await.unwrap().whole()).await.unwrap();
    assert_eq!(house.kept().await, [user("Hi"), assistant("Hello.")]);
}

#[tokio::test]
async fn a_host_with_its_own_model_keeps_no_answer_to_what_was_forgotten() {
    let house = House::new().await;
    let conversation = &house.conversation;
    for cut_off in [false, true] {
        conversation.prepare_turn("My pin is 1234").await.unwrap();
        forget_elsewhere(&house, 1..=99).await;
        let error = match cut_off {
            false => conversation.store_reply("1234, I see.").await.unwrap_err(),
            true => conversation.store_cut_off_reply("1234, I").await.unwrap_err(),
        };
        assert!(matches!(error, Error::UtteranceForgotten), "{error}");
    }
    // An assistant may speak by itself, whatever was forgotten.
    conversation.store_reply("It is ten o'clock.").await.unwrap();
    assert_eq!(house.kept().await, [assistant("It is ten o'clock.")]);
}

#[tokio::test]
async fn a_host_with_its_own_model_keeps_what_was_spoken_of_a_reply_that_was_cut_off() {
    let house = House::new().await;
    house.conversation.prepare_turn("Tell me a story").await.unwrap();
    let kept = house.conversation.store_cut_off_reply("Once upon").await.unwrap().unwrap();
    assert_eq!(kept.message.cut_off(), Some("interrupted"));
    house.conversation.prepare_turn("Enough").await.unwrap();
    assert!(house.conversation.store_cut_off_reply(" ").await.unwrap().is_none());
    assert_eq!(
        house.kept().await,
        [user("Tell me a story"), cut("Once upon", "interrupted"), user("Enough")]
    );
}

#[tokio::test]
async fn the_receipt_is_there_while_an_answer_comes_and_after_it_failed() {
    let house = House::new().await;
    house.model.says("Hello.");
    soon(house.conversation.ask("One").await.unwrap().whole()).await.unwrap();
    let hand = house.model.hand();
    let mut answer = house.conversation.ask("Two").await.unwrap();
    assert!(answer.receipt().is_none(), "no prompt is built yet");
    hand.send(said("It ")).unwrap();
    next_text(&mut answer).await;
    assert_eq!(answer.receipt().unwrap().included(), 2);
    hand.send(Err(broke_off())).unwrap();
    assert!(matches!(soon(answer.next()).await, Some(Err(Error::Model { .. }))));
    assert_eq!(answer.receipt().unwrap().included(), 2);
    assert!(answer.report().unwrap().whole_time.is_some());
}

#[tokio::test]
async fn a_time_stamp_that_a_model_echoes_is_neither_spoken_nor_kept() {
    let house = House::new().await;
    house.model.answers([said("[Sun"), said("day 09:"), said("10, An"), said("na] "), done()]);
    let hello =
        house.conversation.message(ChatRole::User, "Hello").with_metadata("speaker", "Anna");
    let error = failed(house.conversation.ask_message(hello).await.unwrap()).await;
    assert!(matches!(error, Error::Model { failure: ModelFailure::Empty, .. }), "{error}");
    house.model.answers([
        said(" [Sunday 09:10]"),
        said("\n[Sunday 09:10, Anna] I'm "),
        said("not sure."),
        done(),
    ]);
    let answer = house.conversation.retry().await.unwrap();
    let (words, _) = soon(answer.whole()).await.unwrap();
    assert_eq!(words, "I'm not sure.");

    // Text that cannot become a stamp is not held back. The heard characters are counted in the spoken text.
    let hand = house.model.hand();
    let mut answer = house.conversation.ask("And now?").await.unwrap();
    hand.send(said("[Sunday 09:11] [sighs")).unwrap();
    assert_eq!(next_text(&mut answer).await, "[sighs");
    hand.send(said("] I said so.")).unwrap();
    next_text(&mut answer).await;
    soon(answer.spoken_up_to(10)).await.unwrap();
    assert_eq!(house.words().await, ["Hello", "I'm not sure.", "And now?", "[sighs] I "]);

    // A host with its own model.
    house.conversation.prepare_turn("And you?").await.unwrap();
    let kept = house.conversation.store_reply("[Sunday 09:12] Fine.").await.unwrap();
    assert_eq!(kept.message.content, "Fine.");
    let kept = house
        .conversation
        .store_reply("[Sunday 24 August 2025 18:36 +02:00, note] Tea!")
        .await
        .unwrap();
    assert_eq!(kept.message.content, "Tea!");
}

/// The state of the house, under its own heading.
struct State;

#[async_trait::async_trait]
impl sottovoce::ContextProvider for State {
    fn placement(&self) -> sottovoce::context::Placement {
        sottovoce::context::Placement::NewestTurn
    }

    async fn get_context(
        &self,
        _: &sottovoce::context::ContextRequest<'_>,
    ) -> Result<sottovoce::context::Context> {
        let facts = ["the oven is at 180 degrees", "the door is open"];
        let at = "2025-08-24T16:36:25Z".parse().unwrap();
        let fact = |fact| sottovoce::ChatMessage::at(ChatRole::System, fact, at).into();
        let context = sottovoce::context::Context::new(facts.map(fact).to_vec(), "as it is now");
        Ok(context.under("State of [the]\nhouse:"))
    }
}

struct Found;

#[async_trait::async_trait]
impl sottovoce::context::Retriever for Found {
    async fn retrieve(
        &self,
        _: &sottovoce::context::Query<'_>,
    ) -> Result<Vec<sottovoce::context::ContextMessage>> {
        let at = "2025-08-24T16:36:25Z".parse().unwrap();
        Ok(vec![sottovoce::ChatMessage::at(ChatRole::System, "Anna likes tea", at).into()])
    }
}

#[tokio::test]
async fn facts_stand_under_the_heading_of_their_provider_in_every_form_of_prompt() {
    use sottovoce::ModelOptions;
    use sottovoce::model::{
        OllamaChatRenderer, OllamaPromptRenderer, OpenAiChatRenderer, PromptRenderer,
    };
    let found = sottovoce::context::RetrievalContextProvider::new(Arc::new(Found), 3);
    let house = House::with(|builder| builder.context(State).context(found)).await;
    let (prompt, _) = house.conversation.prompt("Is it hot?").await.unwrap();
    let options = || ModelOptions::new("m");
    let renderers: [Box<dyn PromptRenderer>; 3] = [
        Box::new(OllamaChatRenderer::new(options())),
        Box::new(OllamaPromptRenderer::new(options())),
        Box::new(OpenAiChatRenderer::new(options())),
    ];
    let expected = "State of the house:\\n- the oven is at 180 degrees\\n- the door is open\\n\\n\
        Possibly relevant:\\n- Anna likes tea\\n\\n";
    for renderer in renderers {
        let body = renderer.render(&prompt).body;
        assert!(body.contains(expected), "{body}");
    }
}
