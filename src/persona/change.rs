//! Descriptions of new contexts, and of changes to contexts and presets.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::Result;
use crate::store::record::persona::{Persona, Preset, check_name};

/// A context to be created. `Debug` shows no words.
#[derive(Clone, PartialEq)]
pub struct NewPersonaConversation {
    pub(super) name: String,
    pub(super) persona: Persona,
    pub(super) preset: Option<String>,
    pub(super) numbered: bool,
}

impl NewPersonaConversation {
    /// A context with this name: one line of at most 200 bytes.
    pub fn new(name: impl Into<String>, persona: Persona) -> Self {
        Self { name: name.into(), persona, preset: None, numbered: false }
    }

    /// A context from a preset, with the preset's name unless another is given. If the name is taken, a number
    /// follows it.
    pub fn from_preset(preset: &Preset, name: Option<String>, change: PersonaChange) -> Self {
        let mut persona = preset.persona.clone();
        change.apply(&mut persona);
        let numbered = name.is_none();
        let name = name.unwrap_or_else(|| preset.name.clone());
        Self { name, persona, preset: Some(preset.id.clone()), numbered }
    }

    /// Adds a number to the name if another context has it.
    #[must_use]
    pub fn numbered(self) -> Self {
        Self { numbered: true, ..self }
    }

    /// Checks that all fields are within their limits.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`](crate::persona::PersonaFailure::Invalid) names the first field that is not.
    pub fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        self.persona.check()
    }
}

debug_shows!(NewPersonaConversation: persona, preset);

/// Changes of a persona; `None` leaves a field unchanged. `Debug` shows no words.
#[derive(Clone, Default, PartialEq)]
pub struct PersonaChange {
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The behaviour.
    pub personality: Option<String>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of an answer.
    pub max_tokens: Option<u32>,
    /// The most tokens of history.
    pub max_history_tokens: Option<u32>,
    /// The days until it expires.
    pub expiry_days: Option<u32>,
}

impl PersonaChange {
    /// Applies the change. Does not check the limits; [`Persona`](crate::persona::Persona) does.
    pub fn apply(&self, persona: &mut Persona) {
        fn set<T: Clone>(field: &mut T, value: Option<&T>) {
            if let Some(value) = value {
                field.clone_from(value);
            }
        }
        set(&mut persona.system_prompt, self.system_prompt.as_ref());
        set(&mut persona.personality, self.personality.as_ref());
        set(&mut persona.temperature, self.temperature.as_ref());
        set(&mut persona.max_tokens, self.max_tokens.as_ref());
        set(&mut persona.max_history_tokens, self.max_history_tokens.as_ref());
        set(&mut persona.expiry_days, self.expiry_days.as_ref());
    }
}

debug_shows!(PersonaChange: temperature, max_tokens, max_history_tokens, expiry_days);

/// Changes of a context; `None` leaves a field unchanged.
#[derive(Clone, Default, PartialEq)]
pub struct PersonaConversationChange {
    /// The name.
    pub name: Option<String>,
    /// The persona.
    pub persona: PersonaChange,
    /// `false` deletes the context, `true` restores it.
    pub is_active: Option<bool>,
}

debug_shows!(PersonaConversationChange: persona, is_active);

/// Changes of a preset; `None` leaves a field unchanged.
#[derive(Clone, Default, PartialEq)]
pub struct PresetChange {
    /// The name.
    pub name: Option<String>,
    /// The purpose.
    pub description: Option<String>,
    /// The persona of contexts created from it.
    pub persona: PersonaChange,
    /// Whether it is offered for new contexts.
    pub is_active: Option<bool>,
    /// Key-value pairs that replace all previous ones.
    pub metadata: Option<BTreeMap<String, Value>>,
}

impl PresetChange {
    /// Applies the change. Does not check the limits; [`Preset`](crate::persona::Preset) does.
    pub fn apply(&self, preset: &mut Preset) {
        if let Some(name) = &self.name {
            preset.name.clone_from(name);
        }
        if let Some(description) = &self.description {
            preset.description.clone_from(description);
        }
        if let Some(metadata) = &self.metadata {
            preset.metadata.clone_from(metadata);
        }
        preset.is_active = self.is_active.unwrap_or(preset.is_active);
        self.persona.apply(&mut preset.persona);
    }
}

debug_shows!(PresetChange: persona, is_active);
