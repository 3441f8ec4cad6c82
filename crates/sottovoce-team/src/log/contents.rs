//! What a record says, sealed for the members of a conversation

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::exchange::{ObjectKind, Origin, SharedMessage, SpaceKey};
use sottovoce::store::Artifact;
use sottovoce_sync::{SyncError, SyncResult};
use sottovoce_team_api::{Id, MAX_SEALED, Rid, Secret};
use zeroize::Zeroizing;

/// The text of a record is padded to a multiple of this, so that the server learns lengths less exactly.
const STEP: usize = 256;

/// What sealing adds to a text at most.
const SEAL: usize = 1024;

/// The longest text of a record.
pub(crate) const LONGEST: usize = MAX_SEALED - SEAL - STEP;

/// What a record says. `Debug` shows no words.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// The device that wrote it. The server has to say the same.
    pub(crate) device: Id,
    /// The store that wrote it: a random number of its own in this conversation, and another one after it was restored.
    pub(crate) writer: Id,
    /// Counts the records of the writer from 1.
    pub(crate) n: u64,
    /// The name of the member.
    pub(crate) by: String,
    #[serde(flatten)]
    pub(crate) what: What,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    /// Somebody said something.
    Said(Box<SharedMessage>),
    /// A setting, a snapshot or an artifact has a new value; `null` if it was removed.
    Set {
        name: String,
        value: Value,
        #[serde(default)]
        edition: u64,
    },
    /// Messages that were forgotten, and records with older values of settings.
    Forgot {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<Origin>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        records: Vec<Rid>,
    },
    /// How many numbers of all writers at this device no record has.
    Void(u64),
}

/// An artifact's description, and where its contents are: the value of a setting.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArtifactPieces {
    pub(crate) artifact: Artifact,
    pub(crate) pieces: Vec<Id>,
}

sottovoce::debug_shows!(Contents: writer, n);

/// The keys of a conversation, or of a team's names. The newest seals, any opens, and the oldest names messages.
pub(crate) struct Keys {
    keys: Vec<SpaceKey>,
}

impl Keys {
    /// Keys of the space with this identifier, the oldest first.
    pub(crate) fn new(space: Id, secrets: &[Secret]) -> SyncResult<Self> {
        let space = space.to_string();
        let keys = secrets.iter().map(|secret| SpaceKey::new(&space, secret.as_bytes()));
        let keys: Vec<SpaceKey> = keys.collect::<Result<_, _>>()?;
        match keys.is_empty() {
            true => Err(SyncError::State { reason: "a conversation has no key" }),
            false => Ok(Self { keys }),
        }
    }

    /// The identifier of the record of a message.
    pub(crate) fn rid(&self, origin: Origin) -> SyncResult<Rid> {
        let name = self.keys.first().map(|key| key.pseudonym(origin)).unwrap_or_default();
        name.parse().map_err(|_| SyncError::State { reason: "a conversation has no key" })
    }

    /// Seals a record. `None` if it is too long for the server.
    pub(crate) fn seal(&self, rid: Rid, contents: &Contents) -> SyncResult<Option<Vec<u8>>> {
        let text = serde_json::to_vec(contents).map(Zeroizing::new);
        let mut text =
            text.map_err(|_| SyncError::State { reason: "a record cannot be written" })?;
        if text.len() > LONGEST {
            return Ok(None);
        }
        let length = text.len().next_multiple_of(STEP);
        text.resize(length, b' ');
        self.seal_bytes(ObjectKind::Record, &rid.to_string(), &text).map(Some)
    }

    /// Opens a record. `None` if none of the keys sealed it under that identifier.
    pub(crate) fn open(&self, rid: Rid, sealed: &[u8]) -> Option<Contents> {
        let text = self.open_bytes(ObjectKind::Record, &rid.to_string(), sealed)?;
        serde_json::from_slice(&text).ok()
    }

    pub(crate) fn seal_bytes(
        &self,
        kind: ObjectKind,
        name: &str,
        text: &[u8],
    ) -> SyncResult<Vec<u8>> {
        let newest = self.keys.last();
        let newest = newest.ok_or(SyncError::State { reason: "a conversation has no key" })?;
        Ok(newest.seal(kind, "", name, text)?)
    }

    pub(crate) fn open_bytes(
        &self,
        kind: ObjectKind,
        name: &str,
        sealed: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        self.keys.iter().rev().find_map(|key| key.open(kind, "", name, sealed))
    }
}

/// A random identifier.
pub(crate) fn new_id() -> SyncResult<Id> {
    Id::random().ok_or(SyncError::NoRandom)
}

/// A random identifier for a record that is no message.
pub(crate) fn new_rid() -> SyncResult<Rid> {
    Rid::random().ok_or(SyncError::NoRandom)
}

/// A random key.
pub(crate) fn new_key() -> SyncResult<Secret> {
    Secret::random().ok_or(SyncError::NoRandom)
}
