//! One conversation's folder.

use zeroize::Zeroizing;

use super::{SYSTEM, artifact, line, metadata, snapshot};
use crate::blob::{EntryKind, SourceReader};
use crate::error::Result;
use crate::import::RefusalReason::Corrupt;
use crate::import::level::{Level, misnamed};
use crate::import::lines::Lines;
use crate::import::twins::Twins;
use crate::import::{Foreign, ForeignConversation, ForeignMessage, Refusal, RefusalReason};
use crate::scope::Scope;

const MESSAGES: &str = "messages.jsonl";
const METADATA: &str = "metadata.json";
const ARTIFACTS: &str = "artifacts";
const SNAPSHOTS: &str = "snapshots";
/// The most bytes of what is said of a conversation, an artifact or a saved state.
const LARGEST: usize = 1 << 20;

/// What is in the folder; `None` where that is no conversation.
pub(super) fn read(level: &Level, scope: Scope, id: &str) -> Result<Option<ForeignConversation>> {
    let mut conversation = ForeignConversation::new(scope, SYSTEM);
    let foreign = &mut conversation.foreign;
    let (mut is_one, mut artifacts, mut snapshots) = (false, false, false);
    for (name, kind) in level.list(&mut foreign.refused)? {
        match (name.as_slice(), kind) {
            (name, _) if name == MESSAGES.as_bytes() || name == METADATA.as_bytes() => {
                is_one = true
            }
            (name, EntryKind::Folder) if name == ARTIFACTS.as_bytes() => artifacts = true,
            (name, EntryKind::Folder) if name == SNAPSHOTS.as_bytes() => snapshots = true,
            (name, EntryKind::Other)
                if name == ARTIFACTS.as_bytes() || name == SNAPSHOTS.as_bytes() =>
            {
                foreign.refused.push(level.refusal(name, misnamed(kind)));
            }
            _ => foreign.passed_over.add("other entries of conversations", 1),
        }
    }
    if !is_one && foreign.refused.is_empty() {
        return Ok(None);
    }
    let lines = messages(level, id, foreign)?;
    match file(level, METADATA)? {
        Some(Ok(bytes)) => match metadata::read(&bytes, level.place(METADATA)) {
            Ok(facts) => conversation.facts = facts,
            Err(reason) => foreign.refused.push(Refusal::new(level.place(METADATA), reason)),
        },
        Some(Err(reason)) => foreign.refused.push(Refusal::new(level.place(METADATA), reason)),
        None => {}
    }
    if artifacts {
        conversation.artifacts = artifact::read(&level.below(ARTIFACTS), id, foreign)?;
    }
    if snapshots {
        conversation.snapshots =
            snapshot::read(&level.below(SNAPSHOTS), id, &lines, &mut conversation.foreign)?;
    }
    Ok(Some(conversation))
}

/// The bytes of a small file; `None` where there is none. What it says is to be read with every conversation that is
/// opened.
pub(super) fn file(
    level: &Level,
    name: &str,
) -> Result<Option<Result<Zeroizing<Vec<u8>>, RefusalReason>>> {
    match level.blobs.read(name) {
        Ok(Some(bytes)) if bytes.len() > LARGEST => Ok(Some(Err(Corrupt("it is over 1 MiB")))),
        Ok(bytes) => Ok(bytes.map(|bytes| Ok(Zeroizing::new(bytes)))),
        Err(error) => RefusalReason::unread(error).map(|reason| Some(Err(reason))),
    }
}

/// What became of each line: where its message is among those that can be taken.
pub(super) type Taken = Vec<Option<usize>>;

/// Reads the messages in the order of the lines, which counts for more than their times.
fn messages(level: &Level, id: &str, foreign: &mut Foreign) -> Result<Taken> {
    foreign.is_a_line = true;
    let place = level.place(MESSAGES);
    let mut taken = Taken::new();
    let source = match level.blobs.open(MESSAGES) {
        Ok(Some(source)) => source,
        Ok(None) => return Ok(taken),
        Err(error) => {
            foreign.refused.push(Refusal::new(place, RefusalReason::unread(error)?));
            return Ok(taken);
        }
    };
    let (mut lines, mut twins) = (Lines::new(SourceReader::new(source)), Twins::default());
    loop {
        let line = match lines.read_line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(taken),
            Err(error) => {
                foreign.refused.push(Refusal::new(place, RefusalReason::Unreadable(error.kind())));
                return Ok(taken);
            }
        };
        let message = line.bytes.and_then(|bytes| line::read(&bytes, id, &mut twins));
        taken.push(keep(message, format!("{place}#{}", line.number), foreign));
    }
}

fn keep(
    message: Result<ForeignMessage, RefusalReason>,
    place: String,
    foreign: &mut Foreign,
) -> Option<usize> {
    match message {
        Ok(message) => {
            foreign.messages.push(message.found_in(place));
            Some(foreign.messages.len() - 1)
        }
        Err(reason) => {
            foreign.refused.push(Refusal::new(place, reason));
            None
        }
    }
}
