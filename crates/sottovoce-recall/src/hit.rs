//! Results: turns, why each was found, and a choice of them that fits a budget.

use std::{fmt, ops::Range};

use zeroize::Zeroize;

use crate::question::Question;

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
    /// Passages of the message that order the assistant about, in bytes of its text; `None` while their meanings are unknown.
    pub orders: Option<Vec<Range<usize>>>,
    /// What made the score.
    pub why: Why,
}

/// What made a score: the share of each feature, and the question's words that stand in or near the passage.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Why {
    /// The question's words that were found, with 1 for a word in the passage and less for one in its neighbours.
    pub words: Vec<(String, f32)>,
    /// How much the passage means what is asked for, up to 1.
    pub alike: f32,
    /// Share of the words.
    pub near: f32,
    /// Share of what the passage means.
    pub sense: f32,
    /// Share of what the passages beside it mean.
    pub around: f32,
    /// Share of telling something, instead of asking or ordering.
    pub tells: f32,
    /// Share of the same words in the whole session.
    pub topic: f32,
    /// Share of the speaker that the question names, or who asks.
    pub speaker: f32,
    /// Share of being said by a person, not by the assistant.
    pub person: f32,
    /// Share of the dates that the question names.
    pub date: f32,
}

impl Why {
    /// The features by name, with the share that each has in the score.
    pub fn features(&self) -> [(&'static str, f32); 8] {
        [
            ("words", self.near),
            ("meaning", self.sense),
            ("meaningAround", self.around),
            ("tells", self.tells),
            ("topic", self.topic),
            ("speaker", self.speaker),
            ("person", self.person),
            ("date", self.date),
        ]
    }
}

/// How much a passage must mean what is asked for to be said to mean the same.
const THE_SAME: f32 = 0.6;
/// How much it must to be said to mean something like it.
const SOMETHING_LIKE: f32 = 0.25;

impl Why {
    /// The reasons in words, such as: says “Bruno”; means something like it; said on a day that was asked for.
    pub fn in_words(&self) -> String {
        self.reasons(|words| {
            let quoted: Vec<String> = words.iter().map(|word| format!("“{word}”")).collect();
            match quoted.split_last() {
                Some((last, [first, others @ ..])) => {
                    let others: String = others.iter().map(|word| format!(", {word}")).collect();
                    format!("{first}{others} and {last}")
                }
                _ => quoted.concat(),
            }
        })
    }

    /// The reasons without words of the question, for what may be logged.
    pub fn without_words(&self) -> String {
        self.reasons(|words| match words.len() {
            1 => "a word of it".to_owned(),
            n => format!("{n} words of it"),
        })
    }

    /// Whether the passage itself says or means something of what is asked for. A best hit need not.
    pub fn fits(&self) -> bool {
        self.alike >= SOMETHING_LIKE || self.words.iter().any(|(_, share)| *share >= 1.)
    }

    fn reasons(&self, told: impl Fn(&[&str]) -> String) -> String {
        let words = |is_said: fn(f32) -> bool| -> Vec<&str> {
            let words = self.words.iter().filter(|(_, share)| is_said(*share));
            words.map(|(word, _)| word.as_str()).collect()
        };
        let (own, beside) = (words(|share| share >= 1.), words(|share| share < 1.));
        let mut reasons = Vec::new();
        if !own.is_empty() {
            reasons.push(format!("says {}", told(&own)));
        }
        if !beside.is_empty() {
            reasons.push(format!("stands near {}", told(&beside)));
        }
        let others = [
            (self.alike >= THE_SAME, "means the same"),
            ((SOMETHING_LIKE..THE_SAME).contains(&self.alike), "means something like it"),
            (self.date > 0., "said on a day that was asked for"),
            (self.speaker > 0., "said by the person asked for"),
        ];
        reasons
            .extend(others.into_iter().filter(|(is, _)| *is).map(|(_, reason)| reason.to_owned()));
        match reasons.is_empty() {
            true => "fits better than the rest".to_owned(),
            false => reasons.join("; "),
        }
    }
}

impl Drop for Why {
    fn drop(&mut self) {
        self.words.iter_mut().for_each(|(word, _)| word.zeroize());
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

/// Hits among which the newer may come first. No hit leaves or enters the first five.
const FIRST: usize = 5;
/// How much less a newer hit may score to come first. Measured on pairs of statements, and on how much first places lose.
const NEARLY_EQUAL: f32 = 3.5;

/// Puts newer statements before older ones that fit no better, so that "I moved to Leipzig" comes before "I live in
/// Ulm". Only among the first five hits of a question about the present, and only if the newer passage holds the
/// question's words that the older one holds. Scores stay.
pub fn put_newer_first(hits: &mut [Hit], question: &Question) {
    if !question.spans.is_empty() {
        return;
    }
    let first = hits.len().min(FIRST);
    let Some(hits) = hits.get_mut(..first) else { return };
    // Each hit moves past the older ones that are little better.
    for at in 1..hits.len() {
        let mut place = at;
        while let Some([before, hit]) = place.checked_sub(1).and_then(|from| hits.get(from..=place))
        {
            if hit.at <= before.at
                || before.score - hit.score > NEARLY_EQUAL
                || !hit.says_as_much(before)
            {
                break;
            }
            hits.swap(place - 1, place);
            place -= 1;
        }
    }
}

impl Hit {
    /// Whether the passage itself holds the question's words that the other one holds, of which there are some.
    fn says_as_much(&self, other: &Self) -> bool {
        let held = |hit: &Self, word: &str| {
            hit.why.words.iter().any(|(held, share)| held == word && *share >= 1.)
        };
        let mut words = other.why.words.iter().filter(|(_, share)| *share >= 1.).peekable();
        words.peek().is_some() && words.all(|(word, _)| held(self, word))
    }
}

/// Letters of one token, as a rule of thumb.
const LETTERS_PER_TOKEN: usize = 4;
/// Hits that may be too long before the choice ends.
const MOST_MISSES: usize = 30;

/// Chooses hits for a budget of tokens: by score, less 0.8 times the logarithm of the length, so that short turns win
/// over long ones that are little better. `length` says how many letters a hit takes, `heading` how many the heading
/// of its session takes once. The result is in the order of choice.
pub fn select_within(
    hits: &[Hit],
    tokens: usize,
    length: impl Fn(&Hit) -> usize,
    heading: impl Fn(&Hit) -> usize,
) -> Vec<&Hit> {
    let worth = |hit: &Hit| f64::from(hit.score) - 0.8 * (length(hit) as f64 + 20.).ln();
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
