//! The tool `conversation-manage`: lists and deletes messages.

use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::store::{ForgetReport, StoreBackend};
use sottovoce::{ConversationStore, FileConversationStore, StoredMessage};

use super::{Effect, arguments, define, json};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::page::Page;
use crate::resources::publish_context;
use crate::shape::{MessageShape, message_seq};

pub(super) const NAME: &str = "conversation-manage";
const USUAL_PAGE: usize = 20;
/// How many messages are in memory at once, of all of a conversation.
const AT_ONCE: usize = 4096;
/// From the first message on, what was said within this time is read first.
const FIRST_SPAN: SignedDuration = SignedDuration::from_hours(1);

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Delete,
    Clear,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The action. Delete and clear are permanent. Clear deletes all messages of the context with its snapshots,
    /// artifacts and tags, and keeps its name and personality.
    action: Action,
    /// The context, by id or name.
    context_id: String,
    /// The page of the list; 1 unless given.
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// Messages per page; 20 unless given.
    #[schemars(range(min = 1, max = 100))]
    page_size: Option<u32>,
    /// Whether the newest messages come first; true unless given.
    reverse: Option<bool>,
    /// The ids of the messages to delete.
    conversation_ids: Option<Vec<String>>,
    /// Delete all messages that are older than this time, such as 2026-01-31T12:00:00Z.
    older_than: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether the call succeeded.
    success: bool,
    /// The result in words.
    message: String,
    /// A page of messages.
    conversations: Option<Vec<MessageShape>>,
    /// The number of messages.
    total_count: Option<usize>,
    /// The number of this page.
    page: Option<usize>,
    /// Messages per page.
    page_size: Option<usize>,
    /// The number of deleted messages.
    deleted_count: Option<usize>,
    /// The result of delete.
    deleted: Option<Deleted>,
    /// The result of clear.
    cleared: Option<Cleared>,
    /// What was deleted together with the named messages.
    along: Option<Along>,
}

#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(super) struct Along {
    /// Deleted originals of restored copies.
    originals: usize,
    /// Deleted restored copies of the named messages.
    copies: usize,
    /// Deleted messages that were beyond the context's limits already.
    over_limits: usize,
    /// Snapshots from which messages were removed.
    snapshots: usize,
    /// Snapshots that were deleted because no message was left in them.
    snapshots_deleted: usize,
    /// Deleted summaries.
    summaries: usize,
    /// Deleted artifacts.
    artifacts: usize,
    /// Deleted daily backups, which held the messages.
    backups: usize,
}

impl Along {
    pub(super) fn of(forgotten: &ForgetReport) -> Self {
        let plan = &forgotten.plan;
        Self {
            originals: plan.originals.len(),
            copies: plan.copies.len(),
            over_limits: plan.hidden.len(),
            snapshots: forgotten.snapshots,
            snapshots_deleted: plan.deleted_snapshots.len(),
            summaries: plan.summaries,
            artifacts: plan.artifacts.len(),
            backups: forgotten.backups,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Deleted {
    /// The number of messages.
    count: usize,
    /// Always `deleted`.
    status: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Cleared {
    /// The context.
    context_id: String,
    /// The number of messages.
    count: usize,
    /// Always `cleared`.
    status: &'static str,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Manage a context's history",
        "Lists the messages of a context, or permanently deletes some or all of them.",
        Effect::Deletes,
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    let target = hub.target(&given.context_id).await?;
    let store = hub.store(&target).await?;
    let output = match given.action {
        Action::List => list(&store, &target.id, &given).await?,
        Action::Delete => {
            let seqs = named(&store, &given).await?;
            let forgotten = hub.forget(&target, &seqs).await?;
            let count = forgotten.removed.len();
            let message = format!("{count} messages were deleted permanently");
            let deleted = Some(Deleted { count, status: "deleted" });
            let along = Some(Along::of(&forgotten));
            Output { deleted, deleted_count: Some(count), along, ..done(message) }
        }
        Action::Clear if given.conversation_ids.is_some() || given.older_than.is_some() => {
            return Err(Fault::new(
                "clear deletes all messages; use delete for those of conversationIds or olderThan",
            ));
        }
        Action::Clear => {
            let forgotten = match hub.conversations.known(&target.scope) {
                Some(conversation) => {
                    // Ends a turn in progress first. Its answer would otherwise be stored after the deletion.
                    conversation.close().await?;
                    conversation.forget_all().await?
                }
                None => store.forget_all().await?,
            };
            let count = forgotten.removed.len();
            let message = format!("all {count} messages were deleted permanently");
            let cleared = Cleared { context_id: target.id.clone(), count, status: "cleared" };
            let along = Some(Along::of(&forgotten));
            Output { cleared: Some(cleared), deleted_count: Some(count), along, ..done(message) }
        }
    };
    if output.deleted_count.is_some() {
        publish_context(hub, &target.id);
    }
    json(&output)
}

async fn list(store: &FileConversationStore, id: &str, given: &Arguments) -> Result<Output, Fault> {
    let page = Page::new(given.page, given.page_size, USUAL_PAGE)?;
    let stats = store.stats().await?;
    let total = usize::try_from(stats.message_count).unwrap_or(usize::MAX);
    let from_the_newest = given.reverse.unwrap_or(true);
    // Pages near the newest message, and near the oldest one, are read without what lies beyond them. One of the newer half that is
    // counted from the oldest reads all: damaged messages count, but are not read, so that counting back would show some twice.
    let messages = match stats.first {
        _ if from_the_newest => store.read_tail(page.end()).await?.messages,
        Some(first) if page.end() <= total / 2 => oldest(store, first, page.end()).await?,
        _ => store.read_tail(usize::MAX).await?.messages,
    };
    let conversations = match from_the_newest {
        true => page.of(messages.iter().rev()),
        false => page.of(messages.iter()),
    };
    let shape = |stored: &Arc<_>| MessageShape::new(id, stored);
    Ok(Output {
        conversations: Some(conversations.into_iter().map(shape).collect()),
        total_count: Some(total),
        page: Some(page.number),
        page_size: Some(page.size),
        ..done(format!("there are {total} messages"))
    })
}

/// At least `n` of the messages from the first one on, in the conversation's order. There are more.
async fn oldest(
    store: &FileConversationStore,
    first: Timestamp,
    n: usize,
) -> Result<Vec<Arc<StoredMessage>>, Fault> {
    let mut span = FIRST_SPAN;
    loop {
        let end = first.checked_add(span).unwrap_or(Timestamp::MAX);
        let messages = store.read_times(first..end).await?.messages;
        if messages.len() >= n || end == Timestamp::MAX {
            return Ok(messages);
        }
        span = span.checked_mul(4).unwrap_or(SignedDuration::MAX);
    }
}

/// The numbers of the messages to delete.
async fn named(
    store: &FileConversationStore,
    given: &Arguments,
) -> Result<Vec<RangeInclusive<u64>>, Fault> {
    if given.conversation_ids.is_none() && given.older_than.is_none() {
        return Err(Fault::new(
            "Either conversationIds or olderThan must be provided for delete action",
        ));
    }
    let mut seqs = Vec::new();
    for id in given.conversation_ids.iter().flatten() {
        let seq = message_seq(id).ok_or_else(|| {
            Fault::new(format!("{id:?} is not a message id; the list shows ids such as conv-12"))
        })?;
        seqs.push(seq..=seq);
    }
    if let Some(moment) = &given.older_than {
        let moment: jiff::Timestamp = moment
            .parse()
            .map_err(|_| Fault::new("olderThan must be a time such as 2026-01-31T12:00:00Z"))?;
        // A clock that was set back may have made a later message the older one, so that all are looked at.
        let last = store.state().await?.last_seq;
        for first in (1..=last).step_by(AT_ONCE) {
            let messages = store.read_seqs(first..=first + AT_ONCE as u64 - 1).await?.messages;
            let older = messages.iter().filter(|stored| stored.message.timestamp < moment);
            seqs.extend(older.map(|stored| stored.seq..=stored.seq));
        }
    }
    Ok(seqs)
}

fn done(message: String) -> Output {
    Output { success: true, message, ..Output::default() }
}
