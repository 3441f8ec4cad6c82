//! Presets: templates of personas, six built-in ones and the user's own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{PersonaFailure, Result};
use crate::store::record::persona::built_in::BUILT_IN;
use crate::store::record::persona::{LONGEST_NAME, Persona, check_name, within};

/// The prefix of every preset's id. The document and the code that the built-in presets come from spell their ids
/// differently, so both spellings are accepted.
const PREFIX: &str = "preset-";

/// The most presets in a store beside the built-in ones.
pub(crate) const MOST_PRESETS: usize = 200;
/// The deepest nesting of a preset's metadata. JSON readers limit the depth of the whole document.
const DEEPEST: usize = 32;

/// A template of a persona. `Debug` shows no words.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Preset {
    /// Its id, such as `preset-calm-counselor`.
    #[serde(skip)]
    pub id: String,
    /// The name: one line, at most 200 bytes.
    pub name: String,
    /// The purpose: at most 2,000 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The persona of contexts created from it.
    pub persona: Persona,
    /// Whether it is offered for new contexts.
    pub is_active: bool,
    /// The host's own data: at most 16,384 bytes as JSON, nested at most 32 levels deep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
    /// The time of creation; `None` for an unchanged built-in preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The time of the last change; `None` for an unchanged built-in preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

impl Preset {
    /// The most bytes of a description.
    pub const LONGEST_DESCRIPTION: usize = 2000;
    /// The most bytes of a name, and of an id.
    pub const LONGEST_NAME: usize = LONGEST_NAME;

    /// The id under which a preset is stored: the given one without white space at its ends, or that of a built-in
    /// preset whose other spelling it is.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`] for an id that is blank, too long or has several lines.
    pub fn canonical_id(id: &str) -> Result<String> {
        let id = canonical(id);
        check_name(&id)?;
        Ok(id)
    }

    /// A preset with this name and persona.
    pub fn new(name: impl Into<String>, persona: Persona) -> Self {
        Self {
            id: String::new(),
            name: name.into(),
            description: String::new(),
            persona,
            is_active: true,
            metadata: BTreeMap::new(),
            created_at: None,
            updated_at: None,
        }
    }

    /// The built-in presets without any changes.
    pub fn all_built_in() -> Vec<Self> {
        in_force(&BTreeMap::new())
    }

    /// Finds a preset by id or name. Built-in presets have two spellings of their id.
    ///
    /// # Errors
    /// [`PersonaFailure::NoSuchPreset`] names the existing presets.
    pub fn find(mut presets: Vec<Self>, id_or_name: &str) -> Result<Self> {
        let id = canonical(id_or_name);
        let name = id_or_name.trim().to_lowercase();
        let at = presets
            .iter()
            .position(|preset| preset.id == id)
            .or_else(|| presets.iter().position(|preset| preset.name.to_lowercase() == name));
        match at {
            Some(at) => Ok(presets.swap_remove(at)),
            None => {
                let known = presets.into_iter().map(|preset| preset.id).collect();
                Err(PersonaFailure::NoSuchPreset { known }.into())
            }
        }
    }

    /// Whether this id belongs to a built-in preset, changed or not.
    pub fn is_built_in(&self) -> bool {
        BUILT_IN.iter().any(|built_in| built_in.id == self.id)
    }

    /// Whether it is a built-in preset whose text for the model was changed.
    pub(crate) fn is_changed(&self) -> bool {
        built_in(&self.id).is_some_and(|built_in| built_in.persona != self.persona)
    }

    /// Checks that every field is within its limits.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`] names the first field that is not.
    pub fn check(&self) -> Result<()> {
        const LONGEST: usize = Preset::LONGEST_DESCRIPTION;
        const LARGEST: usize = 16 << 10;
        check_name(&self.name)?;
        within(self.description.len() <= LONGEST, "description", || {
            format!("has {} bytes; the limit is {LONGEST}", self.description.len())
        })?;
        let metadata = serde_json::to_vec(&self.metadata).map_or(usize::MAX, |json| json.len());
        within(metadata <= LARGEST, "metadata", || format!("is over {LARGEST} bytes as JSON"))?;
        within(self.metadata.values().all(|value| is_shallow(value, DEEPEST)), "metadata", || {
            format!("is nested deeper than {DEEPEST} levels")
        })?;
        self.persona.check()
    }
}

/// Whether a value has at most this many levels.
fn is_shallow(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(values) => values.iter().all(|value| is_shallow(value, below)),
        Value::Object(fields) => fields.values().all(|value| is_shallow(value, below)),
        _ => true,
    }
}

/// Resolves an id: `calm_counselor` is `preset-calm-counselor`.
pub(crate) fn canonical(id: &str) -> String {
    let spelt = id.trim().to_ascii_lowercase().replace('_', "-");
    let spelt = spelt.strip_prefix(PREFIX).unwrap_or(&spelt);
    let is_it = |built_in: &&super::built_in::BuiltIn| {
        built_in.id.strip_prefix(PREFIX).is_some_and(|short| short == spelt)
    };
    match BUILT_IN.iter().find(is_it) {
        Some(built_in) => built_in.id.to_owned(),
        None => id.trim().to_owned(),
    }
}

/// The built-in preset with this id, without changes.
fn built_in(id: &str) -> Option<Preset> {
    let built_in = BUILT_IN.iter().find(|built_in| built_in.id == id)?;
    let mut persona = Persona::new(built_in.system_prompt).personality(built_in.personality);
    persona.temperature = built_in.temperature;
    persona.max_tokens = built_in.max_tokens;
    persona.expiry_days = built_in.expiry_days;
    let mut preset = Preset::new(built_in.name, persona);
    built_in.id.clone_into(&mut preset.id);
    built_in.description.clone_into(&mut preset.description);
    Some(preset)
}

/// All presets: the built-in ones with their changes, then the user's own, newest first.
pub(crate) fn in_force(changed: &BTreeMap<String, Preset>) -> Vec<Preset> {
    let with_id = |(id, preset): (&String, &Preset)| Preset { id: id.clone(), ..preset.clone() };
    let built_in =
        BUILT_IN.iter().filter_map(|template| match changed.get_key_value(template.id) {
            Some(changed) => Some(with_id(changed)),
            None => built_in(template.id),
        });
    let made = changed.iter().filter(|(id, _)| BUILT_IN.iter().all(|known| known.id != **id));
    let mut made: Vec<_> = made.map(with_id).collect();
    made.sort_by(|a, b| (b.created_at, &a.id).cmp(&(a.created_at, &b.id)));
    built_in.chain(made).collect()
}

debug_shows!(Preset: id, persona, is_active);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_the_built_in_ids_mean_the_same() {
        for built_in in &BUILT_IN {
            let short = built_in.id.strip_prefix(PREFIX).unwrap();
            for spelt in [built_in.id.to_owned(), short.to_owned(), short.replace('-', "_")] {
                assert_eq!(canonical(&spelt), built_in.id);
            }
        }
        assert_eq!(canonical("preset-mepktsw0-5h3tw7"), "preset-mepktsw0-5h3tw7");
        assert_eq!(canonical("My_Own"), "My_Own");
    }

    #[test]
    fn the_built_in_presets_are_within_the_limits_and_keep_their_order() {
        let all = in_force(&BTreeMap::new());
        assert_eq!(all.len(), 6);
        assert_eq!(Preset::all_built_in(), all);
        for preset in &all {
            preset.check().unwrap();
            assert!(preset.is_built_in() && preset.is_active && !preset.description.is_empty());
        }
        let mut changed = BTreeMap::new();
        let mut mine = Preset::new("Counsel", all[0].persona.clone());
        mine.is_active = false;
        changed.insert(all[0].id.clone(), mine);
        changed.insert("preset-own".to_owned(), Preset::new("Own", Persona::new("x")));
        let now = in_force(&changed);
        let shown: Vec<_> = now.iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(shown.len(), 7);
        assert_eq!((shown[0], shown[6]), ("Counsel", "Own"));
        assert!(now[0].is_built_in() && !now[6].is_built_in());
    }

    #[test]
    fn notes_that_are_nested_too_deep_to_be_read_again_are_refused() {
        let nested = |levels| (1..levels).fold(Value::Null, |below, _| Value::Array(vec![below]));
        let mut preset = Preset::new("x", Persona::new("x"));
        for (levels, is_within) in [(1, true), (DEEPEST, true), (DEEPEST + 1, false)] {
            preset.metadata.insert("a".to_owned(), nested(levels));
            assert_eq!(preset.check().is_ok(), is_within, "{levels}");
        }
    }
}
