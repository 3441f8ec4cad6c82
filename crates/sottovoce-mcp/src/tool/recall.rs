//! The tool `recall`: finds what was said earlier and fits a question.

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::ConversationStore;
use sottovoce::context::recall::{RecallHit, RecallQuery, best_of};

use super::context_search::all;
use super::{Effect, arguments, define, json};
use crate::fault::Fault;
use crate::hub::{Hub, Target};
use crate::page;
use crate::shape::message_id;

pub(super) const NAME: &str = "recall";
const USUAL: usize = 5;
const MOST: usize = 50;
const LONGEST: usize = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The question or the words, in any language, such as: What is our dog called?
    #[schemars(length(min = 1, max = 1000))]
    words: String,
    /// Only this conversation: a context by id or name, or a scope that this server may use. All of them unless given.
    /// What was said in threads is not found.
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
    /// Where the text comes from: spoken, typed, client, member, import, assistant, document, note or unknown, some with a name.
    source: String,
    /// The message; of a long one, or of an artifact that it refers to, the passage that fits.
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
        Effect::Reads,
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    let limit = page::limit(given.limit, USUAL, MOST)?;
    if given.words.trim().is_empty() || given.words.chars().count() > LONGEST {
        return Err(Fault::new(format!(
            "words must be a question of at most {LONGEST} characters"
        )));
    }
    let targets = match &given.scope {
        Some(scope) => vec![hub.target(scope).await?],
        None => all(hub, false).await?,
    };
    let query = RecallQuery::new(&given.words, hub.conversations.clock().now(), limit);
    let (mut lists, mut unread) = (Vec::new(), 0);
    for target in &targets {
        if target.context.as_ref().is_some_and(|context| !context.is_open()) {
            return Err(Fault::new("scope: the context is deleted or has expired"));
        }
        match in_one(hub, target, &query).await {
            Ok(passages) => lists.push(passages),
            Err(error) if given.scope.is_some() => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "a conversation could not be searched");
                unread += 1;
            }
        }
    }
    let passages = best_of(lists, limit, |passage| passage.score);
    let mut message = match passages.len() {
        0 => "nothing was found".to_owned(),
        1 => "1 passage fits".to_owned(),
        n => format!("{n} passages fit"),
    };
    if unread > 0 {
        message += &format!("; conversations that could not be read: {unread}");
    }
    json(&Output { success: true, message, passages })
}

async fn in_one(
    hub: &Hub,
    target: &Target,
    query: &RecallQuery<'_>,
) -> sottovoce::Result<Vec<Passage>> {
    let recall = hub.index(target).await?;
    let found = recall.find_in(query, None).await?;
    recall.save_in_background();
    let mut passages = Vec::new();
    for hit in &found.hits {
        passages.push(passage(&target.id, &**recall.store(), hit).await);
    }
    Ok(passages)
}

async fn passage(scope: &str, store: &dyn ConversationStore, found: &RecallHit) -> Passage {
    let message = &found.stored.message;
    Passage {
        id: message_id(found.stored.seq),
        scope: scope.to_owned(),
        said_at: message.said_at().to_string(),
        role: message.role.as_str(),
        speaker: message.speaker().map(str::to_owned),
        source: found.source(),
        text: found.excerpt(store).await.unwrap_or_else(|| message.content.clone()),
        score: found.hit.score,
        why: found.hit.why.in_words(),
    }
}
