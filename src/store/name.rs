//! The name of a record's file: when, which and whose.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use crate::error::{Error, Result};
use crate::message::ChatRole;

/// A moment as file names show it: `yyyyMMddTHHmmssfffZ`, to the millisecond, years 0 to 9999. Kept as the number
/// that its 17 digits make, which sorts as time does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameTime(u64);

impl NameTime {
    pub(crate) const MIN: Self = Self(101_000_000_000);

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

    /// One millisecond later; at the end of the year 9999, the same.
    pub(crate) fn next(self) -> Self {
        self.timestamp()
            .and_then(|time| time.checked_add(jiff::SignedDuration::from_millis(1)).ok())
            .and_then(|time| Self::try_from(time).ok())
            .unwrap_or(self)
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
        let (date, rest) = text.split_once('T').ok_or(())?;
        let time = rest.strip_suffix('Z').ok_or(())?;
        let number = |digits: &str, length| {
            let all_digits = digits.len() == length && digits.bytes().all(|b| b.is_ascii_digit());
            all_digits.then(|| digits.parse::<u64>().ok()).flatten().ok_or(())
        };
        let name_time = Self(number(date, 8)? * 1_000_000_000 + number(time, 9)?);
        name_time.timestamp().map(|_| name_time).ok_or(())
    }
}

/// What a record is: a message of some role, or the note that others were forgotten. In the order of the names.
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

/// A record's file name, ordered as conversations are: by time, then number, then the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RecordName {
    pub(crate) time: NameTime,
    pub(crate) seq: u64,
    pub(crate) kind: RecordKind,
}

impl RecordName {
    /// The same time and number under each other kind.
    pub(crate) fn under_other_kinds(self) -> Vec<Self> {
        KINDS
            .iter()
            .map(|&(kind, _)| Self { kind, ..self })
            .filter(|other| *other != self)
            .collect()
    }

    /// The name without its ending, as packs' names show it.
    pub(crate) fn stem(self) -> String {
        self.to_string().replace(".json", "")
    }

    /// The name that [`stem`](Self::stem) was made of.
    pub(crate) fn from_stem(stem: &str) -> Option<Self> {
        format!("{stem}.json").parse().ok()
    }

    pub(crate) fn is_forget(self) -> bool {
        self.kind == RecordKind::Forget
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, text)| text);
        write!(f, "{}_{:04}_{kind}.json", self.time, self.seq)
    }
}

/// Accepts only what `Display` writes, so that no two names mean the same record.
impl FromStr for RecordName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let stem = text.strip_suffix(".json").ok_or(())?;
        let (time, rest) = stem.split_once('_').ok_or(())?;
        let (seq, kind) = rest.split_once('_').ok_or(())?;
        let kind = KINDS.iter().find(|(_, name)| *name == kind).ok_or(())?.0;
        let canonical = seq.len() >= 4
            && seq.bytes().all(|b| b.is_ascii_digit())
            && (seq.len() == 4 || !seq.starts_with('0'));
        let seq = seq.parse().map_err(|_| ())?;
        if !canonical || seq == 0 {
            return Err(());
        }
        let time = time.parse()?;
        Ok(Self { time, seq, kind })
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
