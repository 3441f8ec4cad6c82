//! The tool `context-remember`: stores a message without asking a model.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::{ChatMessage, ChatRole, ConversationStore, Source};

use super::{Effect, arguments, define, json};
use crate::fault::Fault;
use crate::hub::{Change, Hub};
use crate::resources;
use crate::shape::MessageShape;

pub(super) const NAME: &str = "context-remember";

/// Metadata keys that only the store may set: a message's origin, and what belongs to it.
const RESERVED: [&str; 15] = [
    "answerTokens",
    "artifact",
    "aside",
    "cachedTokens",
    "cameFrom",
    "cutOff",
    "expiresAt",
    "firstWordMs",
    "importedFrom",
    "promptTokens",
    "recalled",
    "restoredFrom",
    "saidAt",
    "saidIn",
    sottovoce::conversation::SEARCH_NOTE,
];

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
    System,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The context, by id or name.
    context_id: String,
    /// The text to store.
    #[schemars(length(min = 1))]
    content: String,
    /// The speaker; user unless given. A note has the role system.
    role: Option<Role>,
    /// Key-value pairs for the message, such as its source.
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether the call succeeded.
    success: bool,
    /// The result in words.
    message: String,
    /// The message as stored.
    conversation: MessageShape,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Remember",
        "Stores a message in a context without asking a model. Later prompts of that context include it.",
        Effect::Adds,
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    if given.content.trim().is_empty() {
        return Err(Fault::new("content must contain a word"));
    }
    let target = hub.target(&given.context_id).await?;
    let store = hub.store_to_write(&target).await?;
    let role = match given.role {
        None | Some(Role::User) => ChatRole::User,
        Some(Role::Assistant) => ChatRole::Assistant,
        Some(Role::System) => ChatRole::System,
    };
    let mut message = ChatMessage::new(role, given.content, &hub.conversations.clock().now());
    for (name, value) in given.metadata.into_iter().flatten() {
        if RESERVED.contains(&name.as_str()) {
            return Err(Fault::new(format!("metadata: only the store may set {name}")));
        }
        message = message.with_metadata(name, value);
    }
    let stored = store.append_message(message.from_source(Source::Client, "")).await?;
    hub.publish(Change::Updated(resources::context_uri(&target.id)));
    json(&Output {
        success: true,
        message: "the message is stored".to_owned(),
        conversation: MessageShape::new(&target.id, &stored),
    })
}
