//! The tool `context-search`: searches the conversations that the server may read.

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::StoredMessage;
use sottovoce::context::recall::{NotUnderstood, SearchQuery};

use super::{Effect, arguments, define, json};
use crate::fault::Fault;
use crate::hub::{Hub, Target};
use crate::page;
use crate::shape::MessageShape;

pub(super) const NAME: &str = "context-search";
const USUAL: usize = 20;
const MOST: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The words to find. A message must contain all of them. Letter case and accents do not matter; `recip*` finds
    /// words that begin so, and words in quotes stand in this order. Filters: from:me, from:assistant, speaker:NAME,
    /// before:2025-05-11, after:2025-05.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// Search only this context, by id or name.
    context_id: Option<String>,
    /// The most messages to return; 20 unless given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// Whether to search expired contexts too.
    include_expired: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether the call succeeded.
    success: bool,
    /// The result in words.
    message: String,
    /// The newest matches, newest first.
    matches: Vec<MessageShape>,
    /// The number of all matches.
    total_count: u64,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Search what was said",
        "Finds the messages that have all the words of a query, newest first: in one context, or in all that this \
server may touch.",
        Effect::Reads,
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    let limit = page::limit(given.limit, USUAL, MOST)?;
    let query = SearchQuery::parse(&given.query).map_err(|unknown| {
        Fault::new(format!("{} is not understood: {}", unknown.part(), NotUnderstood::HELP))
    })?;
    if query.is_empty() {
        return Err(Fault::new("query must contain a word"));
    }
    let targets = match &given.context_id {
        Some(id) => vec![hub.target(id).await?],
        None => all(hub, given.include_expired == Some(true)).await?,
    };
    let (mut found, mut total) = (Vec::new(), 0);
    for target in targets {
        let recall = hub.index(&target).await?;
        let here = recall.search(&query, None, limit).await?;
        total += here.total;
        found.extend(here.hits.into_iter().map(|stored| (target.id.clone(), stored)));
        recall.save_in_background();
    }
    found.sort_by(|(a_id, a), (b_id, b)| {
        let place = |stored: &StoredMessage| (stored.ordered_at(), stored.seq);
        place(b).cmp(&place(a)).then_with(|| a_id.cmp(b_id))
    });
    found.truncate(limit);
    json(&Output {
        success: true,
        message: format!("{total} messages match"),
        matches: found.iter().map(|(id, stored)| MessageShape::new(id, stored)).collect(),
        total_count: total,
    })
}

/// All conversations that the server may read.
pub(super) async fn all(hub: &Hub, expired: bool) -> Result<Vec<Target>, Fault> {
    let mut scopes = hub.access.scopes.clone();
    let memory = hub.access.memory();
    if !scopes.contains(&memory) {
        scopes.push(memory);
    }
    let mut targets: Vec<_> = scopes.into_iter().map(Target::from).collect();
    if hub.access.contexts {
        let contexts = hub.registry.list().await?.contexts;
        let wanted = contexts.into_iter().filter(|c| c.is_active() && (expired || !c.is_expired));
        targets.extend(wanted.map(Target::from));
    }
    Ok(targets)
}
