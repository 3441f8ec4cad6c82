//! One search over conversations, in stages: the exact words; else what fits best; else the words that may have been meant.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use jiff::Zoned;
use serde::Serialize;
use sottovoce_recall::{Hit, SearchQuery, nearest};

use super::excerpt::{LONGEST, passage};
use super::index::Recall;
use super::results::{RecallHit, RecallQuery, best_of};
use super::search::is_meant;
use super::text;
use crate::error::{Error, Result};
use crate::store::{ConversationStore, Finding, StoredMessage};

/// Bytes before the match in a passage of a long message.
const BEFORE: usize = 120;
/// How many of a message's matches decide which passage is shown.
const LOOKED_AT: usize = 64;

/// What somebody looks for. `Debug` shows no words.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Lookup<'a> {
    /// The words and filters.
    pub query: &'a SearchQuery,
    /// The thread; messages of all threads if none is named.
    pub thread: Option<&'a str>,
    /// The time of the search. “last Tuesday” is relative to it.
    pub now: Zoned,
    /// The most messages to return.
    pub limit: usize,
}

/// How far a search had to go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Stage {
    /// The messages have all the words.
    Exact,
    /// No message has all the words; these fit best.
    Fitting,
    /// Nothing fits, but there are words that are written nearly so.
    DidYouMean,
    /// Nothing was found.
    #[default]
    Nothing,
}

/// The result of a search over conversations. `Debug` shows no words.
#[derive(Default)]
#[non_exhaustive]
pub struct Found {
    /// Which stage found it.
    pub stage: Stage,
    /// The messages: exact ones newest first, fitting ones best first.
    pub hits: Vec<FoundMessage>,
    /// How many messages of each conversation have all the words.
    pub totals: Vec<u64>,
    /// The words with the nearest ones that were said, in the place of words that nobody said. Also beside what fits.
    pub did_you_mean: Option<String>,
    /// What could not be read on the way.
    pub skipped: Vec<Finding>,
    /// The conversations that could not be searched, by their place.
    pub failed: Vec<(usize, Error)>,
}

/// A message that was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FoundMessage {
    /// The place of its conversation among those that were searched.
    pub place: usize,
    /// The message.
    pub stored: Arc<StoredMessage>,
    /// What is shown of it.
    pub passage: Passage,
    /// Its score, and what made it, if it fits without having all the words.
    pub fits: Option<Hit>,
}

/// What is shown of a message that was found. `Debug` shows no words.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Passage {
    /// The message, or of a long one, or of an artifact that it refers to, the passage that was found.
    pub text: String,
    /// What of the text was looked for, in bytes, in order and without overlaps.
    pub marks: Vec<Range<usize>>,
}

impl<'a> Lookup<'a> {
    /// Looks for this in all threads.
    pub fn new(query: &'a SearchQuery, now: Zoned, limit: usize) -> Self {
        Self { query, thread: None, now, limit }
    }

    /// Searches conversations, stage by stage.
    pub async fn run(&self, conversations: &[Arc<Recall>]) -> Found {
        let mut found = Found::default();
        let mut hits = Vec::new();
        for (place, recall) in conversations.iter().enumerate() {
            let exact = found.of(place, recall.search(self.query, self.thread, self.limit).await);
            let exact = exact.unwrap_or_default();
            found.totals.push(exact.total);
            Finding::add_new(&mut found.skipped, exact.skipped);
            hits.extend(exact.hits.into_iter().map(|stored| (place, stored)));
            hits.sort_by_key(|(_, stored)| Reverse((stored.ordered_at(), stored.seq)));
            hits.truncate(self.limit);
        }
        for (place, stored) in hits {
            let Some(recall) = conversations.get(place) else { continue };
            let passage = Passage::exact(&**recall.store(), self.query, &stored).await;
            found.hits.push(FoundMessage { place, stored, passage, fits: None });
        }
        if !found.hits.is_empty() {
            found.stage = Stage::Exact;
        } else if !self.query.text().is_empty() {
            self.guess(conversations, &mut found).await;
        }
        found
    }

    /// Looks for what fits, and for what may have been meant.
    async fn guess(&self, conversations: &[Arc<Recall>], found: &mut Found) {
        let mut lists = Vec::new();
        for (place, recall) in conversations.iter().enumerate() {
            let fitting = self.fitting(place, recall).await;
            lists.push(found.of(place, fitting).unwrap_or_default());
        }
        let score = |message: &FoundMessage| message.fits.as_ref().map_or(0., |hit| hit.score);
        found.hits = best_of(lists, self.limit, score);
        found.did_you_mean = self.meant(conversations, found).await;
        found.stage = match (found.hits.is_empty(), &found.did_you_mean) {
            (false, _) => Stage::Fitting,
            (true, Some(_)) => Stage::DidYouMean,
            (true, None) => Stage::Nothing,
        };
    }

    async fn fitting(&self, place: usize, recall: &Recall) -> Result<Vec<FoundMessage>> {
        let query = RecallQuery::new(self.query.text(), self.now.clone(), self.limit);
        let passes = |stored: &StoredMessage| is_meant(self.query, self.thread, stored);
        let recalled = recall.find_where(&query, self.thread, passes).await?;
        let mut fitting = Vec::new();
        for found in recalled.hits.into_iter().filter(|found| found.hit.why.fits()) {
            let passage = Passage::fitting(&**recall.store(), &found).await;
            let RecallHit { stored, hit } = found;
            fitting.push(FoundMessage { place, stored, passage, fits: Some(hit) });
        }
        Ok(fitting)
    }

    /// The words with the nearest ones that were said; `None` if no word has to change.
    async fn meant(&self, conversations: &[Arc<Recall>], found: &mut Found) -> Option<String> {
        let mut meant = self.query.text().to_owned();
        for (range, word) in self.query.words().into_iter().rev() {
            let mut best: Option<(usize, String)> = None;
            for (place, recall) in conversations.iter().enumerate() {
                let near = self.nearest(recall, &word).await;
                let Some(near) = found.of(place, near).flatten() else { continue };
                if best.as_ref().is_none_or(|best| near.0 < best.0) {
                    best = Some(near);
                }
            }
            if let Some((1.., word)) = best {
                meant.replace_range(range, &word);
            }
        }
        (meant != self.query.text()).then_some(meant)
    }

    /// The nearest word of a conversation, and how many letters differ: 0 if it has the word itself.
    async fn nearest(&self, recall: &Recall, word: &str) -> Result<Option<(usize, String)>> {
        let Some(seqs) = recall.near(word).await? else { return Ok(Some((0, String::new()))) };
        let mut best: Option<(usize, String)> = None;
        for seq in seqs {
            let read = recall.store().read_seqs(seq..=seq).await?;
            for stored in read.messages.iter().filter(|s| is_meant(self.query, self.thread, s)) {
                if let Some((wrong, near)) = nearest(word, &stored.message.content)
                    && best.as_ref().is_none_or(|best| wrong < best.0)
                {
                    best = Some((wrong, near.to_owned()));
                }
            }
        }
        Ok(best)
    }
}

impl Found {
    /// How many messages have all the words.
    pub fn total(&self) -> u64 {
        self.totals.iter().sum()
    }

    /// A conversation's result. Of a failure the first is noted.
    fn of<T>(&mut self, place: usize, result: Result<T>) -> Option<T> {
        match result {
            Ok(result) => return Some(result),
            Err(_) if self.failed.iter().any(|(failed, _)| *failed == place) => {}
            Err(error) => self.failed.push((place, error)),
        }
        None
    }
}

impl Passage {
    /// Of a message, or an artifact that it refers to, that holds the words of a search.
    async fn exact(
        store: &dyn ConversationStore,
        query: &SearchQuery,
        stored: &StoredMessage,
    ) -> Self {
        let own = &stored.message.content;
        let whole = match query.matches(own) {
            true => None,
            false => text::whole(store, stored).await.ok().flatten(),
        };
        let text = whole.as_ref().map_or(own, |whole| &whole.text);
        let text = match text.chars().nth(LONGEST) {
            None => text.clone(),
            Some(_) => passage(text, &around(text, &query.marks(text))),
        };
        Self { marks: query.marks(&text), text }
    }

    /// Of a message that fits best.
    async fn fitting(store: &dyn ConversationStore, found: &RecallHit) -> Self {
        let text = match found.excerpt(store).await {
            Some(excerpt) => excerpt,
            None => found.stored.message.content.clone(),
        };
        Self { marks: found.hit.why.marks(&text), text }
    }
}

/// The part of a long text in which most matches stand close together, in whole words.
fn around(text: &str, marks: &[Range<usize>]) -> Range<usize> {
    let marks = marks.get(..LOOKED_AT).unwrap_or(marks);
    let close = |first: &&Range<usize>| {
        let near = first.start..first.start + LONGEST - BEFORE;
        marks.iter().filter(|mark| near.contains(&mark.start)).count()
    };
    let first = marks.iter().rev().max_by_key(close).map_or(0, |mark| mark.start);
    let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let from = boundary(first.saturating_sub(BEFORE)).unwrap_or_default();
    let to = boundary(from + LONGEST).unwrap_or(text.len());
    let blank = |part: Range<usize>| text.get(part).and_then(|part| part.find(char::is_whitespace));
    let start = match from {
        0 => 0,
        _ => blank(from..first).map_or(from, |blank| from + blank + 1),
    };
    let end = text.get(first..to).and_then(|part| part.rfind(char::is_whitespace));
    start..end.filter(|_| to < text.len()).map_or(to, |blank| first + blank)
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("stage", &self.stage)
            .field("hits", &self.hits.len())
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passage").field("marks", &self.marks.len()).finish_non_exhaustive()
    }
}
