//! The state between turns: the last request, spoken text that is not stored yet, and the pending utterance.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use crate::context::ContextMessage;
use crate::conversation::turn::calibrator::TokenCalibrator;
use crate::message::ChatMessage;
use crate::prompt::Utterance;
use crate::store::StoredMessage;

/// The state between turns. The holder of its lock has the turn.
#[derive(Default)]
pub(crate) struct TurnState {
    /// The last request to the model.
    pub(crate) request: Option<Zeroizing<String>>,
    /// The utterance without a whole answer.
    pub(crate) pending: Option<PendingTurn>,
    /// Whether the last turn was off the record and has ended. There is nothing to retry then.
    pub(crate) off_record: bool,
    pub(crate) calibrator: TokenCalibrator,
}

impl TurnState {
    /// Drops everything that belongs to these messages.
    pub(crate) fn forget(&mut self, seqs: &[RangeInclusive<u64>]) {
        self.request = None;
        let gone = |seq: u64| seqs.iter().any(|range| range.contains(&seq));
        self.pending.take_if(|pending| match &pending.turn {
            Utterance::Stored(stored) => gone(stored.seq),
            Utterance::Unstored(_) | Utterance::OffRecord(_) => false,
        });
        // Calls and results only make sense together.
        if let Some(pending) = &mut self.pending
            && pending.since.iter().any(|message| message.seq().is_some_and(gone))
        {
            pending.since.clear();
        }
    }
}

/// An utterance without a whole answer, and what its turn has added so far.
pub(crate) struct PendingTurn {
    pub(crate) turn: Utterance,
    pub(crate) since: Vec<ContextMessage>,
    pub(crate) unfinished: Unfinished,
}

pub(crate) enum Unfinished {
    /// The turn failed, was interrupted, or is in progress. The text was spoken and is not stored yet.
    Failed(SpokenText),
    /// The model called these functions.
    Calls(ChatMessage),
}

impl PendingTurn {
    /// A turn that begins.
    pub(crate) fn new(turn: Utterance, since: Vec<ContextMessage>) -> Self {
        Self { turn, since, unfinished: Unfinished::Failed(SpokenText::default()) }
    }
}

impl Unfinished {
    /// The spoken text that is not stored yet. Calls without results are dropped; text beside them is not.
    pub(crate) fn spoken(&self) -> SpokenText {
        match self {
            Self::Failed(spoken) => spoken.clone(),
            Self::Calls(called) => SpokenText::part(called.content.clone(), "interrupted"),
        }
    }
}

/// The spoken text of an answer, and the reason if it is only a part.
#[derive(Clone, Default)]
pub(crate) struct SpokenText {
    pub(crate) words: Zeroizing<String>,
    pub(crate) cut_off: Option<&'static str>,
}

impl SpokenText {
    pub(crate) fn part(words: String, why: &'static str) -> Self {
        Self { words: Zeroizing::new(words), cut_off: Some(why) }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.words.trim().is_empty()
    }
}

/// The last utterance that a host with its own model has heard, until an answer to it is stored.
#[derive(Clone, Default)]
pub(crate) struct LastUtterance(Arc<Mutex<Option<Arc<StoredMessage>>>>);

impl LastUtterance {
    pub(crate) fn set(&self, heard: Option<Arc<StoredMessage>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = heard;
    }

    pub(crate) fn get(&self) -> Option<Arc<StoredMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for LastUtterance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastUtterance")
    }
}

/// The first `chars` characters, if the text is longer.
pub(super) fn beginning(text: &str, chars: usize) -> Option<String> {
    let (end, _) = text.char_indices().nth(chars)?;
    text.get(..end).map(str::to_owned)
}
