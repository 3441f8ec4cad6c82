//! What a phrase of time means, relative to a clock.
//!
//! | in the data files | days |
//! |---|---|
//! | `days A B` | from today plus A to today plus B |
//! | `part` | today; before four in the morning yesterday, too |
//! | `ago [N]` | N units before now; weeks and months with the days around |
//! | `few-ago` | two to six units before now |
//! | `past [N]`, `few-past` | the last N units up to now |
//! | `unit K` | the calendar's unit: 0 is this week, -1 the last one |
//! | `weekend [last\|this]` | the newest weekend |
//! | `weekday`, `weekday-of-week K` | the newest such day before today; the day of that week |
//! | `month [last]`, `season [last]`, `date`, `day-of-month` | the newest that is not in the future; `last`: that is over |
//! | `year` | that year |
//! | `none` | no days: the future |
//!
//! `since` extends the days up to today; `keep` lets the phrase's words rank.

use std::ops::RangeInclusive;

use jiff::{Span, ToSpan, Zoned, civil::Date};

use super::{
    grammar::{Slots, Unit},
    span::{DaySpan, span_of},
};

/// Years before the newest that a date without a year may mean.
const MOST_YEARS: usize = 20;
/// What such a year counts.
const OLDER: f32 = 0.5;
/// The hour at which the night ends.
const NIGHT_END: i8 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    Days(i32, i32),
    Part,
    Ago(i32),
    FewAgo,
    Past(i32),
    FewPast,
    Unit(i32),
    /// The newest, or the one of a week.
    Weekend(Option<i32>),
    Weekday,
    WeekdayOfWeek(i32),
    Month {
        is_over: bool,
    },
    Season {
        is_over: bool,
    },
    Date,
    DayOfMonth,
    Year,
    Nothing,
}

impl Meaning {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<i32>().ok();
        let is_over = words.contains(&"last");
        Some(match *words.first()? {
            "days" => Self::Days(number(1)?, number(2)?),
            "part" => Self::Part,
            "ago" => Self::Ago(number(1).unwrap_or(1)),
            "few-ago" => Self::FewAgo,
            "past" => Self::Past(number(1).unwrap_or(1)),
            "few-past" => Self::FewPast,
            "unit" => Self::Unit(number(1)?),
            "weekend" if is_over => Self::Weekend(Some(-1)),
            "weekend" => Self::Weekend(words.contains(&"this").then_some(0)),
            "weekday" => Self::Weekday,
            "weekday-of-week" => Self::WeekdayOfWeek(number(1)?),
            "month" => Self::Month { is_over },
            "season" => Self::Season { is_over },
            "date" => Self::Date,
            "day-of-month" => Self::DayOfMonth,
            "year" => Self::Year,
            "none" => Self::Nothing,
            _ => return None,
        })
    }

    /// Whether it is a date, not counted from now.
    pub(super) fn is_date(self) -> bool {
        matches!(self, Self::Month { .. } | Self::Date | Self::DayOfMonth | Self::Year)
    }
}

/// The time of a question, and the years that it may be about.
pub(super) struct Clock<'a> {
    pub now: &'a Zoned,
    pub years: RangeInclusive<i16>,
}

impl Clock<'_> {
    /// The spans of days of a phrase, none of them in the future unless a year says so. A date without a year means
    /// the newest one and, less, those of the years before.
    pub(super) fn spans(&self, meaning: Meaning, slots: &Slots, since: bool) -> Vec<DaySpan> {
        let today = self.now.date();
        let mut spans: Vec<(Date, Date, f32)> = match meaning {
            Meaning::Month { is_over } => {
                let Some(month) = slots.month else { return Vec::new() };
                let month = |year| {
                    let first = Date::new(year, month, 1).ok()?;
                    Some((first, first.last_of_month()))
                };
                self.newest(slots.year, is_over, month)
            }
            Meaning::Season { is_over } => {
                let Some(season) = slots.season else { return Vec::new() };
                let season = |year| {
                    let first = Date::new(year, 3 + 3 * season, 1).ok()?;
                    Some((first, first.checked_add(2.months()).ok()?.last_of_month()))
                };
                self.newest(slots.year, is_over, season)
            }
            Meaning::Date => {
                let (Some(month), Some(day)) = (slots.month, slots.day) else { return Vec::new() };
                self.newest(slots.year, false, |year| {
                    let day = Date::new(year, month, day).ok()?;
                    Some((day, day))
                })
            }
            _ => self
                .single(meaning, slots)
                .map(|(first, last)| (first, last, 1.))
                .into_iter()
                .collect(),
        };
        if slots.year.is_none() {
            spans.retain(|(first, ..)| *first <= today);
            spans.iter_mut().for_each(|(_, last, _)| *last = (*last).min(today));
        }
        if since {
            spans.truncate(1);
            spans.iter_mut().for_each(|(_, last, _)| *last = today.max(*last));
        }
        spans.into_iter().filter_map(|(first, last, weight)| span_of(first, last, weight)).collect()
    }

    /// The newest of what returns every year, and those of the years before with less weight; or the year's own.
    fn newest(
        &self,
        year: Option<i16>,
        is_over: bool,
        of: impl Fn(i16) -> Option<(Date, Date)>,
    ) -> Vec<(Date, Date, f32)> {
        if let Some(year) = year {
            return of(year).map(|(first, last)| (first, last, 1.)).into_iter().collect();
        }
        let today = self.now.date();
        let this = today.year();
        let fits =
            |(first, last): &(Date, Date)| if is_over { *last < today } else { *first <= today };
        let found = |year: i16| Some((year, of(year).filter(fits)?));
        // 29 February returns after up to eight years.
        let newest = (this.saturating_sub(9)..=this).rev().find_map(found);
        let Some((newest, (first, last))) = newest else { return Vec::new() };
        let mut spans = vec![(first, last, 1.)];
        let before = newest.saturating_sub(1).min(*self.years.end());
        let years = (*self.years.start()..=before).rev().take(MOST_YEARS);
        spans.extend(years.filter_map(of).map(|(first, last)| (first, last, OLDER)));
        spans
    }

    /// What means one span.
    fn single(&self, meaning: Meaning, slots: &Slots) -> Option<(Date, Date)> {
        let today = self.now.date();
        let day = |offset: i32| today.checked_add(i64::from(offset).days()).ok();
        match meaning {
            Meaning::Days(first, last) => Some((day(first)?, day(last)?)),
            Meaning::Part => {
                Some((if self.now.hour() < NIGHT_END { day(-1)? } else { today }, today))
            }
            Meaning::Ago(number) => self.ago(slots.number.unwrap_or(number), slots.unit?),
            Meaning::FewAgo => {
                let (first, _) = self.ago(6, slots.unit?)?;
                let (_, last) = self.ago(2, slots.unit?)?;
                Some((first, last))
            }
            Meaning::Past(number) => self.past(slots.number.unwrap_or(number), slots.unit?),
            Meaning::FewPast => self.past(6, slots.unit?),
            Meaning::Unit(offset) => self.unit(offset, slots.unit?),
            Meaning::Weekend(Some(week)) => self.unit(week, Unit::Weekend),
            Meaning::Weekend(None) => self
                .unit(0, Unit::Weekend)
                .filter(|(first, _)| *first <= today)
                .or_else(|| self.unit(-1, Unit::Weekend)),
            Meaning::Weekday => {
                let back = (weekday(today) - slots.weekday? + 6).rem_euclid(7) + 1;
                Some((day(-back)?, day(-back)?))
            }
            Meaning::WeekdayOfWeek(week) => {
                let found = day(slots.weekday? - weekday(today) + 7 * week)?;
                Some((found, found))
            }
            Meaning::DayOfMonth => {
                let first = today.first_of_month();
                let of = |back: i64| {
                    let month = first.checked_sub(back.months()).ok()?;
                    Date::new(month.year(), month.month(), slots.day?).ok()
                };
                let found = (0..=2).filter_map(of).find(|found| *found <= today)?;
                Some((found, found))
            }
            Meaning::Year => self.year(slots.year?),
            _ => None,
        }
    }

    /// The days around a number of units before now.
    fn ago(&self, number: i32, unit: Unit) -> Option<(Date, Date)> {
        let today = self.now.date();
        let around = |middle: Date, days: i32| {
            Some((middle.checked_sub(days.days()).ok()?, middle.checked_add(days.days()).ok()?))
        };
        match unit {
            Unit::Minute | Unit::Hour => {
                let then = self.moment(number, unit)?;
                Some((then, then))
            }
            Unit::Day => around(today.checked_sub(number.days()).ok()?, 0),
            Unit::Week => around(today.checked_sub(number.weeks()).ok()?, 3),
            Unit::Weekend => self.unit(number.checked_neg()?, unit),
            Unit::Month => around(today.checked_sub(number.months()).ok()?, 15),
            Unit::Year => self.year(i16::try_from(i32::from(today.year()) - number).ok()?),
        }
    }

    /// The days from a number of units before now on.
    fn past(&self, number: i32, unit: Unit) -> Option<(Date, Date)> {
        let today = self.now.date();
        let span: Span = match unit {
            Unit::Minute | Unit::Hour => return Some((self.moment(number, unit)?, today)),
            Unit::Day => number.days(),
            Unit::Week | Unit::Weekend => number.weeks(),
            Unit::Month => number.months(),
            Unit::Year => number.years(),
        };
        Some((today.checked_sub(span).ok()?, today))
    }

    /// The day of a moment some minutes or hours ago.
    fn moment(&self, number: i32, unit: Unit) -> Option<Date> {
        let span = if unit == Unit::Hour { number.hours() } else { number.minutes() };
        Some(self.now.checked_sub(span).ok()?.date())
    }

    /// A day, week, month or year of the calendar, counted from the one of today.
    fn unit(&self, offset: i32, unit: Unit) -> Option<(Date, Date)> {
        let today = self.now.date();
        let monday = || today.checked_add((7 * offset - weekday(today)).days()).ok();
        match unit {
            Unit::Minute | Unit::Hour => Some((today, today)),
            Unit::Day => {
                let day = today.checked_add(offset.days()).ok()?;
                Some((day, day))
            }
            Unit::Week => Some((monday()?, monday()?.checked_add(6.days()).ok()?)),
            Unit::Weekend => {
                Some((monday()?.checked_add(5.days()).ok()?, monday()?.checked_add(6.days()).ok()?))
            }
            Unit::Month => {
                let first = today.first_of_month().checked_add(offset.months()).ok()?;
                Some((first, first.last_of_month()))
            }
            Unit::Year => self.year(i16::try_from(i32::from(today.year()) + offset).ok()?),
        }
    }

    fn year(&self, year: i16) -> Option<(Date, Date)> {
        let first = Date::new(year, 1, 1).ok()?;
        Some((first, first.last_of_year()))
    }
}

/// Days since Monday.
fn weekday(day: Date) -> i32 {
    i32::from(day.weekday().to_monday_zero_offset())
}
