//! A search: exact words, phrases in quotes and filters.

use std::{fmt, ops::Range};

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

/// The most bytes of a search.
const LONGEST: usize = 4096;
/// The most words of a search.
const MOST_WORDS: usize = 200;
/// How many bytes are shown of what is beyond the longest search.
const SHOWN: usize = 40;

/// A search, as somebody typed it: `tram recip* "oat milk" from:me after:2024-05 speaker:Anna`.
///
/// Words are exact, but for letter case and accents; `recip*` finds words that begin so. [`crate::Index::search`] finds
/// candidates; [`SearchQuery::matches`] tells from a candidate's text whether it holds the words.
#[derive(Clone, Default, PartialEq)]
pub struct SearchQuery {
    /// Sequences of words that must stand in the text; a single word is a sequence of one.
    pub(crate) phrases: Vec<SearchPhrase>,
    /// The same as they were typed.
    text: Zeroizing<String>,
    /// The role that must have written it: `from:user` or `from:me`, `from:assistant` or `from:you`, `from:tool`.
    pub from: Option<Role>,
    /// The speaker who must have said it. `from:` with another word than a role means a speaker too.
    pub speaker: Option<String>,
    /// Only before these days: `before:2024`, `before:2024-05` or `before:2024-05-11`.
    pub before: Option<DaySpan>,
    /// Only after these days.
    pub after: Option<DaySpan>,
}

/// The part of a search that has no meaning. Without it the search would find more than was asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct NotUnderstood(Zeroizing<String>);

impl NotUnderstood {
    /// What to type instead.
    pub const HELP: &str = "write a day as 2025, 2025-05 or 2025-05-11, a name after from: or speaker:, each filter once, and at most 200 words";

    /// The part, as typed.
    pub fn part(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of the search is not understood")
    }
}

/// Shows no words.
impl fmt::Debug for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NotUnderstood")
    }
}

impl std::error::Error for NotUnderstood {}

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

    /// Where a text with these words holds them, in bytes of the text.
    pub(crate) fn places<'a>(
        &'a self,
        text: &'a str,
        words: &'a Words,
    ) -> Box<dyn Iterator<Item = Range<usize>> + 'a> {
        if let Some(letters) = &self.letters {
            return Box::new(places_of(letters, text));
        }
        let length = self.words.len();
        let starts = 0..(words.len() + 1).saturating_sub(length);
        let starts = starts.filter(move |start| self.stands_at(*start, text, words));
        Box::new(starts.map(move |start| {
            words.source(start).start..words.source((start + length).saturating_sub(1)).end
        }))
    }

    fn stands_at(&self, start: usize, text: &str, words: &Words) -> bool {
        let mut here = words.range(start..words.len()).zip(start..);
        self.words().all(|(wanted, may_go_on)| {
            let Some(((word, _), at)) = here.next() else { return false };
            // "doctors" is in "doctor's", whose ending is no part of the word.
            let is_joined = || {
                let source = text.get(words.source(at)).unwrap_or_default();
                let letters = || fold(source).filter(|c| !matches!(c, '\'' | '’'));
                source.contains(['\'', '’']) && letters().eq(wanted.chars())
            };
            word == wanted
                || (may_go_on && word.starts_with(wanted))
                || (wanted.starts_with(word) && is_joined())
        })
    }
}

impl SearchQuery {
    /// Reads a search. What is no filter is a word.
    ///
    /// # Errors
    /// [`NotUnderstood`] for a filter without a meaning or with a second value, and for the end of what is longer than 4,096 bytes or
    /// 200 words.
    pub fn parse(text: &str) -> Result<Self, NotUnderstood> {
        let refused = |part: &str| Err(NotUnderstood(Zeroizing::new(part.to_owned())));
        match text.strip_prefix(beginning(text, LONGEST)) {
            None | Some("") => {}
            Some(end) => return refused(beginning(end, SHOWN)),
        }
        let mut query = Self::default();
        for part in parts(text) {
            if !query.add_filter(part).unwrap_or_else(|| query.add_phrase(part)) {
                return refused(part);
            }
        }
        Ok(query)
    }

    /// Reads words and phrases to look for in a title, where there are no filters.
    pub fn of_words(text: &str) -> Self {
        let mut query = Self::default();
        for part in parts(beginning(text, LONGEST)) {
            query.add_phrase(part);
        }
        query
    }

    /// Whether it asks for nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The words and phrases as they were typed, without the filters.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text holds all words and phrases, in any letter case and with or without accents.
    pub fn matches(&self, text: &str) -> bool {
        if self.phrases.is_empty() {
            return true;
        }
        let words = Words::of(text).folded();
        self.phrases.iter().all(|phrase| phrase.places(text, &words).next().is_some())
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

    /// Adds words that follow each other. Returns false if there are too many.
    fn add_phrase(&mut self, part: &str) -> bool {
        let text = part.trim_matches(is_quote);
        let mut words = Words::default();
        words.add(text, MOST_WORDS + 1);
        if words.len() > MOST_WORDS || self.phrases.len() >= MOST_WORDS {
            return false;
        }
        if words.len() > 0 {
            let is_beginning = text.ends_with('*');
            let mut letters = Zeroizing::new(String::with_capacity(text.len() * 18));
            letters.extend(fold(text.trim_end_matches('*')));
            let letters = letters.chars().all(is_unspaced).then_some(letters);
            reserve(&mut self.text, part.len() + 1);
            let blank = if self.text.is_empty() { "" } else { " " };
            [blank, part].iter().for_each(|part| self.text.push_str(part));
            self.phrases.push(SearchPhrase { words: words.folded(), letters, is_beginning });
        }
        true
    }

    /// Reads a part, if it is a filter. Returns whether it has a meaning beside those before it.
    fn add_filter(&mut self, part: &str) -> Option<bool> {
        let (name, value) = part.split_once(':')?;
        let value = value.trim_matches(is_quote);
        Some(match (Zeroizing::new(name.to_ascii_lowercase()).as_str(), value) {
            ("from" | "speaker" | "before" | "after", "") => false,
            ("from", value) => match Zeroizing::new(value.to_lowercase()).as_str() {
                "user" | "me" => set(&mut self.from, || Some(Role::User)),
                "assistant" | "you" => set(&mut self.from, || Some(Role::Assistant)),
                "tool" => set(&mut self.from, || Some(Role::Tool)),
                "system" => set(&mut self.from, || Some(Role::System)),
                _ => set(&mut self.speaker, || Some(value.to_owned())),
            },
            ("speaker", value) => set(&mut self.speaker, || Some(value.to_owned())),
            ("before", value) => set(&mut self.before, || days(value)),
            ("after", value) => set(&mut self.after, || days(value)),
            _ => return None,
        })
    }
}

/// Sets a filter that has no value yet. Returns false if there is none to set, or it has one.
fn set<T>(filter: &mut Option<T>, value: impl FnOnce() -> Option<T>) -> bool {
    let is_free = filter.is_none();
    if is_free {
        *filter = value();
    }
    is_free && filter.is_some()
}

/// The words, phrases in quotes and filters of a text.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (part, after) = if is_quote(first) { quoted(rest) } else { unquoted(rest) };
        rest = after.trim_start();
        Some(part)
    })
}

/// Where letters of scripts without spaces stand in a text, whatever form it writes them in.
fn places_of<'a>(letters: &'a str, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let begins = |at: &usize| {
        let mut here = fold(text.get(*at..).unwrap_or_default());
        letters.chars().all(|letter| here.next() == Some(letter))
    };
    let starts = text.char_indices().filter(|(_, c)| !c.is_ascii()).map(|(at, _)| at);
    starts.filter(begins).filter_map(|at| {
        let mut ends = text.get(at..)?.char_indices().map(|(last, c)| at + last + c.len_utf8());
        let is_all =
            |end: &usize| text.get(at..*end).is_some_and(|part| fold(part).eq(letters.chars()));
        Some(at..ends.find(is_all)?)
    })
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
