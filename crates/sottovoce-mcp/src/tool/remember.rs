//! The tool `remember`: stores a sentence as its owner said it.

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::{ChatMessage, ChatRole, ConversationStore, Source};

use super::{Effect, arguments, define, json};
use crate::fault::Fault;
use crate::hub::{Change, Hub};
use crate::resources;
use crate::shape::message_id;

pub(super) const NAME: &str = "remember";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The sentence, as the person would say it: My flight to Oslo leaves on Sunday at seven.
    #[schemars(length(min = 1))]
    text: String,
    /// The conversation to store it in: a context by id or name, or a scope of this server. Its memory unless given.
    scope: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether the call succeeded.
    success: bool,
    /// The result in words.
    message: String,
    /// The id of the stored message, for `forget`.
    id: String,
    /// The conversation that holds it.
    scope: String,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Remember a sentence",
        "Stores a sentence that the person wants remembered, in their own words. `recall` finds it again.",
        Effect::Adds,
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    if given.text.trim().is_empty() {
        return Err(Fault::new("text must contain a word"));
    }
    let target = hub.memory(given.scope.as_deref()).await?;
    let store = hub.store_to_write(&target).await?;
    let now = hub.conversations.clock().now();
    let message = ChatMessage::new(ChatRole::User, given.text, &now);
    let stored = store.append_message(message.from_source(Source::Client, "")).await?;
    hub.publish(Change::Updated(resources::context_uri(&target.id)));
    let index = hub.index(&target).await?;
    index.understood().await?;
    index.save_in_background();
    json(&Output {
        success: true,
        message: "the sentence is stored".to_owned(),
        id: message_id(stored.seq),
        scope: target.id,
    })
}
