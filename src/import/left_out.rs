//! What an import finds in a source and does not take over.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::Serialize;

use crate::error::Result;
use crate::store::{ConversationStore, FileConversationStore, Profile, Retention};

/// A setting of the source that was not taken over, since it would hide or change what the conversation here is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "setting")]
#[non_exhaustive]
pub enum LeftOut {
    /// How much is kept and for how long. An import sets that only where it is asked to.
    Limits(ImportedLimits),
    /// Who the model is: the conversation here is another one, or has a persona of its own.
    Persona,
    /// A preset: there is another one of that id, or no room for it.
    Preset {
        /// Its id.
        id: String,
    },
}

/// The limits that a source has for a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImportedLimits {
    /// How much is kept and for how long; `None` where the source goes by those for all conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// How many seconds a rolling window reaches back, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<NonZeroU64>,
}

impl ImportedLimits {
    /// Whether there are any.
    pub fn are_none(self) -> bool {
        self == Self::default()
    }

    /// Whether settings say the same already.
    pub(super) fn are_in(self, profile: &Profile) -> bool {
        self.retention.is_none_or(|limit| profile.retention == Some(limit))
            && self.window_seconds.is_none_or(|window| profile.window_seconds == Some(window))
    }

    /// Has a conversation's settings say them.
    pub(super) async fn set(self, store: &FileConversationStore) -> Result<()> {
        if self.are_in(&*store.profile().await?) {
            return Ok(());
        }
        let set = move |profile: &mut Profile| {
            profile.retention = self.retention.or(profile.retention);
            profile.window_seconds = self.window_seconds.or(profile.window_seconds);
        };
        store.change_profile(Box::new(set)).await?;
        Ok(())
    }
}

impl From<Retention> for ImportedLimits {
    fn from(retention: Retention) -> Self {
        Self { retention: Some(retention), window_seconds: None }
    }
}

/// How many entries of a source have no place in a store, by what they are.
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

    /// Adds those of another count.
    pub fn extend(&mut self, other: &Self) {
        other.kinds().for_each(|(kind, number)| self.add(kind, number));
    }

    /// How many there are of all kinds.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// How many there are of each, sorted by what they are.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        self.0.iter().map(|(kind, number)| (*kind, *number))
    }
}
