//! Looking for words in what a conversation has stored.

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

/// The metadata of a message that tells of a search. Its words are those that were looked for, so that no search finds
/// it.
pub const SEARCH_NOTE: &str = "searchFor";

/// How many numbers are looked through at once.
const STEP: u64 = 4096;
/// How many numbers away from a message its neighbours are looked for.
const FARTHEST: u64 = 1024;

/// What to look for, and how much of it to give.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SearchOptions {
    /// Only what was said in this thread.
    pub thread: Option<String>,
    /// The most hits to give.
    pub limit: usize,
    /// Whether one of the words is enough.
    pub any: bool,
    /// Whether words within longer ones do not count.
    pub whole: bool,
    /// How many messages before and after each hit to give with it, of its own thread.
    pub around: usize,
}

impl SearchOptions {
    /// The best `limit` of all messages that have all the words.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Only what was said in a thread, if one is named.
    #[must_use]
    pub fn in_thread(mut self, thread: Option<&str>) -> Self {
        self.thread = thread.map(str::to_owned);
        self
    }

    /// Whether one of the words is enough. Then only words of three letters or more are looked for within longer ones.
    #[must_use]
    pub fn any(mut self, any: bool) -> Self {
        self.any = any;
        self
    }

    /// Whether words within longer ones do not count.
    #[must_use]
    pub fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// How many messages before and after each hit to give with it.
    #[must_use]
    pub fn around(mut self, around: usize) -> Self {
        self.around = around;
        self
    }
}

/// A message that has the words. `Debug` shows none.
#[derive(Clone)]
#[non_exhaustive]
pub struct SearchHit {
    /// The message.
    pub stored: Arc<StoredMessage>,
    /// How well it fits, 0 to 1; hits of several conversations may be put in order by it.
    pub score: f64,
    /// For each word that stands in it only within longer ones, the first of these, without accents and in lower case.
    pub longer_words: Vec<Zeroizing<String>>,
    /// What was said before it.
    pub before: Vec<Arc<StoredMessage>>,
    /// What was said after it.
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

/// What a search has found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Found {
    /// The best hits, no more than were asked for; of equals the newest first.
    pub hits: Vec<SearchHit>,
    /// How many there are in all.
    pub total: u64,
    /// What was passed over on the way.
    pub skipped: Vec<Finding>,
}

impl Found {
    fn skip(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            if !self.skipped.contains(&finding) {
                self.skipped.push(finding);
            }
        }
    }
}

/// The messages of a conversation that have the words, the best first. Those come first in which more of the words stand
/// by themselves and not within longer ones. What the limits of the conversation hide is not found, but what was cleared or
/// taken out of the context is. Reads every message, some thousand at a time from the newest number back, and holds on to
/// no more of them than that and the limit.
///
/// # Errors
/// What keeps the conversation from being read.
pub async fn search(
    store: &dyn ConversationStore,
    words: &str,
    options: &SearchOptions,
) -> Result<Found> {
    search_in(store, words, options, |_| true).await
}

/// [`search`] among the messages that may be seen. How rare a word is, is judged by the newest some thousand messages.
pub(crate) async fn search_in(
    store: &dyn ConversationStore,
    words: &str,
    options: &SearchOptions,
    may_see: impl Fn(&StoredMessage) -> bool + Send + Sync,
) -> Result<Found> {
    let words = SearchWords::new(words);
    let mut found = Found::default();
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

/// What was said right before and after a message in its thread, as far as it may be seen and its number is near.
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
