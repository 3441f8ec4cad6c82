//! Parses personas of contexts, and presets.

use std::collections::BTreeMap;

use serde_json::Value;
use sottovoce::Error;
use sottovoce::import::RefusalReason::{self, Corrupt, Unstorable};
use sottovoce::import::{ImportedFacts, ImportedPreset, Refusal};
use sottovoce::persona::{AssignedPersona, Persona, PersonaFailure, Preset};

use super::row::{CREATED_AT, Row, UPDATED_AT, cut};
use crate::system::LLM_GENERATOR;

/// The indexes of the columns of a persona, which are the same in both tables.
const SYSTEM_PROMPT: usize = 2;
const PERSONALITY: usize = 3;
const TEMPERATURE: usize = 4;
const MAX_TOKENS: usize = 5;
const MAX_HISTORY_TOKENS: usize = 6;
const EXPIRY_DAYS: usize = 7;
/// The indexes of columns that only presets have.
const DESCRIPTION: usize = 11;
const METADATA: usize = 12;

/// Title, notes and persona of a context, and whether it had expired. A context without a valid system prompt has no
/// persona.
pub(super) fn facts(row: &mut Row<'_>) -> (ImportedFacts, bool) {
    let title = row.called();
    let created_at = row.moment(CREATED_AT);
    let updated_at = row.moment(UPDATED_AT).or(created_at).unwrap_or(row.now);
    let expired = row.has_expired();
    let is_active = row.is_active();
    let assigned_persona = match persona(row) {
        Ok(persona) => {
            let mut assigned_persona = AssignedPersona::new(persona, updated_at);
            // A deleted context was last changed when it was deleted.
            assigned_persona.deleted_at = (!is_active).then_some(updated_at);
            Some(assigned_persona)
        }
        Err(reason) => {
            row.refused.push(Refusal::new(&row.name, reason));
            None
        }
    };
    let mut facts = ImportedFacts::default();
    (facts.title, facts.created_at, facts.assigned_persona) = (title, created_at, assigned_persona);
    facts.metadata = std::mem::take(&mut row.notes);
    facts.file.clone_from(&row.name);
    (facts, expired)
}

/// Reads a preset.
pub(super) fn preset(row: &mut Row<'_>) -> Result<ImportedPreset, RefusalReason> {
    let id = Preset::canonical_id(&row.id()?)
        .map_err(|_| Unstorable("its id is blank, too long or not a single line"))?;
    let persona = persona(row)?;
    let name = row.called().unwrap_or_else(|| id.clone());
    let mut preset = Preset::new(name, persona);
    preset.id = id;
    preset.is_active = row.is_active();
    preset.created_at = row.moment(CREATED_AT);
    preset.updated_at = row.moment(UPDATED_AT);
    let description = row.text(DESCRIPTION).unwrap_or_default();
    cut(&description, Preset::LONGEST_DESCRIPTION).clone_into(&mut preset.description);
    if preset.description != description {
        row.note("description", description);
    }
    let metadata = row.text(METADATA);
    let mut notes: BTreeMap<String, Value> = std::mem::take(&mut row.notes)
        .into_iter()
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    if let Some(text) = metadata {
        preset.metadata = parsed(text);
    }
    // Check first with the system's own metadata, so that added notes cannot displace it.
    if preset.check().is_err() {
        preset.metadata.clear();
        row.refused.push(Refusal::new(
            &row.name,
            Unstorable("its metadata is too large or nested too deep"),
        ));
    }
    let theirs = preset.metadata.clone();
    preset.metadata.append(&mut notes);
    if preset.check().is_err() {
        preset.metadata = theirs;
        let reason = Unstorable("its replaced values are too large to be kept");
        row.refused.push(Refusal::new(&row.name, reason));
    }
    match preset.check() {
        Ok(()) => Ok(ImportedPreset::new(preset, row.name.clone())),
        Err(_) => Err(Unstorable("it is not within the limits of presets")),
    }
}

/// The fields of a JSON object; anything else becomes one text.
fn parsed(text: String) -> BTreeMap<String, Value> {
    match serde_json::from_str::<BTreeMap<String, Value>>(&text) {
        Ok(fields) => fields,
        Err(_) => BTreeMap::from([(format!("{LLM_GENERATOR}:metadata"), Value::String(text))]),
    }
}

/// Reads a persona. Numbers are moved into their limits. A text that is too long is refused, since shortening would
/// change its meaning.
fn persona(row: &mut Row<'_>) -> Result<Persona, RefusalReason> {
    let system_prompt = row.text(SYSTEM_PROMPT).unwrap_or_default();
    let personality = row.text(PERSONALITY).unwrap_or_default();
    let mut persona = Persona::new(system_prompt).personality(personality);
    persona.temperature = row.share(TEMPERATURE, "temperature", persona.temperature);
    persona.max_tokens =
        row.whole(MAX_TOKENS, "maxTokens", Persona::MAX_TOKENS, persona.max_tokens);
    persona.max_history_tokens = row.whole(
        MAX_HISTORY_TOKENS,
        "maxHistoryTokens",
        Persona::MAX_HISTORY_TOKENS,
        persona.max_history_tokens,
    );
    persona.expiry_days =
        row.whole(EXPIRY_DAYS, "expiryDays", Persona::EXPIRY_DAYS, persona.expiry_days);
    match persona.check() {
        Ok(()) => Ok(persona),
        Err(Error::Persona(PersonaFailure::Invalid { field: "systemPrompt", .. })) => {
            Err(Corrupt("its system prompt is blank or over 65,536 bytes"))
        }
        Err(_) => Err(Corrupt("its personality is over 16,384 bytes")),
    }
}
