//! Days, and how near a day is to those that a question asks for.

use jiff::{Span, civil::Date};

/// Days that a question asks for, in days since 1970-01-01, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DaySpan {
    /// The first day.
    pub first: i32,
    /// The last day.
    pub last: i32,
    /// What it counts, up to 1. "In May" means the newest May, but may mean the one before.
    pub weight: f32,
}

/// How near a day is to the spans, from 0 to 1. Events are told after they happened, so later days count more.
pub(crate) fn nearness(day: i32, spans: &[DaySpan]) -> f32 {
    let near = |span: &DaySpan| {
        let days = span.last.saturating_sub(span.first).saturating_add(1);
        let weight = if days <= 40 { span.weight } else { 0.25 * span.weight };
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

pub(crate) fn span_of(first: Date, last: Date, weight: f32) -> Option<DaySpan> {
    Some(DaySpan { first: day_number(first)?, last: day_number(last)?, weight })
}

/// Days since 1970-01-01.
pub(super) fn day_number(date: Date) -> Option<i32> {
    date.since(Date::constant(1970, 1, 1)).ok().map(|span| span.get_days())
}

/// The year of a day.
pub(crate) fn year_of(day: i32) -> Option<i16> {
    let days = Span::new().try_days(day).ok()?;
    Date::constant(1970, 1, 1).checked_add(days).ok().map(|date| date.year())
}
