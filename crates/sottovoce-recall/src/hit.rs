//! Results: turns, why each was found, and a choice of them that fits a budget.

use std::{fmt, ops::Range};

/// A turn that was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The message's number.
    pub seq: u64,
    /// How well it fits the question. Scores of different questions may be compared.
    pub score: f32,
    /// The passage that fits best, in bytes of the message's text.
    pub passage: Range<usize>,
    /// When it was said, in milliseconds since 1970 UTC.
    pub at: i64,
    /// The local day on which it was said, in days since 1970-01-01.
    pub day: i32,
    /// The number of its session among all sessions of the index.
    pub session: u32,
    /// Letters of the message.
    pub length: u32,
    /// What made the score.
    pub why: Why,
}

/// What made a score: the share of each feature, and the question's words that stand in or near the passage.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Why {
    /// The question's words that were found, with 1 for a word in the passage and less for one in its neighbours.
    pub words: Vec<(String, f32)>,
    /// Share of the words.
    pub near: f32,
    /// Share of the meaning of the passage.
    pub sense: f32,
    /// Share of the meaning of the passage and its neighbours.
    pub sense_around: f32,
    /// Share of the same words in the whole session.
    pub topic: f32,
    /// Share of the speaker that the question names.
    pub speaker: f32,
    /// Share of the dates that the question names.
    pub date: f32,
    /// Share of a passage in which someone speaks of themselves.
    pub me: f32,
    /// Share of holding the kind of thing that is asked for: a time, a number, a name.
    pub answer: f32,
    /// Share of words of time.
    pub time_words: f32,
    /// Share of rare words.
    pub rarity: f32,
    /// Share of a standing wish.
    pub standing: f32,
}

impl Why {
    /// The features by name, with the share that each has in the score.
    pub fn features(&self) -> [(&'static str, f32); 11] {
        [
            ("words", self.near),
            ("sense", self.sense),
            ("sense around", self.sense_around),
            ("topic", self.topic),
            ("speaker", self.speaker),
            ("date", self.date),
            ("me", self.me),
            ("answer", self.answer),
            ("time words", self.time_words),
            ("rarity", self.rarity),
            ("standing wish", self.standing),
        ]
    }
}

/// The words are the question's, and as secret.
impl fmt::Debug for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Why");
        shown.field("words", &self.words.len());
        for (name, share) in self.features() {
            shown.field(name, &share);
        }
        shown.finish()
    }
}

/// Letters of one token, as a rule of thumb.
const LETTERS_PER_TOKEN: usize = 4;
/// Hits that may be too long before the choice ends.
const MOST_MISSES: usize = 30;

/// Chooses hits for a budget of tokens: by score, less half the logarithm of the length, so that short turns win
/// over long ones that are little better. `length` says how many letters a hit takes, `heading` how many the heading
/// of its session takes once. The result is in the order of choice.
pub fn select_within(
    hits: &[Hit],
    tokens: usize,
    length: impl Fn(&Hit) -> usize,
    heading: impl Fn(&Hit) -> usize,
) -> Vec<&Hit> {
    let worth = |hit: &Hit| f64::from(hit.score) - 0.5 * (length(hit) as f64 + 20.).ln();
    let mut order: Vec<(f64, &Hit)> = hits.iter().map(|hit| (worth(hit), hit)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left = tokens.saturating_mul(LETTERS_PER_TOKEN);
    let mut sessions = std::collections::HashSet::new();
    let mut chosen = Vec::new();
    let mut misses = 0;
    for (_, hit) in order {
        let heading = if sessions.contains(&hit.session) { 0 } else { heading(hit) };
        match left.checked_sub(length(hit).saturating_add(heading)) {
            Some(rest) => {
                left = rest;
                sessions.insert(hit.session);
                chosen.push(hit);
            }
            None => {
                misses += 1;
                if misses > MOST_MISSES {
                    break;
                }
            }
        }
    }
    chosen
}
