//! What devices that share conversations exchange: messages with their identity, forgettings, settings, snapshots and
//! artifacts. The crate `sottovoce-sync` carries these between devices; this module says what there is to carry, and
//! stores what arrives.
//!
//! A message's [`Origin`] is its identity in all stores. It keeps it wherever it goes, so that nothing is stored twice and
//! what was forgotten on one device is forgotten on all of them.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use sottovoce::exchange::{Exchange, Incoming};
//! use sottovoce::{ChatMessage, ChatRole, ConversationStore, EncryptionKey, StoreOptions};
//!
//! # let (phone, kitchen) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! # let open = |folder: &std::path::Path| {
//! #     let key = EncryptionKey::from_secret("a long secret that only this house knows").unwrap();
//! #     StoreOptions::new(key).open(folder.to_owned())
//! # };
//! let phone = Exchange::new(open(phone.path()).await?);
//! let kitchen = Exchange::new(open(kitchen.path()).await?);
//! let said = ChatMessage::at(ChatRole::User, "Buy milk", "2025-08-24T16:36:25Z".parse()?);
//! phone.store().append_message(said).await?;
//!
//! let read = phone.messages(0).await?;
//! let messages = read.messages.into_iter().map(|shared| shared.message).collect();
//! let received = kitchen.receive(Incoming { messages, ..Incoming::default() }).await?;
//! assert_eq!(received.taken, 1);
//! # Ok(())
//! # }
//! ```

mod artifact;
mod message;
pub(crate) mod receive;
mod settings;
mod snapshot;
mod space_key;
mod state;
mod stretch;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use crate::store::record::import_digest::Origin;
pub use message::SharedMessage;
pub use receive::{Incoming, Received};
pub use snapshot::SharedSnapshot;
pub use space_key::{ObjectKind, SpaceKey};
pub use state::{Sharing, SyncLock, read_state, try_lock, write_state};
pub use stretch::{Stretch, StretchMessage};

use crate::error::Result;
use crate::scope::Scope;
use crate::store::FileConversationStore;
use crate::store::read::reader::Reader;
use crate::store::write::{forgotten_conversation, import_tombstones};

/// What a conversation has for other devices, and what it takes from them.
#[derive(Debug, Clone)]
pub struct Exchange {
    store: FileConversationStore,
}

/// How far a conversation has changed. While it is equal, nothing has changed here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The highest number assigned so far.
    pub last_seq: u64,
    /// The revision of the settings. Forgetting, snapshots and artifacts change it or `last_seq` too.
    pub rev: u64,
    /// The time of the newest message. If the folder was restored and something was said since, the numbers may be those of
    /// before, but not the time.
    pub newest: Option<Timestamp>,
}

impl Exchange {
    /// The exchange of a conversation. Keep the store open while more is to be received: from the first messages that arrive on
    /// it remembers which ones are here, in some 50 bytes each.
    pub fn new(store: FileConversationStore) -> Self {
        Self { store }
    }

    /// The conversation.
    pub fn store(&self) -> &FileConversationStore {
        &self.store
    }

    /// How far the conversation has changed. Reads no messages.
    ///
    /// # Errors
    /// What prevents reading the conversation.
    pub async fn position(&self) -> Result<Position> {
        self.store
            .read_with(move |reader| {
                let tail = reader.newest()?;
                tail.check_settings(&reader.folder)?;
                let newest = tail.names().next().and_then(|name| name.time.timestamp());
                Ok(Position { last_seq: tail.last_seq, rev: tail.profile.rev, newest })
            })
            .await
    }

    /// The messages that were forgotten in this conversation, and those that a device was told to forget. What retention
    /// limits removed is not among them.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) if the list of forgotten messages is missing or not the newest one.
    pub async fn forgotten(&self) -> Result<BTreeSet<Origin>> {
        self.store
            .read_with(move |reader| {
                Ok(import_tombstones::listed(&reader.folder, &*reader.settings()?)?.origins)
            })
            .await
    }

    /// The messages of a conversation of the same store that were forgotten with the whole conversation.
    ///
    /// # Errors
    /// Those of [`forgotten`](Self::forgotten), of the default conversation.
    pub async fn forgotten_with(&self, scope: &Scope) -> Result<BTreeSet<Origin>> {
        let id = forgotten_conversation::digest(scope);
        let of_root = move |reader: &Reader| {
            let root = reader.of_root();
            import_tombstones::listed(&root.folder, &*root.settings()?)
        };
        Ok(self.store.read_with(of_root).await?.removed.remove(&id).unwrap_or_default())
    }

    /// The numbers of the messages that were forgotten in this conversation.
    ///
    /// # Errors
    /// What prevents reading the conversation.
    pub async fn forgotten_numbers(&self) -> Result<Vec<RangeInclusive<u64>>> {
        self.store.read_with(move |reader| Ok(reader.newest()?.erased.ranges().collect())).await
    }

    /// Whether the message with this number was forgotten in this conversation.
    ///
    /// # Errors
    /// What prevents reading the conversation.
    pub async fn has_forgotten_number(&self, seq: u64) -> Result<bool> {
        self.store.read_with(move |reader| Ok(reader.newest()?.erased.contains(seq))).await
    }

    /// The highest number of a conversation of the same store when it was last forgotten completely and removed; `None` if
    /// it never was. The store knows such conversations by digests alone, so it cannot list them.
    ///
    /// # Errors
    /// What prevents reading the default conversation's settings.
    pub async fn removed_at(&self, scope: &Scope) -> Result<Option<u64>> {
        let id = forgotten_conversation::id(scope);
        let removed = move |reader: &Reader| {
            Ok(reader.of_root().settings()?.forgotten_scopes.get(&id).copied())
        };
        Ok(self.store.read_with(removed).await?.map(|removed| removed.last))
    }
}
