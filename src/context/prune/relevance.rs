//! Worth by age, speaker, deeds and words.

use jiff::Timestamp;

use super::{PruneStrategy, Score};
use crate::message::{ChatMessage, ChatRole};
use crate::store::StoredMessage;

/// Points for a message that calls functions.
const CALLS: f64 = 50.0;
/// Points for a result that does not tell of a failure.
const SUCCESS: f64 = 25.0;
/// The most points for words of the task.
const KEYWORDS: f64 = 50.0;

/// Scores of Mimir's document: recency, 100 less one for each hour of age; role, 100 for the user's words, 50 for the
/// assistant's, 25 for a tool's; 50 for calling functions; up to 50 for the share of the task's words that occur. For
/// success the document names no figure: here a result that does not tell of a failure has 25.
#[derive(Clone, Default)]
pub struct RelevanceStrategy {
    /// The task's words, in lower case.
    keywords: Vec<String>,
}

impl RelevanceStrategy {
    /// Without a task.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a task, whose words count.
    pub fn for_task(task: &str) -> Self {
        Self { keywords: task.to_lowercase().split_whitespace().map(str::to_owned).collect() }
    }

    fn keywords(&self, message: &ChatMessage) -> f64 {
        if self.keywords.is_empty() {
            return 0.0;
        }
        let text = message.content.to_lowercase();
        let found = self.keywords.iter().filter(|word| text.contains(&***word)).count();
        // Far below the sizes at which this loses anything.
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

/// Whether a result says that something failed, as far as it begins with it or says so as JSON.
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
