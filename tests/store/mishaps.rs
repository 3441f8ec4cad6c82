//! Turns with several mishaps at once: no spoken text is lost, stored twice, or given to another utterance.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::Duration;

use crate::common::scripted::{House, broke_off, done, said};
use sottovoce::model::{ModelFailure, ReplyPart, Usage};
use sottovoce::{
    Answer, AnswerEvent, ChatRole, Conversation, ConversationStore, Error, Result, ToolCall,
};

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("in time")
}

async fn failed(answer: Answer) -> Error {
    soon(answer.whole()).await.expect_err("a failed turn")
}

async fn asked(house: &House, words: &str) -> Answer {
    soon(house.conversation.ask(words)).await.unwrap()
}

async fn answered(house: &House, words: &str, answer: &str) {
    house.model.says(answer);
    soon(asked(house, words).await.whole()).await.unwrap();
}

/// The stored messages, each with the reason why it was cut off.
async fn kept(house: &House) -> Vec<(String, Option<String>)> {
    house.kept().await.into_iter().map(|(_, words, cut_off)| (words, cut_off)).collect()
}

fn whole(words: &str) -> (String, Option<String>) {
    (words.to_owned(), None)
}

fn part(words: &str, why: &str) -> (String, Option<String>) {
    (words.to_owned(), Some(why.to_owned()))
}

fn call() -> Result<ReplyPart> {
    let arguments = serde_json::json!({});
    Ok(ReplyPart::ToolCalls(vec![ToolCall { id: String::new(), name: "light".into(), arguments }]))
}

#[tokio::test]
async fn what_was_spoken_before_a_retry_that_says_nothing_is_kept() {
    let house = House::new().await;
    house.model.answers([said("It will r"), Err(broke_off())]);
    failed(asked(&house, "Weather?").await).await;
    house.model.refuses(ModelFailure::Busy);
    failed(house.conversation.retry().await.unwrap()).await;
    let hand = house.model.hand();
    hand.send(Ok(ReplyPart::Thinking)).unwrap();
    let mut answer = house.conversation.retry().await.unwrap();
    soon(answer.next()).await;
    drop(answer);
    soon(hand.closed()).await;
    soon(house.conversation.close()).await.unwrap();
    assert_eq!(kept(&house).await, [whole("Weather?"), part("It will r", "failed")]);

    let house = House::new().await;
    house.model.answers([said("It will r"), Err(broke_off())]);
    failed(asked(&house, "Weather?").await).await;
    house.model.says("It will rain.");
    soon(house.conversation.retry().await.unwrap().whole()).await.unwrap();
    house.conversation.close().await.unwrap();
    assert_eq!(kept(&house).await, [whole("Weather?"), whole("It will rain.")]);
}

#[tokio::test]
async fn words_beside_a_call_that_nobody_saw_or_answered_are_kept() {
    // The host ends before it receives the call.
    let house = House::new().await;
    house.model.answers([said("Let me see."), call(), done()]);
    let mut answer = asked(&house, "Light?").await;
    assert!(matches!(soon(answer.next()).await, Some(Ok(AnswerEvent::Text(_)))));
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(answer);
    soon(house.conversation.close()).await.unwrap();
    assert_eq!(kept(&house).await, [whole("Light?"), part("Let me see.", "interrupted")]);
    assert!(house.conversation.tool_results(vec!["on".into()]).await.is_err());

    // The host receives it and returns no result.
    for retried in [false, true] {
        let house = House::new().await;
        house.model.answers([said("Let me see."), call(), done()]);
        soon(asked(&house, "Light?").await.whole()).await.unwrap();
        if retried {
            house.model.refuses(ModelFailure::Busy);
            failed(house.conversation.retry().await.unwrap()).await;
        }
        answered(&house, "Never mind", "Fine.").await;
        let expected = [
            whole("Light?"),
            part("Let me see.", "interrupted"),
            whole("Never mind"),
            whole("Fine."),
        ];
        assert_eq!(kept(&house).await, expected, "retried: {retried}");
    }
}

#[tokio::test]
async fn results_may_be_brought_while_the_answer_with_the_calls_is_still_held() {
    let house = House::new().await;
    house.model.answers([call(), done()]);
    let mut answer = asked(&house, "Light").await;
    assert!(matches!(soon(answer.next()).await, Some(Ok(AnswerEvent::ToolCalls(_)))));
    house.model.says("It is on.");
    let next = soon(house.conversation.tool_results(vec!["on".into()])).await.unwrap();
    soon(next.whole()).await.unwrap();
    assert_eq!(house.words().await, ["Light", "", "on", "It is on."]);
}

#[tokio::test]
async fn the_rest_of_a_sentence_that_was_handed_out_before_a_failure_is_kept() {
    let house = House::new().await;
    house.model.answers([said("It rains. Take a co"), Err(broke_off())]);
    let mut sentences = asked(&house, "Weather?").await.sentences();
    for expected in ["It rains. ", "Take a co"] {
        let Some(Ok(AnswerEvent::Text(words))) = soon(sentences.next()).await else { panic!() };
        assert_eq!(words, expected);
    }
    assert!(matches!(soon(sentences.next()).await, Some(Err(Error::Model { .. }))));
    drop(sentences);
    soon(house.conversation.close()).await.unwrap();
    assert_eq!(kept(&house).await[1], part("It rains. Take a co", "failed"));
}

#[tokio::test]
async fn forgetting_takes_the_unkept_answer_of_what_is_forgotten_and_no_other() {
    for (forgotten, left) in [(1..=2, true), (3..=3, false)] {
        let house = House::new().await;
        answered(&house, "One", "First.").await;
        house.model.answers([said("Sec"), Err(broke_off())]);
        failed(asked(&house, "Two").await).await;
        house.conversation.forget(&[forgotten]).await.unwrap();
        house.conversation.close().await.unwrap();
        assert_eq!(house.words().await.contains(&"Sec".to_owned()), left);
    }
}

#[tokio::test]
async fn of_two_that_come_while_a_turn_ends_one_has_the_next_turn_and_one_is_refused() {
    let house = House::with(|c| c.refuse_when_busy(true)).await;
    let hand = house.model.hand();
    let mut first = asked(&house, "One").await;
    hand.send(said("First")).unwrap();
    soon(first.next()).await;
    drop(first);
    house.model.says("Second");
    let (two, three) = soon(async {
        tokio::join!(house.conversation.ask("Two"), house.conversation.ask("Three"))
    })
    .await;
    let refused = [&two, &three].iter().filter(|a| matches!(a, Err(Error::TurnInProgress))).count();
    assert_eq!(refused, 1);
    for answer in [two, three].into_iter().flatten() {
        soon(answer.whole()).await.unwrap();
    }
    assert_eq!(house.words().await.len(), 4);
}

#[tokio::test]
async fn a_retry_never_asks_what_came_before_the_last_turn() {
    let house = House::new().await;
    house.model.refuses(ModelFailure::Busy);
    failed(asked(&house, "old question").await).await;
    let hand = house.model.hand();
    let secret = house.conversation.message(ChatRole::User, "secret question");
    hand.send(Ok(ReplyPart::Thinking)).unwrap();
    let mut answer = house.conversation.ask_off_record(secret).await.unwrap();
    soon(answer.next()).await;
    drop(answer);
    soon(hand.closed()).await;
    house.model.says("Secret answer.");
    soon(house.conversation.retry().await.unwrap().whole()).await.unwrap();
    let requests = house.model.requests.lock().unwrap().clone();
    assert!(requests.last().unwrap().contains("secret question"));
    assert!(matches!(house.conversation.retry().await, Err(Error::NothingToRetry)));
    assert_eq!(house.words().await, ["old question"]);
}

#[tokio::test]
async fn an_interrupted_turn_can_be_asked_again() {
    let house = House::new().await;
    let hand = house.model.hand();
    let mut answer = asked(&house, "Weather?").await;
    hand.send(said("It ")).unwrap();
    soon(answer.next()).await;
    drop(answer);
    house.model.says("It rains.");
    soon(house.conversation.retry().await.unwrap().whole()).await.unwrap();
    let expected = [whole("Weather?"), part("It ", "interrupted"), whole("It rains.")];
    assert_eq!(kept(&house).await, expected);
    assert_eq!(house.model.read(1).len(), 1, "the model sees the question alone");
}

#[tokio::test]
async fn a_prompt_cut_off_the_record_is_reported_too() {
    let house = House::new().await;
    let mut usage = Usage::default();
    usage.prompt_tokens = Some(4096);
    house.model.answers([said("Yes."), Ok(ReplyPart::Done(usage))]);
    let message = house.conversation.message(ChatRole::User, "Hello");
    let answer = house.conversation.ask_off_record(message).await.unwrap();
    assert!(soon(answer.whole()).await.unwrap().1.report.truncated);
}

#[tokio::test]
async fn what_a_refusal_taught_outlives_the_process() {
    let house = House::new().await;
    answered(&house, "Good morning", "Good morning.").await;
    assert!(!house.folder.path().join("calibration").exists());
    house.model.refuses(ModelFailure::PromptTooLong);
    house.model.refuses(ModelFailure::PromptTooLong);
    failed(asked(&house, "So?").await).await;
    house.conversation.close().await.unwrap();
    assert!(house.folder.path().join("calibration").exists());
}

#[tokio::test]
async fn an_answer_that_cannot_be_kept_blocks_no_later_utterance() {
    let folder = tempfile::tempdir().unwrap();
    let options = crate::common::options().max_message_bytes(600);
    let store: Arc<dyn ConversationStore> = Arc::new(options.open(folder.path()).await.unwrap());
    let builder = Conversation::builder(store.clone());
    let model = Arc::new(crate::common::scripted::Scripted::default());
    let conversation = builder.last_n(6).model(model.clone()).build();
    model.says(&"far too long ".repeat(100));
    let error = failed(conversation.ask("One").await.unwrap()).await;
    assert!(matches!(error, Error::TooLarge { .. }));
    model.says("Short.");
    soon(conversation.ask("Two").await.unwrap().whole()).await.unwrap();
    conversation.close().await.unwrap();
    assert_eq!(store.read_tail(9).await.unwrap().messages.len(), 3);
}

#[tokio::test]
async fn a_call_that_is_dropped_in_the_middle_doubles_nothing() {
    for wait in 0..12 {
        let house = House::new().await;
        house.model.answers([said("It will r"), Err(broke_off())]);
        failed(asked(&house, "Weather?").await).await;
        let wait = Duration::from_micros(wait * 150);
        let _ = tokio::time::timeout(wait, house.conversation.close()).await;
        house.model.says("Fine.");
        soon(asked(&house, "And you?").await.whole()).await.unwrap();
        let mut words = house.words().await;
        words.sort();
        assert_eq!(words, ["And you?", "Fine.", "It will r", "Weather?"]);
    }
}

#[tokio::test]
async fn an_utterance_heard_without_the_model_comes_behind_what_was_spoken_before() {
    let house = House::new().await;
    house.model.answers([said("It will r"), Err(broke_off())]);
    failed(asked(&house, "Weather?").await).await;
    house.conversation.prepare_turn("Something else").await.unwrap();
    assert_eq!(house.words().await, ["Weather?", "It will r", "Something else"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_prepared_right_after_an_interruption_is_prepared() {
    for _ in 0..10 {
        let house = House::new().await;
        let hand = house.model.hand();
        let mut answer = asked(&house, "One").await;
        hand.send(said("First")).unwrap();
        soon(answer.next()).await;
        drop(answer);
        soon(house.conversation.warm_up()).await.unwrap();
        assert_eq!(house.model.warmed.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_forgotten_result_is_not_sent_again() {
    let house = House::new().await;
    house.model.answers([call(), done()]);
    soon(asked(&house, "Unlock").await.whole()).await.unwrap();
    house.model.refuses(ModelFailure::Busy);
    let answer = house.conversation.tool_results(vec!["SECRET-PIN 1234".into()]).await.unwrap();
    failed(answer).await;
    house.conversation.forget(&[2..=3]).await.unwrap();
    house.model.says("Which door?");
    soon(house.conversation.retry().await.unwrap().whole()).await.unwrap();
    assert!(!house.model.requests.lock().unwrap().last().unwrap().contains("SECRET"));
}

#[tokio::test]
async fn a_failed_fragment_is_no_part_of_a_later_call() {
    let house = House::new().await;
    house.model.answers([said("It is probably ra"), Err(broke_off())]);
    failed(asked(&house, "Weather?").await).await;
    house.model.answers([call(), done()]);
    soon(house.conversation.retry().await.unwrap().whole()).await.unwrap();
    house.model.says("It rains.");
    let answer = house.conversation.tool_results(vec!["rain".into()]).await.unwrap();
    soon(answer.whole()).await.unwrap();
    assert_eq!(house.words().await, ["Weather?", "", "rain", "It rains."]);
}

#[tokio::test]
async fn words_beside_a_call_are_kept_only_as_far_as_they_were_heard() {
    let house = House::new().await;
    house.model.answers([said("One moment please, I look."), call(), done()]);
    let mut answer = asked(&house, "Light").await;
    while !matches!(soon(answer.next()).await, Some(Ok(AnswerEvent::ToolCalls(_)))) {}
    soon(answer.spoken_up_to(3)).await.unwrap();
    answered(&house, "Never mind", "Fine.").await;
    assert_eq!(kept(&house).await[1], part("One", "interrupted"));
}

#[tokio::test]
async fn a_retry_after_closing_asks_nothing_older_than_a_turn_off_the_record() {
    let house = House::new().await;
    house.conversation.prepare_turn("Old public").await.unwrap();
    house.model.refuses(ModelFailure::Busy);
    let secret = house.conversation.message(ChatRole::User, "Secret");
    failed(house.conversation.ask_off_record(secret).await.unwrap()).await;
    house.conversation.close().await.unwrap();
    assert!(matches!(house.conversation.retry().await, Err(Error::NothingToRetry)));
}

#[tokio::test]
async fn results_off_the_record_are_masked_as_the_store_would() {
    let masks = Arc::new(sottovoce::ContactRedactor::new().unwrap());
    let house = House::over(crate::common::options().redactor(masks), |builder| builder).await;
    house.model.answers([call(), done()]);
    let question = house.conversation.message(ChatRole::User, "Whose address is it?");
    soon(house.conversation.ask_off_record(question).await.unwrap().whole()).await.unwrap();
    house.model.says("I see.");
    let results = vec!["anna@example.org".to_owned()];
    soon(house.conversation.tool_results(results).await.unwrap().whole()).await.unwrap();
    assert!(!house.model.requests.lock().unwrap()[1].contains("anna@"));
    assert!(house.words().await.is_empty());
}

#[tokio::test]
async fn without_words_nothing_is_asked() {
    let house = House::new().await;
    assert!(matches!(house.conversation.ask(" \n").await, Err(Error::InvalidMessage { .. })));
    assert!(house.words().await.is_empty());
}
