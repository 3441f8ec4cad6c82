//! The prompt: everything that the model is to know for one turn, before any provider's form is given to it.

mod budget;
mod builder;
mod receipt;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Zoned;

pub use builder::PromptBuilder;
pub use receipt::{Outcome, Receipt, ReceiptEntry};

use crate::context::{ContextMessage, Placement};
use crate::message::ChatMessage;
use crate::store::StoredMessage;

/// One turn's prompt. `Debug` shows its shape, not its words.
#[derive(Clone)]
#[non_exhaustive]
pub struct Prompt {
    /// The system prompt.
    pub system: String,
    /// What the model is to remember, in the order of [`Placement`], then of time.
    pub context: Vec<(Placement, ContextMessage)>,
    /// The utterance to answer.
    pub user_input: ChatMessage,
    /// The current time in the user's zone.
    pub now: Zoned,
    /// The host's own notes for a renderer of its own; the built-in ones leave them out.
    pub hints: BTreeMap<String, String>,
}

impl Prompt {
    /// The messages of one placement, in order.
    pub fn placed(&self, placement: Placement) -> impl Iterator<Item = &ChatMessage> {
        self.context
            .iter()
            .filter(move |(at, _)| *at == placement)
            .map(|(_, message)| message.message())
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("context", &self.context.len())
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Where the system prompt comes from: a fixed text, usually `LanguageModel.SystemPrompt` of the configuration.
#[derive(Clone, Default)]
pub struct SystemPromptProvider(String);

impl SystemPromptProvider {
    /// This text, in every prompt.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn system_prompt(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SystemPromptProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SystemPromptProvider({} bytes)", self.0.len())
    }
}

/// The utterance that a prompt is built for. `Debug` shows no words.
#[derive(Clone)]
pub enum Turn {
    /// One that is stored: it is left out of the history, whatever the providers return.
    Stored(Arc<StoredMessage>),
    /// One that is not stored, said now.
    Unstored(String),
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(stored) => f.debug_tuple("Stored").field(stored).finish(),
            Self::Unstored(text) => write!(f, "Unstored({} bytes)", text.len()),
        }
    }
}

impl From<Arc<StoredMessage>> for Turn {
    fn from(stored: Arc<StoredMessage>) -> Self {
        Self::Stored(stored)
    }
}

impl From<&str> for Turn {
    fn from(text: &str) -> Self {
        Self::Unstored(text.to_owned())
    }
}
