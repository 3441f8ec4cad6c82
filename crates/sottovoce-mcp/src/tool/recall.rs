//! The tool `recall`: finds what was said earlier and fits a question.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::context::recall::{Recall, RecallHit, RecallQuery};

use super::context_search::all;
use super::{arguments, define, json};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::shape::message_id;

pub(super) const NAME: &str = "recall";
const USUAL: usize = 5;
const MOST: usize = 50;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The question or the words, in any language, such as: What is our dog called?
    #[schemars(length(min = 1, max = 1000))]
    words: String,
    /// Only this conversation: a context by id or name, or a scope that this server may use. All of them unless given.
    scope: Option<String>,
    /// The most passages to return; 5 unless given.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

/// A passage that was found.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Passage {
    /// The id of its message, for `forget`.
    id: String,
    /// The conversation that holds it.
    scope: String,
    /// When it was said.
    said_at: String,
    /// The speaker: user, assistant, system or tool.
    role: &'static str,
    /// The name of the person who said it, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<String>,
    /// The message.
    text: String,
    /// How well it fits. Scores of one call may be compared.
    score: f32,
    /// Why it was found.
    why: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether the call succeeded.
    success: bool,
    /// The result in words.
    message: String,
    /// The passages, best first.
    passages: Vec<Passage>,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Recall what was said",
        "Finds what was said earlier and fits a question, best first, by its meaning and its words. Use it when the answer \
may have been told before: names, places, preferences, plans, codes, people.",
        ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(false),
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    let limit = given.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Fault::new(format!("limit {limit} is not from 1 to {MOST}")));
    }
    if given.words.trim().is_empty() {
        return Err(Fault::new("words must contain a word"));
    }
    let targets = match &given.scope {
        Some(scope) => vec![hub.memory(Some(scope)).await?],
        None => all(hub, false).await?,
    };
    let query = RecallQuery::new(&given.words, hub.conversations.clock().now(), limit);
    let mut found: Vec<(String, RecallHit)> = Vec::new();
    for target in targets {
        let recall = match hub.conversations.known(&target.scope) {
            // Its index is in memory.
            Some(conversation) => Arc::clone(conversation.index()),
            None => Arc::new(Recall::new(Arc::new(hub.store(&target).await?))),
        };
        let here = recall.find_in(&query, None).await?;
        found.extend(here.hits.into_iter().map(|hit| (target.id.clone(), hit)));
        recall.save_in_background();
    }
    found.sort_by(|(_, a), (_, b)| b.hit.score.total_cmp(&a.hit.score));
    found.truncate(limit);
    let passages: Vec<Passage> =
        found.into_iter().map(|(scope, hit)| passage(scope, &hit)).collect();
    let message = match passages.len() {
        0 => "nothing was found".to_owned(),
        1 => "1 passage fits".to_owned(),
        n => format!("{n} passages fit"),
    };
    json(&Output { success: true, message, passages })
}

fn passage(scope: String, found: &RecallHit) -> Passage {
    let message = &found.stored.message;
    Passage {
        id: message_id(found.stored.seq),
        scope,
        said_at: message.said_at().to_string(),
        role: message.role.as_str(),
        speaker: message.speaker().map(str::to_owned),
        text: message.content.clone(),
        score: found.hit.score,
        why: found.hit.why.in_words(),
    }
}
