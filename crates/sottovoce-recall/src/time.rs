//! Dates in a question, and how near a day is to them.

use std::{ops::RangeInclusive, sync::OnceLock};

use jiff::{Span, Zoned, civil::Date};
use regex_lite::{Captures, Regex};
use zeroize::Zeroizing;

/// Days that a question asks for, in days since 1970-01-01, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaySpan {
    /// The first day.
    pub first: i32,
    /// The last day.
    pub last: i32,
}

/// Days that a question asks for, and the question without the words that name them.
pub(crate) struct TimeWords {
    /// The days, one span for each date and possible year.
    pub spans: Vec<DaySpan>,
    /// The rest of the question, in lower case.
    pub rest: Zeroizing<String>,
}

/// Year, month and day as far as they are named.
type Parts = (Option<i16>, Option<i8>, Option<i8>);

/// A form of dates, and how to read it.
type Pattern = (Regex, fn(&Captures<'_>) -> Parts);

/// Finds dates such as "7 May 2023", "in June" and "2023-05-07". A date without a year means each of `years`.
pub(crate) fn spans(text: &str, _now: &Zoned, years: RangeInclusive<i16>) -> TimeWords {
    let text = Zeroizing::new(text.to_lowercase());
    let mut spans = Vec::new();
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for (pattern, read) in patterns() {
        for captures in pattern.captures_iter(&text) {
            let Some(range) = captures.get(0).map(|found| found.range()) else { continue };
            if found.iter().any(|other| other.start < range.end && range.start < other.end) {
                continue;
            }
            let (year, month, day) = read(&captures);
            found.push(range);
            match year {
                Some(year) => spans.extend(span(year, month, day)),
                None => spans.extend(years.clone().filter_map(|year| span(year, month, day))),
            }
        }
    }
    found.sort_by_key(|range| range.start);
    // A date becomes a blank, so that the rest never grows.
    let mut rest = Zeroizing::new(String::with_capacity(text.len() + 1));
    let mut from = 0;
    for range in found {
        rest.push_str(text.get(from..range.start).unwrap_or_default());
        rest.push(' ');
        from = range.end;
    }
    rest.push_str(text.get(from..).unwrap_or_default());
    TimeWords { spans, rest }
}

/// How near a day is to the spans, from 0 to 1. Events are told after they happened, so later days count more.
pub(crate) fn nearness(day: i32, spans: &[DaySpan]) -> f32 {
    let near = |span: &DaySpan| {
        let days = span.last.saturating_sub(span.first).saturating_add(1);
        let weight = if days <= 40 { 1. } else { 0.25 };
        let fade = |distance: i32, days: f32| (-((distance - 1) as f32) / days).exp();
        weight
            * if day > span.last {
                0.8 * fade(day.saturating_sub(span.last), if days == 1 { 3. } else { 10. })
            } else if day < span.first {
                0.5 * fade(span.first.saturating_sub(day), if days == 1 { 4. } else { 10. })
            } else {
                1.
            }
    };
    spans.iter().map(near).fold(0., f32::max)
}

fn span(year: i16, month: Option<i8>, day: Option<i8>) -> Option<DaySpan> {
    let first = Date::new(year, month.unwrap_or(1), day.unwrap_or(1)).ok()?;
    let last = match (month, day) {
        (_, Some(_)) => first,
        (Some(_), None) => first.last_of_month(),
        (None, None) => first.last_of_year(),
    };
    Some(DaySpan { first: day_number(first)?, last: day_number(last)? })
}

/// Days since 1970-01-01.
pub(crate) fn day_number(date: Date) -> Option<i32> {
    date.since(Date::constant(1970, 1, 1)).ok().map(|span| span.get_days())
}

/// The year of a day.
pub(crate) fn year_of(day: i32) -> Option<i16> {
    let days = Span::new().try_days(day).ok()?;
    Date::constant(1970, 1, 1).checked_add(days).ok().map(|date| date.year())
}

fn patterns() -> &'static [Pattern] {
    static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let month = "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?\
                     |oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\.?";
        let day = r"(\d{1,2})(?:st|nd|rd|th)?";
        type Form = (String, fn(&Captures<'_>) -> Parts);
        let table: [Form; 9] = [
            (r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b".into(), |c| (number(c, 1), small(c, 2), small(c, 3))),
            (r"\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b".into(), |c| (number(c, 3), small(c, 2), small(c, 1))),
            (format!(r"\b{day}(?: of)? {month},? (\d{{4}})\b"), |c| (number(c, 3), named(c, 2), small(c, 1))),
            (format!(r"\b{month} {day},? (\d{{4}})\b"), |c| (number(c, 3), named(c, 1), small(c, 2))),
            (format!(r"\b{month},? (?:of )?(\d{{4}})\b"), |c| (number(c, 2), named(c, 1), None)),
            (format!(r"\b{month} {day}\b"), |c| (None, named(c, 1), small(c, 2))),
            (format!(r"\b{day}(?: of)? {month}\b"), |c| (None, named(c, 2), small(c, 1))),
            (
                format!(r"\b(?:in|of|during|last|this|since|until|by|before|after|early|late|mid) {month}\b"),
                |c| (None, named(c, 1), None),
            ),
            (r"\b(20\d\d)\b".into(), |c| (number(c, 1), None, None)),
        ];
        table.into_iter().filter_map(|(pattern, read)| Some((Regex::new(&pattern).ok()?, read))).collect()
    })
}

fn number(captures: &Captures<'_>, group: usize) -> Option<i16> {
    captures.get(group)?.as_str().parse().ok()
}

fn small(captures: &Captures<'_>, group: usize) -> Option<i8> {
    captures.get(group)?.as_str().parse().ok()
}

fn named(captures: &Captures<'_>, group: usize) -> Option<i8> {
    let months =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let name = captures.get(group)?.as_str().get(..3)?;
    Some(months.iter().position(|month| *month == name)? as i8 + 1)
}
