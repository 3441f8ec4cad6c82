//! Times in a question, and how near a day is to them.

mod grammar;
mod meaning;
mod span;
#[cfg(test)]
mod tests;
mod tokens;

use std::ops::RangeInclusive;

use jiff::Zoned;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

use crate::text::language::Language;
use grammar::{Slots, grammar};
use meaning::{Clock, Meaning};
pub use span::DaySpan;
pub(crate) use span::{nearness, span_of, year_of};

/// Words of a question in which times are looked for.
const MOST_WORDS: usize = 400;

/// Days that a question asks for, and the question without the words that name them.
pub(crate) struct TimeWords {
    /// The days, one span for each expression and possible year.
    pub spans: Vec<DaySpan>,
    /// The rest of the question, in lower case.
    pub rest: Zeroizing<String>,
}

/// Finds expressions of time such as "7 May 2023", "in June", "last Tuesday" and "three weeks ago", as a person means
/// them at `now`. A date without a year means the newest one and, less, those of the other `years`. Words of longer
/// relative times stay in the question.
pub(crate) fn spans(
    text: &str,
    language: Language,
    now: &Zoned,
    years: RangeInclusive<i16>,
) -> TimeWords {
    let lower = Zeroizing::new(text.to_lowercase());
    // Composing letters makes a text longer by less than three times.
    let mut text = Zeroizing::new(String::with_capacity(lower.len() * 3));
    text.extend(lower.nfc());
    let tokens = tokens::tokens(&text, MOST_WORDS);
    let clock = Clock { now, years };
    let grammar = grammar(language);
    let mut spans = Vec::new();
    // A time becomes a blank, so that the rest never grows.
    let mut rest = Zeroizing::new(String::with_capacity(text.len() + 1));
    let (mut at, mut from) = (0, 0);
    while let Some(following) = tokens.get(at..).filter(|following| !following.is_empty()) {
        let (length, keep) = match (
            tokens::digits(&text, following, language == Language::German),
            grammar.longest(following),
        ) {
            (Some((date, length)), phrase) if phrase.is_none_or(|(_, other, _)| other < length) => {
                let slots =
                    Slots { year: date.year, month: date.month, day: date.day, ..Slots::default() };
                let meaning = match date.day {
                    Some(_) => Meaning::Date,
                    None => Meaning::Month { is_over: false },
                };
                spans.extend(clock.spans(meaning, &slots, false));
                (length, false)
            }
            (_, Some((phrase, length, slots))) => {
                let found = clock.spans(phrase.meaning, &slots, phrase.since);
                // "Last summer" may be what the message says, too; "yesterday" said another day is another day.
                let is_day = !found.is_empty() && found.iter().all(|span| span.first == span.last);
                spans.extend(found);
                (length, phrase.keep || !(phrase.meaning.is_date() || is_day))
            }
            _ => (1, true),
        };
        if !keep
            && let Some(first) = following.first()
            && let Some(last) = following.get(length - 1)
        {
            rest.push_str(text.get(from..first.range.start).unwrap_or_default());
            rest.push(' ');
            from = last.range.end;
        }
        at += length;
    }
    rest.push_str(text.get(from..).unwrap_or_default());
    TimeWords { spans, rest }
}
