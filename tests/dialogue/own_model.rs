//! A model in the host's own process, written with the public API alone.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use async_trait::async_trait;
use sottovoce::model::{Reply, ReplyPart, Usage};
use sottovoce::prompt::Prompt;
use sottovoce::{Conversation, LanguageModel, Result};
use tokio::sync::mpsc;

struct Parrot;

#[async_trait]
impl LanguageModel for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    async fn reply(&self, prompt: &Prompt) -> Result<Box<dyn Reply>> {
        let words = prompt.user_input.content.clone();
        let (sender, reply) = mpsc::channel(1);
        tokio::spawn(async move {
            for word in words.split_inclusive(' ') {
                if sender.send(Ok(ReplyPart::Text(word.to_owned()))).await.is_err() {
                    return;
                }
            }
            let _ = sender.send(Ok(ReplyPart::Done(Usage::tokens(40, 4)))).await;
        });
        Ok(Box::new(reply))
    }
}

/// Ends its replies early, or sends a whole reply at once.
struct Hasty(bool);

#[async_trait]
impl LanguageModel for Hasty {
    fn name(&self) -> &str {
        "hasty"
    }

    async fn reply(&self, _: &Prompt) -> Result<Box<dyn Reply>> {
        Ok(if self.0 { "Yes.".into() } else { Box::new(mpsc::channel(1).1) })
    }
}

async fn with(model: impl LanguageModel + 'static) -> Conversation {
    let store = crate::common::options().open_in_memory().await.unwrap();
    Conversation::builder(Arc::new(store)).model(model).build()
}

#[tokio::test]
async fn a_model_that_answers_in_process_has_whole_turns() {
    let conversation = with(Parrot).await;
    conversation.warm_up().await.unwrap();
    let (words, outcome) =
        conversation.ask("Good morning to you").await.unwrap().whole().await.unwrap();
    assert_eq!(words, "Good morning to you");
    assert_eq!(outcome.message.unwrap().seq, 2);
    assert_eq!(outcome.report.usage.answer_tokens, Some(4));
    assert_eq!((outcome.report.request_bytes, outcome.report.unchanged_bytes), (0, None));
}

#[tokio::test]
async fn a_reply_of_one_text_is_complete_and_one_that_ends_early_is_an_error() {
    let (words, _) = with(Hasty(true)).await.ask("Is it?").await.unwrap().whole().await.unwrap();
    assert_eq!(words, "Yes.");
    let error = with(Hasty(false)).await.ask("Is it?").await.unwrap().whole().await.unwrap_err();
    assert_eq!(error.to_string(), "the model failed");
}
