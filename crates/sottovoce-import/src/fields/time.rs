//! Times as other systems write them: RFC 3339 such as `2025-09-18T21:15:40.1234567+00:00`, with any number of
//! fractional digits, or a number since 1970.

use jiff::Timestamp;
use jiff::fmt::temporal::{Pieces, PiecesOffset};

/// Reads a time, and its offset from UTC in minutes if that is not zero.
pub(crate) fn parse(text: &str) -> Option<(Timestamp, Option<i16>)> {
    let pieces = Pieces::parse(text).ok()?;
    if pieces.time_zone_annotation().is_some() {
        return None;
    }
    let minutes = match pieces.offset()? {
        PiecesOffset::Numeric(given) => i16::try_from(given.offset().seconds() / 60).ok()?,
        _ => 0,
    };
    Some((text.parse().ok()?, (minutes != 0).then_some(minutes)))
}

/// Reads seconds since 1970, rounded to a microsecond, which is the precision of a double.
pub(crate) fn seconds(number: f64) -> Option<Timestamp> {
    let micros = (number * 1e6).round();
    #[expect(clippy::cast_possible_truncation, reason = "it is within the range")]
    let whole = micros as i64;
    (micros.abs() < 1e18).then(|| Timestamp::from_microsecond(whole).ok()).flatten()
}

/// Reads a text like [`parse`], or a number of seconds or milliseconds since 1970. A number below 1e11 is seconds,
/// which reaches the year 5138; as milliseconds it would be before 1974.
pub(crate) fn of_json(json: &str) -> Option<(Timestamp, Option<i16>)> {
    if json.starts_with('"') {
        return parse(&serde_json::from_str::<String>(json).ok()?);
    }
    let number: f64 = serde_json::from_str(json).ok()?;
    let number = if number.abs() < 1e11 { number } else { number / 1e3 };
    Some((seconds(number)?, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use jiff::tz::Offset;
    use proptest::prelude::*;

    /// A time as .NET writes it: without trailing zeros of the fraction, and without the point if no digit remains.
    fn written(local_ticks: i64, minutes: i32) -> String {
        let local = Timestamp::UNIX_EPOCH
            + SignedDuration::new(
                local_ticks.div_euclid(10_000_000),
                i32::try_from(local_ticks.rem_euclid(10_000_000)).unwrap() * 100,
            );
        let civil = Offset::UTC.to_datetime(local);
        let seconds = civil.strftime("%Y-%m-%dT%H:%M:%S");
        let fraction = format!("{:07}", civil.subsec_nanosecond() / 100);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        let sign = if minutes < 0 { '-' } else { '+' };
        let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
        format!("{seconds}{point}{fraction}{sign}{hours:02}:{rest:02}")
    }

    proptest! {
        #[test]
        fn every_tick_at_every_offset_is_read_exactly(
            // The years 2 to 9998.
            ticks in -621_355_000_000_000_000i64..2_533_700_000_000_000_000i64,
            minutes in -14 * 60i32..=14 * 60,
        ) {
            let text = written(ticks + i64::from(minutes) * 600_000_000, minutes);
            let (moment, offset) = parse(&text).unwrap();
            prop_assert_eq!(moment.as_nanosecond(), i128::from(ticks) * 100, "{}", text);
            prop_assert_eq!(i32::from(offset.unwrap_or(0)), minutes);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn a_number_is_seconds_or_milliseconds() {
        for (json, moment) in [
            ("0", "1970-01-01T00:00:00Z"),
            ("1756013462", "2025-08-24T05:31:02Z"),
            ("1756013462.123", "2025-08-24T05:31:02.123Z"),
            ("1756013462.123457", "2025-08-24T05:31:02.123457Z"),
            ("1756013462123", "2025-08-24T05:31:02.123Z"),
            ("1.756013462123e12", "2025-08-24T05:31:02.123Z"),
            ("-1.5", "1969-12-31T23:59:58.5Z"),
            (r#""2025-08-24T05:31:02.123Z""#, "2025-08-24T05:31:02.123Z"),
        ] {
            assert_eq!(of_json(json), Some((moment.parse().unwrap(), None)), "{json}");
        }
        for wrong in ["null", "true", "{}", "1e300", "-1e17", r#""1756013462""#, r#""2025-08-24""#]
        {
            assert_eq!(of_json(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_time_without_an_offset_and_no_zone_by_name() {
        for (text, moment, offset) in [
            ("2025-08-24T05:43:19+00:00", "2025-08-24T05:43:19Z", None),
            ("2025-08-24T05:43:19Z", "2025-08-24T05:43:19Z", None),
            ("2025-08-24T07:43:19.0000001+02:00", "2025-08-24T05:43:19.0000001Z", Some(120)),
            ("0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00Z", None),
        ] {
            assert_eq!(parse(text), Some((moment.parse().unwrap(), offset)), "{text}");
        }
        for wrong in [
            "",
            "2025-08-24",
            "2025-08-24T05:43:19",
            "2025-08-24T05:43:19[Europe/Berlin]",
            "2025-08-24T05:43:19+02:00[Europe/Berlin]",
            "2025-02-30T05:43:19+00:00",
            "10000-01-01T00:00:00+00:00",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
