//! The clock: the only module that reads the time.

use std::fmt::Debug;
use std::sync::Mutex;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Unit, Zoned};

/// A source of time.
pub trait Clock: Debug + Send + Sync {
    /// The current time in the user's time zone, to the millisecond.
    fn now(&self) -> Zoned;
}

/// The operating system's clock and time zone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The environment's `TZ` if it names no time zone that is known here. Times are in UTC then.
    pub fn unknown_zone() -> Option<String> {
        let name = std::env::var_os("TZ")?;
        TimeZone::system().is_unknown().then(|| name.to_string_lossy().into_owned())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Zoned {
        #[expect(clippy::disallowed_methods, reason = "this is the place")]
        let now = moment(SystemTime::now()).to_zoned(TimeZone::system());
        now.round(Unit::Millisecond).unwrap_or(now)
    }
}

/// The system clock's time. A time outside the range of dates becomes the nearest end of that range.
fn moment(now: SystemTime) -> Timestamp {
    let end = match now.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(_) => Timestamp::MAX,
        Err(_) => Timestamp::MIN,
    };
    Timestamp::try_from(now).unwrap_or(end)
}

/// A clock that moves only on request, for tests and reproducible prompts.
#[derive(Debug)]
pub struct ManualClock(Mutex<Zoned>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Zoned) -> Self {
        Self(Mutex::new(now))
    }

    /// A clock that shows this time in UTC.
    pub fn at_utc(now: Timestamp) -> Self {
        Self::at(now.to_zoned(jiff::tz::TimeZone::UTC))
    }

    /// Sets another time, earlier or later.
    pub fn set(&self, now: Zoned) {
        *self.lock() = now;
    }

    /// Moves forward, or back by a negative duration. Stops at the ends of the range.
    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.lock();
        if let Ok(later) = now.checked_add(by) {
            *now = later;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Zoned> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Zoned {
        self.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_beyond_the_year_9999_is_an_error_and_no_panic() {
        for seconds in [253_402_300_800, 300_000_000_000, i64::MAX as u64] {
            let Some(now) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)) else {
                continue;
            };
            let now = moment(now);
            assert_eq!(now, Timestamp::MAX);
            // Formatting must not panic either, in any time zone.
            for zone in [TimeZone::UTC, TimeZone::fixed(jiff::tz::offset(14))] {
                assert!(
                    now.to_zoned(zone)
                        .round(Unit::Millisecond)
                        .map_or(true, |at| at.year() >= 9999)
                );
            }
        }
        if let Some(now) = SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(1 << 40)) {
            assert_eq!(moment(now), Timestamp::MIN);
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_756_000_000);
        assert_eq!(moment(now).as_second(), 1_756_000_000);
    }
}
