//! Stores what other devices have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::exchange::{Exchange, SharedMessage, SharedSnapshot};
use crate::store::record::import_digest::Origin;

/// What other devices have for a conversation. `Debug` shows no words.
#[derive(Clone, Default, PartialEq)]
pub struct Incoming {
    /// Messages that were forgotten elsewhere.
    pub forgotten: BTreeSet<Origin>,
    /// Messages, in any order.
    pub messages: Vec<SharedMessage>,
    /// Settings by the names of [`Exchange::settings`]; `None` for those that were taken back.
    pub settings: BTreeMap<String, Option<Value>>,
    /// Snapshots by id; `None` for those that were deleted.
    pub snapshots: BTreeMap<String, Option<SharedSnapshot>>,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// The number of messages that were stored.
    pub taken: usize,
    /// The number of messages that were here.
    pub already_there: usize,
    /// The number of messages that were forgotten here. They stay forgotten.
    pub forgotten: usize,
    /// The number of messages that were here and are forgotten now.
    pub removed: usize,
    /// The number of messages that no store takes, because their record would be too long.
    pub refused: usize,
    /// Snapshots of which messages are neither here nor forgotten. Receive them again once these have arrived.
    pub incomplete: BTreeSet<String>,
}

impl Exchange {
    /// Applies what other devices have.
    ///
    /// # Errors
    /// Not finished yet: always [`Error::ShuttingDown`].
    pub async fn receive(&self, _incoming: Incoming) -> Result<Received> {
        Err(Error::ShuttingDown)
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("forgotten", &self.forgotten.len())
            .field("messages", &self.messages.len())
            .field("settings", &self.settings.len())
            .field("snapshots", &self.snapshots.len())
            .finish()
    }
}
