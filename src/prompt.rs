//! The prompt: everything that the model receives for one turn, before it is rendered for a provider.

mod budget;
mod builder;
mod exchanges;
mod inline;
mod long;
mod receipt;
mod utterance;

use std::collections::BTreeMap;

use jiff::Zoned;

pub use builder::history_within;
pub(crate) use builder::{PromptBuilder, PromptLimits};
pub use receipt::{EntryOutcome, Receipt, ReceiptEntry};
pub use utterance::Utterance;

use crate::context::tokens::TokenCount;
use crate::context::{ContextMessage, Placement};
use crate::message::{ChatMessage, ChatRole};

/// One turn's prompt. `Debug` shows its shape, not its words.
#[derive(Clone)]
#[non_exhaustive]
pub struct Prompt {
    /// The system prompt.
    pub system: String,
    /// The context messages, in the order of [`Placement`], then of time.
    pub context: Vec<(Placement, ContextMessage)>,
    /// The utterance to answer.
    pub user_input: ChatMessage,
    /// What the turn has added since: the model's function calls and their results.
    pub since: Vec<ContextMessage>,
    /// Functions that the model may call in addition to those of its options, as JSON objects in the providers'
    /// common form.
    pub tools: Vec<serde_json::Value>,
    /// The current time in the user's zone.
    pub now: Zoned,
    /// The sampling temperature, 0 to 2, if the conversation has its own.
    pub temperature: Option<f64>,
    /// The most tokens of the answer, if the conversation has its own limit.
    pub max_tokens: Option<u32>,
    /// The host's notes for a renderer of its own. The built-in renderers ignore them.
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

impl Prompt {
    /// The same prompt for an answer of one token. 0 would mean no limit.
    #[cfg(feature = "ollama")]
    pub(crate) fn for_one_token(&self) -> Self {
        Self { max_tokens: Some(1), ..self.clone() }
    }

    /// Whether this text occurs anywhere in the prompt.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        let context = self.context.iter().map(|(_, message)| message);
        let messages = context.chain(&self.since).map(ContextMessage::message);
        let mut contents = messages.chain([&self.user_input]).map(|message| &message.content);
        self.system.contains(text) || contents.any(|content| content.contains(text))
    }

    /// The prompt's token count.
    pub(crate) fn count(&self) -> TokenCount {
        let mut whole = TokenCount::default();
        whole.add_text(&self.system);
        self.tools.iter().for_each(|tool| whole.add_text(&tool.to_string()));
        for (placement, message) in &self.context {
            add(&mut whole, message.message(), *placement);
        }
        whole.add_message(&self.user_input);
        for message in &self.since {
            whole.add_message(message.message());
        }
        whole
    }
}

/// Renderers put messages of the system message, or beside the utterance, without a time.
fn add(count: &mut TokenCount, message: &ChatMessage, placement: Placement) {
    const LIST_MARK: u64 = 3;
    match (placement, message.role) {
        (Placement::NewestTurn, _) | (Placement::Stable, ChatRole::System) => {
            count.add_fixed(LIST_MARK);
            count.add_text(&message.content);
        }
        _ => count.add_message(message),
    }
}

debug_shows!(Prompt as it: context = it.context.len(), now);
