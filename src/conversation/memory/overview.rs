//! What a conversation consists of, at a glance.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::conversation::Conversation;
use crate::error::Result;
use crate::message::ChatRole;
use crate::model::ModelLimits;
use crate::prompt::Utterance;
use crate::store::{ArtifactKind, Cost};

/// How many numbers are read at a time.
const STRETCH: u64 = 4096;

/// What a conversation consists of. It holds numbers, and of anybody's words only the title and the tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Overview {
    /// What it is called.
    pub title: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// How many messages there are of each role, of all threads.
    pub messages: BTreeMap<&'static str, u64>,
    /// How many artifacts there are of each kind.
    pub artifacts: BTreeMap<String, usize>,
    /// When it was made.
    #[serde(rename = "createdAt")]
    pub created: Option<Timestamp>,
    /// When the last message was said.
    #[serde(rename = "updatedAt")]
    pub updated: Option<Timestamp>,
    /// Tokens of the prompt for the next utterance, without that, as estimated.
    pub prompt_tokens: usize,
    /// The most that it may take, if there is a limit.
    pub budget_tokens: Option<usize>,
    /// For how many messages a summary stands in this thread.
    pub summarized: u64,
    /// How many messages were taken out of the context.
    pub pruned: u64,
    /// What the answers say that they took, and what was brought along from elsewhere.
    pub spent: Cost,
}

impl Overview {
    /// How many messages there are.
    pub fn message_count(&self) -> u64 {
        self.messages.values().sum()
    }

    /// How many artifacts there are.
    pub fn artifact_count(&self) -> usize {
        self.artifacts.values().sum()
    }

    /// What it has cost, in millionths of the currency in which a million tokens cost so much.
    pub fn cost_micros(&self, price_per_million: f64) -> u64 {
        // Nobody's tokens come near the sizes at which this loses anything that matters.
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
    /// What the conversation consists of. Reads every message.
    ///
    /// # Errors
    /// What keeps the messages from being read.
    pub async fn overview(&self) -> Result<Overview> {
        let profile = self.store.profile().await?;
        let mut overview = Overview {
            title: profile.title.clone(),
            tags: profile.tags.iter().cloned().collect(),
            created: profile.created_at,
            summarized: profile.compaction(self.thread()).map_or(0, |c| c.messages()),
            pruned: profile.pruned(),
            // What was brought along has cost what it says, at whatever price.
            spent: Cost::new(0, profile.imported_cost.micros),
            ..Overview::default()
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

    /// The account of the prompt that the next utterance would get, without asking the model for its limits.
    async fn prompt_now(&self) -> Result<crate::prompt::Receipt> {
        let nothing = Utterance::from(self.message(ChatRole::User, ""));
        let model = self.model.as_ref().map_or("", |binding| binding.name());
        Ok(self.prompt_within(model, &ModelLimits::default(), &nothing).await?.1)
    }
}
