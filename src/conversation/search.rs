//! Searches the messages of a conversation for words.

mod rank;
mod words;

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::error::Result;
use crate::store::{ConversationStore, Finding, StoredMessage};
use rank::{Best, Match, Sample};
pub use words::SearchWords;
use words::fold;

pub use crate::message::SEARCH_NOTE;

/// How many numbers one read covers.
const STEP: u64 = 4096;
/// The largest distance, in numbers, at which a hit's neighbours are looked for.
const FARTHEST: u64 = 1024;

/// What to search for, and how much to return.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SearchOptions {
    /// Searches only this thread.
    pub thread: Option<String>,
    /// The most hits to return.
    pub limit: usize,
    /// Whether one of the words suffices.
    pub any: bool,
    /// Whether to ignore words that occur only inside longer words.
    pub whole: bool,
    /// The number of messages before and after each hit to return with it, from its own thread.
    pub around: usize,
}

impl SearchOptions {
    /// Returns the best `limit` of all messages that contain all the words.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Searches only one thread, if one is named.
    #[must_use]
    pub fn in_thread(mut self, thread: Option<&str>) -> Self {
        self.thread = thread.map(str::to_owned);
        self
    }

    /// Lets one of the words suffice. Only words of three letters or more are then looked for inside longer words.
    #[must_use]
    pub fn any(mut self, any: bool) -> Self {
        self.any = any;
        self
    }

    /// Ignores words that occur only inside longer words.
    #[must_use]
    pub fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// Sets the number of messages before and after each hit to return with it.
    #[must_use]
    pub fn around(mut self, around: usize) -> Self {
        self.around = around;
        self
    }
}

/// A message that matches. `Debug` shows no words.
#[derive(Clone)]
#[non_exhaustive]
pub struct SearchHit {
    /// The message.
    pub stored: Arc<StoredMessage>,
    /// How well it matches, 0 to 1. Hits of several conversations can be sorted by it.
    pub score: f64,
    /// For each query word that occurs only inside longer words, the first of these longer words, without accents and
    /// in lower case.
    pub longer_words: Vec<Zeroizing<String>>,
    /// The messages before it.
    pub before: Vec<Arc<StoredMessage>>,
    /// The messages after it.
    pub after: Vec<Arc<StoredMessage>>,
}

impl fmt::Debug for SearchHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hit")
            .field("stored", &self.stored)
            .field("score", &self.score)
            .finish_non_exhaustive()
    }
}

/// The result of a search.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SearchResults {
    /// The best hits, at most as many as asked for. If scores are equal, newer messages come first.
    pub hits: Vec<SearchHit>,
    /// The number of all matches.
    pub total: u64,
    /// What could not be read on the way.
    pub skipped: Vec<Finding>,
}

impl SearchResults {
    fn skip(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            if !self.skipped.contains(&finding) {
                self.skipped.push(finding);
            }
        }
    }
}

/// Finds the messages of a conversation that contain the words, best first. Messages with more of the words as whole
/// words come first. Messages hidden by the conversation's limits are not found; cleared and pruned messages are.
/// Reads every message, a few thousand at a time from the newest back, and holds no more of them than that and the
/// limit.
///
/// # Errors
/// Those of reading the conversation.
pub async fn search(
    store: &dyn ConversationStore,
    words: &str,
    options: &SearchOptions,
) -> Result<SearchResults> {
    search_in(store, words, options, |_| true).await
}

/// [`search`] among visible messages only. The newest few thousand messages decide how rare a word is.
pub(crate) async fn search_in(
    store: &dyn ConversationStore,
    words: &str,
    options: &SearchOptions,
    may_see: impl Fn(&StoredMessage) -> bool + Send + Sync,
) -> Result<SearchResults> {
    let words = SearchWords::new(words);
    let mut found = SearchResults::default();
    if words.is_empty() {
        return Ok(found);
    }
    let is_meant = |stored: &StoredMessage| {
        let message = &stored.message;
        (options.thread.is_none() || message.thread_id == options.thread)
            && !message.metadata.contains_key(SEARCH_NOTE)
            && may_see(stored)
    };
    let mut best = Best::new(options.limit);
    let mut memory = Zeroizing::default();
    let mut sample: Option<Sample> = None;
    let mut end = store.read_tail(0).await?.last_seq;
    while end > 0 {
        let first = end.saturating_sub(STEP - 1).max(1);
        let mut reading = store.read_seqs(first..=end).await?;
        found.skip(reading.skipped);
        reading.messages.retain(|stored| is_meant(stored));
        let sample = sample.get_or_insert_with(|| {
            let mut sample = Sample::new(&words);
            for stored in &reading.messages {
                fold(&stored.message.content, &mut memory);
                sample.add(&words, &memory);
            }
            sample
        });
        for stored in reading.messages {
            fold(&stored.message.content, &mut memory);
            if let Match::Yes(score) = sample.rank(&words, &memory, options.any, options.whole) {
                found.total += 1;
                best.take(score, stored);
            }
        }
        end = first - 1;
    }
    for (score, stored) in best.in_order() {
        let longer_words = words.longer(&stored.message.content);
        let (before, after) = around(store, &stored, options.around, &may_see).await?;
        found.hits.push(SearchHit { stored, score, longer_words, before, after });
    }
    Ok(found)
}

type Neighbours = (Vec<Arc<StoredMessage>>, Vec<Arc<StoredMessage>>);

/// The visible messages right before and after a message in its thread, within a limited distance.
async fn around(
    store: &dyn ConversationStore,
    hit: &StoredMessage,
    n: usize,
    may_see: impl Fn(&StoredMessage) -> bool,
) -> Result<Neighbours> {
    if n == 0 {
        return Ok(Neighbours::default());
    }
    let mut reach = (n as u64).saturating_mul(2).clamp(8, FARTHEST);
    loop {
        let first = hit.seq.saturating_sub(reach).max(1);
        let reading = store.read_seqs(first..=hit.seq.saturating_add(reach)).await?;
        let is_all = first == 1 && reading.last_seq <= hit.seq.saturating_add(reach);
        let place = (hit.ordered_at(), hit.seq);
        let beside = reading.messages.into_iter().filter(|stored| {
            stored.seq != hit.seq
                && stored.message.thread_id == hit.message.thread_id
                && may_see(stored)
        });
        let (mut before, mut after): Neighbours =
            beside.partition(|stored| (stored.ordered_at(), stored.seq) < place);
        let is_enough = before.len() >= n && after.len() >= n;
        if is_enough || is_all || reach >= FARTHEST {
            before.drain(..before.len().saturating_sub(n));
            after.truncate(n);
            return Ok((before, after));
        }
        reach = reach.saturating_mul(4).min(FARTHEST);
    }
}
