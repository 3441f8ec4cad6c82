//! Pruning: chooses the messages that a context needs least, so that the rest fits. Deletes nothing.

mod relevance;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

pub use relevance::RelevanceStrategy;

use crate::context::tokens::TokenRates;
use crate::message::ChatRole;
use crate::store::StoredMessage;

/// Scores how much each message of a context is worth.
pub trait PruneStrategy: Send + Sync {
    /// The strategy's name, as users choose it.
    fn name(&self) -> &'static str;

    /// The score of a message at a time. Messages with a high score go last.
    fn score(&self, stored: &StoredMessage, now: Timestamp) -> Score;
}

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

/// The score of a message, with its parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Score(Vec<(&'static str, f64)>);

impl Score {
    /// Adds points with their reason.
    #[must_use]
    pub fn with(mut self, what: &'static str, points: f64) -> Self {
        self.0.push((what, points));
        self
    }

    /// The sum of all points.
    pub fn total(&self) -> f64 {
        // An empty sum is -0.0, which users and JSON would show.
        self.0.iter().map(|(_, points)| points).fold(0.0, |sum, points| sum + points)
    }
}

/// The points with their reasons, such as `recency 12 + role 50`.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.0.iter().filter(|(_, points)| *points != 0.0).peekable();
        if parts.peek().is_none() {
            return f.write_str("0");
        }
        for (at, (what, points)) in parts.enumerate() {
            write!(f, "{}{what} {points:.0}", if at > 0 { " + " } else { "" })?;
        }
        Ok(())
    }
}

/// The decision about one message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PruneDecision {
    /// Its number.
    pub seq: u64,
    /// Its role.
    #[serde(serialize_with = "ChatRole::write_lower_case")]
    pub role: ChatRole,
    /// Estimated tokens.
    pub tokens: usize,
    /// Its score; `None` for the newest messages, which always stay.
    pub score: Option<Score>,
    /// Whether it stays in the context.
    pub stays: bool,
}

/// The result of planning a pruning. It holds numbers, never words.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PrunePlan {
    /// Every message of the context, oldest first.
    pub verdicts: Vec<PruneDecision>,
    /// Estimated tokens of all of them.
    pub tokens_before: usize,
    /// Estimated tokens of the messages that stay.
    pub tokens_after: usize,
}

impl PrunePlan {
    /// Chooses what stays: the newest `keep_recent` messages, and of the others those with the highest scores, as
    /// long as all of it takes at most `max_tokens`. Function calls and their results stay or go together, with the
    /// highest score among them.
    pub fn plan(
        messages: &[Arc<StoredMessage>],
        strategy: &dyn PruneStrategy,
        rates: &TokenRates,
        (max_tokens, keep_recent): (usize, usize),
        now: Timestamp,
    ) -> Self {
        let groups = groups(messages);
        let mut verdicts: Vec<PruneDecision> = messages
            .iter()
            .map(|stored| PruneDecision {
                seq: stored.seq,
                role: stored.message.role,
                tokens: rates.estimate_message(&stored.message),
                score: None,
                stays: true,
            })
            .collect();
        let tokens_before = verdicts.iter().map(|verdict| verdict.tokens).sum();
        let recent = messages.len().saturating_sub(keep_recent);
        let mut used = 0;
        let mut older = Vec::new();
        for group in groups {
            let parts = || verdicts.iter().skip(group.start).take(group.len());
            let tokens: usize = parts().map(|verdict| verdict.tokens).sum();
            if group.end > recent {
                used += tokens;
                continue;
            }
            let mut worth = f64::NEG_INFINITY;
            for at in group.clone() {
                if let (Some(stored), Some(verdict)) = (messages.get(at), verdicts.get_mut(at)) {
                    let score = strategy.score(stored, now);
                    worth = worth.max(score.total());
                    verdict.score = Some(score);
                    verdict.stays = false;
                }
            }
            older.push((worth, group, tokens));
        }
        // If scores are equal, the newer one stays.
        older.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.start.cmp(&a.1.start)));
        for (_, group, tokens) in older {
            if used + tokens <= max_tokens {
                used += tokens;
                for verdict in verdicts.iter_mut().skip(group.start).take(group.len()) {
                    verdict.stays = true;
                }
            }
        }
        Self { verdicts, tokens_before, tokens_after: used }
    }

    /// The numbers of the messages that are dropped.
    pub fn dropped(&self) -> impl Iterator<Item = u64> + '_ {
        self.verdicts.iter().filter(|verdict| !verdict.stays).map(|verdict| verdict.seq)
    }
}

/// Groups messages that only make sense together: function calls and their results.
fn groups(messages: &[Arc<StoredMessage>]) -> Vec<std::ops::Range<usize>> {
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    let mut open = false;
    for (at, stored) in messages.iter().enumerate() {
        let message = &stored.message;
        match groups.last_mut().filter(|_| open && message.role == ChatRole::Tool) {
            Some(group) => group.end = at + 1,
            None => {
                groups.push(at..at + 1);
                open = !message.tool_calls.is_empty();
            }
        }
    }
    groups
}
