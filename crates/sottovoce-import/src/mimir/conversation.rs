//! The folder of a conversation.

use sottovoce::import::{ImportedConversation, ImportedMessages, Refusal, RefusalReason};
use sottovoce::{Result, Scope};

use super::small_file::small_file;
use super::snapshot::{self, Taken};
use super::{artifact, line, metadata};
use crate::source::lines::Lines;
use crate::source::{EntryKind, Folder, misnamed};
use crate::system::MIMIR;
use crate::twins::Twins;

const MESSAGES: &str = "messages.jsonl";
const METADATA: &str = "metadata.json";
const ARTIFACTS: &str = "artifacts";
const SNAPSHOTS: &str = "snapshots";

/// Reads the folder; `None` if it is not a conversation.
pub(super) fn read(level: &Folder, scope: Scope, id: &str) -> Result<Option<ImportedConversation>> {
    let mut conversation = ImportedConversation::new(scope, MIMIR);
    let messages = &mut conversation.messages;
    let (mut is_one, mut artifacts, mut snapshots) = (false, false, false);
    for (name, kind) in level.list(&mut messages.refused)? {
        match (name.as_slice(), kind) {
            (name, _) if name == MESSAGES.as_bytes() || name == METADATA.as_bytes() => {
                is_one = true
            }
            (name, EntryKind::Folder) if name == ARTIFACTS.as_bytes() => artifacts = true,
            (name, EntryKind::Folder) if name == SNAPSHOTS.as_bytes() => snapshots = true,
            (name, EntryKind::Other)
                if name == ARTIFACTS.as_bytes() || name == SNAPSHOTS.as_bytes() =>
            {
                messages.refused.push(level.refusal(name, misnamed(kind)));
            }
            _ => messages.passed_over.add("other entries of conversations", 1),
        }
    }
    if !is_one && messages.refused.is_empty() {
        return Ok(None);
    }
    let lines = read_messages(level, id, messages)?;
    let facts = small_file(level, METADATA)?.and_then(|bytes| {
        bytes.map(|bytes| metadata::read(&bytes, level.place(METADATA))).transpose()
    });
    match facts {
        Ok(facts) => conversation.facts = facts.unwrap_or_default(),
        Err(reason) => messages.refused.push(Refusal::new(level.place(METADATA), reason)),
    }
    if artifacts {
        conversation.artifacts = artifact::read(&level.below(ARTIFACTS), id, messages)?;
    }
    if snapshots {
        conversation.snapshots =
            snapshot::read(&level.below(SNAPSHOTS), id, &lines, &mut conversation.messages)?;
    }
    Ok(Some(conversation))
}

/// Reads the messages in the order of their lines, which overrides their times.
fn read_messages(level: &Folder, id: &str, messages: &mut ImportedMessages) -> Result<Taken> {
    messages.is_ordered = true;
    let place = level.place(MESSAGES);
    let mut taken = Taken::new();
    let source = match level.open(MESSAGES) {
        Ok(Some(source)) => source,
        Ok(None) => return Ok(taken),
        Err(error) => {
            messages.refused.push(Refusal::new(place, RefusalReason::for_read_error(error)?));
            return Ok(taken);
        }
    };
    let (mut lines, mut twins) = (Lines::new(source), Twins::default());
    loop {
        let line = match lines.read_line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(taken),
            Err(error) => {
                messages.refused.push(Refusal::new(place, RefusalReason::Unreadable(error.kind())));
                return Ok(taken);
            }
        };
        let message = line.bytes.and_then(|bytes| line::read(&bytes, id, &mut twins));
        taken.push(message.is_ok().then_some(messages.messages.len()));
        messages.push(format!("{place}#{}", line.number), message);
    }
}
