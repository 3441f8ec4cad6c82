//! The orchestrator: an utterance is heard, sealed, and answered with a prompt; the reply is kept.

use std::sync::Arc;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::message::{ChatMessage, ChatRole, offset_minutes};
use crate::prompt::{Prompt, PromptBuilder, Receipt};
use crate::store::{ConversationStore, StoredMessage};

/// One conversation, ready for utterances.
pub struct Conversation {
    store: Arc<dyn ConversationStore>,
    builder: PromptBuilder,
    clock: Arc<dyn Clock>,
    last_n: usize,
}

/// What comes of an utterance: its sealed record, and the prompt for the model.
#[derive(Debug)]
#[non_exhaustive]
pub struct Heard {
    /// The utterance as it is kept.
    pub message: Arc<StoredMessage>,
    /// What to send to the model, once rendered.
    pub prompt: Prompt,
    /// The account of the prompt.
    pub receipt: Receipt,
}

impl Conversation {
    /// A conversation that keeps its messages in `store` and recalls about `last_n` of them a prompt. The builder
    /// is bound to the store's scope.
    pub fn new(
        store: Arc<dyn ConversationStore>,
        builder: PromptBuilder,
        clock: Arc<dyn Clock>,
        last_n: usize,
    ) -> Self {
        let builder = builder.for_scope(Arc::clone(store.scope()));
        Self { store, builder, clock, last_n }
    }

    /// Keeps what someone said just now, and builds the prompt for answering it. The utterance is durable before the
    /// prompt is built.
    pub async fn hear(&self, text: impl Into<String>) -> Result<Heard> {
        self.hear_message(self.message(ChatRole::User, text)).await
    }

    /// [`hear`](Self::hear) for an utterance with metadata, such as who spoke.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] for a message that is not a user's; nothing is kept then.
    pub async fn hear_message(&self, mut message: ChatMessage) -> Result<Heard> {
        if message.role != ChatRole::User {
            return Err(Error::InvalidMessage { reason: "an utterance has the role of the user" });
        }
        if message.offset_minutes.is_none() {
            // Whoever is heard is here, so the local time is this machine's.
            message.offset_minutes = offset_minutes(&self.clock.now());
        }
        let message = self.store.append_message(message).await?;
        let (prompt, receipt) = self.builder.build(Arc::clone(&message), self.last_n).await?;
        Ok(Heard { message, prompt, receipt })
    }

    /// Keeps the model's whole reply.
    pub async fn keep(&self, reply: impl Into<String>) -> Result<Arc<StoredMessage>> {
        let reply = self.message(ChatRole::Assistant, reply);
        self.store.append_message(reply).await
    }

    /// The prompt that an utterance would get, without keeping anything.
    pub async fn preview(&self, text: &str) -> Result<(Prompt, Receipt)> {
        self.builder.build(text, self.last_n).await
    }

    /// A message said now.
    pub fn message(&self, role: ChatRole, text: impl Into<String>) -> ChatMessage {
        ChatMessage::new(role, text, &self.clock.now())
    }

    /// Where the messages are kept.
    pub fn store(&self) -> &Arc<dyn ConversationStore> {
        &self.store
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("builder", &self.builder)
            .field("last_n", &self.last_n)
            .finish_non_exhaustive()
    }
}
