//! The descriptive part of the settings: title, tags, notes and costs, which of them forgetting removes, and how those
//! of two stores are merged.

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::store::record::profile::{Cost, Profile};
use crate::store::record::seq_set::SeqSet;

impl Profile {
    /// Gives changed settings their revision. Notes it for what differs from the settings before, unless that came with a
    /// revision of its own. `highest` is the highest revision that was given.
    pub(crate) fn take_revision(&mut self, before: &Self, highest: u64) {
        let known = before.description_revs;
        let seen = self.rev.max(highest).max(self.description_revs.highest());
        self.rev = seen.saturating_add(1);
        let rev = self.rev;
        let note = |is_changed: bool, noted: &mut u64, known: u64| {
            if is_changed && *noted == known {
                *noted = rev;
            }
        };
        let revs = &mut self.description_revs;
        note(self.title != before.title, &mut revs.title, known.title);
        note(self.tags != before.tags, &mut revs.tags, known.tags);
        note(self.metadata != before.metadata, &mut revs.metadata, known.metadata);
    }

    /// Whether both have the same title, tags and notes.
    pub(crate) fn is_described_as(&self, other: &Self) -> bool {
        (&self.title, &self.tags, &self.metadata) == (&other.title, &other.tags, &other.metadata)
    }

    /// Merges the title, the tags and the notes of an export. `have_met` says whether messages of it were here before.
    pub(crate) fn merge_description(&mut self, there: &Self, have_met: bool) {
        let (theirs, revs) = (there.description_revs, &mut self.description_revs);
        let mut title = (self.title.take(), self.title_is_proposed);
        let their_title = (there.title.clone(), there.title_is_proposed);
        merge(&mut title, &mut revs.title, (&their_title, theirs.title), have_met);
        (self.title, self.title_is_proposed) = title;
        merge(&mut self.tags, &mut revs.tags, (&there.tags, theirs.tags), have_met);
        let (notes, their_notes) = (&mut self.metadata, (&there.metadata, theirs.metadata));
        merge(notes, &mut revs.metadata, their_notes, have_met);
    }

    /// Whether the settings describe the conversation: title, tags, notes, creation time, imported cost or character.
    pub fn has_metadata(&self) -> bool {
        self.title.is_some()
            || !self.tags.is_empty()
            || !self.metadata.is_empty()
            || self.created_at.is_some()
            || !self.imported_cost.is_nothing()
            || self.assigned_persona.is_some()
    }

    /// Removes all of these, as when the whole conversation is forgotten.
    pub fn clear_metadata(&mut self) {
        self.rename(None);
        self.tags.clear();
        self.metadata.clear();
        self.created_at = None;
        self.imported_cost = Cost::default();
        self.assigned_persona = None;
    }

    /// Whether the settings have words about the conversation's content, or its imported cost.
    pub(crate) fn has_words(&self) -> bool {
        let mut without = self.clone();
        without.forget_words();
        without != *self
    }

    /// Removes words about the conversation's content, as when the whole conversation is forgotten: title, tags,
    /// notes and costs. A persona conversation keeps its name, its character and its creation time.
    pub(crate) fn forget_words(&mut self) {
        let Some(assigned_persona) = self.assigned_persona.take() else {
            return self.clear_metadata();
        };
        let (name, created) = (self.title.take(), self.created_at);
        let name = name.filter(|_| !self.title_is_proposed);
        self.clear_metadata();
        (self.title, self.created_at, self.assigned_persona) =
            (name, created, Some(assigned_persona));
    }

    /// Removes everything that says what the conversation was about, how it was held, and for whom. What keeps deleted things
    /// from coming back stays.
    pub(crate) fn reset(&mut self) {
        self.clear_metadata();
        self.presets.clear();
        self.summaries.clear();
        self.pruned = SeqSet::default();
        (self.retention, self.rolling_window, self.window_seconds) = (None, None, None);
        (self.cleared, self.cleared_before) = (None, None);
    }

    /// Sets a title that a model derived from the messages.
    pub(crate) fn propose(&mut self, title: String) {
        self.title = Some(title);
        self.title_is_proposed = true;
    }

    /// Sets a title that the user chose. Forgetting does not remove it. `None` removes the title.
    pub fn rename(&mut self, title: Option<String>) {
        self.title.zeroize();
        self.title = title;
        self.title_is_proposed = false;
    }

    /// A copy without what a model wrote about the conversation, which may be about any of its messages.
    pub(crate) fn without_model_words(&self) -> Self {
        let mut profile = self.clone();
        profile.summaries.clear();
        if profile.title_is_proposed {
            profile.rename(None);
        }
        profile
    }
}

/// The revisions of the settings that last changed the title, the tags and the notes. A revision is higher than all that
/// the store had seen, also in imports, so of two values the one with the higher revision is the newer one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DescriptionRevs {
    pub(super) title: u64,
    pub(super) tags: u64,
    pub(super) metadata: u64,
}

impl DescriptionRevs {
    pub(crate) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn highest(&self) -> u64 {
        self.title.max(self.tags).max(self.metadata)
    }
}

/// Takes the value of another store, given with the revision that last changed it. Between conversations that have met
/// before, the newer value counts, and the one here if neither is newer. Otherwise, only an empty value is replaced.
fn merge<T: Clone + Default + PartialEq>(
    value: &mut T,
    rev: &mut u64,
    (there, there_rev): (&T, u64),
    have_met: bool,
) {
    let is_empty = *value == T::default();
    let is_taken = match have_met {
        true => there_rev > *rev || is_empty && there_rev == *rev,
        false => is_empty && *there != T::default(),
    };
    if is_taken {
        value.clone_from(there);
    }
    if is_taken || *there != T::default() {
        // What was kept was kept in view of the other value, which therefore does not come back.
        *rev = there_rev.max(*rev);
    }
}
