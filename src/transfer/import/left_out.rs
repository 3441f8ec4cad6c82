//! What an import leaves out of a source.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::Serialize;

use crate::error::Result;
use crate::store::{FileConversationStore, Profile, Retention};
use crate::transfer::settings;

/// A setting that was not imported, since it would hide messages or change the conversation here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "setting")]
#[non_exhaustive]
pub enum LeftOut {
    /// The limits: how much is kept and for how long. They are imported only on request.
    Limits(ImportedLimits),
    /// The persona: the conversation here is another one, or has its own persona.
    Persona,
    /// A preset: another one has its id, or there is no room for it.
    Preset {
        /// Its id.
        id: String,
    },
}

/// The limits of a conversation in its source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImportedLimits {
    /// How much is kept and for how long; `None` for the store's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// The seconds that a rolling window reaches back; `None` for the store's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<NonZeroU64>,
}

impl ImportedLimits {
    /// Whether these limits are in the settings already.
    pub(super) fn are_in(self, profile: &Profile) -> bool {
        self.retention.is_none_or(|limit| profile.retention == Some(limit))
            && self.window_seconds.is_none_or(|window| profile.window_seconds == Some(window))
    }

    /// Writes the limits into a conversation's settings.
    pub(super) async fn set(self, store: &FileConversationStore) -> Result<()> {
        let set = move |profile: &mut Profile| {
            profile.retention = self.retention.or(profile.retention);
            profile.window_seconds = self.window_seconds.or(profile.window_seconds);
        };
        settings::change(store, set).await
    }
}

impl From<Retention> for ImportedLimits {
    fn from(retention: Retention) -> Self {
        Self { retention: Some(retention), window_seconds: None }
    }
}

/// The number of entries of a source that a store has no place for, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PassedOver(BTreeMap<&'static str, usize>);

impl PassedOver {
    /// Counts entries of a kind, which is named in the plural: "settings of the bot".
    pub fn add(&mut self, kind: &'static str, number: usize) {
        if number > 0 {
            *self.0.entry(kind).or_default() += number;
        }
    }

    /// Adds another count.
    pub fn extend(&mut self, other: &Self) {
        other.kinds().for_each(|(kind, number)| self.add(kind, number));
    }

    /// The number of all kinds.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// The kinds and their numbers, sorted by kind.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        self.0.iter().map(|(kind, number)| (*kind, *number))
    }
}
