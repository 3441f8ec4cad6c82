//! Waiting until the machine has nothing else to do.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Above this share of all processors' time, somebody else is at work.
const BUSY: f64 = 0.08;
const LOOK: Duration = Duration::from_millis(500);

/// How long to wait before each figure, and what it came to.
pub(crate) struct Quiet {
    patience: Duration,
    pub(crate) disturbed: Vec<String>,
}

impl Quiet {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, disturbed: Vec::new() }
    }

    /// Returns when the machine is quiet, or else notes that it was not.
    pub(crate) fn wait(&mut self, before: &str) {
        if self.patience.is_zero() {
            return;
        }
        let started = Instant::now();
        loop {
            let Some(busy) = busy_share() else {
                return;
            };
            if busy < BUSY {
                return;
            }
            if started.elapsed() > self.patience {
                self.disturbed
                    .push(format!("{before}: the machine stayed {:.0} % busy", busy * 100.0));
                return;
            }
        }
    }
}

/// What share of the processors' time went to others during one look; `None` where the system does not tell.
fn busy_share() -> Option<f64> {
    let (idle, all) = times()?;
    thread::sleep(LOOK);
    let (idle_after, all_after) = times()?;
    let all = all_after.checked_sub(all).filter(|all| *all > 0)?;
    Some(1.0 - idle_after.saturating_sub(idle) as f64 / all as f64)
}

/// Idle ticks, waiting for the disk included, and all ticks since the start.
fn times() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> =
        line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((ticks.get(3)? + ticks.get(4)?, ticks.iter().sum()))
}
