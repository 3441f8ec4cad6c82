//! Snapshots on their way to other devices: what they say beside their messages, and which messages those are.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::error::Result;
use crate::exchange::Exchange;
use crate::store::record::import_digest::Origin;
use crate::store::{ConversationStore, Snapshot};

/// A snapshot without the words of its messages. `Debug` shows no words, and dropping it wipes them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedSnapshot {
    /// When it was saved.
    pub saved_at: Timestamp,
    /// The user's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The model's summary.
    pub summary: String,
    /// The start of the window.
    pub window_start: Timestamp,
    /// The end of the window.
    pub window_end: Timestamp,
    /// The messages, in conversation order.
    pub messages: Vec<Origin>,
}

impl Exchange {
    /// The snapshots by id. One that cannot be read is left out.
    ///
    /// # Errors
    /// What prevents reading the conversation.
    pub async fn snapshots(&self) -> Result<BTreeMap<String, SharedSnapshot>> {
        let (snapshots, _) = self.store.snapshots().await?;
        let scope = self.store.scope();
        let shared = |snapshot: &Snapshot| {
            let saved = snapshot.messages.iter();
            let origins =
                saved.filter_map(|saved| Origin::of_stored(scope, saved.seq, &saved.message));
            SharedSnapshot {
                saved_at: snapshot.saved_at,
                description: snapshot.description.clone(),
                summary: snapshot.summary.clone(),
                window_start: snapshot.window_start,
                window_end: snapshot.window_end,
                messages: origins.collect(),
            }
        };
        Ok(snapshots.iter().map(|snapshot| (snapshot.id.clone(), shared(snapshot))).collect())
    }
}

impl fmt::Debug for SharedSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSnapshot")
            .field("saved_at", &self.saved_at)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}

impl Drop for SharedSnapshot {
    fn drop(&mut self) {
        self.description.zeroize();
        self.summary.zeroize();
    }
}
