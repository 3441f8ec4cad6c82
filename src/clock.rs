//! The only module that asks what time it is.

use std::fmt::Debug;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp, Unit, Zoned};

/// Where the crate gets the time from.
pub trait Clock: Debug + Send + Sync {
    /// The present moment in the user's time zone, to the millisecond.
    fn now(&self) -> Zoned;
}

/// The operating system's clock and time zone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Zoned {
        #[expect(clippy::disallowed_methods, reason = "this is the place")]
        let now = Zoned::now();
        now.round(Unit::Millisecond).unwrap_or(now)
    }
}

/// A clock that stands still until it is moved: for tests and reproducible prompts.
#[derive(Debug)]
pub struct ManualClock(Mutex<Zoned>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Zoned) -> Self {
        Self(Mutex::new(now))
    }

    /// A clock that shows the given moment in UTC.
    pub fn at_utc(now: Timestamp) -> Self {
        Self::at(now.to_zoned(jiff::tz::TimeZone::UTC))
    }

    /// Shows another moment from now on, earlier or later.
    pub fn set(&self, now: Zoned) {
        *self.lock() = now;
    }

    /// Moves forward, or back with a negative duration. Stays put at the ends of time.
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
