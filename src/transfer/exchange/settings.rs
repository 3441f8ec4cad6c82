//! The settings that devices share, field by field.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::ConversationStore;
use crate::store::folder::settings;
use crate::store::record::persona::AssignedPersona;
use crate::transfer::exchange::Exchange;

/// What the name of a preset begins with; its id follows.
pub(super) const PRESET: &str = "preset/";

impl Exchange {
    /// The settings that devices share, by name: `title` (not one that a model proposed), `tags`, `metadata`, `createdAt`,
    /// `retention`, `rollingWindow`, `windowSeconds`, `persona`, `cleared` (with the time `at`), and in the default
    /// conversation `preset/ID` for each preset of the store's own. What is not set is absent.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the settings or the presets cannot be read.
    pub async fn settings(&self) -> Result<BTreeMap<String, Value>> {
        let profile = self.store.profile().await?;
        settings::check_presets(&profile)?;
        if profile.is_unknown {
            let place = self.store.scope().to_string();
            let reason = "the conversation's settings cannot be read";
            return Err(Error::Damaged { place, reason });
        }
        let mut settings = Fields::default();
        let title = profile.title.as_ref().filter(|_| !profile.title_is_proposed);
        settings.put("title", title)?;
        settings.put("tags", Some(&profile.tags).filter(|tags| !tags.is_empty()))?;
        let metadata = Some(&profile.metadata).filter(|metadata| !metadata.is_empty());
        settings.put("metadata", metadata)?;
        settings.put("createdAt", profile.created_at.as_ref())?;
        settings.put("retention", profile.retention.as_ref())?;
        settings.put("rollingWindow", profile.rolling_window.as_ref())?;
        settings.put("windowSeconds", profile.window_seconds.as_ref())?;
        // Each device counts the days until a persona's removal for itself.
        let persona = profile.assigned_persona.clone();
        let persona = persona.map(|assigned| AssignedPersona { over_since: None, ..assigned });
        settings.put("persona", persona.as_ref())?;
        settings
            .put("cleared", profile.cleared.map(|cleared| json!({"at": cleared.at})).as_ref())?;
        if **self.store.scope() == Scope::Default {
            for (id, preset) in &profile.presets {
                settings.put(&format!("{PRESET}{id}"), Some(preset))?;
            }
        }
        Ok(settings.0)
    }
}

#[derive(Default)]
struct Fields(BTreeMap<String, Value>);

impl Fields {
    fn put(&mut self, name: &str, value: Option<&impl Serialize>) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        let reason = "a setting cannot be written as JSON";
        let value = serde_json::to_value(value).map_err(|_| Error::InvalidMessage { reason })?;
        self.0.insert(name.to_owned(), value);
        Ok(())
    }
}
