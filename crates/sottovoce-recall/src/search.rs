//! A search: exact words, phrases in quotes and filters.

use std::fmt;

use jiff::civil::Date;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    secret::Word,
    text::{
        beginning,
        words::{Words, is_unspaced},
    },
    time::{DaySpan, span_of},
    turn::Role,
};

/// Bytes of a search that are looked at.
const LONGEST: usize = 4096;
/// Words of one search that count.
const MOST_WORDS: usize = 200;

/// A search, as somebody typed it: `tram "oat milk" from:me after:2024-05 speaker:Anna`.
///
/// [`crate::Index::search`] finds candidates; [`SearchQuery::matches`] tells from a candidate's text whether it holds
/// the words exactly.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// Sequences of words that must stand in the text; a single word is a sequence of one.
    pub(crate) phrases: Vec<Vec<Word>>,
    /// The role that must have written it: `from:user` or `from:me`, `from:assistant` or `from:you`, `from:tool`.
    pub from: Option<Role>,
    /// The speaker who must have said it. `from:` with another word than a role means a speaker too.
    pub speaker: Option<String>,
    /// Only before these days: `before:2024`, `before:2024-05` or `before:2024-05-11`.
    pub before: Option<DaySpan>,
    /// Only after these days.
    pub after: Option<DaySpan>,
    /// Filters whose value was not understood, as typed. The caller may read `before:` and `after:` in other ways.
    pub unknown: Vec<String>,
}

impl SearchQuery {
    /// Reads a search. It never fails: what is no filter is a word, and `unknown` names filters without a meaning.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let mut rest = beginning(text, LONGEST).trim_start();
        while let Some(first) = rest.chars().next() {
            let (part, after) = if is_quote(first) { quoted(rest) } else { unquoted(rest) };
            rest = after.trim_start();
            if !query.add_filter(part) {
                query.add_phrase(part.trim_matches(is_quote));
            }
        }
        query
    }

    /// Whether it asks for nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a text holds all words and phrases exactly, in any case.
    pub fn matches(&self, text: &str) -> bool {
        let mut words = Words::default();
        words.add(text, usize::MAX / 1024);
        self.phrases.iter().all(|phrase| match phrase.as_slice() {
            [only] if only.as_str().chars().all(is_unspaced) => {
                Zeroizing::new(text.to_lowercase()).contains(only.as_str())
            }
            phrase => (0..words.len()).any(|start| {
                let here =
                    words.range(start..words.len().min(start + phrase.len())).map(|(word, _)| word);
                here.eq(phrase.iter().map(Word::as_str))
            }),
        })
    }

    /// Whether a turn of this role, speaker and day passes the filters.
    pub fn passes(&self, role: Role, speaker: Option<&str>, day: i32) -> bool {
        let lower = |name: &str| Zeroizing::new(name.to_lowercase());
        let is_speaker = |wanted: &String| speaker.is_some_and(|name| lower(name) == lower(wanted));
        self.from.is_none_or(|from| from == role)
            && self.speaker.as_ref().is_none_or(is_speaker)
            && self.before.is_none_or(|span| day < span.first)
            && self.after.is_none_or(|span| day > span.last)
    }

    fn add_phrase(&mut self, text: &str) {
        let mut words = Words::default();
        words.add(text, MOST_WORDS);
        let phrase = words.to_list();
        if !phrase.is_empty() && self.phrases.len() < MOST_WORDS {
            self.phrases.push(phrase);
        }
    }

    /// Reads a filter; says whether it was one.
    fn add_filter(&mut self, part: &str) -> bool {
        let Some((name, value)) = part.split_once(':') else { return false };
        let value = value.trim_matches(is_quote);
        let understood = match (Zeroizing::new(name.to_ascii_lowercase()).as_str(), value) {
            ("from" | "speaker" | "before" | "after", "") => false,
            ("from", value) => {
                match Zeroizing::new(value.to_lowercase()).as_str() {
                    "user" | "me" => self.from = Some(Role::User),
                    "assistant" | "you" => self.from = Some(Role::Assistant),
                    "tool" => self.from = Some(Role::Tool),
                    "system" => self.from = Some(Role::System),
                    _ => self.speaker = Some(value.to_owned()),
                }
                true
            }
            ("speaker", value) => {
                self.speaker = Some(value.to_owned());
                true
            }
            ("before", value) => {
                let days = days(value);
                self.before = days.or(self.before);
                days.is_some()
            }
            ("after", value) => {
                let days = days(value);
                self.after = days.or(self.after);
                days.is_some()
            }
            _ => return false,
        };
        if !understood {
            self.unknown.push(part.to_owned());
        }
        true
    }
}

/// The days of `2024`, `2024-05` or `2024-05-11`.
fn days(text: &str) -> Option<DaySpan> {
    let mut parts = text.split('-');
    let year: i16 = parts.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let month = parts.next().map(str::parse::<i8>).transpose().ok()?;
    let day = parts.next().map(str::parse::<i8>).transpose().ok()?;
    if parts.next().is_some() {
        return None;
    }
    let first = Date::new(year, month.unwrap_or(1), day.unwrap_or(1)).ok()?;
    let last = match (month, day) {
        (_, Some(_)) => first,
        (Some(_), None) => first.last_of_month(),
        (None, None) => first.last_of_year(),
    };
    span_of(first, last, 1.)
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»')
}

/// A phrase in quotes, and the rest. A quote without an end reaches to the end.
fn quoted(text: &str) -> (&str, &str) {
    let inner = text.trim_start_matches(is_quote);
    let end = inner.find(is_quote).unwrap_or(inner.len());
    let (phrase, rest) = inner.split_at_checked(end).unwrap_or((inner, ""));
    (phrase, rest.strip_prefix(is_quote).unwrap_or(rest))
}

/// A word or filter, and the rest. A filter's value may stand in quotes.
fn unquoted(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_whitespace() || is_quote(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    if word.ends_with(':') && rest.starts_with(is_quote) {
        let (_, after) = quoted(rest);
        let length = text.len() - after.len();
        return text.split_at_checked(length).unwrap_or((text, ""));
    }
    (word, rest)
}

impl Drop for SearchQuery {
    fn drop(&mut self) {
        self.speaker.zeroize();
        self.unknown.zeroize();
    }
}

/// Shows no words.
impl fmt::Debug for SearchQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchQuery")
            .field("phrases", &self.phrases.len())
            .field("from", &self.from)
            .field("before", &self.before)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
