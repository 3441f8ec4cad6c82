//! What an Ollama server reports about its models.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::model::{ModelEntry, ModelInfo, RunningModel};

#[derive(Deserialize)]
pub(super) struct Tags {
    models: Option<Vec<Tag>>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    size: Option<u64>,
    modified_at: Option<String>,
    details: Option<Details>,
    #[serde(flatten)]
    remote: Remote,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    family: Option<String>,
    parameter_size: Option<String>,
    quantization_level: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Remote {
    remote_host: Option<String>,
    remote_model: Option<String>,
}

impl Remote {
    fn is_set(&self) -> bool {
        [&self.remote_host, &self.remote_model].into_iter().flatten().any(|name| !name.is_empty())
    }
}

#[derive(Deserialize)]
pub(super) struct Show {
    capabilities: Option<Vec<String>>,
    model_info: Option<BTreeMap<String, Value>>,
    #[serde(flatten)]
    remote: Remote,
}

#[derive(Deserialize)]
pub(super) struct Running {
    models: Option<Vec<Loaded>>,
}

#[derive(Deserialize)]
struct Loaded {
    name: String,
    context_length: Option<u32>,
}

/// Some servers leave fields out, others send empty strings.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

impl From<Tag> for ModelEntry {
    fn from(tag: Tag) -> Self {
        let details = tag.details.unwrap_or_default();
        Self {
            name: tag.name,
            size: tag.size,
            modified: tag.modified_at.and_then(|time| time.parse().ok()),
            family: given(details.family),
            parameter_size: given(details.parameter_size),
            quantization: given(details.quantization_level),
            remote: tag.remote.is_set(),
        }
    }
}

impl From<Tags> for Vec<ModelEntry> {
    fn from(tags: Tags) -> Self {
        tags.models.unwrap_or_default().into_iter().map(ModelEntry::from).collect()
    }
}

impl From<Show> for ModelInfo {
    fn from(show: Show) -> Self {
        let facts = show.model_info.unwrap_or_default();
        let context_length = facts
            .get("general.architecture")
            .and_then(Value::as_str)
            .and_then(|architecture| facts.get(&format!("{architecture}.context_length")))
            .and_then(Value::as_u64)
            .and_then(|length| u32::try_from(length).ok());
        Self {
            capabilities: show.capabilities.unwrap_or_default(),
            context_length,
            remote: show.remote.is_set(),
        }
    }
}

impl From<Running> for Vec<RunningModel> {
    fn from(running: Running) -> Self {
        let loaded = running.models.unwrap_or_default().into_iter();
        loaded
            .map(|model| RunningModel {
                name: model.name,
                context_length: model.context_length.filter(|length| *length > 0),
            })
            .collect()
    }
}
