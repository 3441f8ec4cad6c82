//! A message on its way to other devices.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::message::source::RECEIVED;
use crate::message::{ChatMessage, IMPORTED_FROM, RESTORED_FROM};
use crate::store::StoredMessage;
use crate::store::record::import_digest::Origin;
use crate::transfer::arrivals::name_original;

/// A message on its way to other devices. `Debug` shows no words.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedMessage {
    /// Its identity in all stores.
    pub origin: Origin,
    /// The time that orders it in the conversation, to the millisecond.
    pub at: Timestamp,
    /// The message of which it is a restored copy, if that was still stored. Its metadata `restoredFrom` then names the
    /// snapshot alone, since numbers mean nothing elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<Origin>,
    /// The message without the mark of how it came here: one that another device has said has no `importedFrom`, one
    /// that any device has imported has that of the import.
    pub message: ChatMessage,
}

impl SharedMessage {
    /// A stored message, and whether it came from another device. `copy_of` is the origin of the message that it is a
    /// copy of. `None` for a message that has no origin, because it cannot be written as JSON.
    pub(super) fn of(stored: &StoredMessage, copy_of: Option<Origin>) -> Option<(bool, Self)> {
        let mut message = stored.message.clone();
        let origin = Origin::of_stored(&stored.scope, stored.seq, &message)?;
        let is_received = unmark(&mut message);
        match message.restored_from().map(|(snapshot, _)| snapshot.to_owned()) {
            Some(snapshot) if copy_of.is_some() => {
                message.metadata.insert(RESTORED_FROM.to_owned(), snapshot);
            }
            _ => drop(message.metadata.remove(RESTORED_FROM)),
        }
        Some((is_received, Self { origin, at: stored.ordered_at(), copy_of, message }))
    }

    /// The message as it is stored here. `original` is the number here of the message that it is a copy of.
    pub(super) fn marked(&self, original: Option<u64>) -> ChatMessage {
        let mut message = self.message.clone();
        if let Some(snapshot) = self.message.metadata.get(RESTORED_FROM) {
            name_original(&mut message, snapshot, original);
        }
        let before = message.metadata.get(IMPORTED_FROM).and_then(|mark| mark.rsplit_once(':'));
        let system = match before {
            Some((system, _)) => format!("{RECEIVED}/{system}"),
            None => RECEIVED.to_owned(),
        };
        self.origin.mark(&mut message, &system);
        message
    }
}

/// Restores the mark that the message had on the device that it came from. Returns whether it came from another device.
fn unmark(message: &mut ChatMessage) -> bool {
    let Some(mark) = message.metadata.get(IMPORTED_FROM) else { return false };
    let Some((system, digits)) = mark.rsplit_once(':') else { return false };
    if system == RECEIVED {
        message.metadata.remove(IMPORTED_FROM);
        return true;
    }
    let before = system.strip_prefix(RECEIVED).and_then(|rest| rest.strip_prefix('/'));
    let Some(before) = before.map(|before| format!("{before}:{digits}")) else { return false };
    message.metadata.insert(IMPORTED_FROM.to_owned(), before);
    true
}

debug_shows!(SharedMessage: origin, at, copy_of);
