//! Saved states of a conversation: `{id}/metadata.json`, and `{id}/conversation-state.json` with the number of
//! messages.

use std::collections::HashSet;

use serde::Deserialize;
use sottovoce::Result;
use sottovoce::import::RefusalReason::{self, Corrupt, Unstorable};
use sottovoce::import::{ImportedMessage, ImportedMessages, ImportedSnapshot, Origin, Refusal};
use sottovoce::store::Snapshot;

use super::small_file::{required, small_file};
use crate::fields::{json, time};
use crate::source::{EntryKind, Folder, Refusable, misnamed};
use crate::system::MIMIR;

const METADATA: &str = "metadata.json";
const STATE: &str = "conversation-state.json";
/// The index file, which repeats what the saved states say.
const INDEX: &[u8] = b"index.json";

/// For each line, the index of its message; `None` if it was refused.
pub(super) type Taken = Vec<Option<usize>>;

#[derive(Deserialize)]
struct Metadata {
    timestamp: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct State {
    #[serde(rename = "messageCount")]
    message_count: usize,
}

/// Reads the saved states. Each consists of the messages of the first lines.
pub(super) fn read(
    level: &Folder,
    conversation: &str,
    lines: &Taken,
    messages: &mut ImportedMessages,
) -> Result<Vec<ImportedSnapshot>> {
    let mut snapshots = Vec::new();
    for (name, kind) in level.list(&mut messages.refused)? {
        let id = match (kind, str::from_utf8(&name)) {
            (EntryKind::Folder, Ok(id)) => id,
            (EntryKind::File, _) => {
                messages.passed_over.add("files beside folders", usize::from(name != INDEX));
                continue;
            }
            (kind, _) => {
                messages.refused.push(level.refusal(&name, misnamed(kind)));
                continue;
            }
        };
        let below = level.below(id);
        let entries = below.list(&mut messages.refused)?;
        let is_ours = |name: &[u8]| name == METADATA.as_bytes() || name == STATE.as_bytes();
        let others = entries.iter().filter(|(name, _)| !is_ours(name)).count();
        messages.passed_over.add("other entries of snapshots", others);
        let place = level.place(id);
        match one(&below, conversation, id, lines, &messages.messages)? {
            Ok((snapshot, origins)) => {
                snapshots.push(ImportedSnapshot::new(snapshot, place, origins));
            }
            Err(reason) => messages.refused.push(Refusal::new(place, reason)),
        }
    }
    Ok(snapshots)
}

type Saved = (Snapshot, HashSet<Origin>);

fn one(
    level: &Folder,
    conversation: &str,
    id: &str,
    lines: &Taken,
    messages: &[ImportedMessage],
) -> Refusable<Saved> {
    let read = |name| -> Refusable<_> { Ok(small_file(level, name)?.and_then(required)) };
    let (metadata, state) = (read(METADATA)?, read(STATE)?);
    Ok(metadata.and_then(|metadata| {
        let state: State = json::object(json::text(&state?)?, "its state has no message count")?;
        let metadata: Metadata =
            json::object(json::text(&metadata)?, "its fields are not those of a saved state")?;
        let first = lines.iter().take(state.message_count);
        let held = first.filter_map(|at| messages.get((*at)?));
        let held: Vec<&ImportedMessage> = held.collect();
        let origins = held.iter().map(|message| message.origin()).collect();
        Ok((begin(metadata, conversation, id, &held)?, origins))
    }))
}

/// The snapshot without its messages.
fn begin(
    metadata: Metadata,
    conversation: &str,
    id: &str,
    held: &[&ImportedMessage],
) -> Result<Snapshot, RefusalReason> {
    let time = time::parse(&metadata.timestamp).ok_or(Corrupt("its timestamp is not a time"))?;
    let (at, _) = time;
    let start = held.iter().map(|message| message.message.timestamp).min().unwrap_or(at);
    let id = ImportedSnapshot::stable_id(MIMIR, conversation, id);
    let snapshot = Snapshot::new(at, (start.min(at), at), Vec::new());
    let snapshot = snapshot.and_then(|snapshot| snapshot.with_id(id));
    let unnamed = |error| {
        RefusalReason::for_store_error(&error).unwrap_or(Unstorable("its id cannot be used"))
    };
    let mut snapshot = snapshot.map_err(unnamed)?;
    snapshot.description = metadata.description.or(metadata.kind);
    "(Mimir wrote no summary)".clone_into(&mut snapshot.summary);
    Ok(snapshot)
}
