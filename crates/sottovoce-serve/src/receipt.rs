//! Receipts: what memory added to a request, why, and what that cost. They are kept in memory, without words.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use sottovoce::context::{Context, ContextMessage};
use sottovoce::prompt::{EntryOutcome, ReceiptEntry};
use sottovoce::{ChatRole, ConversationStore, Result, Source};

/// How many receipts of one conversation are kept.
const KEPT: usize = 64;

/// The newest receipts of one conversation.
#[derive(Default)]
pub(crate) struct Receipts {
    last: u64,
    kept: VecDeque<Receipt>,
}

/// The account of one request.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receipt {
    pub(crate) id: u64,
    pub(crate) at: Timestamp,
    /// The number of the utterance.
    pub(crate) utterance: u64,
    /// The number of the session's first utterance.
    pub(crate) session_since: u64,
    /// Whether the utterance was stored before, and is answered again.
    pub(crate) repeated: bool,
    /// Whether the current time was moved from the system prompt to the utterance.
    pub(crate) time_moved: bool,
    /// What was said before the session, in its prompts.
    pub(crate) history: Vec<Entry>,
    /// What was said before the session too, but did not fit.
    pub(crate) left_out: Vec<Entry>,
    /// What was recalled for this utterance.
    pub(crate) recalled: Vec<Entry>,
    /// Why nothing was recalled, if something went wrong.
    pub(crate) failed: Option<&'static str>,
    /// Estimated tokens that all of this adds to the request, with what was recalled for earlier utterances.
    pub(crate) tokens: usize,
    /// The time that sealing and remembering took.
    pub(crate) micros: u64,
}

/// A message in a request.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    role: ChatRole,
    source: Source,
    why: String,
    /// Its words, if they are asked for and still stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Entry {
    /// The stored messages of a context.
    pub(crate) fn list(context: &Context) -> Vec<Self> {
        Self::of(&context.messages, &context.why).collect()
    }

    fn of(messages: &[ContextMessage], why: &str) -> impl Iterator<Item = Self> {
        messages.iter().filter_map(move |message| {
            let why = message.why().unwrap_or(why).to_owned();
            let (seq, message) = (message.seq()?, message.message());
            Some(Self { seq, role: message.role, source: message.source().0, why, text: None })
        })
    }

    /// The stored messages that did not fit, and those that were not recalled, each with the reason.
    pub(crate) fn left_out(entries: &[ReceiptEntry], recalled: Option<&Context>) -> Vec<Self> {
        let reason = |entry: &ReceiptEntry| {
            let why = match entry.outcome {
                EntryOutcome::TooLong => "too long beside the rest, so it was passed over",
                EntryOutcome::OverBudget => "over the budget",
                _ => return None,
            };
            let ReceiptEntry { role, source, .. } = *entry;
            Some(Self { seq: entry.seq?, role, source, why: why.to_owned(), text: None })
        };
        let left_out = recalled.map(|recalled| Self::of(&recalled.left_out, &recalled.why));
        entries.iter().filter_map(reason).chain(left_out.into_iter().flatten()).collect()
    }
}

impl Receipts {
    /// Keeps a receipt under an id of its own.
    pub(crate) fn keep(&mut self, mut receipt: Receipt, took: Duration) -> Receipt {
        self.last += 1;
        receipt.id = self.last;
        receipt.micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(receipt.clone());
        receipt
    }

    /// The receipt with this id, or the newest.
    pub(crate) fn find(&self, id: Option<u64>) -> Option<Receipt> {
        match id {
            Some(id) => self.kept.iter().find(|receipt| receipt.id == id).cloned(),
            None => self.kept.back().cloned(),
        }
    }
}

impl Receipt {
    /// Adds the words of messages that are still stored and in use.
    pub(crate) async fn with_words(mut self, store: &dyn ConversationStore) -> Result<Self> {
        let profile = store.profile().await?;
        for entry in self.history.iter_mut().chain(&mut self.recalled) {
            let read = store.read_seqs(entry.seq..=entry.seq).await?;
            let stored = read.messages.first().filter(|stored| !profile.hides(stored));
            entry.text = stored.map(|stored| stored.message.content.clone());
        }
        Ok(self)
    }
}
