//! The tool `forget`: shows what forgetting messages would delete, and deletes it.

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::ConversationStore;
use sottovoce::store::ForgetPlan;

use super::conversation_manage::Along;
use super::{Effect, arguments, define, json};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::resources::publish_context;
use crate::shape::{MessageShape, message_id, message_seq};

pub(super) const NAME: &str = "forget";
const MOST: usize = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The ids of the messages, as `recall` and `remember` return them.
    #[schemars(length(min = 1, max = 1000))]
    ids: Vec<String>,
    /// The conversation that holds them, as `recall` and `remember` return it.
    scope: String,
    /// False shows what would be deleted; true deletes it for good. Show it to the person first.
    confirmed: bool,
    /// True leaves the answers to these messages, which go with them otherwise.
    only: Option<bool>,
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
    /// What would go; only before deleting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Said>,
    /// What goes with them; only after deleting.
    along: Option<Along>,
}

/// A message that would go.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Said {
    /// Its id.
    id: String,
    /// The beginning of its text.
    text: String,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Forget messages",
        "Deletes messages for good, with the answers to them, their copies, summaries and search index. Call it with confirmed: false first, tell \
the person what would go, and then with confirmed: true and the ids of that answer.",
        Effect::Deletes,
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    if !(1..=MOST).contains(&given.ids.len()) {
        return Err(Fault::new(format!("ids must name 1 to {MOST} messages")));
    }
    let number = |id: &String| {
        message_seq(id)
            .ok_or_else(|| Fault::new("ids must be such as conv-12, as `recall` returns them"))
    };
    let seqs: Vec<u64> = given.ids.iter().map(number).collect::<Result<_, _>>()?;
    let seqs: Vec<_> = seqs.into_iter().map(|seq| seq..=seq).collect();
    let target = hub.target(&given.scope).await?;
    let store = hub.store(&target).await?;
    let ids = |seqs: &[u64]| seqs.iter().map(|seq| message_id(*seq)).collect::<Vec<_>>();
    // The person was told these ids. What was said since is not among them.
    let plan = match given.confirmed || given.only == Some(true) {
        true => store.plan_forget(&seqs).await?,
        false => store.plan_forget_exchanges(&seqs).await?,
    };
    let named = |plan: &ForgetPlan| [&*plan.messages, &*plan.answers].concat();
    if !given.confirmed {
        let mut message = format!("would be deleted for good: {}", counted(plan.message_count()));
        let index = hub.index(&target).await?;
        let words = index.telling_words(&plan).await?;
        let others = index.same_words(&words, &plan).await?.messages;
        if others > 0 {
            message +=
                &format!("; {others} more of this conversation have the same words, and stay");
        }
        let (ids, mut messages) = (ids(&named(&plan)), Vec::new());
        for seq in named(&plan) {
            let read = store.read_seqs(seq..=seq).await?.messages;
            messages.extend(read.iter().map(|stored| Said {
                id: message_id(seq),
                text: MessageShape::new(&target.id, stored).preview,
            }));
        }
        return json(&Output { success: true, message, ids, messages, along: None });
    }
    let forgotten = match hub.conversations.known(&target.scope) {
        Some(conversation) => conversation.forget_planned(&plan).await?,
        None => store.forget_planned(&plan).await?,
    };
    publish_context(hub, &target.id);
    json(&Output {
        success: true,
        message: format!("deleted for good: {}", counted(forgotten.removed.len())),
        ids: ids(&named(&forgotten.plan)),
        messages: Vec::new(),
        along: Some(Along::of(&forgotten)),
    })
}

fn counted(messages: usize) -> String {
    format!("{messages} message{}", if messages == 1 { "" } else { "s" })
}
