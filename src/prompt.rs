//! The prompt: everything that the model is to know for one turn, before any provider's form is given to it.

mod budget;
mod builder;
mod receipt;
mod system;
mod turn;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Zoned;

pub(crate) use builder::Bounds;
pub use builder::PromptBuilder;
pub use receipt::{Outcome, Receipt, ReceiptEntry};
pub use system::SystemPromptProvider;
pub use turn::Turn;

use crate::context::{ContextMessage, Placement};
use crate::message::ChatMessage;

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
    /// What the turn has brought since: the functions that the model called, and their results.
    pub since: Vec<ContextMessage>,
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
