//! Waits until the machine is idle.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Above this share of all processors' time, another program is working.
const BUSY: f64 = 0.08;
const LOOK: Duration = Duration::from_millis(500);

/// How long to wait before each figure, and the results.
pub(crate) struct Quiet {
    patience: Duration,
    pub(crate) disturbed: Vec<String>,
}

impl Quiet {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, disturbed: Vec::new() }
    }

    /// Returns when the machine is idle, or else notes that it was not.
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

/// The share of processor time that went to other programs in one interval; `None` if the system does not report it.
fn busy_share() -> Option<f64> {
    let (idle, all) = times()?;
    thread::sleep(LOOK);
    let (idle_after, all_after) = times()?;
    let all = all_after.checked_sub(all).filter(|all| *all > 0)?;
    Some(1.0 - idle_after.saturating_sub(idle) as f64 / all as f64)
}

/// Idle ticks, including waits for the disk, and all ticks since the start.
fn times() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> =
        line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((ticks.get(3)? + ticks.get(4)?, ticks.iter().sum()))
}
