//! A prune strategy by age alone.

use jiff::Timestamp;

use super::{PruneStrategy, Score};
use crate::store::StoredMessage;

/// Drops the oldest messages first.
#[derive(Debug, Clone, Copy, Default)]
pub struct OldestStrategy;

impl PruneStrategy for OldestStrategy {
    fn name(&self) -> &'static str {
        "oldest"
    }

    fn score(&self, stored: &StoredMessage, now: Timestamp) -> Score {
        let hours = now.duration_since(stored.ordered_at()).as_secs_f64() / 3600.0;
        Score::default().with("age", -hours)
    }
}
