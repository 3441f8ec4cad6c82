//! Calibration: how a model's own token counts change later prompts, and when.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::sync::Arc;

use crate::common::scripted::{House, said};
use sottovoce::context::LastNContextProvider;
use sottovoce::conversation::TurnReport;
use sottovoce::model::{ReplyPart, Usage};
use sottovoce::{ChatRole, Conversation, ConversationStore};

/// The text of every turn, so that equal rates give equal receipts.
const WORDS: &str = "Remind me to call my sister about the dinner on Saturday, please.";

/// A turn for whose prompt the server reports this count.
async fn turn(house: &House, words: &str, counted: Option<u64>) -> TurnReport {
    let mut usage = Usage::default();
    usage.prompt_tokens = counted;
    house.model.answers([said("I will."), Ok(ReplyPart::Done(usage))]);
    let answer = house.conversation.ask(words).await.unwrap();
    answer.whole().await.unwrap().1.report
}

/// The estimate of one utterance, which reveals the rates in use.
fn price(report: &TurnReport) -> usize {
    report.receipt.user_tokens
}

/// The count of a server whose tokens are half as long as assumed.
fn twice(report: &TurnReport) -> u64 {
    2 * report.receipt.used_tokens as u64
}

#[tokio::test]
async fn what_was_learnt_comes_into_use_only_where_the_history_starts_anew() {
    let house = House::new().await;
    let first = turn(&house, WORDS, None).await;
    let mut before = first.clone();
    let mut moves = 0;
    for _ in 0..30 {
        let counted = twice(&first).max(2 * before.receipt.used_tokens as u64);
        let now = turn(&house, WORDS, Some(counted)).await;
        if now.receipt.start() == before.receipt.start() {
            assert_eq!(price(&now), price(&before), "the rates changed in the middle of a block");
        } else {
            moves += usize::from(price(&now) > price(&before));
        }
        before = now;
    }
    assert!(moves >= 2, "{moves}");
    assert!(price(&before) > price(&first) * 3 / 2);
}

#[tokio::test]
async fn rates_outlive_the_process_and_are_sealed() {
    let house = House::new().await;
    let first = turn(&house, WORDS, None).await;
    let mut last = first.clone();
    for _ in 0..25 {
        let counted = 2 * last.receipt.used_tokens as u64;
        last = turn(&house, WORDS, Some(counted.max(100))).await;
    }
    assert!(price(&last) > price(&first));
    let sealed = std::fs::read_to_string(house.folder.path().join("calibration")).unwrap();
    assert!(sealed.starts_with(r#"{"v":1,"#) && !sealed.contains("scripted"));

    let store: Arc<dyn ConversationStore> =
        Arc::new(crate::common::open(house.folder.path()).await);
    let builder = Conversation::builder(store.clone())
        .system("You are a voice.")
        .history(LastNContextProvider::in_blocks());
    let again = builder.last_n(6).model(house.model.clone()).build();
    house.model.says("Good.");
    let report = again.ask(WORDS).await.unwrap().whole().await.unwrap().1.report;
    assert_eq!(price(&report), price(&last));
}

#[tokio::test]
async fn a_prompt_that_the_server_cut_is_reported() {
    let house = House::new().await;
    let fine = turn(&house, WORDS, Some(90)).await;
    assert!(!fine.truncated);
    // The scripted window has 4096 tokens; longer prompts are cut to half of it.
    let long = "the long story of the house ".repeat(900);
    let cut = turn(&house, &long, Some(2050)).await;
    assert!(cut.truncated && cut.receipt.is_over_budget());
    assert!(!turn(&house, WORDS, Some(300)).await.truncated);
}

#[tokio::test]
async fn a_turn_off_the_record_teaches_nothing() {
    let house = House::new().await;
    for _ in 0..8 {
        let mut usage = Usage::default();
        usage.prompt_tokens = Some(200);
        house.model.answers([said("Yes."), Ok(ReplyPart::Done(usage))]);
        let message = house.conversation.message(ChatRole::User, WORDS);
        house.conversation.ask_off_record(message).await.unwrap().whole().await.unwrap();
    }
    assert!(!house.folder.path().join("calibration").exists());
}

#[tokio::test]
async fn a_damaged_calibration_costs_no_turn_and_is_written_anew() {
    let house = House::new().await;
    turn(&house, WORDS, Some(100)).await;
    let file = house.folder.path().join("calibration");
    std::fs::write(&file, "not an envelope").unwrap();
    let store: Arc<dyn ConversationStore> =
        Arc::new(crate::common::options().open(house.folder.path()).await.unwrap());
    let builder = Conversation::builder(store.clone());
    let again = builder.last_n(6).model(house.model.clone()).build();
    let mut usage = Usage::default();
    usage.prompt_tokens = Some(90);
    house.model.answers([said("I will."), Ok(ReplyPart::Done(usage))]);
    again.ask(WORDS).await.unwrap().whole().await.unwrap();
    assert_eq!(store.read_tail(10).await.unwrap().messages.len(), 4);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with(r#"{"v":1,"#));
}
