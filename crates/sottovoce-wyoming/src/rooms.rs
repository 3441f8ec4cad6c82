//! Which conversation a transcript belongs to.

use std::collections::BTreeMap;

use serde_json::Value;
use sottovoce::Scope;

use crate::event::Event;

/// The conversations of satellites and devices.
///
/// Home Assistant names the satellite and the device of a transcript (since 2026.4), and never the person, the area or
/// the wake word. A satellite's conversation comes before its device's; what is in neither list has the default one.
#[derive(Debug, Clone, Default)]
pub struct Rooms {
    named: BTreeMap<String, Scope>,
    default: Scope,
}

impl Rooms {
    /// All transcripts belong to one conversation.
    pub fn new(default: Scope) -> Self {
        Self { named: BTreeMap::new(), default }
    }

    /// Gives a satellite, such as `assist_satellite.kitchen`, or a device, by its id, a conversation of its own.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, scope: Scope) -> Self {
        self.named.insert(name.into(), scope);
        self
    }

    /// Sets the conversation of satellites without one of their own.
    #[must_use]
    pub fn otherwise(mut self, default: Scope) -> Self {
        self.default = default;
        self
    }

    /// The conversation of a transcript.
    pub(crate) fn of(&self, transcript: &Event) -> &Scope {
        let context = transcript.data.get("context");
        let named = ["satellite_id", "device_id"].into_iter().find_map(|name| {
            let name = context.and_then(|context| context.get(name)).and_then(Value::as_str)?;
            self.named.get(name)
        });
        named.unwrap_or(&self.default)
    }
}
