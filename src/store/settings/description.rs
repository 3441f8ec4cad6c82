//! The descriptive part of the settings: title, tags, notes and costs, which of them forgetting removes, and how those
//! of two stores are merged.

use zeroize::Zeroize;

use crate::store::settings::description_revs::Versioned;
use crate::store::settings::profile::{Cost, Profile};

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
        Versioned { value: &mut title, rev: &mut revs.title }.merge(
            &(there.title.clone(), there.title_is_proposed),
            theirs.title,
            have_met,
        );
        (self.title, self.title_is_proposed) = title;
        Versioned { value: &mut self.tags, rev: &mut revs.tags }.merge(
            &there.tags,
            theirs.tags,
            have_met,
        );
        Versioned { value: &mut self.metadata, rev: &mut revs.metadata }.merge(
            &there.metadata,
            theirs.metadata,
            have_met,
        );
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
