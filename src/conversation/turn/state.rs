//! What one turn leaves for the next: what the model read, what was spoken and is not kept yet, what still waits.

use std::ops::RangeInclusive;

use zeroize::Zeroizing;

use crate::context::ContextMessage;
use crate::conversation::Conversation;
use crate::conversation::turn::calibrator::TokenCalibrator;
use crate::message::{CUT_OFF, ChatMessage, ChatRole};
use crate::prompt::Utterance;

/// What one turn leaves for the next. Holding it is having the turn.
#[derive(Default)]
pub(in crate::conversation) struct TurnState {
    /// What the model read last.
    pub(in crate::conversation) request: Option<Zeroizing<String>>,
    /// The utterance that has no whole answer.
    pub(in crate::conversation) pending: Option<PendingTurn>,
    /// Whether the last turn was off the record and is over, so that there is nothing to ask again.
    pub(in crate::conversation) off_record: bool,
    pub(in crate::conversation) calibrator: TokenCalibrator,
}

impl TurnState {
    /// Lets go of everything that was said in the messages of these numbers.
    pub(in crate::conversation) fn forget(&mut self, seqs: &[RangeInclusive<u64>]) {
        self.request = None;
        let gone = |seq: u64| seqs.iter().any(|range| range.contains(&seq));
        self.pending.take_if(|pending| match &pending.turn {
            Utterance::Stored(stored) => gone(stored.seq),
            Utterance::Unstored(_) | Utterance::OffRecord(_) => false,
        });
        // Calls and results make sense together only.
        if let Some(pending) = &mut self.pending
            && pending.since.iter().any(|message| message.seq().is_some_and(gone))
        {
            pending.since.clear();
        }
    }
}

/// An utterance that has no whole answer, and what its turn has brought so far.
pub(in crate::conversation) struct PendingTurn {
    pub(in crate::conversation) turn: Utterance,
    pub(in crate::conversation) since: Vec<ContextMessage>,
    pub(in crate::conversation) unfinished: Unfinished,
}

pub(in crate::conversation) enum Unfinished {
    /// The turn failed, was interrupted, or goes on; so much was spoken that is not kept yet.
    Failed(SpokenText),
    /// The model called these functions.
    Calls(ChatMessage),
}

impl PendingTurn {
    /// A turn that begins.
    pub(in crate::conversation) fn new(turn: Utterance, since: Vec<ContextMessage>) -> Self {
        Self { turn, since, unfinished: Unfinished::Failed(SpokenText::default()) }
    }
}

impl Unfinished {
    /// What was spoken and is not kept yet. Functions that were called without their results being brought are as if
    /// they never had been; words beside them are not.
    pub(in crate::conversation) fn spoken(&self) -> SpokenText {
        match self {
            Self::Failed(spoken) => spoken.clone(),
            Self::Calls(called) => SpokenText::part(called.content.clone(), "interrupted"),
        }
    }
}

/// What was said of an answer, and if that is only a part of it, why.
#[derive(Clone, Default)]
pub(in crate::conversation) struct SpokenText {
    pub(in crate::conversation) words: Zeroizing<String>,
    pub(in crate::conversation) cut_off: Option<&'static str>,
}

impl SpokenText {
    pub(in crate::conversation) fn part(words: String, why: &'static str) -> Self {
        Self { words: Zeroizing::new(words), cut_off: Some(why) }
    }

    pub(in crate::conversation) fn is_nothing(&self) -> bool {
        self.words.trim().is_empty()
    }

    /// The words as a message, if there are any.
    pub(in crate::conversation) fn message(
        self,
        conversation: &Conversation,
    ) -> Option<ChatMessage> {
        if self.is_nothing() {
            return None;
        }
        let message = conversation.message(ChatRole::Assistant, self.words.as_str());
        Some(match self.cut_off {
            Some(why) => message.with_metadata(CUT_OFF, why),
            None => message,
        })
    }
}
