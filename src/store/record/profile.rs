//! A conversation's settings, sealed beside its messages. The head records the newest revision, which detects older
//! settings that were put back.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::error::{Error, Result};
use crate::store::record::description::DescriptionRevs;
use crate::store::record::encoding::{LONGEST_RECORD, StoredMessage};
use crate::store::record::persona::{AssignedPersona, Preset};
use crate::store::record::retention::Retention;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::store_state::ForgottenConversation;
use crate::store::record::summary::Summary;
use crate::store::record::{artifact, id_prefix};

/// A conversation's settings and metadata. `Debug` shows no words.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    pub(crate) rev: u64,
    /// The highest number when they were written. A head with a lower number was put back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) seq: u64,
    /// Whether the settings could not be read. No stored message is in the context then.
    #[serde(skip)]
    pub(crate) is_unknown: bool,
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether a model derived the title from the messages. If so, forgetting any message removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) title_is_proposed: bool,
    /// Tags to find the conversation by.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// The host's own key-value pairs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(rename = "described", default, skip_serializing_if = "DescriptionRevs::are_none")]
    pub(crate) description_revs: DescriptionRevs,
    /// The creation time, if it is not the first message's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The cost before messages recorded their own, as an import brought it.
    #[serde(rename = "brought", default, skip_serializing_if = "Cost::is_nothing")]
    pub imported_cost: Cost,
    /// The retention limits, if they differ from the store's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Messages with numbers up to this one have expired. They stay hidden until they are removed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) expired: u64,
    /// Whether the history in prompts is a rolling window, if it differs from the store's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_window: Option<bool>,
    /// The length of a rolling window and of a snapshot in seconds, if it differs from the store's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<NonZeroU64>,
    /// The point up to which the context was cleared. Messages before it stay stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared: Option<Cleared>,
    /// The previous clear, for undoing the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleared_before: Option<Cleared>,
    /// The snapshots and their newest revisions. Revision 0 is a tombstone: of a deleted imported snapshot, so that no
    /// other import brings it back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) snapshots: BTreeMap<String, u64>,
    /// Numbers of messages that may be copies restored from snapshots.
    #[serde(default, skip_serializing_if = "SeqSet::is_empty")]
    pub(crate) restored: SeqSet,
    /// The artifacts and their digests. An empty digest is a tombstone: of a deleted artifact, so that nothing brings it
    /// back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) artifacts: BTreeMap<String, String>,
    /// Numbers of messages that were pruned from the context.
    #[serde(default, skip_serializing_if = "SeqSet::is_empty")]
    pub(crate) pruned: SeqSet,
    /// Summaries that replace messages in prompts. The last one of each thread applies.
    #[serde(rename = "compacted", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) summaries: Vec<Summary>,
    /// The persona, if the conversation has one.
    #[serde(rename = "character", default, skip_serializing_if = "Option::is_none")]
    pub assigned_persona: Option<AssignedPersona>,
    /// The revision of the tombstones' document; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) tombstones_rev: u64,
    /// The revision of the presets document; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) presets_rev: u64,
    /// Whether the presets could not be read.
    #[serde(skip)]
    pub(crate) presets_are_unknown: bool,
    /// The store's own and changed presets by id, in the default conversation only. Sealed in a document of their
    /// own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) presets: BTreeMap<String, Preset>,
    /// Ids of presets that imports have added, so that deleted ones do not come back. In the default conversation
    /// only.
    #[serde(rename = "broughtPresets", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) imported_presets: BTreeSet<String>,
    /// Conversations that were forgotten completely and have no folder any more. In the default conversation only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) forgotten_scopes: BTreeMap<String, ForgottenConversation>,
    /// The revision of the list of forgotten messages that no import may bring back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) imports: u64,
    /// Whether a repair replaced settings that could not be read. A backup may then restore the persona.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) were_lost: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The cost of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cost {
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// Millionths of the currency that the prices use.
    pub(crate) micros: u64,
}

impl Cost {
    /// A cost of so many tokens and millionths of the currency.
    pub fn new(tokens: u64, micros: u64) -> Self {
        Self { tokens, micros }
    }

    /// Whether both are zero.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The most summaries, over all threads.
const MOST_SUMMARIES: usize = 32;

/// A change of a conversation's settings. A store may call it again on newer settings if another writer was faster.
pub type ProfileChange = Box<dyn FnMut(&mut Profile) + Send>;

/// The point up to which the context was cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Cleared {
    /// The time of the clear. It applies to imported messages up to this time.
    pub at: Timestamp,
    /// The highest number at the time of the clear. Numbers are compared instead of times, so that a wrong clock
    /// hides nothing.
    pub seq: u64,
}

impl Cleared {
    /// Clears everything up to a time, and everything up to a number.
    pub fn new(at: Timestamp, seq: u64) -> Self {
        Self { at, seq }
    }

    /// Whether the clear hides a message from the context.
    pub(crate) fn hides(&self, stored: &StoredMessage) -> bool {
        let message = &stored.message;
        stored.seq <= self.seq || (message.is_imported() && message.timestamp <= self.at)
    }
}

impl Profile {
    /// Clears the context up to a time and a number. The latest clear applies. Removes the summaries.
    pub fn clear(&mut self, at: Timestamp, seq: u64) {
        self.summaries.clear();
        self.cleared_before = self.cleared;
        let before = self.cleared.unwrap_or(Cleared { at, seq });
        self.cleared = Some(Cleared { at: before.at.max(at), seq: before.seq.max(seq) });
    }

    /// Undoes the last clear: messages up to the previous clear are context again. A second call undoes all clears.
    /// Returns whether there was a clear. Summaries that it removed do not come back.
    pub fn undo_clear(&mut self) -> bool {
        let was_cleared = self.cleared.is_some();
        self.cleared = self.cleared_before.take();
        was_cleared
    }

    /// Whether a message is hidden from the context. If the settings could not be read, all messages are: the context
    /// may have been cleared.
    pub fn hides(&self, stored: &StoredMessage) -> bool {
        self.is_unknown || self.cleared.is_some_and(|cleared| cleared.hides(stored))
    }

    /// Whether a message is context at that time: one that comes unasked, not cleared, pruned or expired.
    pub(crate) fn is_context(&self, stored: &StoredMessage, now: Timestamp) -> bool {
        let is_kept = !self.hides(stored) && !self.is_pruned(stored.seq);
        is_kept && stored.message.comes_unasked() && !stored.message.has_expired(now)
    }

    /// Whether the message with this number may be context, as far as its number tells.
    pub(crate) fn may_be_context(&self, seq: u64) -> bool {
        !self.is_pruned(seq) && self.cleared.is_none_or(|cleared| seq > cleared.seq)
    }

    /// The length of the rolling window: the conversation's own, or `of_all`.
    pub(crate) fn window(&self, of_all: Duration) -> Duration {
        self.window_seconds.map_or(of_all, |own| Duration::from_secs(own.get()))
    }

    /// Hides messages from the context, by number. They stay stored.
    pub fn prune(&mut self, seqs: impl IntoIterator<Item = u64>) {
        self.pruned.extend(seqs.into_iter().map(|seq| seq..=seq));
    }

    /// Returns pruned messages to the context.
    pub(crate) fn unprune(&mut self, seqs: impl IntoIterator<Item = RangeInclusive<u64>>) {
        self.pruned = self.pruned.without(&seqs.into_iter().collect());
    }

    /// Whether a message was pruned from the context.
    pub fn is_pruned(&self, seq: u64) -> bool {
        self.pruned.contains(seq)
    }

    /// How many numbers were pruned from the context.
    pub fn pruned(&self) -> u64 {
        self.pruned.count()
    }

    /// The summary that replaces the older messages of a thread, if there is one.
    pub fn summary(&self, thread: Option<&str>) -> Option<&Summary> {
        self.summaries.iter().rev().find(|summary| summary.thread() == thread)
    }

    /// Removes a thread's last summary, so that the messages themselves are context again. Returns whether there was
    /// one.
    pub(crate) fn remove_summary(&mut self, thread: Option<&str>) -> bool {
        let last = self.summaries.iter().rposition(|summary| summary.thread() == thread);
        last.map(|last| self.summaries.remove(last)).is_some()
    }

    /// Whether a summary covers any of these messages, or a model proposed the title.
    pub(crate) fn has_any_made_of(&self, seqs: &SeqSet) -> bool {
        self.title_is_proposed || self.summaries.iter().any(|made| made.covers_any(seqs))
    }

    /// How many summaries cover any of these messages.
    pub(crate) fn made_of(&self, seqs: &SeqSet) -> usize {
        self.summaries.iter().filter(|made| made.covers_any(seqs)).count()
    }

    /// Adds a summary. Earlier summaries stay, so that removing it returns to them.
    pub(crate) fn add_summary(&mut self, summary: Summary) {
        self.summaries.push(summary);
        let surplus = self.summaries.len().saturating_sub(MOST_SUMMARIES);
        self.summaries.drain(..surplus);
    }

    /// Removes what was derived from messages: summaries, and a title that a model proposed.
    pub(crate) fn drop_derived(&mut self, seqs: &SeqSet) {
        self.summaries.retain(|summary| !summary.covers_any(seqs));
        if self.title_is_proposed {
            self.title_is_proposed = false;
            self.title.zeroize();
            self.title = None;
        }
    }

    /// Hides the messages up to a number, which have expired, and removes what was derived from any message.
    pub(crate) fn expire(&mut self, last: u64) {
        self.drop_derived(&SeqSet::everything());
        self.expired = last;
    }

    /// A copy that hides no message after the number `last` or the time `newest`.
    pub(crate) fn clamped_to(&self, last: u64, newest: Timestamp, now: Timestamp) -> Self {
        let mut profile = self.clone();
        profile.expired = profile.expired.min(last);
        if let Some(cleared) = &mut profile.cleared {
            cleared.seq = cleared.seq.min(last);
            cleared.at = cleared.at.min(newest.max(now));
        }
        if let Some(next) = last.checked_add(1) {
            let to_come: SeqSet = std::iter::once(next..=u64::MAX).collect();
            profile.pruned = profile.pruned.without(&to_come);
        }
        profile.summaries.retain(|made| made.of().highest() <= last && made.until <= newest);
        profile
    }

    /// The settings as they are sealed.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] if they are too long. Tombstones may be as long as they must.
    pub(crate) fn to_plaintext(&self) -> Result<Zeroizing<Vec<u8>>> {
        let reason = "the settings are too long to store";
        let to_json = |profile: &Self| serde_json::to_vec(profile).map(Zeroizing::new);
        let fits = |text: &Zeroizing<Vec<u8>>| text.len() <= LONGEST_RECORD;
        let plaintext = to_json(self).ok().filter(|text| {
            fits(text) || to_json(&self.without_tombstones()).is_ok_and(|text| fits(&text))
        });
        plaintext.ok_or(Error::InvalidMessage { reason })
    }

    pub(crate) fn without_tombstones(&self) -> Self {
        let mut profile = self.clone();
        profile.imported_presets.clear();
        profile.forgotten_scopes.clear();
        profile.snapshots.retain(|_, rev| *rev > 0);
        profile.artifacts.retain(|_, sha256| !sha256.is_empty());
        profile
    }

    /// Finds an artifact by its id, a unique prefix of it, or a reference.
    ///
    /// # Errors
    /// [`Error::NoSuchArtifact`] names the most similar ids.
    pub fn find_artifact(&self, id: &str) -> Result<&str> {
        let id = id.strip_prefix(artifact::SCHEME).unwrap_or(id);
        let none = || Error::NoSuchArtifact { nearest: id_prefix::nearest(id, self.artifacts()) };
        id_prefix::only(id, self.artifacts()).ok_or_else(none)
    }

    /// The ids of the artifacts.
    pub fn artifacts(&self) -> impl Iterator<Item = &str> {
        self.listed_artifacts().map(|(id, _)| id)
    }

    /// The artifacts' ids and digests.
    pub(crate) fn listed_artifacts(&self) -> impl Iterator<Item = (&str, &str)> {
        let listed = self.artifacts.iter().filter(|(_, sha256)| !sha256.is_empty());
        listed.map(|(id, sha256)| (id.as_str(), sha256.as_str()))
    }

    /// The digest of an artifact that was not deleted.
    pub(crate) fn artifact(&self, id: &str) -> Option<&str> {
        self.artifacts.get(id).map(String::as_str).filter(|sha256| !sha256.is_empty())
    }

    /// Whether this artifact was deleted.
    pub(crate) fn has_deleted_artifact(&self, id: &str) -> bool {
        self.artifacts.get(id).is_some_and(String::is_empty)
    }

    /// Whether this artifact exists or was deleted.
    pub(crate) fn has_had_artifact(&self, id: &str) -> bool {
        self.artifacts.contains_key(id)
    }

    /// The ids of the snapshots.
    pub fn snapshots(&self) -> impl Iterator<Item = &str> {
        self.listed().map(|(id, _)| id)
    }

    /// The snapshots' ids and revisions.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&str, u64)> {
        let listed = self.snapshots.iter().filter(|(_, rev)| **rev > 0);
        listed.map(|(id, rev)| (id.as_str(), *rev))
    }

    /// Whether this snapshot exists or was deleted.
    pub(crate) fn has_had_snapshot(&self, id: &str) -> bool {
        self.snapshots.contains_key(id)
    }

    /// The newest revision of a snapshot that was not deleted.
    pub(crate) fn revision(&self, id: &str) -> Option<u64> {
        self.snapshots.get(id).copied().filter(|rev| *rev > 0)
    }

    /// Removes a snapshot from the list. An imported one stays marked as deleted.
    pub(crate) fn unlist(&mut self, id: &str, is_imported: bool) {
        self.snapshots.remove(id);
        if is_imported {
            self.snapshots.insert(id.to_owned(), 0);
        }
    }
}

debug_shows!(Profile as it:
    rev, retention, rolling_window, window_seconds, cleared, pruned = it.pruned.count(),
    summaries = it.summaries.len(), snapshots = it.snapshots.len(),
    artifacts = it.artifacts.len(), assigned_persona, presets = it.presets.len()
);

impl Profile {
    /// These settings as a host has `changed` them. What is not for a host to say stays as it is.
    pub(crate) fn with_host_change(self, changed: Self) -> Self {
        let Self { rev, snapshots, restored, artifacts, imports, .. } = self;
        let Self { presets_rev, presets_are_unknown, forgotten_scopes, .. } = self;
        let changed = Self { presets_rev, presets_are_unknown, forgotten_scopes, ..changed };
        Self { rev, snapshots, restored, artifacts, imports, ..changed }
    }

    /// Whether a summary may be installed: `before` is the newest one of its thread, and none of the messages that it adds
    /// to that one was forgotten or cleared.
    pub(crate) fn may_install(
        &self,
        summary: &Summary,
        before: Option<&Summary>,
        forgotten: &SeqSet,
    ) -> bool {
        let known = before.map(|before| before.of().clone()).unwrap_or_default();
        let added = summary.of().without(&known);
        let cleared = self.cleared.map_or(0, |cleared| cleared.seq);
        let is_gone = |range: std::ops::RangeInclusive<u64>| {
            forgotten.intersects(&range) || *range.start() <= cleared
        };
        self.summary(summary.thread()) == before && !added.ranges().any(is_gone)
    }

    /// Installs a summary, in place of the newest one of its thread if it continues that one.
    pub(crate) fn install(&mut self, summary: Summary, continues: bool) {
        if continues {
            self.remove_summary(summary.thread());
        }
        self.add_summary(summary);
    }
}
