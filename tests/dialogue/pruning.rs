//! Pruned messages leave the context and stay in the store.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use crate::common::scripted::House;
use crate::common::{block_on, open};
use jiff::{SignedDuration, Timestamp};
use sottovoce::context::{
    OldestStrategy, PrunePlan, PruneStrategy, RelevanceStrategy, RetrievalContextProvider,
    Retriever,
};
use sottovoce::model::{OllamaChatRenderer, PromptRenderer};
use sottovoce::prompt::EntryOutcome;
use sottovoce::{
    ChatMessage, ChatRole, Conversation, ConversationStore, ModelOptions, StoredMessage, ToolCall,
};

fn now() -> Timestamp {
    "2025-08-24T16:00:00Z".parse().unwrap()
}

fn aged(role: ChatRole, text: &str, hours: i64) -> ChatMessage {
    ChatMessage::at(role, text, now() - SignedDuration::from_hours(hours))
}

fn call() -> Vec<ToolCall> {
    vec![ToolCall { id: "1".into(), name: "f".into(), arguments: serde_json::Value::Null }]
}

/// The messages as stored.
async fn stored(messages: Vec<ChatMessage>) -> (tempfile::TempDir, Vec<Arc<StoredMessage>>) {
    let root = tempfile::tempdir().unwrap();
    let stored = open(root.path()).await.append_all(messages).await.unwrap();
    (root, stored)
}

#[test]
fn messages_have_the_points_that_the_document_gives_them() {
    block_on(async {
        let mut calls = aged(ChatRole::Assistant, "", 30);
        calls.tool_calls = call();
        let (_root, messages) = stored(vec![
            aged(ChatRole::User, "where is the LOGIN page", 200),
            calls,
            aged(ChatRole::Tool, r#"{"ok":true}"#, 30),
            aged(ChatRole::Tool, "Error: no such page", 20),
            aged(ChatRole::Assistant, "here", 10),
            aged(ChatRole::System, "note", 0),
        ])
        .await;
        let strategy = RelevanceStrategy::for_task("login page tests now");
        let points: Vec<f64> =
            messages.iter().map(|stored| strategy.score(stored, now()).total()).collect();
        // recency + role + calls or success + keywords; two of four words occur in the first, one in the fourth.
        let expected = [
            0.0 + 100.0 + 25.0,
            70.0 + 50.0 + 50.0,
            70.0 + 25.0 + 25.0,
            80.0 + 25.0 + 12.5,
            90.0 + 50.0,
            100.0,
        ];
        for (points, expected) in points.iter().zip(expected) {
            assert!((points - expected).abs() < 1e-6, "{points} for {expected}");
        }
        let plain = RelevanceStrategy::new().score(&messages[0], now());
        assert!((plain.total() - 100.0).abs() < 1e-6, "no task, no points for words");
        assert_eq!(
            strategy.score(&messages[1], now()).to_string(),
            "recency 70 + role 50 + tool calls 50"
        );
    });
}

#[test]
fn the_newest_stay_the_rest_by_worth_and_results_with_their_calls() {
    block_on(async {
        let mut calls = aged(ChatRole::Assistant, "", 50);
        calls.tool_calls = call();
        let long = "x".repeat(400);
        let (_root, messages) = stored(vec![
            aged(ChatRole::Assistant, &long, 90),
            aged(ChatRole::User, "keep me", 80),
            calls,
            aged(ChatRole::Tool, "ok", 50),
            aged(ChatRole::Assistant, &long, 40),
            aged(ChatRole::User, "newest", 1),
        ])
        .await;
        let rates = sottovoce::context::TokenRates::default();
        let plan = |most, recent| {
            PrunePlan::plan(&messages, &RelevanceStrategy::new(), &rates, (most, recent), now())
        };
        let all = plan(usize::MAX, 0);
        assert_eq!(all.dropped().count(), 0);
        assert_eq!(all.tokens_before, all.tokens_after);
        let some = plan(120, 1);
        assert_eq!(some.dropped().collect::<Vec<_>>(), [1, 5]);
        assert!(some.tokens_after <= 120);
        assert!(some.verdicts[5].score.is_none() && some.verdicts[0].score.is_some());
        // The newest messages stay whatever they take. A result among them keeps its call.
        assert_eq!(plan(0, 3).dropped().collect::<Vec<_>>(), [1, 2]);
        let oldest = PrunePlan::plan(&messages, &OldestStrategy, &rates, (60, 0), now());
        assert_eq!(
            oldest.dropped().collect::<Vec<_>>(),
            [1, 5],
            "what does not fit makes room for what does"
        );
    });
}

struct Finds(Vec<Arc<StoredMessage>>);

#[async_trait::async_trait]
impl Retriever for Finds {
    async fn retrieve(
        &self,
        _: &sottovoce::context::Query<'_>,
    ) -> sottovoce::Result<Vec<sottovoce::context::ContextMessage>> {
        Ok(self.0.iter().cloned().map(Into::into).collect())
    }
}

#[test]
fn what_is_pruned_is_in_no_prompt_stays_stored_and_comes_back_to_the_byte() {
    block_on(async {
        let house = House::new().await;
        for n in 1..=5 {
            house.conversation.prepare_turn(format!("question {n}")).await.unwrap();
            house.conversation.store_reply(format!("answer {n}")).await.unwrap();
        }
        let body = || async {
            let prompt = house.conversation.prompt("And now?").await.unwrap().0;
            let body = OllamaChatRenderer::new(ModelOptions::new("x")).render(&prompt).body;
            body.rsplit_once('[').unwrap().0.to_owned()
        };
        let before = body().await;
        let pruning =
            house.conversation.plan_pruning(&RelevanceStrategy::new(), 60, 2).await.unwrap();
        assert!(pruning.tokens_after <= 60 && pruning.dropped().count() > 0);
        assert_eq!(body().await, before, "a plan changes nothing");
        house.conversation.prune(&pruning).await.unwrap();
        let after = body().await;
        let texts = house.words().await;
        for (seq, words) in (1..).zip(&texts) {
            let dropped = pruning.dropped().any(|number| number == seq);
            assert_eq!(after.contains(&format!("{words}\"")), !dropped, "{words}");
        }
        assert_eq!(texts.len(), 10);
        // No other provider brings it into a prompt either.
        let gone = pruning.dropped().next().unwrap();
        let found = house.store.read_seqs(gone..=gone).await.unwrap().messages;
        let builder = Conversation::builder(house.store.clone())
            .last_n(0)
            .context(RetrievalContextProvider::new(Arc::new(Finds(found)), 3));
        let retrieving = builder.build();
        let receipt = retrieving.prompt("x").await.unwrap().1;
        assert_eq!(receipt.entries[0].outcome, EntryOutcome::Pruned);
        let back = house.conversation.unprune(&[]).await.unwrap();
        assert_eq!(back, pruning.dropped().count() as u64);
        assert_eq!(body().await, before);
    });
}

#[test]
fn one_message_can_be_taken_back_alone() {
    block_on(async {
        let house = House::new().await;
        for n in 1..=4 {
            house.conversation.prepare_turn(format!("question {n}")).await.unwrap();
        }
        let pruning = house.conversation.plan_pruning(&OldestStrategy, 0, 1).await.unwrap();
        house.conversation.prune(&pruning).await.unwrap();
        assert_eq!(house.conversation.unprune(&[2..=2]).await.unwrap(), 1);
        let profile = house.store.profile().await.unwrap();
        assert_eq!((1..=4).filter(|seq| profile.is_pruned(*seq)).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(house.conversation.unprune(&[7..=9]).await.unwrap(), 0);
    });
}
