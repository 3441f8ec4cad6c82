//! Texts as files, where a page shows only their beginning.

use std::sync::Arc;

use axum::extract::Query;
use axum::response::Response;
use serde::Deserialize;
use sottovoce::{ConversationStore, StoredMessage};

use crate::english as en;
use crate::failure::Failure;
use crate::html::download;
use crate::room::Room;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Asked {
    /// The number of a message.
    n: u64,
    what: What,
    /// The thread of a summary; empty for messages that are in none.
    thread: String,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum What {
    /// The words of a message.
    #[default]
    Words,
    /// A message with all that is stored with it.
    Record,
    /// What the model is told first.
    System,
    Personality,
    Summary,
}

pub(crate) async fn whole(room: Room, Query(asked): Query<Asked>) -> Result<Response, Failure> {
    let thread = Some(asked.thread.as_str()).filter(|thread| !thread.is_empty());
    let assigned = room.profile.assigned_persona.as_ref().map(|assigned| &assigned.persona);
    let (name, text) = match asked.what {
        What::Words => {
            let stored = find(&room, asked.n).await?;
            (format!("message-{}.txt", stored.seq), Some(stored.message.content.clone()))
        }
        What::Record => {
            let stored = find(&room, asked.n).await?;
            let text = serde_json::to_string_pretty(&stored.message).ok();
            (format!("message-{}.json", stored.seq), text)
        }
        What::System => {
            let configured = &room.here.app.house.config().language_model.system_prompt;
            let text = assigned.map_or(configured, |persona| &persona.system_prompt);
            ("system-prompt.txt".to_owned(), Some(text.clone()))
        }
        What::Personality => {
            let text = assigned.map(|persona| persona.personality.clone());
            ("personality.txt".to_owned(), text)
        }
        What::Summary => {
            let text = room.profile.summary(thread).map(|summary| summary.text.clone());
            ("summary.txt".to_owned(), text)
        }
    };
    let text = text.ok_or(Failure::NotFound(en::NO_SUCH_PAGE))?;
    let kind =
        if name.ends_with(".json") { "application/json" } else { "text/plain; charset=utf-8" };
    Ok(download(kind, &name, text))
}

/// The message with this number.
pub(super) async fn find(room: &Room, number: u64) -> Result<Arc<StoredMessage>, Failure> {
    let read = room.store.read_seqs(number..=number).await?;
    read.messages.into_iter().next().ok_or(Failure::NotFound(en::NO_SUCH_MESSAGE))
}
