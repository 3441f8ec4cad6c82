//! A conversation's saved states: `{id}/metadata.json`, and `{id}/conversation-state.json`, which counts the messages that
//! there were.

use std::collections::HashSet;

use serde::Deserialize;

use super::SYSTEM;
use super::conversation::{Taken, file};
use crate::blob::EntryKind;
use crate::crypto::fingerprint;
use crate::error::Result;
use crate::import::RefusalReason::{self, Corrupt, Unstorable};
use crate::import::level::{Level, misnamed};
use crate::import::{Foreign, ForeignMessage, ForeignSnapshot, Refusal, json, time};
use crate::store::Snapshot;
use crate::store::record::import_digest::Origin;
use crate::store::record::snapshot::uuid;

const METADATA: &str = "metadata.json";
const STATE: &str = "conversation-state.json";
/// The list of them, which says nothing that they do not say themselves.
const INDEX: &[u8] = b"index.json";

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

/// The saved states, each of the messages of the first so many lines.
pub(super) fn read(
    level: &Level,
    conversation: &str,
    lines: &Taken,
    foreign: &mut Foreign,
) -> Result<Vec<ForeignSnapshot>> {
    let mut snapshots = Vec::new();
    for (name, kind) in level.list(&mut foreign.refused)? {
        let id = match (kind, str::from_utf8(&name)) {
            (EntryKind::Folder, Ok(id)) => id,
            (EntryKind::File, _) => {
                foreign.passed_over.add("files beside folders", usize::from(name != INDEX));
                continue;
            }
            (kind, _) => {
                foreign.refused.push(level.refusal(&name, misnamed(kind)));
                continue;
            }
        };
        let below = level.below(id);
        let entries = below.list(&mut foreign.refused)?;
        let is_ours = |name: &[u8]| name == METADATA.as_bytes() || name == STATE.as_bytes();
        let others = entries.iter().filter(|(name, _)| !is_ours(name)).count();
        foreign.passed_over.add("other entries of snapshots", others);
        let place = level.place(id);
        match one(&below, conversation, id, lines, &foreign.messages)? {
            Ok((snapshot, origins)) => {
                snapshots.push(ForeignSnapshot::new(snapshot, place, origins));
            }
            Err(reason) => foreign.refused.push(Refusal::new(place, reason)),
        }
    }
    Ok(snapshots)
}

type Saved = (Snapshot, HashSet<Origin>);

fn one(
    level: &Level,
    conversation: &str,
    id: &str,
    lines: &Taken,
    messages: &[ForeignMessage],
) -> Result<Result<Saved, RefusalReason>> {
    let read = |name| -> Result<Result<_, RefusalReason>> {
        let missing = RefusalReason::Unreadable(std::io::ErrorKind::NotFound);
        Ok(file(level, name)?.unwrap_or(Err(missing)))
    };
    let (metadata, state) = (read(METADATA)?, read(STATE)?);
    Ok(metadata.and_then(|metadata| {
        let state: State = json::object(json::text(&state?)?, "its state counts no messages")?;
        let metadata: Metadata =
            json::object(json::text(&metadata)?, "its fields are not those of a saved state")?;
        let first = lines.iter().take(state.message_count);
        let held = first.filter_map(|at| messages.get((*at)?));
        let held: Vec<&ForeignMessage> = held.collect();
        let origins = held.iter().map(|message| message.origin).collect();
        Ok((begin(metadata, conversation, id, &held)?, origins))
    }))
}

/// A snapshot that is still without its messages.
fn begin(
    metadata: Metadata,
    conversation: &str,
    id: &str,
    held: &[&ForeignMessage],
) -> Result<Snapshot, RefusalReason> {
    let time = time::parse(&metadata.timestamp).ok_or(Corrupt("its timestamp is not a time"))?;
    let (at, _) = time;
    let start = held.iter().map(|message| message.message.timestamp).min().unwrap_or(at);
    let items = ["sottovoce/v1 snapshot", SYSTEM, conversation, id].map(str::as_bytes);
    // Always the same, so that one that is here, or was deleted, is known by it.
    let id = uuid(fingerprint(&items), 8);
    let snapshot = Snapshot::new(at, (start.min(at), at), Vec::new());
    let snapshot = snapshot.and_then(|snapshot| snapshot.with_id(id));
    let unnamed = |error| RefusalReason::of(&error).unwrap_or(Unstorable("it can be given no id"));
    let mut snapshot = snapshot.map_err(unnamed)?;
    snapshot.description = metadata.description.or(metadata.kind);
    "(Mimir wrote no summary)".clone_into(&mut snapshot.summary);
    Ok(snapshot)
}
