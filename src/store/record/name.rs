//! Record file names: time, number and kind.

pub(crate) mod pack_name;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use crate::error::{Error, Result};
use crate::message::ChatRole;

/// A time as file names show it: `yyyyMMddTHHmmssfffZ`, in milliseconds, years 0 to 9999. It is kept as the number of
/// its 17 digits, which sorts like the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameTime(u64);

impl NameTime {
    pub(crate) const MIN: Self = Self(101_000_000_000);
    /// The last millisecond that a [`Timestamp`] can hold.
    const MAX: Self = Self(99_991_230_220_000_999);

    pub(crate) fn timestamp(self) -> Option<Timestamp> {
        let [hour_and_up, minute, second, millisecond] = self.split();
        let [year, month, day, hour] = Self::split_date(hour_and_up);
        let civil = DateTime::new(
            i16::try_from(year).ok()?,
            i8::try_from(month).ok()?,
            i8::try_from(day).ok()?,
            i8::try_from(hour).ok()?,
            i8::try_from(minute).ok()?,
            i8::try_from(second).ok()?,
            i32::try_from(millisecond).ok()? * 1_000_000,
        )
        .ok()?;
        Offset::UTC.to_timestamp(civil).ok()
    }

    /// This time or, if another is later, the next one after that with these milliseconds. So the places of what is said
    /// after a message from the future are as far from each other as the times, and two devices seldom give the same one.
    /// What would be almost a second later was said a little before, and comes right after it.
    pub(crate) fn not_before(self, other: Self) -> Self {
        let until = (self.0 + 1000 - other.0 % 1000) % 1000;
        let later = || other.later(if until > 900 { 1 } else { until.max(1) });
        if self < other { later() } else { self }
    }

    /// Some milliseconds later. The end of the year 9999 stays the same.
    pub(crate) fn later(self, milliseconds: u64) -> Self {
        let by = Duration::from_millis(milliseconds);
        let later = self.timestamp().and_then(|time| time.checked_add(by).ok());
        later.and_then(|time| Self::try_from(time).ok()).unwrap_or(self)
    }

    /// The 17 digits without the letters.
    pub(crate) fn digits(self) -> String {
        format!("{:017}", self.0)
    }

    pub(crate) fn from_digits(digits: &[u8]) -> Option<Self> {
        number(digits).filter(|_| digits.len() == 17).and_then(Self::possible)
    }

    /// Checks that the digits are a valid time. It needs no calendar, because each listing parses hundreds of names.
    fn possible(digits: u64) -> Option<Self> {
        let time = Self(digits);
        let [hour_and_up, minute, second, _] = time.split();
        let [year, month, day, hour] = Self::split_date(hour_and_up);
        let days = match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        let possible = (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60;
        (possible && time <= Self::MAX).then_some(time)
    }

    fn split(self) -> [u64; 4] {
        let n = self.0;
        [n / 10_000_000, n / 100_000 % 100, n / 1_000 % 100, n % 1_000]
    }

    fn split_date(n: u64) -> [u64; 4] {
        [n / 1_000_000, n / 10_000 % 100, n / 100 % 100, n % 100]
    }
}

impl TryFrom<Timestamp> for NameTime {
    type Error = Error;

    fn try_from(timestamp: Timestamp) -> Result<Self> {
        let t = TimeZone::UTC.to_datetime(timestamp);
        let year = u64::try_from(t.year())
            .map_err(|_| Error::InvalidMessage { reason: "its time is before the year 0" })?;
        let part = |value: i8| value.unsigned_abs().into();
        let digits = [part(t.month()), part(t.day()), part(t.hour()), part(t.minute())]
            .into_iter()
            .chain([part(t.second())])
            .fold(year, |number: u64, two: u64| number * 100 + two);
        Ok(Self(digits * 1_000 + u64::from(t.millisecond().unsigned_abs())))
    }
}

impl fmt::Display for NameTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = self.0 / 1_000_000_000;
        write!(f, "{date:08}T{:09}Z", self.0 % 1_000_000_000)
    }
}

impl FromStr for NameTime {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (date, rest) = text.as_bytes().split_at_checked(8).ok_or(())?;
        let [b'T', time @ .., b'Z'] = rest else {
            return Err(());
        };
        let time = number(time).filter(|_| time.len() == 9).ok_or(())?;
        Self::possible(number(date).ok_or(())? * 1_000_000_000 + time).ok_or(())
    }
}

/// A number of up to 18 decimal digits and nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    let all = (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    all.then(|| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// The kind of a record: a message of some role, or a forget record. Kinds sort like their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RecordKind {
    Assistant,
    Forget,
    System,
    Tool,
    User,
}

const KINDS: [(RecordKind, &str); 5] = [
    (RecordKind::Assistant, "assistant"),
    (RecordKind::Forget, "forget"),
    (RecordKind::System, "system"),
    (RecordKind::Tool, "tool"),
    (RecordKind::User, "user"),
];

impl RecordKind {
    fn as_str(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, text)| text)
    }

    /// The first letter of the name.
    pub(crate) fn letter(self) -> char {
        self.as_str().chars().next().unwrap_or(' ')
    }

    /// The message role with this letter. A forget record has none.
    pub(crate) fn of_letter(letter: u8) -> Option<Self> {
        let starts = |(_, text): &&(Self, &str)| text.as_bytes().first() == Some(&letter);
        KINDS.iter().find(starts).map(|(kind, _)| *kind).filter(|kind| *kind != Self::Forget)
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<ChatRole> for RecordKind {
    fn from(role: ChatRole) -> Self {
        match role {
            ChatRole::Assistant => Self::Assistant,
            ChatRole::System => Self::System,
            ChatRole::Tool => Self::Tool,
            ChatRole::User => Self::User,
        }
    }
}

/// A record's file name. Names sort in conversation order: by time, then number, then text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RecordName {
    pub(crate) time: NameTime,
    pub(crate) seq: u64,
    pub(crate) kind: RecordKind,
}

impl RecordName {
    /// Sorts before every record.
    pub(crate) const FIRST: Self =
        Self { time: NameTime::MIN, seq: 0, kind: RecordKind::Assistant };

    /// The name without its extension, as pack names use it.
    pub(crate) fn stem(self) -> String {
        format!("{}_{:04}_{}", self.time, self.seq, self.kind)
    }

    /// The reverse of [`stem`](Self::stem).
    pub(crate) fn from_stem(stem: &str) -> Option<Self> {
        let (time, rest) = stem.split_at_checked(19)?;
        let (seq, kind) = rest.strip_prefix('_')?.split_once('_')?;
        let kind = KINDS.iter().find(|(_, name)| *name == kind)?.0;
        let canonical = seq.len() == 4 || seq.len() > 4 && !seq.starts_with('0');
        let seq = seq.parse().ok().filter(|_| seq.bytes().all(|b| b.is_ascii_digit()))?;
        (canonical && seq > 0).then_some(Self { time: time.parse().ok()?, seq, kind })
    }

    pub(crate) fn is_forget(self) -> bool {
        self.kind == RecordKind::Forget
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{:04}_{}.json", self.time, self.seq, self.kind)
    }
}

/// Accepts only what `Display` writes, so that each record has exactly one name.
impl FromStr for RecordName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.strip_suffix(".json").and_then(Self::from_stem).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_name_comes_back_and_sorts_as_its_time(
            a in -62_167_219_200_000i64..=253_402_207_200_000,
            b in -62_167_219_200_000i64..=253_402_207_200_000,
            seq in 1u64..,
        ) {
            let of = |ms| NameTime::try_from(Timestamp::from_millisecond(ms).unwrap()).unwrap();
            let name = RecordName { time: of(a), seq, kind: RecordKind::User };
            prop_assert_eq!(name.to_string().parse(), Ok(name));
            prop_assert_eq!(name.time.timestamp().unwrap().as_millisecond(), a);
            prop_assert_eq!(of(a).cmp(&of(b)), a.cmp(&b));
        }

        #[test]
        fn whatever_parses_is_written_the_same(text in "[0-9]{8}T[0-9]{9}Z_[0-9]{1,21}_(user|forget)\\.json") {
            if let Ok(name) = text.parse::<RecordName>() {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }

    #[test]
    fn dates_are_possible_as_the_calendar_says() {
        for year in [0, 1, 1900, 2000, 2023, 2024, 9999] {
            for (month, day) in (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
                for time in [
                    "000000000",
                    "220000999",
                    "220001000",
                    "235959999",
                    "240000000",
                    "006000000",
                    "000060000",
                ] {
                    let text = format!("{year:04}{month:02}{day:02}T{time}Z");
                    let time = NameTime(text.replace(['T', 'Z'], "").parse().unwrap());
                    assert_eq!(
                        text.parse::<NameTime>().is_ok(),
                        time.timestamp().is_some(),
                        "{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_said_after_a_message_from_the_future_keeps_its_distances() {
        let of = |text: &str| NameTime::try_from(text.parse::<Timestamp>().unwrap()).unwrap();
        let future = of("2035-12-31T23:59:59.950Z");
        for (own, before, expected) in [
            ("2035-12-31T23:59:59.950Z", future, "2035-12-31T23:59:59.950Z"),
            ("2036-01-01T00:00:00Z", future, "2036-01-01T00:00:00Z"),
            ("2025-08-24T16:36:25.123Z", future, "2036-01-01T00:00:00.123Z"),
            (
                "2025-08-24T16:36:25.150Z",
                of("2036-01-01T00:00:00.123Z"),
                "2036-01-01T00:00:00.150Z",
            ),
            // Two threads said something at once, and one of a millisecond.
            (
                "2025-08-24T16:36:25.122Z",
                of("2025-08-24T16:36:25.123Z"),
                "2025-08-24T16:36:25.124Z",
            ),
            ("1970-01-01T00:00:00.950Z", future, "2035-12-31T23:59:59.951Z"),
        ] {
            assert_eq!(of(own).not_before(before), of(expected), "{own}");
        }
        assert_eq!(NameTime::MIN.not_before(NameTime::MAX), NameTime::MAX);
    }

    #[test]
    fn names_of_other_systems_and_impossible_dates_are_foreign() {
        for text in [
            "",
            "head",
            "20250824T163625123Z_0001_user",
            "20250824T163625123Z_001_user.json",
            "20250824T163625123Z_00001_user.json",
            "20250824T163625123Z_0000_user.json",
            "20250824T163625123Z_+001_user.json",
            "20250824T163625123Z_0001_User.json",
            "20250824T163625123Z_0001_user.json.bak",
            "20250230T163625123Z_0001_user.json",
            "20250824T243625123Z_0001_user.json",
            "20250824T163660123Z_0001_user.json",
            "20250824T163625123Z_99999999999999999999999_user.json",
            "２0250824T163625123Z_0001_user.json",
        ] {
            assert!(text.parse::<RecordName>().is_err(), "{text}");
        }
        assert!(NameTime::try_from(Timestamp::MIN).is_err());
        assert_eq!(NameTime::MIN.to_string(), "00000101T000000000Z");
    }
}
