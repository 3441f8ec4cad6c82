//! Title, notes, costs and persona of another system's conversation.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use zeroize::Zeroize;

use crate::error::Result;
use crate::store::record::persona::AssignedPersona;
use crate::store::{Cost, FileConversationStore, Profile};
use crate::transfer::import::Refusal;
use crate::transfer::settings;

/// What another system knows of a conversation beside its messages. `Debug` shows no content.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ImportedFacts {
    /// The title.
    pub title: Option<String>,
    /// Tags.
    pub tags: BTreeSet<String>,
    /// Notes. Values that are not texts are compact JSON.
    pub metadata: BTreeMap<String, String>,
    /// When the conversation was created.
    pub created_at: Option<Timestamp>,
    /// What its model calls have cost.
    pub spent: Cost,
    /// The persona that the model plays.
    pub assigned_persona: Option<AssignedPersona>,
    /// The file or record it was read from.
    pub file: String,
}

impl ImportedFacts {
    /// Fills settings that are empty. Settings that a person has made stay.
    pub(super) fn add_to(&self, profile: &mut Profile) {
        if profile.title.is_none() {
            profile.title.clone_from(&self.title);
        }
        if profile.tags.is_empty() {
            profile.tags.clone_from(&self.tags);
        }
        for (name, value) in &self.metadata {
            profile.metadata.entry(name.clone()).or_insert_with(|| value.clone());
        }
        profile.created_at = profile.created_at.or(self.created_at);
        if profile.imported_cost.is_nothing() {
            profile.imported_cost = self.spent;
        }
        if profile.assigned_persona.is_none() {
            profile.assigned_persona.clone_from(&self.assigned_persona);
        }
    }

    /// Adds the facts to the conversation's settings. Refuses them if the store does.
    pub(super) async fn keep(
        self,
        store: &FileConversationStore,
        refused: &mut Vec<Refusal>,
    ) -> Result<()> {
        let file = self.file.clone();
        match settings::change(store, move |profile| self.add_to(profile)).await {
            Ok(()) => Ok(()),
            Err(error) => Refusal::note(refused, &file, error),
        }
    }
}

debug_shows!(ImportedFacts as it:
    file, created_at, tags = it.tags.len(), metadata = it.metadata.len(), assigned_persona
);

impl Drop for ImportedFacts {
    fn drop(&mut self) {
        self.title.zeroize();
        self.metadata.values_mut().for_each(Zeroize::zeroize);
    }
}
