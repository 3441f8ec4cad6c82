//! The descriptive part of the settings: title, tags, notes and costs, and which of them forgetting removes.

use zeroize::Zeroize;

use crate::store::settings::profile::{Cost, Profile};

impl Profile {
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

    pub(crate) fn has_proposed_title(&self) -> bool {
        self.title_is_proposed
    }
}
