//! A conversation's own settings, sealed beside its messages. The head says which revision of them is the newest, so that
//! an older one that is put back is noticed.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::store::document::{self, Document};
use crate::store::erased::Erased;
use crate::store::finding::{Finding, FindingKind};
use crate::store::folder::{Folder, HeadState};
use crate::store::record::{StoredMessage, object};
use crate::store::retention::Retention;

/// A conversation's own settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Profile {
    pub(crate) rev: u64,
    /// Whether nobody knows what the settings say, so that no stored message is context.
    #[serde(skip)]
    pub(crate) is_unknown: bool,
    /// How much is kept and for how long, where it is not as for all conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// How many seconds a rolling window reaches back, where it is not as for all conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<NonZeroU64>,
    /// Up to where the context was cleared. What lies before it stays stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared: Option<Cleared>,
    /// The saved snapshots, and the newest revision of each; 0 for one of another system that was deleted, so that no
    /// other import brings it back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) snapshots: BTreeMap<String, u64>,
    /// Numbers among which are messages that were restored from snapshots.
    #[serde(default, skip_serializing_if = "Erased::is_empty")]
    pub(crate) restored: Erased,
}

/// A change of a conversation's settings.
pub type ProfileChange = Box<dyn FnOnce(&mut Profile) + Send>;

/// A clear marker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Cleared {
    /// When. Messages of other systems are out of the context if they were said then or before.
    pub at: Timestamp,
    /// The highest number at that time. By number and not by time, so that a clock that was wrong hides nothing.
    pub seq: u64,
}

impl Cleared {
    /// Everything that was said at a moment or before, and everything up to a number.
    pub fn new(at: Timestamp, seq: u64) -> Self {
        Self { at, seq }
    }

    /// Whether a message is out of the context.
    pub fn hides(&self, stored: &StoredMessage) -> bool {
        let message = &stored.message;
        stored.seq <= self.seq || (message.is_imported() && message.timestamp <= self.at)
    }
}

impl Profile {
    /// Clears the context up to a moment and a number. Of several times the latest counts.
    pub fn clear(&mut self, at: Timestamp, seq: u64) {
        let before = self.cleared.unwrap_or(Cleared { at, seq });
        self.cleared = Some(Cleared { at: before.at.max(at), seq: before.seq.max(seq) });
    }

    /// Whether a message is out of the context. All are where nobody knows what the settings say: the context may have
    /// been cleared.
    pub fn hides(&self, stored: &StoredMessage) -> bool {
        self.is_unknown || self.cleared.is_some_and(|cleared| cleared.hides(stored))
    }

    /// How far a rolling window reaches back, where the settings may leave it as for all conversations.
    pub(crate) fn window(&self, of_all: Duration) -> Duration {
        self.window_seconds.map_or(of_all, |own| Duration::from_secs(own.get()))
    }

    /// The ids of the saved snapshots.
    pub fn snapshots(&self) -> impl Iterator<Item = &str> {
        self.listed().map(|(id, _)| id)
    }

    /// The same with their revisions.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&str, u64)> {
        let listed = self.snapshots.iter().filter(|(_, rev)| **rev > 0);
        listed.map(|(id, rev)| (id.as_str(), *rev))
    }

    /// Whether a snapshot of that id is there, or was deleted and is not to come back.
    pub(crate) fn has_had_snapshot(&self, id: &str) -> bool {
        self.snapshots.contains_key(id)
    }

    /// The newest revision of a snapshot that is there.
    pub(crate) fn revision(&self, id: &str) -> Option<u64> {
        self.snapshots.get(id).copied().filter(|rev| *rev > 0)
    }

    /// Takes a snapshot out of the list, for good if another system's would come again.
    pub(crate) fn unlist(&mut self, id: &str, is_imported: bool) {
        self.snapshots.remove(id);
        if is_imported {
            self.snapshots.insert(id.to_owned(), 0);
        }
    }
}

/// The settings in force beside that head, and what is wrong with them. A conversation that never had any has the
/// defaults, without a file.
pub(crate) fn read(
    folder: &Folder,
    head: HeadState,
    known: Option<&Arc<Profile>>,
) -> Result<(Arc<Profile>, Option<Finding>)> {
    let found = |kind: FindingKind| Some(kind.in_file(Document::Profile.file_name()));
    let rev = match head {
        HeadState::Known(head) if head.profile() == 0 => return Ok((Arc::default(), None)),
        HeadState::Known(head) => Some(head.profile()),
        HeadState::Absent | HeadState::Damaged => None,
    };
    if let Some(known) = known.filter(|known| Some(known.rev) == rev && !known.is_unknown) {
        return Ok((Arc::clone(known), None));
    }
    let (mut profile, finding) = match document::open(folder, Document::Profile)? {
        None => (Profile::default(), rev.and_then(|_| found(FindingKind::Absent))),
        Some(Err(kind)) => (Profile::default(), found(kind)),
        Some(Ok(plaintext)) => match object::<Profile>(&plaintext) {
            None => (Profile::default(), found(FindingKind::BadRecord)),
            Some(profile) => {
                let is_old = rev.is_some_and(|rev| profile.rev < rev);
                (profile, is_old.then_some(FindingKind::Outdated).and_then(found))
            }
        },
    };
    profile.is_unknown = finding.is_some();
    Ok((Arc::new(profile), finding))
}

/// Whether a finding is about the settings, so that nobody knows what they say.
pub(crate) fn is_about(finding: &Finding) -> bool {
    finding.file.as_deref() == Some(Document::Profile.file_name())
}
