//! The tool `forget`: shows what forgetting messages would delete, and deletes it.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::ConversationStore;

use super::conversation_manage::Along;
use super::{arguments, define, json};
use crate::fault::Fault;
use crate::hub::{Change, Hub};
use crate::resources;
use crate::shape::{message_id, message_seq};

pub(super) const NAME: &str = "forget";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The ids of the messages, as `recall` and `remember` return them.
    #[schemars(length(min = 1, max = 1000))]
    ids: Vec<String>,
    /// The conversation that holds them: a context by id or name, or a scope of this server. Its memory unless given.
    scope: Option<String>,
    /// False shows what would be deleted; true deletes it for good. Show it to the person first.
    confirmed: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether the call succeeded.
    success: bool,
    /// The result in words.
    message: String,
    /// The ids of the messages that would go or are gone.
    ids: Vec<String>,
    /// What goes with them; only after deleting.
    #[serde(skip_serializing_if = "Option::is_none")]
    along: Option<Along>,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Forget messages",
        "Deletes messages for good, with their copies, summaries and search index. Call it with confirmed: false first, tell \
the person what would go, and then with confirmed: true.",
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(true)
            .open_world(false),
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    let number = |id: &String| {
        message_seq(id).ok_or_else(|| Fault::new(format!("ids: {id} is no id of a message")))
    };
    let seqs: Vec<u64> = given.ids.iter().map(number).collect::<Result<_, _>>()?;
    if seqs.is_empty() {
        return Err(Fault::new("ids must name a message"));
    }
    let seqs: Vec<_> = seqs.into_iter().map(|seq| seq..=seq).collect();
    let target = hub.memory(given.scope.as_deref()).await?;
    let store = hub.store(&target).await?;
    let ids = |seqs: &[u64]| seqs.iter().map(|seq| message_id(*seq)).collect::<Vec<_>>();
    if !given.confirmed {
        let plan = store.plan_forget(&seqs).await?;
        let message = format!("would be deleted for good: {}", counted(plan.message_count()));
        return json(&Output { success: true, message, ids: ids(&plan.messages), along: None });
    }
    let forgotten = match hub.conversations.known(&target.scope) {
        // The open conversation must forget these messages too.
        Some(conversation) => conversation.forget(&seqs).await?,
        None => store.forget(&seqs).await?,
    };
    hub.publish(Change::Updated(resources::CONTEXTS.to_owned()));
    hub.publish(Change::Updated(resources::context_uri(&target.id)));
    json(&Output {
        success: true,
        message: format!("deleted for good: {}", counted(forgotten.removed.len())),
        ids: ids(&forgotten.plan.messages),
        along: Some(Along::of(&forgotten)),
    })
}

fn counted(messages: usize) -> String {
    format!("{messages} message{}", if messages == 1 { "" } else { "s" })
}
