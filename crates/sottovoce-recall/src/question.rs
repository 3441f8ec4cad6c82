//! A question: its words, its dates and what kind of answer it asks for.

use std::{fmt, ops::RangeInclusive};

use jiff::Zoned;
use zeroize::Zeroizing;

use crate::{
    gate::{Known, UtteranceKind},
    secret::Word,
    text::{
        beginning,
        language::Language,
        lists::lists,
        phrases::Phrase,
        words::{Words, is_unspaced},
    },
    time::{self, DaySpan},
    vectors,
};

/// Bytes of a question that are looked at.
const LONGEST: usize = 4096;
/// Words of a question that are looked at.
const MOST_WORDS: usize = 400;
/// Words that rank. A longer question is cut.
const MOST_TERMS: usize = 48;
/// Words of a question without any of its own, such as "when was that?"
const MOST_BARE_WORDS: usize = 6;
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
}

impl Asked<'_> {
    /// A question in English by nobody in particular, about the years of `now` and before.
    pub fn new(now: Zoned, years: RangeInclusive<i16>) -> Self {
        Self { now, years, language: Language::English, speaker: None, earlier: &[] }
    }
}

/// A word of a question that ranks.
#[derive(Clone)]
pub(crate) struct QuestionWord {
    pub text: Word,
    pub is_asking: bool,
    pub weight: f32,
}

/// A question, ready to be ranked by. It names no turn and holds no index.
#[derive(Clone)]
pub struct Question {
    /// All words, in order.
    pub(crate) all: Vec<Word>,
    /// Words that may rank, in order, without repetition.
    pub(crate) words: Vec<QuestionWord>,
    pub(crate) spans: Vec<DaySpan>,
    pub(crate) language: Language,
    pub(crate) speaker: Option<Word>,
    pub(crate) asks_when: bool,
    pub(crate) asks_number: bool,
    pub(crate) asks_name: bool,
    /// It speaks of the asker.
    pub(crate) is_me: bool,
    /// It asks for what the assistant said.
    pub(crate) is_you: bool,
    kind: UtteranceKind,
    is_follow_up: bool,
}

impl Question {
    /// Reads a question. Of a long one it takes the first 4,096 bytes.
    pub fn new(text: &str, asked: &Asked<'_>) -> Self {
        let text = beginning(text, LONGEST);
        let mut all = Words::default();
        all.add(text, MOST_WORDS);
        let language = Language::of(&all, asked.language);
        let all = all.to_list();
        let lists = lists().of(language);
        let words = || all.iter().map(Word::as_str);
        let time = time::spans(text, language, &asked.now, asked.years.clone());
        let mut question = Self {
            words: content(&time.rest, language, 1.),
            spans: time.spans,
            language,
            speaker: asked.speaker.map(Word::from),
            asks_when: lists.asks_when.iter().any(|phrase| phrase.begins(words())),
            asks_number: lists.asks_number.iter().any(|phrase| phrase.is_in(words())),
            asks_name: lists.asks_name.iter().any(|phrase| phrase.begins(words())),
            is_me: words().any(|word| crate::text::lists::lists().traits(word).is_me(language)),
            is_you: lists.you_said.iter().any(|phrase| phrase.is_in(words()))
                && !lists.requests.iter().any(|phrase| phrase.is_in(words())),
            kind: UtteranceKind::Other,
            is_follow_up: false,
            all: Vec::new(),
        };
        let today = time::day_number(asked.now.date()).unwrap_or_default();
        let is_past = question.spans.iter().any(|span| span.last < today);
        question.kind = UtteranceKind::of(&all, language, is_past);
        if question.kind.may_follow_up() && is_follow_up(&question.words, &all, language) {
            question.follow(asked);
        }
        let mut seen = std::collections::HashSet::new();
        question.words.retain(|word| seen.insert(word.text.clone()));
        question.words.truncate(MOST_TERMS);
        question.all = all;
        question
    }

    /// Takes words and days from what was said before, up to an utterance that stands for itself.
    fn follow(&mut self, asked: &Asked<'_>) {
        let mut weight = EARLIER;
        for earlier in asked.earlier.iter().take(MOST_EARLIER) {
            let earlier = beginning(earlier, LONGEST);
            let mut words = Words::default();
            words.add(earlier, MOST_WORDS);
            let language = Language::of(&words, self.language);
            let all = words.to_list();
            if !UtteranceKind::of(&all, language, false).may_follow_up() {
                continue;
            }
            let time = time::spans(earlier, language, &asked.now, asked.years.clone());
            let found = content(&time.rest, language, weight);
            let goes_on = is_follow_up(&found, &all, language);
            self.words.extend(found);
            self.is_follow_up = true;
            self.is_me |= all.iter().any(|word| lists().traits(word.as_str()).is_me(language));
            if self.spans.is_empty() {
                self.spans = time.spans;
            }
            if !goes_on {
                break;
            }
            weight *= EARLIER;
        }
    }

    /// What kind of utterance it is.
    pub fn kind(&self) -> UtteranceKind {
        self.kind
    }

    /// Whether it asks how things are, not how they were or when something happened.
    pub(crate) fn is_about_present(&self) -> bool {
        self.spans.is_empty() && self.kind != UtteranceKind::Past
    }

    /// Whether it goes on from what was said before, and took words from it.
    pub fn is_follow_up(&self) -> bool {
        self.is_follow_up
    }

    /// What is known of it.
    pub(crate) fn known(&self) -> Known {
        let mut pieces = Zeroizing::new(Vec::new());
        let words = self.words.iter().filter(|_| self.language == Language::English);
        words.for_each(|word| vectors::pieces(word.text.as_str(), &mut pieces));
        match pieces.is_empty() {
            false => Known::Meaning,
            true if self.all.iter().any(|word| word.as_str().chars().any(is_unspaced)) => {
                Known::Words
            }
            true => Known::Language,
        }
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
    let ranking = words.range(0..words.len()).filter_map(|(word, _)| {
        let traits = lists().traits(word);
        (!traits.is_stop(language)).then(|| QuestionWord {
            text: word.into(),
            is_asking: traits.is_asking(language),
            weight,
        })
    });
    ranking.collect()
}

/// Whether an utterance goes on from what was said before: "and his age?", "when?", "when was that?"
fn is_follow_up(words: &[QuestionWord], all: &[Word], language: Language) -> bool {
    let own = words.iter().filter(|word| !word.is_asking).count();
    let lists = lists().of(language);
    let begins = |phrase: &Phrase| phrase.begins(all.iter().map(Word::as_str));
    match own {
        0 => !all.is_empty() && all.len() <= MOST_BARE_WORDS,
        1 | 2 => {
            all.iter().any(|word| lists.follow_up.contains(&word.as_str()))
                || lists.follow_up_first.iter().any(begins)
        }
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
