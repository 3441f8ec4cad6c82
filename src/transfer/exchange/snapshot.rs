//! Snapshots on their way to other devices: what they say beside their messages, and which messages those are.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::error::{Error, Result};
use crate::store::file_store::known::Known;
use crate::store::record::import_digest::Origin;
use crate::store::record::snapshot::is_id;
use crate::store::{ConversationStore, SavedMessage, Snapshot};
use crate::transfer::exchange::{Exchange, Received};

/// A snapshot without the words of its messages. `Debug` shows no words, and dropping it wipes them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedSnapshot {
    /// When it was saved.
    pub(crate) saved_at: Timestamp,
    /// The user's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The model's summary.
    pub summary: String,
    /// The start of the window.
    pub(crate) window_start: Timestamp,
    /// The end of the window.
    pub(crate) window_end: Timestamp,
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

    /// Saves snapshots whose messages are all here or were removed, and deletes those that were deleted elsewhere.
    pub(super) async fn receive_snapshots(
        &self,
        snapshots: BTreeMap<String, Option<SharedSnapshot>>,
        known: &mut Known,
        received: &mut Received,
    ) -> Result<()> {
        if snapshots.values().any(Option::is_some) {
            known.catch_up(&self.store).await?;
        }
        for (id, shared) in snapshots {
            if !is_id(&id) {
                tracing::warn!("a snapshot of another device has an id that is none");
            } else if let Some(shared) = shared {
                self.receive_snapshot(id, &shared, known, received).await?;
            } else {
                self.store.write(move |writer| writer.delete_received_snapshot(&id)).await?;
            }
        }
        Ok(())
    }

    async fn receive_snapshot(
        &self,
        id: String,
        shared: &SharedSnapshot,
        known: &Known,
        received: &mut Received,
    ) -> Result<()> {
        let profile = self.store.profile().await?;
        if profile.has_had_snapshot(&id) && profile.revision(&id).is_none() {
            // It was deleted here.
            return Ok(());
        }
        let before = self.store.read_snapshot(&id).await?;
        let (mut messages, mut has_forgotten) = (Vec::new(), false);
        for origin in &shared.messages {
            if let Some(saved) = self.saved(*origin, known, before.as_ref()).await? {
                messages.push(saved);
            } else if known.is_unwanted(*origin) {
                has_forgotten = true;
            } else if !known.has_forgotten(*origin) {
                received.incomplete.insert(id);
                return Ok(());
            }
        }
        if messages.is_empty() && !shared.messages.is_empty() {
            return Ok(());
        }
        let window = (shared.window_start, shared.window_end);
        let mut snapshot = Snapshot::new(shared.saved_at, window, messages)?.with_id(id)?;
        snapshot.description.clone_from(&shared.description);
        snapshot.summary.clone_from(&shared.summary);
        if has_forgotten {
            snapshot.remove_summary();
        }
        if let Some(before) = before {
            snapshot.rev = before.rev;
            if snapshot == before {
                return Ok(());
            }
        }
        match self.store.save_snapshot(snapshot).await {
            // All its messages were forgotten meanwhile.
            Err(Error::EmptySnapshot) => Ok(()),
            saved => saved,
        }
    }

    /// The message with this origin, as a snapshot has it: as it is here, or as the snapshot had it, if limits have removed
    /// it since.
    async fn saved(
        &self,
        origin: Origin,
        known: &Known,
        before: Option<&Snapshot>,
    ) -> Result<Option<SavedMessage>> {
        if let Some(number) = known.number(origin) {
            let read = self.store.read_seqs(number..=number).await?;
            if let Some(stored) = read.messages.first() {
                return Ok(Some(SavedMessage::new(stored.seq, stored.message.clone())));
            }
        }
        let scope = self.store.scope();
        let is_it = |saved: &&SavedMessage| {
            Origin::of_stored(scope, saved.seq, &saved.message) == Some(origin)
        };
        Ok(before.and_then(|before| before.messages.iter().find(is_it)).cloned())
    }
}

debug_shows!(SharedSnapshot as it: saved_at, messages = it.messages.len());

impl Drop for SharedSnapshot {
    fn drop(&mut self) {
        self.description.zeroize();
        self.summary.zeroize();
    }
}
