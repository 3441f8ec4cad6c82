//! A persona as it is assigned to a conversation, with its expiry.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::store::record::persona::Persona;

/// The persona of one conversation, the preset that it was made from, and its expiry. `Debug` shows no text.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct AssignedPersona {
    /// Who the model is.
    pub persona: Persona,
    /// The preset that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// When any of this was last changed.
    pub updated_at: Timestamp,
    /// Until when it does not expire, whether or not anybody speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_to: Option<Timestamp>,
    /// When it was deleted. Nothing of it goes before it is backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// When upkeep first found it deleted or expired, from when on its days until removal count. So what was imported or
    /// restored after it had expired has all of them, and no single look at a clock removes anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) over_since: Option<Timestamp>,
}

impl AssignedPersona {
    /// A persona that nobody has talked to yet.
    pub fn new(persona: Persona, now: Timestamp) -> Self {
        let (preset, extended_to, deleted_at, over_since) = (None, None, None, None);
        Self { persona, preset, updated_at: now, extended_to, deleted_at, over_since }
    }

    /// The same as one that nobody has deleted, and that upkeep has not found over.
    pub(crate) fn in_force(self) -> Self {
        Self { deleted_at: None, over_since: None, ..self }
    }

    /// A later state of it, which neither deletes it nor lets it expire earlier.
    pub(crate) fn merge_newer(self, mut later: Self) -> Self {
        let days = self.persona.expiry_days.max(later.persona.expiry_days);
        later.persona.expiry_days = days;
        Self {
            extended_to: self.extended_to.max(later.extended_to),
            deleted_at: self.deleted_at,
            over_since: self.over_since,
            updated_at: self.updated_at.max(later.updated_at),
            ..later
        }
    }

    /// When it expires, if the last interaction was then.
    pub(crate) fn expires_at(&self, last: Timestamp) -> Timestamp {
        let days = SignedDuration::from_hours(i64::from(self.persona.expiry_days) * 24);
        let expiry = last.checked_add(days).unwrap_or(Timestamp::MAX);
        self.extended_to.map_or(expiry, |extended| extended.max(expiry))
    }
}

impl fmt::Debug for AssignedPersona {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssignedPersona")
            .field("persona", &self.persona)
            .field("preset", &self.preset)
            .field("updated_at", &self.updated_at)
            .field("extended_to", &self.extended_to)
            .field("deleted_at", &self.deleted_at)
            .finish()
    }
}
