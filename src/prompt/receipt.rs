//! The receipt of a prompt: what went into it, what did not, and why.

use serde::Serialize;

use crate::context::{Placement, Quoting};
use crate::message::{ChatRole, Source};
use crate::store::Finding;

/// The receipt of one prompt. It holds numbers and reasons, never words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Receipt {
    /// Estimated tokens of the system prompt and of the function definitions.
    pub system_tokens: usize,
    /// The part of these that the function definitions take.
    #[serde(skip)]
    pub tool_tokens: usize,
    /// Estimated tokens of the utterance, and of the functions called for it.
    pub user_tokens: usize,
    /// Estimated tokens of the whole prompt.
    pub used_tokens: usize,
    /// The most tokens that the prompt may take, if there is a limit.
    pub budget_tokens: Option<usize>,
    /// The most tokens that its history may take, if the conversation has its own limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_limit: Option<usize>,
    /// The most tokens that the history of this prompt could take: its own limit, or what the rest of the prompt, and
    /// what may be recalled, leaves of the budget, whichever is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_room: Option<usize>,
    /// No message up to this number may be in the prompt, if the conversation started clean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<u64>,
    /// Every message that a provider offered, in prompt order.
    pub entries: Vec<ReceiptEntry>,
    /// What providers could not read.
    pub skipped: Vec<Finding>,
    /// The errors of providers that returned nothing. An error of the history's provider fails the prompt instead.
    pub failed: Vec<String>,
}

impl Receipt {
    /// How many of the offered messages are in the prompt.
    pub fn included(&self) -> usize {
        self.entries.iter().filter(|entry| entry.outcome == EntryOutcome::Included).count()
    }

    /// The number of the first message of the history, if there is one.
    pub fn start(&self) -> Option<u64> {
        let history = self.entries.iter().filter(|entry| entry.placement == Placement::History);
        history.filter(|entry| entry.outcome == EntryOutcome::Included).find_map(|entry| entry.seq)
    }

    /// Whether the prompt fills this share of its budget, 0 to 1, or some of the history did not fit.
    pub fn is_filled(&self, share: f64) -> bool {
        self.budget_tokens.is_some_and(|budget| fills(self.used_tokens, budget, share))
            || self.is_history_filled(share)
    }

    /// Estimated tokens of the history that is in the prompt.
    pub fn history_tokens(&self) -> usize {
        let history = self.entries.iter().filter(|entry| entry.placement == Placement::History);
        history
            .filter(|entry| entry.outcome == EntryOutcome::Included)
            .map(|entry| entry.tokens)
            .sum()
    }

    /// How many stored messages stand with the utterance because they fit it.
    pub(crate) fn recalled(&self) -> usize {
        let beside = self.entries.iter().filter(|entry| entry.placement == Placement::NewestTurn);
        beside.filter(|e| e.seq.is_some() && e.outcome == EntryOutcome::Included).count()
    }

    /// Whether some of the history did not fit.
    pub fn is_history_truncated(&self) -> bool {
        self.entries.iter().any(|entry| {
            entry.placement == Placement::History
                && matches!(entry.outcome, EntryOutcome::OverBudget | EntryOutcome::TooLong)
        })
    }

    /// Whether the history fills this share of its room, 0 to 1, or some of it did not fit. Older messages are then
    /// left out, or soon will be.
    pub fn is_history_filled(&self, share: f64) -> bool {
        let tokens = self.history_tokens();
        let fills_room = |room| tokens > 0 && fills(tokens, room, share);
        self.history_room.is_some_and(fills_room) || self.is_history_truncated()
    }

    /// Whether the system prompt and the utterance alone exceed the budget. They are never cut.
    pub fn is_over_budget(&self) -> bool {
        self.budget_tokens.is_some_and(|budget| self.used_tokens > budget)
    }
}

fn fills(tokens: usize, limit: usize, share: f64) -> bool {
    // Prompts are far too small for a loss of precision.
    #[expect(clippy::cast_precision_loss)]
    let is_filled = tokens as f64 >= limit as f64 * share;
    is_filled
}

/// One offered message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptEntry {
    /// Its number, if it is from the store.
    pub seq: Option<u64>,
    /// Its role.
    pub role: ChatRole,
    /// Where its words come from.
    pub source: Source,
    /// The placement that its provider chose.
    pub placement: Placement,
    /// Estimated tokens.
    pub tokens: usize,
    /// The provider's reason for offering it.
    pub why: String,
    /// The same for people, with words of the utterance.
    #[serde(skip)]
    pub(crate) quoting: Option<Quoting>,
    /// Whether it is in the prompt, or why not.
    pub outcome: EntryOutcome,
}

impl ReceiptEntry {
    /// The provider's reason for whoever may read the utterance: it may quote words of it, which `why` never does.
    pub fn reason(&self) -> &str {
        self.quoting.as_ref().map_or(&self.why, |quoting| &quoting.0)
    }
}

/// Whether an offered message is in the prompt, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum EntryOutcome {
    /// It is in the prompt.
    Included,
    /// Its provider found it and leaves it out; the reason says why.
    LeftOut,
    /// Another provider offered the same message first.
    Duplicate,
    /// It is the utterance being answered.
    TheUtterance,
    /// It belongs to another conversation.
    OtherScope,
    /// It was said before the conversation started clean.
    BeforeStart,
    /// It was said before the context was cleared.
    Cleared,
    /// It was pruned.
    Pruned,
    /// It belongs to an utterance that was heard with too little confidence.
    LowConfidence,
    /// It did not fit, or its block was dropped together with a message that did not fit.
    OverBudget,
    /// It, or its exchange, would take so much room that too little of the rest would fit, so it was passed over.
    TooLong,
}

impl EntryOutcome {
    /// Whether it is in the prompt, or why not, for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Included => "in the prompt",
            Self::LeftOut => "left out",
            Self::Duplicate => "given already",
            Self::TheUtterance => "the words themselves",
            Self::OtherScope => "of another conversation",
            Self::BeforeStart => "said before it started clean",
            Self::Cleared => "said before the context was cleared",
            Self::Pruned => "kept out of prompts",
            Self::LowConfidence => "heard with too little confidence",
            Self::OverBudget => "over the budget",
            Self::TooLong => "too long beside the rest",
        }
    }
}
