//! The JSON that clients get for contexts, presets, messages and artifacts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sottovoce::StoredMessage;
use sottovoce::context::TokenRates;
use sottovoce::persona::{Persona, PersonaConversation, Preset};
use sottovoce::store::Artifact;

/// Length of a message's preview in characters.
const PREVIEW: usize = 50;

/// A context.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct ContextShape {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// The system prompt.
    pub(crate) system_prompt: String,
    /// The model's behaviour in this context.
    pub(crate) personality: String,
    /// The sampling temperature, 0 to 1.
    pub(crate) temperature: f64,
    /// The most tokens of an answer.
    pub(crate) max_tokens: u32,
    /// The most tokens of history in a prompt.
    pub(crate) max_history_tokens: u32,
    /// After how many days without an interaction it expires.
    pub(crate) expiry_days: u32,
    /// When it was created.
    pub(crate) created_at: String,
    /// When it was last spoken in or changed.
    pub(crate) updated_at: String,
    /// When it expires unless somebody speaks in it before.
    pub(crate) expires_at: String,
    /// False if it was deleted.
    pub(crate) is_active: bool,
    /// Whether it has expired.
    pub(crate) is_expired: bool,
    /// Whether it expires within 24 hours.
    pub(crate) expires_soon: bool,
    /// The number of messages.
    pub(crate) message_count: u64,
    /// The preset that it was created from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preset_id: Option<String>,
    /// What the call did with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
}

impl From<PersonaConversation> for ContextShape {
    fn from(context: PersonaConversation) -> Self {
        let is_active = context.is_active();
        let persona = &context.assigned_persona.persona;
        Self {
            id: context.id,
            name: context.name,
            system_prompt: persona.system_prompt.clone(),
            personality: persona.personality.clone(),
            temperature: persona.temperature,
            max_tokens: persona.max_tokens,
            max_history_tokens: persona.max_history_tokens,
            expiry_days: persona.expiry_days,
            created_at: context.created_at.to_string(),
            updated_at: context.last_at.to_string(),
            expires_at: context.expires_at.to_string(),
            is_active,
            is_expired: context.is_expired,
            expires_soon: context.expires_soon,
            message_count: context.messages,
            preset_id: context.assigned_persona.preset.clone(),
            status: None,
        }
    }
}

impl ContextShape {
    pub(crate) fn with_status(self, status: &'static str) -> Self {
        Self { status: Some(status), ..self }
    }
}

/// The numeric settings that a preset gives a context.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct SettingsShape {
    /// The sampling temperature, 0 to 1.
    temperature: f64,
    /// The most tokens of an answer.
    max_tokens: u32,
    /// The most tokens of history in a prompt.
    max_history_tokens: u32,
    /// After how many days without an interaction a context expires.
    expiry_days: u32,
}

impl From<&Persona> for SettingsShape {
    fn from(persona: &Persona) -> Self {
        Self {
            temperature: persona.temperature,
            max_tokens: persona.max_tokens,
            max_history_tokens: persona.max_history_tokens,
            expiry_days: persona.expiry_days,
        }
    }
}

/// A preset.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct PresetShape {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// The purpose of the preset.
    pub(crate) description: String,
    /// The system prompt.
    pub(crate) system_prompt: String,
    /// The model's behaviour.
    pub(crate) default_personality: String,
    /// The numeric settings that it gives a context.
    pub(crate) default_settings: SettingsShape,
    /// Whether it is offered for new contexts.
    pub(crate) is_active: bool,
    /// Whether it is built in. Built-in presets can be changed; deleting one undoes the changes.
    pub(crate) is_built_in: bool,
    /// The host's own key-value pairs.
    pub(crate) metadata: BTreeMap<String, Value>,
    /// When it was created; missing for an unchanged built-in preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_at: Option<String>,
    /// When it was last changed; missing for an unchanged built-in preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated_at: Option<String>,
    /// What the call did with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
}

impl From<Preset> for PresetShape {
    fn from(preset: Preset) -> Self {
        let is_built_in = preset.is_built_in();
        Self {
            id: preset.id,
            name: preset.name,
            description: preset.description,
            system_prompt: preset.persona.system_prompt.clone(),
            default_personality: preset.persona.personality.clone(),
            default_settings: SettingsShape::from(&preset.persona),
            is_active: preset.is_active,
            is_built_in,
            metadata: preset.metadata,
            created_at: preset.created_at.map(|at| at.to_string()),
            updated_at: preset.updated_at.map(|at| at.to_string()),
            status: None,
        }
    }
}

impl PresetShape {
    pub(crate) fn with_status(self, status: &'static str) -> Self {
        Self { status: Some(status), ..self }
    }
}

/// A message of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct MessageShape {
    /// Its id, for deleting it.
    pub(crate) id: String,
    /// The conversation that holds it.
    pub(crate) context_id: String,
    /// The speaker: user, assistant, system or tool.
    pub(crate) role: &'static str,
    /// Where the words come from, such as spoken, typed or client.
    pub(crate) source: String,
    /// The text.
    pub(crate) content: String,
    /// The beginning of the text.
    pub(crate) preview: String,
    /// The estimated number of tokens.
    pub(crate) token_count: usize,
    /// When it was said.
    pub(crate) created_at: String,
}

impl MessageShape {
    pub(crate) fn new(context_id: &str, stored: &StoredMessage) -> Self {
        let content = stored.message.content.clone();
        let preview = match content.char_indices().nth(PREVIEW) {
            Some((end, _)) => format!("{}...", content.get(..end).unwrap_or_default()),
            None => content.clone(),
        };
        Self {
            id: message_id(stored.seq),
            context_id: context_id.to_owned(),
            role: stored.message.role.as_str(),
            source: stored.message.source_in_words(),
            token_count: TokenRates::default().estimate(&content),
            preview,
            content,
            created_at: stored.message.timestamp.to_string(),
        }
    }
}

/// Large data stored beside a conversation's messages.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct ArtifactShape {
    /// Its id. Messages refer to it as artifact:// and the id.
    id: String,
    /// Its name.
    name: String,
    /// Its kind: file, folder, search_result, command_output, tool_result, or another word.
    r#type: String,
    /// The media type of its contents.
    mime_type: String,
    /// Its size in bytes.
    size: u64,
    /// The number of lines, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    /// When it was added.
    created_at: String,
}

impl From<&Artifact> for ArtifactShape {
    fn from(artifact: &Artifact) -> Self {
        Self {
            id: artifact.id.clone(),
            name: artifact.name.clone(),
            r#type: artifact.kind.as_str().to_owned(),
            mime_type: artifact.mime_type.clone(),
            size: artifact.size,
            lines: artifact.lines,
            created_at: artifact.created_at.to_string(),
        }
    }
}

const MESSAGE: &str = "conv-";

/// The id of the message with this number.
pub(crate) fn message_id(seq: u64) -> String {
    format!("{MESSAGE}{seq}")
}

/// Parses a message's id. Returns its number.
pub(crate) fn message_seq(id: &str) -> Option<u64> {
    let digits = id.strip_prefix(MESSAGE)?;
    digits.parse().ok().filter(|seq: &u64| *seq > 0 && message_id(*seq) == id)
}
