//! A conversation's own settings, sealed beside its messages. The head says which revision of them is the newest, so that
//! an older one that is put back is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::error::{Error, Result};
use crate::persona::{Character, Preset};
use crate::store::folder::document;
use crate::store::folder::{Folder, HeadState};
use crate::store::record::artifact;
use crate::store::record::document::Document;
use crate::store::record::encoding::{StoredMessage, object};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::id_prefix;
use crate::store::record::retention::Retention;
use crate::store::record::seq_set::SeqSet;
use crate::store::settings::forgotten::ForgottenConversation;
use crate::store::settings::presets;
use crate::store::settings::summary::Summary;

/// A conversation's own settings, and what is known of it beside its messages. `Debug` shows no words.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Profile {
    pub(crate) rev: u64,
    /// The highest number given when they were written: a head that tells of a lower one was put back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) seq: u64,
    /// Whether nobody knows what the settings say, so that no stored message is context.
    #[serde(skip)]
    pub(crate) is_unknown: bool,
    /// What the conversation is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether a model made the title of what was said, so that it goes when any of that is forgotten.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) title_is_proposed: bool,
    /// Words to find the conversation by.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// The host's own notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// When the conversation was made, where that is not when its first message was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// What the conversation had cost before its messages said it themselves.
    #[serde(default, skip_serializing_if = "Cost::is_nothing")]
    pub brought: Cost,
    /// How much is kept and for how long, where it is not as for all conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Whether the history of prompts is what was said within a rolling window, where it is not as for all conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_window: Option<bool>,
    /// How many seconds a rolling window and a snapshot reach back, where it is not as for all conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<NonZeroU64>,
    /// Up to where the context was cleared. What lies before it stays stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared: Option<Cleared>,
    /// Up to where it was cleared before that, for taking the last clear back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleared_before: Option<Cleared>,
    /// The saved snapshots, and the newest revision of each; 0 for one of another system that was deleted, so that no
    /// other import brings it back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) snapshots: BTreeMap<String, u64>,
    /// Numbers among which are messages that were restored from snapshots.
    #[serde(default, skip_serializing_if = "SeqSet::is_empty")]
    pub(crate) restored: SeqSet,
    /// The artifacts, and the digest of each; an empty one for those that were deleted, so that nothing brings them back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) artifacts: BTreeMap<String, String>,
    /// Numbers of messages that were taken out of the context.
    #[serde(default, skip_serializing_if = "SeqSet::is_empty")]
    pub(crate) pruned: SeqSet,
    /// Summaries that stand in the place of messages; of each thread the last one counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) compacted: Vec<Summary>,
    /// The part that the model plays in it, where the conversation is a context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub character: Option<Character>,
    /// The revision of the document that holds the presets; 0 where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) presets_rev: u64,
    /// Whether nobody knows what that says.
    #[serde(skip)]
    pub(crate) presets_are_unknown: bool,
    /// In the default conversation's settings, the presets that people have made or changed, by their ids. Sealed in a
    /// document of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) presets: BTreeMap<String, Preset>,
    /// Likewise the ids of those that imports have brought, so that none that was deleted since comes back.
    #[serde(rename = "broughtPresets", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) imported_presets: BTreeSet<String>,
    /// Likewise the conversations that were forgotten whole and have no folder any more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) forgotten_scopes: BTreeMap<String, ForgottenConversation>,
    /// The revision of the list of imported messages that were forgotten.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) imports: u64,
    /// Whether a repair went on without the settings that were there, so that a backup may bring the persona back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) were_lost: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a conversation has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Cost {
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// Millionths of the currency that the prices are in.
    pub micros: u64,
}

impl Cost {
    /// So many tokens, at so many millionths of the currency.
    pub fn new(tokens: u64, micros: u64) -> Self {
        Self { tokens, micros }
    }

    /// Whether it has cost nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The most summaries that are kept, of all threads together.
const MOST_SUMMARIES: usize = 32;

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
    /// Clears the context up to a moment and a number. Of several times the latest counts. Summaries of what was said
    /// until then go.
    pub fn clear(&mut self, at: Timestamp, seq: u64) {
        self.compacted.clear();
        self.cleared_before = self.cleared;
        let before = self.cleared.unwrap_or(Cleared { at, seq });
        self.cleared = Some(Cleared { at: before.at.max(at), seq: before.seq.max(seq) });
    }

    /// Takes the last clear back: what it put out of the context is context again, up to the clear before it. A second
    /// time takes every clear back. Returns whether there was one. Summaries that stood then do not come back.
    pub fn undo_clear(&mut self) -> bool {
        let was_cleared = self.cleared.is_some();
        self.cleared = self.cleared_before.take();
        was_cleared
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

    /// Takes messages out of the context, by their numbers. They stay stored.
    pub fn prune(&mut self, seqs: impl IntoIterator<Item = u64>) {
        self.pruned.extend(seqs.into_iter().map(|seq| seq..=seq));
    }

    /// Takes messages back into the context.
    pub fn unprune(&mut self, seqs: impl IntoIterator<Item = RangeInclusive<u64>>) {
        self.pruned = self.pruned.without(&seqs.into_iter().collect());
    }

    /// Whether a message was taken out of the context.
    pub fn is_pruned(&self, seq: u64) -> bool {
        self.pruned.contains(seq)
    }

    /// How many numbers were taken out of the context.
    pub fn pruned(&self) -> u64 {
        self.pruned.count()
    }

    /// The summary that stands for the older messages of a thread, if there is one.
    pub fn compaction(&self, thread: Option<&str>) -> Option<&Summary> {
        self.compacted.iter().rev().find(|compaction| compaction.thread() == thread)
    }

    pub(crate) fn has_summaries(&self) -> bool {
        !self.compacted.is_empty()
    }

    pub(crate) fn without_summaries(mut self) -> Self {
        self.compacted.clear();
        self
    }

    /// Takes a thread's last summary back, so that the messages themselves are context again. Whether there was one.
    pub(crate) fn uncompact(&mut self, thread: Option<&str>) -> bool {
        let last = self.compacted.iter().rposition(|compaction| compaction.thread() == thread);
        last.map(|last| self.compacted.remove(last)).is_some()
    }

    /// Whether a summary or the title was made of these messages, as far as that is known.
    pub(crate) fn has_any_made_of(&self, seqs: &SeqSet) -> bool {
        self.title_is_proposed || self.compacted.iter().any(|made| made.covers_any(seqs))
    }

    /// How many summaries were made of any of these messages.
    pub(crate) fn made_of(&self, seqs: &SeqSet) -> usize {
        self.compacted.iter().filter(|made| made.covers_any(seqs)).count()
    }

    /// Has a summary stand for messages. Those that it goes on from stay, to be taken back to.
    pub(crate) fn add_summary(&mut self, compaction: Summary) {
        self.compacted.push(compaction);
        let surplus = self.compacted.len().saturating_sub(MOST_SUMMARIES);
        self.compacted.drain(..surplus);
    }

    /// Takes out what was made of messages: summaries, and a title that a model proposed.
    pub(crate) fn drop_derived(&mut self, seqs: &SeqSet) {
        self.compacted.retain(|compaction| !compaction.covers_any(seqs));
        if self.title_is_proposed {
            self.title_is_proposed = false;
            self.title.zeroize();
            self.title = None;
        }
    }

    /// Takes over what a later state of the same conversation says, but for what was done here: nothing that was cleared,
    /// taken out or forgotten here is context again, nothing that was added here is given up, and no limit changes. What
    /// the other lists is listed once it is there.
    pub(crate) fn merge_newer(&mut self, mut later: Self, erased: &SeqSet) {
        let here = std::mem::take(self);
        let cleared = match (here.cleared, later.cleared) {
            (Some(a), Some(b)) => Some(Cleared { at: a.at.max(b.at), seq: a.seq.max(b.seq) }),
            (one, other) => one.or(other),
        };
        if cleared != later.cleared {
            later.compacted.clear();
        }
        later.compacted.retain(|compaction| !compaction.covers_any(erased));
        // Nobody knows what it was made of.
        if later.title_is_proposed && !erased.is_empty() {
            (later.title, later.title_is_proposed) = (here.title.clone(), here.title_is_proposed);
        }
        later.pruned.extend(here.pruned.ranges());
        later.restored.extend(here.restored.ranges());
        later.snapshots.retain(|_, rev| *rev == 0);
        later.snapshots.extend(here.snapshots.clone());
        later.artifacts.retain(|_, sha256| sha256.is_empty());
        later.artifacts.extend(here.artifacts.clone());
        later.character = match (here.character, later.character) {
            (Some(here), Some(later)) => Some(here.merge_newer(later)),
            (here, later) => here.or_else(|| later.map(Character::in_force)),
        };
        for (id, preset) in here.presets {
            later.presets.entry(id).or_insert(preset);
        }
        later.imported_presets.extend(here.imported_presets);
        later.forgotten_scopes = here.forgotten_scopes;
        *self = Self {
            rev: here.rev,
            presets_rev: here.presets_rev,
            presets_are_unknown: here.presets_are_unknown && later.presets.is_empty(),
            cleared,
            retention: here.retention,
            window_seconds: here.window_seconds,
            imports: here.imports,
            were_lost: here.were_lost && later.character.is_none(),
            ..later
        };
    }

    /// The same without what would hide messages that come after the number `last`, or after the moment `newest`.
    pub(crate) fn clamped_to(&self, last: u64, newest: Timestamp, now: Timestamp) -> Self {
        let mut profile = self.clone();
        if let Some(cleared) = &mut profile.cleared {
            cleared.seq = cleared.seq.min(last);
            cleared.at = cleared.at.min(newest.max(now));
        }
        if let Some(next) = last.checked_add(1) {
            let to_come: SeqSet = std::iter::once(next..=u64::MAX).collect();
            profile.pruned = profile.pruned.without(&to_come);
        }
        profile.compacted.retain(|made| made.of().highest() <= last && made.until <= newest);
        profile
    }

    /// The same as it is sealed, beside the presets.
    pub(crate) fn without_presets(&self) -> Self {
        Self { presets: BTreeMap::new(), imported_presets: BTreeSet::new(), ..self.clone() }
    }

    /// Whether it is known what it says, its presets too.
    fn is_known(&self) -> bool {
        !self.is_unknown && !self.presets_are_unknown
    }

    /// The artifact of that id, of the only one that begins so, or of a whole reference to it.
    ///
    /// # Errors
    /// [`Error::NoSuchArtifact`] names those that are most like it.
    pub fn find_artifact(&self, id: &str) -> Result<&str> {
        let id = id.strip_prefix(artifact::SCHEME).unwrap_or(id);
        let none = || Error::NoSuchArtifact { nearest: id_prefix::nearest(id, self.artifacts()) };
        id_prefix::only(id, self.artifacts()).ok_or_else(none)
    }

    /// The ids of the artifacts.
    pub fn artifacts(&self) -> impl Iterator<Item = &str> {
        self.listed_artifacts().map(|(id, _)| id)
    }

    /// The same with their digests.
    pub(crate) fn listed_artifacts(&self) -> impl Iterator<Item = (&str, &str)> {
        let listed = self.artifacts.iter().filter(|(_, sha256)| !sha256.is_empty());
        listed.map(|(id, sha256)| (id.as_str(), sha256.as_str()))
    }

    /// The digest of an artifact that is there.
    pub(crate) fn artifact(&self, id: &str) -> Option<&str> {
        self.artifacts.get(id).map(String::as_str).filter(|sha256| !sha256.is_empty())
    }

    /// Whether an artifact of that id is there, or was deleted and is not to come back.
    pub(crate) fn has_had_artifact(&self, id: &str) -> bool {
        self.artifacts.contains_key(id)
    }

    /// The artifact that has that digest.
    pub(crate) fn artifact_with(&self, sha256: &str) -> Option<&str> {
        self.listed_artifacts().find(|(_, known)| *known == sha256).map(|(id, _)| id)
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

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("rev", &self.rev)
            .field("retention", &self.retention)
            .field("rolling_window", &self.rolling_window)
            .field("window_seconds", &self.window_seconds)
            .field("cleared", &self.cleared)
            .field("pruned", &self.pruned.count())
            .field("compacted", &self.compacted.len())
            .field("snapshots", &self.snapshots.len())
            .field("artifacts", &self.artifacts.len())
            .field("character", &self.character)
            .field("presets", &self.presets.len())
            .finish_non_exhaustive()
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
        HeadState::Known(head) if head.profile() == 0 => {
            // Whoever made them was interrupted, or the head was put back: what does not open is nobody's.
            let first =
                document::open(folder, Document::Profile)?.and_then(std::result::Result::ok);
            let first = first.and_then(|plaintext| object::<Profile>(&plaintext));
            return Ok((first.map(Arc::new).unwrap_or_default(), None));
        }
        HeadState::Known(head) => Some(head.profile()),
        HeadState::Absent | HeadState::Damaged => None,
    };
    if let Some(known) = known.filter(|known| Some(known.rev) == rev && known.is_known()) {
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
    let finding = finding.or(presets::read_into(folder, &mut profile)?);
    Ok((Arc::new(profile), finding))
}

/// Whether a finding is about the settings, so that nobody knows what they say.
pub(crate) fn is_about(finding: &Finding) -> bool {
    finding.file.as_deref() == Some(Document::Profile.file_name())
}
