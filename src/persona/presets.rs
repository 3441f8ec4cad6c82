//! The presets of a store: the built-in ones, and the user's own, which are sealed beside the default conversation's
//! settings.

use std::sync::{Arc, OnceLock};

use super::{PersonaRegistry, PresetChange, naming};
use crate::error::{PersonaFailure, Result};
use crate::store::folder::settings;
use crate::store::record::persona::{self, MOST_PRESETS, Preset};
use crate::store::{ConversationStore, FileConversationStore, Profile};

impl PersonaRegistry {
    async fn settings(&self) -> Result<(FileConversationStore, Arc<Profile>)> {
        let store = self.default_store().await?;
        let profile = store.conversation_state().await?.profile;
        settings::check_presets(&profile)?;
        Ok((store, profile))
    }

    /// All presets: the built-in ones with their changes, then the user's own, newest first.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) if the default conversation's settings cannot be read.
    pub async fn presets(&self) -> Result<Vec<Preset>> {
        Ok(persona::in_force(&self.settings().await?.1.presets))
    }

    /// Returns a preset by its id or its name. Built-in presets have two spellings of their id.
    ///
    /// # Errors
    /// [`PersonaFailure::NoSuchPreset`] names the existing presets.
    pub async fn preset(&self, id_or_name: &str) -> Result<Preset> {
        Preset::find(self.presets().await?, id_or_name)
    }

    /// Creates a preset with a new id.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`], [`PersonaFailure::NameTaken`] and [`PersonaFailure::TooManyPresets`].
    pub async fn create_preset(&self, mut preset: Preset) -> Result<Preset> {
        let now = self.now();
        preset.id = naming::fresh_id("preset", now)?;
        preset.created_at = Some(now);
        preset.updated_at = Some(now);
        self.put(preset, |_| {}).await
    }

    /// Changes the given fields of a preset. For a built-in preset, the changes are stored separately.
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

    /// Stores a preset. If it exists, only the change is applied, because another process may have changed other
    /// fields since it was read.
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
            // The lock is held, so no other process changes anything during this check.
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

    /// Deletes one of the user's presets, or undoes the changes of a built-in one.
    ///
    /// # Errors
    /// [`PersonaFailure::BuiltIn`] for a built-in preset without changes; those of [`preset`](Self::preset).
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

/// The reason why a preset cannot be added, if there is one.
fn refusal(profile: &Profile, preset: &Preset) -> Option<PersonaFailure> {
    let name = preset.name.to_lowercase();
    let mut others = persona::in_force(&profile.presets).into_iter();
    if others.any(|other| other.id != preset.id && other.name.to_lowercase() == name) {
        return Some(PersonaFailure::NameTaken);
    }
    if !settings::has_room_for(profile, preset) {
        return Some(PersonaFailure::PresetsTooLarge { limit: settings::MOST_PRESET_BYTES });
    }
    let is_new = !profile.presets.contains_key(&preset.id);
    (is_new && profile.presets.len() >= MOST_PRESETS)
        .then_some(PersonaFailure::TooManyPresets { limit: MOST_PRESETS })
}
