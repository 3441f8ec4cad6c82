//! Presets of another system: templates for personas.

use std::collections::{BTreeMap, HashSet};

use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::folder::settings;
use crate::store::record::persona::{self, MOST_PRESETS, Preset};
use crate::store::{ConversationStore, FileConversationStore, Profile};
use crate::transfer::import::{Refusal, RefusalReason};

/// A preset of another system.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImportedPreset {
    /// The preset. If it is built in there and here, it has the id that it has here.
    pub preset: Preset,
    /// The file or record it was read from.
    pub file: String,
}

impl ImportedPreset {
    /// A preset that passes [`Preset::check`], and the file or record it was read from. Its id is a
    /// [canonical one](Preset::canonical_id).
    pub fn new(preset: Preset, file: String) -> Self {
        Self { preset, file }
    }
}

/// The presets of another system. A store keeps its presets in the settings of [`Scope::Default`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ImportedPresets {
    /// The presets, each with its own id.
    pub presets: Vec<ImportedPreset>,
}

/// The result of importing presets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PresetReport {
    /// The number of presets that were added.
    pub taken: usize,
    /// The number of presets whose ids the store has already. These stay as they are.
    pub already_there: usize,
    /// The number of presets that an earlier import had added and that were deleted since. They stay deleted.
    pub forgotten: usize,
    /// The ids of added presets that replace built-in ones: new contexts made from these get the imported text.
    pub replaced: Vec<String>,
    /// The presets that were refused.
    pub refused: Vec<Refusal>,
}

/// What an import does with a preset.
enum PresetDecision {
    Take(Preset),
    AlreadyThere,
    Forgotten,
    Refuse(RefusalReason),
}

impl ImportedPresets {
    /// Returns what [`import_into`](Self::import_into) would do, and changes nothing.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a store of another scope than [`Scope::Default`]. Those of reading its settings.
    pub async fn preview(self, store: &FileConversationStore) -> Result<PresetReport> {
        let mut report = PresetReport::default();
        let Some(mut profile) = self.begin(store).await? else { return Ok(report) };
        for imported in self.presets {
            let verdict = judge(&profile, &imported.preset);
            if let Some(preset) = report.note(verdict, imported.file) {
                add(&mut profile, preset);
            }
        }
        Ok(report)
    }

    /// Adds the presets that the store neither has nor had from an import. A preset whose name is taken gets a number
    /// after its name. A preset that cannot be added is refused; the others are added.
    ///
    /// # Errors
    /// Those of [`preview`](Self::preview) and of [`change_profile`](ConversationStore::change_profile).
    pub async fn import_into(self, store: &FileConversationStore) -> Result<PresetReport> {
        let mut report = PresetReport::default();
        let Some(mut profile) = self.begin(store).await? else { return Ok(report) };
        for imported in self.presets {
            let verdict = judge(&profile, &imported.preset);
            let Some(preset) = report.note(verdict, imported.file.clone()) else { continue };
            let taken = preset.id.clone();
            match store.change_profile(Box::new(move |profile| add(profile, preset.clone()))).await
            {
                Ok(changed) => profile = changed,
                Err(error) => {
                    Refusal::note(&mut report.refused, &imported.file, error)?;
                    report.taken -= 1;
                    report.replaced.retain(|id| *id != taken);
                }
            }
        }
        Ok(report)
    }

    /// The settings; `None` if there is nothing to add.
    async fn begin(&self, store: &FileConversationStore) -> Result<Option<Profile>> {
        if **store.scope() != Scope::Default {
            return Err(Error::OtherScope);
        }
        if self.presets.is_empty() {
            return Ok(None);
        }
        let profile = store.profile().await?;
        settings::check_presets(&profile)?;
        Ok(Some(Profile::clone(&profile)))
    }
}

impl PresetReport {
    /// Counts the preset, and returns it if it is to be added.
    fn note(&mut self, verdict: PresetDecision, file: String) -> Option<Preset> {
        match verdict {
            PresetDecision::Take(preset) => {
                self.taken += 1;
                if preset.is_changed() {
                    self.replaced.push(preset.id.clone());
                }
                return Some(preset);
            }
            PresetDecision::AlreadyThere => self.already_there += 1,
            PresetDecision::Forgotten => self.forgotten += 1,
            PresetDecision::Refuse(reason) => self.refused.push(Refusal::new(file, reason)),
        }
        None
    }
}

fn judge(profile: &Profile, preset: &Preset) -> PresetDecision {
    if profile.presets.contains_key(&preset.id) {
        return PresetDecision::AlreadyThere;
    }
    if profile.imported_presets.contains(&preset.id) {
        return PresetDecision::Forgotten;
    }
    if profile.presets.len() >= MOST_PRESETS {
        let reason = "the store has the most presets that it may have";
        return PresetDecision::Refuse(RefusalReason::Unstorable(reason));
    }
    if !settings::has_room_for(profile, preset) {
        let reason = "the store's presets have no room for it";
        return PresetDecision::Refuse(RefusalReason::Unstorable(reason));
    }
    let others = persona::in_force(&profile.presets).into_iter();
    let taken: HashSet<String> = others
        .filter(|other| other.id != preset.id)
        .map(|other| other.name.to_lowercase())
        .collect();
    let name = unlike(&preset.name, &taken);
    PresetDecision::Take(Preset { name, ..preset.clone() })
}

/// Adds presets of an export. Leaves out those whose ids belong to other presets, built in or made here, and returns
/// these ids.
pub(super) fn merge(profile: &mut Profile, presets: BTreeMap<String, Preset>) -> Vec<String> {
    let mut left_out = Vec::new();
    for (id, preset) in presets {
        let preset = Preset { id: id.clone(), ..preset };
        let in_force = persona::in_force(&profile.presets).into_iter().find(|own| own.id == id);
        if in_force.as_ref() == Some(&preset) {
            continue;
        }
        match judge(profile, &preset) {
            PresetDecision::Take(preset) if in_force.is_none() => {
                profile.presets.insert(id, preset);
            }
            _ => left_out.push(id),
        }
    }
    left_out
}

/// The name, with a number after it if it is taken.
fn unlike(name: &str, taken: &HashSet<String>) -> String {
    let mut unlike = name.to_owned();
    let mut number = 2;
    // The loop ends: there are more numbers than names.
    while taken.contains(&unlike.to_lowercase()) {
        let number_text = format!(" {number}");
        let room = persona::LONGEST_NAME - number_text.len();
        unlike = persona::cut(name, room).trim_end().to_owned() + &number_text;
        number += 1;
    }
    unlike
}

/// Keeps a preset of that id that was made meanwhile.
fn add(profile: &mut Profile, preset: Preset) {
    profile.imported_presets.insert(preset.id.clone());
    profile.presets.entry(preset.id.clone()).or_insert(preset);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::record::persona::Persona;

    fn named(id: &str, name: &str) -> Preset {
        let mut preset = Preset::new(name, Persona::new("x"));
        id.clone_into(&mut preset.id);
        preset
    }

    #[test]
    fn a_name_that_another_has_gets_a_number_and_stays_within_its_limit() {
        let mut profile = Profile::default();
        let long = "ü".repeat(100);
        for (id, name, given) in [
            ("a", "DJ", "DJ"),
            ("b", "dj", "dj 2"),
            ("c", "DJ", "DJ 3"),
            ("d", "Calm Counselor", "Calm Counselor 2"),
            ("preset-calm-counselor", "Calm Counselor", "Calm Counselor"),
            ("e", &long, &long),
            ("f", &long, &format!("{} 2", "ü".repeat(99))),
        ] {
            let PresetDecision::Take(preset) = judge(&profile, &named(id, name)) else {
                panic!("{id}")
            };
            assert_eq!(preset.name, given);
            preset.check().unwrap();
            add(&mut profile, preset);
            assert!(matches!(judge(&profile, &named(id, name)), PresetDecision::AlreadyThere));
        }
        profile.presets.remove("a");
        assert!(matches!(judge(&profile, &named("a", "DJ")), PresetDecision::Forgotten));
    }

    #[test]
    fn no_more_are_taken_than_a_store_may_have() {
        let mut profile = Profile::default();
        for at in 0..MOST_PRESETS {
            let preset = named(&format!("{at}"), &format!("{at}"));
            assert!(matches!(judge(&profile, &preset), PresetDecision::Take(_)));
            add(&mut profile, preset);
        }
        assert!(matches!(judge(&profile, &named("x", "x")), PresetDecision::Refuse(_)));
    }
}
