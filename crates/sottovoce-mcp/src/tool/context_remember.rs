//! `context-remember`: keeping something without asking a model.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::{ChatMessage, ChatRole, ConversationStore};

use super::{arguments, define, json};
use crate::fault::Fault;
use crate::hub::{Change, Hub};
use crate::resources;
use crate::shape::MessageShape;

pub(super) const NAME: &str = "context-remember";

/// Notes by which the store knows where a message is from, and what goes with it.
const RESERVED: [&str; 10] = [
    "answerTokens",
    "artifact",
    "cutOff",
    "expiresAt",
    "importedFrom",
    "promptTokens",
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
    /// In which context, by its id or its name.
    context_id: String,
    /// What is to be remembered.
    #[schemars(length(min = 1))]
    content: String,
    /// Who says it; the user unless given. A note is the system's.
    role: Option<Role>,
    /// Notes about it, such as where it is from.
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether it was done.
    success: bool,
    /// What was done, in words.
    message: String,
    /// The message as it is kept.
    conversation: MessageShape,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Remember",
        "Keeps a message in a context without asking a model: later answers in that context know of it.",
        ToolAnnotations::new()
            .read_only(false)
            .destructive(false)
            .idempotent(false)
            .open_world(false),
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    if given.content.trim().is_empty() {
        return Err(Fault::new("content has no words"));
    }
    let target = hub.target(&given.context_id).await?;
    let store = hub.store_to_write(&target).await?;
    let role = match given.role {
        None | Some(Role::User) => ChatRole::User,
        Some(Role::Assistant) => ChatRole::Assistant,
        Some(Role::System) => ChatRole::System,
    };
    let mut message = ChatMessage::new(role, given.content, &hub.clock.now());
    for (name, value) in given.metadata.into_iter().flatten() {
        if RESERVED.contains(&name.as_str()) {
            return Err(Fault::new(format!("metadata: {name} is for the store itself to say")));
        }
        message = message.with_metadata(name, value);
    }
    let stored = store.append_message(message).await?;
    hub.tell(Change::Updated(resources::context_uri(&target.id)));
    json(&Output {
        success: true,
        message: "it is kept".to_owned(),
        conversation: MessageShape::new(&target.id, &stored),
    })
}
