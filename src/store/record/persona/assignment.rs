//! A persona as it is assigned to a conversation, with its expiry.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::store::record::persona::Persona;

/// The persona of one conversation, the preset that it was made from, and its expiry. `Debug` shows no text.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssignedPersona {
    /// The persona.
    pub persona: Persona,
    /// The id of the preset that it was created from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The time of the last change.
    pub updated_at: Timestamp,
    /// It does not expire before this time, even without interactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_to: Option<Timestamp>,
    /// The time of its deletion. It is removed only after a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// When upkeep first found it deleted or expired. The days until its removal count from then. A context that was
    /// imported or restored after its expiry therefore has all of these days, and one reading of a wrong clock
    /// removes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) over_since: Option<Timestamp>,
}

impl AssignedPersona {
    /// A persona that nobody has talked to yet.
    pub fn new(persona: Persona, now: Timestamp) -> Self {
        let (preset, extended_to, deleted_at, over_since) = (None, None, None, None);
        Self { persona, preset, updated_at: now, extended_to, deleted_at, over_since }
    }

    /// The assignment without deletion, and without upkeep's note.
    pub(crate) fn in_force(self) -> Self {
        Self { deleted_at: None, over_since: None, ..self }
    }

    /// When it expires, if the last interaction was at `last`.
    pub(crate) fn expires_at(&self, last: Timestamp) -> Timestamp {
        let days = SignedDuration::from_hours(i64::from(self.persona.expiry_days) * 24);
        let expiry = last.checked_add(days).unwrap_or(Timestamp::MAX);
        self.extended_to.map_or(expiry, |extended| extended.max(expiry))
    }
}

debug_shows!(AssignedPersona: persona, preset, updated_at, extended_to, deleted_at);
