//! What the settings say about a conversation, and what of that goes when everything in it is forgotten.

use zeroize::Zeroize;

use crate::store::settings::profile::{Cost, Profile};

impl Profile {
    /// Whether it holds words or figures about the conversation: a title, tags, notes, when it began, what it had cost,
    /// the part that the model plays in it.
    pub fn has_metadata(&self) -> bool {
        self.title.is_some()
            || !self.tags.is_empty()
            || !self.metadata.is_empty()
            || self.created_at.is_some()
            || !self.brought.is_nothing()
            || self.character.is_some()
    }

    /// Takes all of those away, as when the whole conversation is forgotten.
    pub fn clear_metadata(&mut self) {
        self.rename(None);
        self.tags.clear();
        self.metadata.clear();
        self.created_at = None;
        self.brought = Cost::default();
        self.character = None;
    }

    /// Whether it holds words about what was said, or what that had cost.
    pub(crate) fn has_words(&self) -> bool {
        let mut without = self.clone();
        without.forget_words();
        without != *self
    }

    /// Takes away words about what was said, as when the whole conversation is forgotten: title, tags, notes and costs.
    /// A context keeps its name, its personality, and when it was made.
    pub(crate) fn forget_words(&mut self) {
        let Some(character) = self.character.take() else { return self.clear_metadata() };
        let (name, created) = (self.title.take(), self.created_at);
        let name = name.filter(|_| !self.title_is_proposed);
        self.clear_metadata();
        (self.title, self.created_at, self.character) = (name, created, Some(character));
    }

    /// Calls the conversation by a title that a model made of what was said.
    pub(crate) fn propose(&mut self, title: String) {
        self.title = Some(title);
        self.title_is_proposed = true;
    }

    /// Calls the conversation by a name that the user chose, which stays whatever is forgotten; `None` takes it away.
    pub fn rename(&mut self, title: Option<String>) {
        self.title.zeroize();
        self.title = title;
        self.title_is_proposed = false;
    }

    /// The same without what a model wrote about the conversation: that may be about any of its messages.
    pub(crate) fn without_model_words(&self) -> Self {
        let mut profile = self.clone();
        profile.compacted.clear();
        if profile.title_is_proposed {
            profile.rename(None);
        }
        profile
    }

    pub(crate) fn has_proposed_title(&self) -> bool {
        self.title_is_proposed
    }
}
