//! Snapshots: saved windows of a conversation, each sealed in a file of its own. The settings list them with their
//! newest revisions, so that a backup cannot bring back a deleted snapshot or an older revision with forgotten
//! messages.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::crypto::random;
use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::record::encoding::{LONGEST_RECORD, to_json};
use crate::store::record::profile::Profile;
use crate::store::record::seq_set::SeqSet;

/// The summary of a snapshot if the model wrote none.
const NO_SUMMARY: &str = "(summary generation failed)";
/// The summary of a snapshot after a message was removed from it.
const REMOVED_SUMMARY: &str = "(summary removed with the forgotten messages)";

/// A saved window of a conversation. `Debug` shows no words, and dropping it wipes them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    /// The id, a UUID.
    pub id: String,
    pub(crate) rev: u64,
    /// When it was saved.
    pub saved_at: Timestamp,
    /// The user's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The model's summary, a few sentences.
    pub summary: String,
    /// The start of the window.
    pub window_start: Timestamp,
    /// The end of the window.
    pub window_end: Timestamp,
    /// The messages, in conversation order.
    pub messages: Vec<SavedMessage>,
}

/// The number under which a message was first stored. A restored copy has another number.
pub(crate) fn root(seq: u64, message: &ChatMessage) -> u64 {
    message.restored_from().map_or(seq, |(_, seq)| seq)
}

/// A message in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SavedMessage {
    /// The message's number in the conversation.
    pub seq: u64,
    /// The message.
    pub message: ChatMessage,
}

impl SavedMessage {
    /// A message with its number in the conversation.
    pub fn new(seq: u64, message: ChatMessage) -> Self {
        Self { seq, message }
    }

    /// Whether it is one of these messages or a restored copy of one.
    fn is_any_of(&self, seqs: &SeqSet) -> bool {
        seqs.contains(self.seq) || seqs.contains(root(self.seq, &self.message))
    }
}

impl Snapshot {
    /// A snapshot of this window, with a new id.
    ///
    /// # Errors
    /// [`Error::NoRandomness`].
    pub fn new(
        saved_at: Timestamp,
        (window_start, window_end): (Timestamp, Timestamp),
        messages: Vec<SavedMessage>,
    ) -> Result<Self> {
        let mut bytes = [0; 16];
        random(&mut bytes)?;
        Ok(Self {
            id: uuid(bytes, 4),
            rev: 1,
            saved_at,
            description: None,
            summary: NO_SUMMARY.to_owned(),
            window_start,
            window_end,
            messages,
        })
    }

    /// Sets an id that the snapshot already has elsewhere.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] unless the id is a UUID in lower case.
    pub fn with_id(mut self, id: impl Into<String>) -> Result<Self> {
        self.id = id.into();
        if !is_id(&self.id) {
            return Err(Error::InvalidMessage { reason: "a snapshot's id must be a UUID" });
        }
        Ok(self)
    }

    /// Whether it was imported from another system.
    pub(crate) fn is_imported(&self) -> bool {
        self.messages.iter().any(|saved| saved.message.is_imported())
    }

    /// How many of its messages are among these, restored copies included.
    pub(crate) fn count_of(&self, seqs: &SeqSet) -> usize {
        self.messages.iter().filter(|saved| saved.is_any_of(seqs)).count()
    }

    /// Removes messages and the summary that describes them. Returns whether there were any.
    pub(crate) fn remove_messages(&mut self, seqs: &SeqSet) -> bool {
        let before = self.messages.len();
        self.messages.retain(|saved| !saved.is_any_of(seqs));
        let removed = self.messages.len() < before;
        if removed {
            self.remove_summary();
        }
        removed
    }

    /// Removes the summary, which may be about messages that were removed.
    pub(crate) fn remove_summary(&mut self) {
        self.summary.zeroize();
        REMOVED_SUMMARY.clone_into(&mut self.summary);
    }

    /// Takes out what was forgotten since it was made. `last` is the highest number of the conversation.
    ///
    /// # Errors
    /// [`Error::EmptySnapshot`] if no message is left.
    pub(crate) fn drop_forgotten(&mut self, forgotten: &SeqSet, last: u64) -> Result<()> {
        let held_any = !self.messages.is_empty();
        let mut gone = forgotten.clone();
        if !self.is_imported() {
            // The whole conversation may have gone meanwhile, and another begun in its place.
            gone.extend(std::iter::once(last.saturating_add(1)..=u64::MAX));
        }
        self.remove_messages(&gone);
        if held_any && self.messages.is_empty() { Err(Error::EmptySnapshot) } else { Ok(()) }
    }

    pub(crate) fn to_plaintext(&self) -> Result<Zeroizing<Vec<u8>>> {
        let plaintext = to_json(self)?;
        let (size, limit) = (plaintext.len(), LONGEST_RECORD);
        if size > limit { Err(Error::TooLarge { size, limit }) } else { Ok(plaintext) }
    }
}

debug_shows!(Snapshot as it: id, saved_at, messages = it.messages.len());

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.description.zeroize();
        self.summary.zeroize();
    }
}

/// Formats bytes as a UUID (RFC 9562) and sets its version: 4 for random bytes, 8 for bytes that were derived.
pub(crate) fn uuid(bytes: [u8; 16], version: u8) -> String {
    let mut bits = u128::from_be_bytes(bytes);
    bits = bits & !(0xf << 76) | u128::from(version & 0xf) << 76;
    bits = bits & !(0x3 << 62) | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let id = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| hex.get(part).unwrap_or_default());
    id.join("-")
}

/// Whether a text is a UUID in lower case, and so a snapshot's file name.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        })
}

pub(crate) fn check_id(id: &str) -> Result<()> {
    let reason = "a snapshot's id must be a UUID in lower case";
    is_id(id).then_some(()).ok_or(Error::InvalidMessage { reason })
}

/// What becomes of snapshots when messages are taken out of them.
#[derive(Debug, Default)]
pub(crate) struct Withdrawal {
    /// Those to write again, with their next revisions.
    pub(crate) changed: Vec<Snapshot>,
    /// Ids of those that nothing is left of, and whether another system saved them.
    pub(crate) emptied: Vec<(String, bool)>,
    /// How many held any of the messages.
    pub(crate) count: usize,
    /// The revisions to list.
    revisions: Vec<(String, u64)>,
}

impl Withdrawal {
    /// Takes the messages out. A listed snapshot that `is_unread` gets another revision, so that it is never read again.
    pub(crate) fn of(
        snapshots: Vec<Snapshot>,
        is_unread: impl Fn(&str) -> bool,
        seqs: &SeqSet,
        profile: &Profile,
    ) -> Self {
        let mut outcome = Self::default();
        for mut snapshot in snapshots {
            let listed = profile.revision(&snapshot.id);
            let (had_any, is_imported) = (!snapshot.messages.is_empty(), snapshot.is_imported());
            let is_changed = snapshot.remove_messages(seqs);
            if is_changed {
                outcome.count += 1;
                if had_any && snapshot.messages.is_empty() {
                    outcome.emptied.push((snapshot.id.clone(), is_imported));
                    continue;
                }
                snapshot.rev += 1;
            }
            // A forgetting that was broken off may have left one that is newer than its listing.
            if listed.is_some_and(|listed| listed < snapshot.rev) {
                outcome.revisions.push((snapshot.id.clone(), snapshot.rev));
            }
            if is_changed {
                outcome.changed.push(snapshot);
            }
        }
        let unread = profile.listed().filter(|(id, _)| is_unread(id));
        outcome.revisions.extend(unread.map(|(id, rev)| (id.to_owned(), rev.saturating_add(1))));
        outcome
    }

    /// Whether the settings list anything else afterwards.
    pub(crate) fn changes(&self, profile: &Profile) -> bool {
        !self.revisions.is_empty()
            || self.emptied.iter().any(|(id, _)| profile.revision(id).is_some())
    }

    /// Lists what there is afterwards.
    pub(crate) fn apply(&self, profile: &mut Profile) {
        profile.snapshots.extend(self.revisions.iter().cloned());
        self.emptied.iter().for_each(|(id, is_imported)| profile.unlist(id, *is_imported));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_random_uuid_and_nothing_else() {
        let window = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
        let new = || Snapshot::new(Timestamp::UNIX_EPOCH, window, Vec::new()).unwrap().id.clone();
        let (id, other) = (new(), new());
        assert!(is_id(&id) && is_id(&other) && id != other);
        assert_eq!(id.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&id.as_bytes()[19]));
        assert_eq!(uuid([0xff; 16], 8), "ffffffff-ffff-8fff-bfff-ffffffffffff");
        for wrong in [
            "",
            "../x",
            &id.to_uppercase(),
            &id.replace("-4", "-"),
            &format!("{id}0"),
            &id.replace('-', "_"),
        ] {
            assert!(!is_id(wrong), "{wrong}");
        }
    }
}
