//! Snapshots of another system's conversations.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::crypto::fingerprint;
use crate::error::{Error, Result};
use crate::store::file_store::known::Known;
use crate::store::record::import_digest::Origin;
use crate::store::record::snapshot::uuid;
use crate::store::{
    ConversationStore, FileConversationStore, SavedMessage, Snapshot, StoredMessage,
};
use crate::transfer::import::Refusal;
use crate::transfer::import::cleared::{Which, each};

/// A snapshot of another system.
#[derive(Debug)]
pub struct ImportedSnapshot {
    /// The snapshot without its messages. They are added when their sequence numbers are known.
    pub(crate) snapshot: Snapshot,
    /// The file or record it was read from.
    pub file: String,
    origins: HashSet<Origin>,
}

impl ImportedSnapshot {
    /// A snapshot of the messages with these origins. `file` names the file or record it was read from.
    pub fn new(snapshot: Snapshot, file: String, origins: HashSet<Origin>) -> Self {
        Self { snapshot, file, origins }
    }

    /// The id for a snapshot whose system gives it an id that is no UUID. It is always the same, so that a repeated
    /// import finds the snapshot, or notices that it was deleted.
    pub fn stable_id(system: &str, conversation: &str, id: &str) -> String {
        let items = ["sottovoce/v1 snapshot", system, conversation, id].map(str::as_bytes);
        uuid(fingerprint(&items), 8)
    }

    /// Whether the store has any of its messages.
    pub(super) fn has_any(&self, known: &Known) -> bool {
        self.origins.iter().any(|origin| known.has(*origin))
    }
}

/// The snapshots that the store neither has nor had.
pub(super) async fn missing(
    store: &FileConversationStore,
    mut snapshots: Vec<ImportedSnapshot>,
) -> Result<Vec<ImportedSnapshot>> {
    if !snapshots.is_empty() {
        let profile = store.profile().await?;
        snapshots.retain(|imported| !profile.has_had_snapshot(&imported.snapshot.id));
    }
    Ok(snapshots)
}

/// Saves the snapshots with those of their messages that are there, and returns how many had any. A snapshot that the
/// store refuses is refused; the others are saved.
pub(super) async fn keep(
    store: &FileConversationStore,
    snapshots: Vec<ImportedSnapshot>,
    refused: &mut Vec<Refusal>,
) -> Result<usize> {
    let wanted: HashSet<Origin> =
        snapshots.iter().flat_map(|imported| imported.origins.iter().copied()).collect();
    if wanted.is_empty() {
        return Ok(0);
    }
    let there = find(store, &wanted).await?;
    let mut saved = 0;
    for ImportedSnapshot { mut snapshot, file, origins } in snapshots {
        let mut stored: Vec<&Arc<StoredMessage>> =
            origins.iter().filter_map(|origin| there.get(origin)).collect();
        if stored.is_empty() {
            continue;
        }
        stored.sort_by_key(|stored| (stored.ordered_at(), stored.seq));
        snapshot.messages = stored
            .into_iter()
            .map(|stored| SavedMessage::new(stored.seq, stored.message.clone()))
            .collect();
        match store.save_snapshot(snapshot).await {
            Ok(()) => saved += 1,
            Err(Error::EmptySnapshot) => {}
            Err(error) => Refusal::note(refused, &file, error)?,
        }
    }
    Ok(saved)
}

/// Finds the stored messages with these origins.
async fn find(
    store: &FileConversationStore,
    wanted: &HashSet<Origin>,
) -> Result<HashMap<Origin, Arc<StoredMessage>>> {
    let mut found = HashMap::new();
    each(store, Which::Visible, |stored| {
        let origin = Origin::of_stored(store.scope(), stored.seq, &stored.message);
        if let Some(origin) = origin.filter(|origin| wanted.contains(origin)) {
            found.entry(origin).or_insert_with(|| Arc::clone(stored));
        }
    })
    .await?;
    Ok(found)
}
