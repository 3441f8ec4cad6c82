//! A prune strategy by age, role, function calls and keywords.

use jiff::Timestamp;

use super::{PruneStrategy, Score};
use crate::message::{ChatMessage, ChatRole};
use crate::store::StoredMessage;

/// Points for a message that calls functions.
const CALLS: f64 = 50.0;
/// Points for a result that does not report a failure.
const SUCCESS: f64 = 25.0;
/// The most points for keywords of the task.
const KEYWORDS: f64 = 50.0;

/// Scores as Mimir's document defines them. Recency: 100, less one for each hour of age. Role: 100 for the user, 50
/// for the assistant, 25 for a tool. Function calls: 50. Keywords: up to 50 for the share of the task's words that
/// occur. The document gives no number for success; here a result that does not report a failure gets 25.
#[derive(Clone, Default)]
pub struct RelevanceStrategy {
    /// The task's words, in lower case.
    keywords: Vec<String>,
}

impl RelevanceStrategy {
    /// A strategy without a task.
    pub fn new() -> Self {
        Self::default()
    }

    /// A strategy for a task, whose words count as keywords.
    pub fn for_task(task: &str) -> Self {
        Self { keywords: task.to_lowercase().split_whitespace().map(str::to_owned).collect() }
    }

    fn keywords(&self, message: &ChatMessage) -> f64 {
        if self.keywords.is_empty() {
            return 0.0;
        }
        let text = message.content.to_lowercase();
        let found = self.keywords.iter().filter(|word| text.contains(&***word)).count();
        // The numbers are far too small for a loss of precision.
        #[expect(clippy::cast_precision_loss)]
        let share = found as f64 / self.keywords.len() as f64;
        share * KEYWORDS
    }
}

impl PruneStrategy for RelevanceStrategy {
    fn name(&self) -> &'static str {
        "relevance"
    }

    fn score(&self, stored: &StoredMessage, now: Timestamp) -> Score {
        let message = &stored.message;
        let hours = now.duration_since(message.said_at()).as_secs_f64() / 3600.0;
        let role = match message.role {
            ChatRole::User => 100.0,
            ChatRole::Assistant => 50.0,
            ChatRole::Tool => 25.0,
            ChatRole::System => 0.0,
        };
        let calls = if message.tool_calls.is_empty() { 0.0 } else { CALLS };
        let success = if message.role == ChatRole::Tool && !tells_of_failure(message) {
            SUCCESS
        } else {
            0.0
        };
        Score::default()
            .with("recency", (100.0 - hours).clamp(0.0, 100.0))
            .with("role", role)
            .with("tool calls", calls)
            .with("success", success)
            .with("keywords", self.keywords(message))
    }
}

/// Whether a result reports a failure: its text begins with one, or its JSON says so.
fn tells_of_failure(message: &ChatMessage) -> bool {
    let text = message.content.trim_start().to_lowercase();
    if ["error", "failed", "failure", "exception"].iter().any(|word| text.starts_with(word)) {
        return true;
    }
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(&message.content) else {
        return false;
    };
    let is_false = |name| fields.get(name) == Some(&serde_json::Value::Bool(false));
    is_false("ok")
        || is_false("success")
        || fields.get("error").is_some_and(|error| !error.is_null())
}

impl std::fmt::Debug for RelevanceStrategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RelevanceStrategy({} keywords)", self.keywords.len())
    }
}
