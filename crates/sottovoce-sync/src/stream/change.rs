//! Changes of a conversation, as segments contain them

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::exchange::{Origin, SharedMessage};
use sottovoce::store::Artifact;
use sottovoce::{ChatMessage, Scope};

use crate::id::Id;

/// What one publish says about one conversation. `Debug` shows no words.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    /// The number of the publish.
    pub(crate) k: u64,
    pub(crate) scope: String,
    /// Messages that were forgotten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gone: Vec<Origin>,
    /// Whether the whole conversation was forgotten and removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) removed: bool,
    /// Settings, snapshots and artifacts by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) set: BTreeMap<String, Register>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) said: Vec<Said>,
}

/// A value of which the newest stays. Of two with one stamp, the one with the greater digest does.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Register {
    pub(crate) stamp: u64,
    /// `null` for one that was removed.
    pub(crate) value: Value,
}

/// An artifact's description, and the objects with its contents: a register's value.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contents {
    pub(crate) artifact: Artifact,
    /// The device whose objects they are.
    pub(crate) device: Id,
    pub(crate) pieces: Vec<Id>,
}

/// A message.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Said {
    /// The number at home of a message that was said on the publishing device: its identity follows from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// The identity of any other message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// The time that orders it, if that is not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    /// The message that it is a copy of, restored from a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copy_of: Option<Origin>,
    message: ChatMessage,
}

impl Said {
    /// A message under its number in the publishing store.
    pub(crate) fn new(scope: &Scope, seq: u64, shared: SharedMessage) -> Self {
        let SharedMessage { origin, at, copy_of, message } = shared;
        let is_own = Origin::at_home(scope, seq, &message).is_ok_and(|own| own == origin);
        let at = (at != message.timestamp).then_some(at);
        match is_own {
            true => Self { seq: Some(seq), origin: None, at, copy_of, message },
            false => Self { seq: None, origin: Some(origin), at, copy_of, message },
        }
    }

    /// Its identity. `None` if it says none.
    pub(crate) fn origin(&self, scope: &Scope) -> Option<Origin> {
        match (self.origin, self.seq) {
            (Some(origin), None) => Some(origin),
            (None, Some(seq)) => Origin::at_home(scope, seq, &self.message).ok(),
            _ => None,
        }
    }

    pub(crate) fn shared(self, scope: &Scope) -> Option<SharedMessage> {
        let origin = self.origin(scope)?;
        let at = self.at.unwrap_or(self.message.timestamp);
        Some(SharedMessage { origin, at, copy_of: self.copy_of, message: self.message })
    }
}

impl Batch {
    pub(crate) fn new(k: u64, scope: &Scope) -> Self {
        let (gone, said, set) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { k, scope: scope.to_string(), gone, removed: false, set, said }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty() && !self.removed && self.set.is_empty() && self.said.is_empty()
    }
}

sottovoce::debug_shows!(Batch as it:
    k, scope, gone = it.gone.len(), set = it.set.len(), said = it.said.len()
);
