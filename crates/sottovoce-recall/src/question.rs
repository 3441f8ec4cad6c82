//! A question: its words, its dates and what it means.

use std::{fmt, ops::RangeInclusive};

use jiff::Zoned;

use crate::{
    meaning::{self, Vector},
    secret::Word,
    text::{
        beginning,
        language::Language,
        stop_words::{is_of_saying, is_stop_word, is_vague},
        words::Words,
    },
    time::{self, DaySpan},
};

/// Bytes of a question that are looked at.
const LONGEST: usize = 4096;
/// Words of a question that are looked at.
const MOST_WORDS: usize = 400;
/// Words that rank. A longer question is cut.
const MOST_TERMS: usize = 48;
/// Words of an utterance that may go on from the one before: "and his age?", "when was that?"
const MOST_FOLLOWING: usize = 6;
/// Utterances before a question that are looked at.
const MOST_EARLIER: usize = 4;
/// What a word of an earlier utterance counts, in a question that refers to it.
const EARLIER: f32 = 0.5;

/// When, by whom and after what a question is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Asked<'a> {
    /// The local time of the question.
    pub now: Zoned,
    /// The years of the conversation: [`crate::Index::years`].
    pub years: RangeInclusive<i16>,
    /// The language of a question that does not show its own: the owner's.
    pub language: Language,
    /// The name of the person who asks, as their turns have it.
    pub speaker: Option<&'a str>,
    /// What the same person said before, newest first. A question such as "and his age?" takes words from it.
    pub earlier: &'a [&'a str],
    /// Whether the question goes on from what was said before, as [`crate::goes_on`] tells; `None` lets its words tell.
    pub goes_on: Option<bool>,
}

impl Asked<'_> {
    /// A question in English by nobody in particular, about the years of `now` and before.
    pub fn new(now: Zoned, years: RangeInclusive<i16>) -> Self {
        Self { now, years, language: Language::English, speaker: None, earlier: &[], goes_on: None }
    }
}

/// A word of a question that ranks.
#[derive(Clone)]
pub(crate) struct QuestionWord {
    pub text: Word,
    pub weight: f32,
}

/// A question, ready to be ranked by. It names no turn and holds no index.
pub struct Question {
    /// All words, in order.
    pub(crate) all: Vec<Word>,
    /// Words that may rank, in order, without repetition.
    pub(crate) words: Vec<QuestionWord>,
    pub(crate) spans: Vec<DaySpan>,
    pub(crate) language: Language,
    pub(crate) speaker: Option<Word>,
    pub(crate) meaning: Option<meaning::Asked>,
    is_follow_up: bool,
    asks_for_days_alone: bool,
}

impl Question {
    /// Reads a question. Of a long one it takes the first 4,096 bytes.
    pub fn new(text: &str, asked: &Asked<'_>) -> Self {
        let text = beginning(text, LONGEST);
        let mut all = Words::default();
        all.add(text, MOST_WORDS);
        let language = Language::of(&all, asked.language);
        let time = time::spans(text, language, &asked.now, asked.years.clone());
        let mut question = Self {
            words: content(&time.rest, language, 1.),
            spans: time.spans,
            language,
            speaker: asked.speaker.map(Word::from),
            meaning: None,
            is_follow_up: false,
            asks_for_days_alone: false,
            all: all.to_list(),
        };
        let by_words = || goes_on(question.all.len(), question.words.len());
        if asked.goes_on.unwrap_or_else(by_words) {
            question.follow(asked);
        }
        let mut seen = std::collections::HashSet::new();
        question.words.retain(|word| seen.insert(word.text.clone()));
        question.words.truncate(MOST_TERMS);
        let words = || question.words.iter().map(|word| word.text.as_str());
        question.asks_for_days_alone =
            words().any(is_of_saying) && words().all(|word| is_of_saying(word) || is_vague(word));
        question
    }

    /// Adds what the question means.
    #[must_use]
    pub fn meaning(mut self, vector: &Vector) -> Self {
        self.meaning = Some(meaning::Asked::new(vector));
        self
    }

    /// Takes words and days from what was said before, up to an utterance that stands for itself.
    fn follow(&mut self, asked: &Asked<'_>) {
        let mut weight = EARLIER;
        for earlier in asked.earlier.iter().take(MOST_EARLIER) {
            let earlier = beginning(earlier, LONGEST);
            let mut words = Words::default();
            words.add(earlier, MOST_WORDS);
            let language = Language::of(&words, self.language);
            let time = time::spans(earlier, language, &asked.now, asked.years.clone());
            let found = content(&time.rest, language, weight);
            let goes_on = goes_on(words.len(), found.len());
            self.words.extend(found);
            self.is_follow_up = true;
            if self.spans.is_empty() {
                self.spans = time.spans;
            }
            if !goes_on {
                break;
            }
            weight *= EARLIER;
        }
    }

    /// Whether it goes on from what was said before, and took words from it.
    pub fn is_follow_up(&self) -> bool {
        self.is_follow_up
    }

    /// Whether it may be answered from a day. If it asks for days alone, other days answer nothing.
    pub(crate) fn may_mean(&self, day: i32) -> bool {
        self.spans.is_empty()
            || self.spans.iter().any(|span| (span.first..=span.last).contains(&day))
            || !self.asks_for_days_alone
    }

    /// The days that the question asks for.
    pub fn spans(&self) -> &[DaySpan] {
        &self.spans
    }
}

/// The words of a text that may rank.
fn content(text: &str, language: Language, weight: f32) -> Vec<QuestionWord> {
    let mut words = Words::default();
    words.add(text, MOST_WORDS);
    let ranking = words.range(0..words.len()).filter(|(word, _)| !is_stop_word(word, language));
    ranking.map(|(word, _)| QuestionWord { text: word.into(), weight }).collect()
}

/// Whether an utterance of so many words, of which so many rank, goes on from what was said before: "and his age?",
/// "when?", "when was that?"
fn goes_on(words: usize, ranking: usize) -> bool {
    match ranking {
        0 => (1..=MOST_FOLLOWING).contains(&words),
        1 => words <= MOST_FOLLOWING / 2,
        _ => false,
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("words", &self.words.len())
            .field("spans", &self.spans)
            .field("language", &self.language)
            .finish_non_exhaustive()
    }
}
