//! Questions to the index, and what they find.

use std::fmt;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use sottovoce_recall::{Hit, Question, put_newer_first, select_within};

use crate::store::{Finding, StoredMessage};

/// The characters that a line takes beside its text: time and speaker.
pub(super) const LINE: usize = 40;

/// A question about what was said. `Debug` shows no words.
#[derive(Clone)]
#[non_exhaustive]
pub struct RecallQuery<'a> {
    /// The question.
    pub text: &'a str,
    /// What the same person said just before, newest first. A question such as “and his age?” takes words from it.
    pub earlier: &'a [&'a str],
    /// The name of the person who asks, as their messages have it.
    pub speaker: Option<&'a str>,
    /// The thread whose messages may be found; `None` for those outside all threads.
    pub thread: Option<&'a str>,
    /// The time of the question. “last Tuesday” is relative to it.
    pub now: Zoned,
    /// The score that a message must reach.
    pub floor: ScoreFloor,
    /// Whether messages that give the assistant orders are left out, as planted words do.
    pub no_orders: bool,
    /// The most hits to return.
    pub limit: usize,
}

/// The score that a message must reach to be found.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ScoreFloor {
    /// Any score will do.
    Any,
    /// Any score, if the utterance needs something of what was said before; otherwise none suffices. “What is my dog
    /// called?” needs something, “turn on the light” does not.
    Needed,
    /// This score.
    At(f32),
}

impl ScoreFloor {
    /// A score as configured: `None` lets the utterance decide.
    pub fn configured(score: Option<f64>) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a score has few digits")]
        score.map_or(Self::Needed, |score| Self::At(score as f32))
    }
}

impl<'a> RecallQuery<'a> {
    /// A question at that time, with at most `limit` hits of any score.
    pub fn new(text: &'a str, now: Zoned, limit: usize) -> Self {
        Self {
            text,
            earlier: &[],
            speaker: None,
            thread: None,
            now,
            floor: ScoreFloor::Any,
            no_orders: false,
            limit,
        }
    }

    /// Sets the score that a message must reach.
    #[must_use]
    pub fn floor(mut self, floor: ScoreFloor) -> Self {
        self.floor = floor;
        self
    }
}

impl fmt::Debug for RecallQuery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecallQuery")
            .field("text_bytes", &self.text.len())
            .field("floor", &self.floor)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// A message that was found. `Debug` shows no words.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecallHit {
    /// The message.
    pub stored: Arc<StoredMessage>,
    /// Its score, what made it, and the passage that fits best.
    pub hit: Hit,
}

impl RecallHit {
    /// The day on which it was said, with the year if that is not this one.
    pub(super) fn day(&self, now: Option<Timestamp>) -> String {
        let day = Date::new(1970, 1, 1).and_then(|first| first.checked_add(self.hit.day.days()));
        let this_year = now.map(|now| now.to_zoned(TimeZone::UTC).year());
        let day = day.unwrap_or_default();
        let is_recent = this_year == Some(day.year());
        day.strftime(if is_recent { "%-d %B" } else { "%-d %B %Y" }).to_string()
    }
}

/// The best of several lists, such as the hits of several conversations, at most `n`. Each list keeps its order, in which
/// a newer statement may stand before one that scores more.
pub fn best_of<T>(lists: Vec<Vec<T>>, n: usize, score: impl Fn(&T) -> f32) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(|list| list.into_iter().peekable()).collect();
    let mut best = Vec::new();
    while best.len() < n {
        let heads = lists.iter_mut().filter_map(|list| {
            let score = score(list.peek()?);
            Some((score, list))
        });
        // Of equals the first.
        let Some((_, list)) = heads.reduce(|a, b| if b.0 > a.0 { b } else { a }) else { break };
        best.extend(list.next());
    }
    best
}

/// The result of a question.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Recalled {
    /// The hits, best first.
    pub hits: Vec<RecallHit>,
    /// What gives the assistant orders, if it was to be left out.
    pub orders: Vec<RecallHit>,
    /// Whether the question took words from what was said just before.
    pub is_follow_up: bool,
    /// What could not be read on the way.
    pub skipped: Vec<Finding>,
}

impl Recalled {
    /// Puts newer statements before older ones that fit no better.
    pub(super) fn put_newer_first(&mut self, question: &Question) {
        let mut hits: Vec<Hit> = self.hits.iter().map(|found| found.hit.clone()).collect();
        put_newer_first(&mut hits, question);
        let place = |seq: u64| hits.iter().position(|hit| hit.seq == seq);
        self.hits.sort_by_key(|found| place(found.hit.seq));
    }

    /// The hits that fit a number of tokens, at four characters a token: by score, with short ones before long ones
    /// that are little better. A message with more than `longest` characters counts as one with so many.
    #[must_use]
    pub fn within(mut self, tokens: usize, longest: usize) -> Self {
        let hits: Vec<Hit> = self
            .hits
            .iter()
            .map(|RecallHit { stored, hit }| {
                // Of an artifact that a message refers to, only a passage is shown.
                let length = stored.message.content.chars().count().min(longest);
                let mut hit = hit.clone();
                hit.length = u32::try_from(length + LINE).unwrap_or(u32::MAX);
                hit
            })
            .collect();
        let length = |hit: &Hit| hit.length as usize;
        let chosen = select_within(&hits, tokens, length, |_| 0);
        self.hits.retain(|hit| chosen.iter().any(|chosen| chosen.seq == hit.stored.seq));
        self
    }
}
