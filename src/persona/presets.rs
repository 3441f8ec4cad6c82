//! The presets of a store: those that are built in, and those that people make, sealed beside the default conversation's
//! settings.

use std::sync::{Arc, OnceLock};

use super::{PersonaRegistry, PresetChange, id};
use crate::character::{self, MOST_PRESETS, Preset};
use crate::error::{PersonaFailure, Result};
use crate::store::settings::presets;
use crate::store::{ConversationStore, FileConversationStore, Profile};

impl PersonaRegistry {
    async fn settings(&self) -> Result<(FileConversationStore, Arc<Profile>)> {
        let store = self.default_store().await?;
        let profile = store.conversation_state().await?.profile;
        presets::check(&profile)?;
        Ok((store, profile))
    }

    /// All presets: those that are built in, as they were changed since, then those that people made, the newest first.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) where the default conversation's settings cannot be read.
    pub async fn presets(&self) -> Result<Vec<Preset>> {
        Ok(character::in_force(&self.settings().await?.1.presets))
    }

    /// A preset by its id, in either spelling of those that are built in, or by its name.
    ///
    /// # Errors
    /// [`PersonaFailure::NoSuchPreset`] names those that there are.
    pub async fn preset(&self, id_or_name: &str) -> Result<Preset> {
        Preset::find(self.presets().await?, id_or_name)
    }

    /// Makes a preset, with a new id.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`], [`PersonaFailure::NameTaken`] and [`PersonaFailure::TooManyPresets`].
    pub async fn create_preset(&self, mut preset: Preset) -> Result<Preset> {
        let now = self.now();
        preset.id = id::fresh("preset", now)?;
        preset.created_at = Some(now);
        preset.updated_at = Some(now);
        self.put(preset, |_| {}).await
    }

    /// Changes what is named of a preset. Of one that is built in, the change is kept beside it.
    ///
    /// # Errors
    /// Those of [`preset`](Self::preset) and [`create_preset`](Self::create_preset). Nothing is changed then.
    pub async fn update_preset(&self, id: &str, change: PresetChange) -> Result<Preset> {
        let mut preset = self.preset(id).await?;
        let now = self.now();
        let apply = move |preset: &mut Preset| {
            change.apply(preset);
            preset.created_at = preset.created_at.or(Some(now));
            preset.updated_at = Some(now);
        };
        apply(&mut preset);
        self.put(preset, apply).await
    }

    /// Keeps a preset. Where there is one already, only the change is made to it: somebody else may have changed something
    /// else of it since it was read.
    async fn put(
        &self,
        preset: Preset,
        mut change: impl FnMut(&mut Preset) + Send + 'static,
    ) -> Result<Preset> {
        preset.check()?;
        let (store, _) = self.settings().await?;
        let (kept, refused) = (preset.clone(), Arc::new(OnceLock::new()));
        let refusing = Arc::clone(&refused);
        let keep = move |profile: &mut Profile| {
            // Nobody else changes anything while this is looked at.
            if let Some(failure) = refusal(profile, &kept) {
                drop(refusing.set(failure));
                return;
            }
            match profile.presets.get_mut(&kept.id) {
                Some(there) => change(there),
                None => drop(profile.presets.insert(kept.id.clone(), kept.clone())),
            }
        };
        let mut profile = store.change_profile(Box::new(keep)).await?;
        if let Some(failure) = refused.get() {
            return Err(failure.clone().into());
        }
        let id = preset.id.clone();
        Ok(profile.presets.remove(&id).map_or(preset, |kept| Preset { id, ..kept }))
    }

    /// Deletes a preset that somebody made, or takes back the changes of one that is built in.
    ///
    /// # Errors
    /// [`PersonaFailure::BuiltIn`] for one that was not changed; those of [`preset`](Self::preset).
    pub async fn delete_preset(&self, id: &str) -> Result<Preset> {
        let preset = self.preset(id).await?;
        let (store, profile) = self.settings().await?;
        if !profile.presets.contains_key(&preset.id) {
            return Err(PersonaFailure::BuiltIn.into());
        }
        let gone = preset.id.clone();
        let remove = move |profile: &mut Profile| {
            profile.presets.remove(&gone);
        };
        store.change_profile(Box::new(remove)).await?;
        Ok(preset)
    }
}

/// Why a preset cannot be among those that there are.
fn refusal(profile: &Profile, preset: &Preset) -> Option<PersonaFailure> {
    let name = preset.name.to_lowercase();
    let mut others = character::in_force(&profile.presets).into_iter();
    if others.any(|other| other.id != preset.id && other.name.to_lowercase() == name) {
        return Some(PersonaFailure::NameTaken);
    }
    if !presets::has_room_for(profile, preset) {
        return Some(PersonaFailure::PresetsTooLarge { limit: presets::MOST_BYTES });
    }
    let is_new = !profile.presets.contains_key(&preset.id);
    (is_new && profile.presets.len() >= MOST_PRESETS)
        .then_some(PersonaFailure::TooManyPresets { limit: MOST_PRESETS })
}
