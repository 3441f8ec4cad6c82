//! A search: exact words, phrases in quotes and filters.

use std::fmt;

use jiff::civil::Date;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    secret::reserve,
    text::{
        beginning,
        fold::fold,
        words::{Words, is_unspaced},
    },
    time::{DaySpan, span_of},
    turn::Role,
};

/// Bytes of a search that are looked at.
const LONGEST: usize = 4096;
/// Words of one search that count.
const MOST_WORDS: usize = 200;

/// A search, as somebody typed it: `tram recip* "oat milk" from:me after:2024-05 speaker:Anna`.
///
/// Words are exact, but for letter case and accents; `recip*` finds words that begin so. [`crate::Index::search`] finds
/// candidates; [`SearchQuery::matches`] tells from a candidate's text whether it holds the words.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// Sequences of words that must stand in the text; a single word is a sequence of one.
    pub(crate) phrases: Vec<SearchPhrase>,
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

/// Words that must follow each other in a text, without accents.
#[derive(Clone, PartialEq)]
pub(crate) struct SearchPhrase {
    pub(crate) words: Words,
    /// Its letters, if they are of scripts without spaces: any part of a text may be a word there.
    letters: Option<Zeroizing<String>>,
    /// Whether the last word may go on.
    pub(crate) is_beginning: bool,
}

impl SearchPhrase {
    /// Each word, with whether it may go on.
    pub(crate) fn words(&self) -> impl Iterator<Item = (&str, bool)> {
        let last = self.words.len().saturating_sub(1);
        let words = self.words.range(0..self.words.len()).enumerate();
        words.map(move |(at, (word, _))| (word, self.is_beginning && at == last))
    }

    /// Whether a text with these words holds them.
    fn is_in(&self, text: &str, words: &Words) -> bool {
        if let Some(letters) = &self.letters {
            return letters_of(text).contains(letters.as_str());
        }
        let length = self.words.len();
        (0..(words.len() + 1).saturating_sub(length)).any(|start| {
            let mut here = words.range(start..start + length).map(|(word, _)| word);
            self.words().all(|(wanted, may_go_on)| {
                here.next()
                    .is_some_and(|word| word == wanted || (may_go_on && word.starts_with(wanted)))
            })
        })
    }
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

    /// Whether a text holds all words and phrases, in any letter case and with or without accents.
    pub fn matches(&self, text: &str) -> bool {
        if self.phrases.is_empty() {
            return true;
        }
        let mut words = Words::default();
        words.add(text, usize::MAX);
        let words = words.folded();
        self.phrases.iter().all(|phrase| phrase.is_in(text, &words))
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
        if words.len() > 0 && self.phrases.len() < MOST_WORDS {
            let is_beginning = text.ends_with('*');
            let letters = letters_of(text.trim_end_matches('*'));
            let letters = letters.chars().all(is_unspaced).then_some(letters);
            self.phrases.push(SearchPhrase { words: words.folded(), letters, is_beginning });
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

/// The characters of a text in lower case and without accents.
fn letters_of(text: &str) -> Zeroizing<String> {
    let mut letters = Zeroizing::new(String::new());
    for word in text.split_inclusive(char::is_whitespace) {
        reserve(&mut letters, word.len() * 18);
        letters.extend(fold(word));
    }
    letters
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
