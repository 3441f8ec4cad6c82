//! An overview of a conversation: counts, tokens and cost.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::conversation::Conversation;
use crate::error::Result;
use crate::message::ChatRole;
use crate::model::ModelLimits;
use crate::prompt::Utterance;
use crate::store::{ArtifactKind, Cost};

/// How many numbers one read covers.
const STRETCH: u64 = 4096;

/// An overview of a conversation. It holds numbers; its only words are the title and the tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConversationOverview {
    /// The title.
    pub title: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The number of messages of each role, in all threads.
    pub messages: BTreeMap<&'static str, u64>,
    /// The number of artifacts of each kind.
    pub artifacts: BTreeMap<String, usize>,
    /// The time of creation.
    #[serde(rename = "createdAt")]
    pub created: Option<Timestamp>,
    /// The time of the last message.
    #[serde(rename = "updatedAt")]
    pub updated: Option<Timestamp>,
    /// Estimated tokens of the next prompt, without its utterance.
    pub prompt_tokens: usize,
    /// The most tokens that the prompt may take, if there is a limit.
    pub budget_tokens: Option<usize>,
    /// The number of messages that a summary replaces in this thread.
    pub summarized: u64,
    /// The number of pruned messages.
    pub pruned: u64,
    /// The cost recorded in the answers, and the cost imported from elsewhere.
    pub spent: Cost,
}

impl ConversationOverview {
    /// The number of messages.
    pub fn message_count(&self) -> u64 {
        self.messages.values().sum()
    }

    /// The number of artifacts.
    pub fn artifact_count(&self) -> usize {
        self.artifacts.values().sum()
    }

    /// The cost in millionths of a currency unit, if a million tokens cost `price_per_million` units.
    pub fn cost_micros(&self, price_per_million: f64) -> u64 {
        // Token counts are far too small for a loss of precision that matters.
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let said = (self.spent.tokens as f64 * price_per_million.max(0.0)).round() as u64;
        said.saturating_add(self.spent.micros)
    }
}

impl Conversation {
    /// Returns an overview of the conversation. Reads every message.
    ///
    /// # Errors
    /// Those of reading the messages.
    pub async fn overview(&self) -> Result<ConversationOverview> {
        let profile = self.store.profile().await?;
        let mut overview = ConversationOverview {
            title: profile.title.clone(),
            tags: profile.tags.iter().cloned().collect(),
            created: profile.created_at,
            summarized: profile.summary(self.thread()).map_or(0, |c| c.messages()),
            pruned: profile.pruned(),
            // Imported messages carry their cost in money; no price applies.
            spent: Cost::new(0, profile.imported_cost.micros),
            ..ConversationOverview::default()
        };
        let (mut first, mut seen) = (None::<Timestamp>, 0);
        loop {
            let reading = self.store.read_seqs(seen + 1..=seen + STRETCH).await?;
            for stored in &reading.messages {
                let message = &stored.message;
                *overview.messages.entry(message.role.as_str()).or_default() += 1;
                overview.spent.tokens += message.tokens_spent();
                let at = stored.ordered_at();
                first = Some(first.map_or(at, |first| first.min(at)));
                overview.updated = overview.updated.max(Some(at));
            }
            seen += STRETCH;
            if reading.last_seq <= seen {
                break;
            }
        }
        overview.created = overview.created.or(first);
        if let Some(store) = self.store.artifact_store() {
            for artifact in store.artifacts().await?.0 {
                let kind: &ArtifactKind = &artifact.kind;
                *overview.artifacts.entry(kind.to_string()).or_default() += 1;
            }
        }
        let receipt = self.prompt_now().await?;
        overview.prompt_tokens = receipt.used_tokens.saturating_sub(receipt.user_tokens);
        overview.budget_tokens = receipt.budget_tokens;
        Ok(overview)
    }

    /// The receipt of the next prompt, without asking the model for its limits.
    async fn prompt_now(&self) -> Result<crate::prompt::Receipt> {
        let nothing = Utterance::from(self.message(ChatRole::User, ""));
        let model = self.model.as_ref().map_or("", |binding| binding.name());
        Ok(self.prompt_within(model, &ModelLimits::default(), &nothing).await?.1)
    }
}
