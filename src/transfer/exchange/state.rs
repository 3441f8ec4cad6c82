//! What the process that syncs keeps between its runs, and the lock that makes it the only one.

use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::directory::{Directory, Lock};
use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::FileConversationStore;
use crate::store::folder::document;
use crate::store::record::document::Document;
use crate::store::record::layout::{SHARING, SYNCING};

/// With whom a store shares conversations. Each has a state and a lock of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// The owner's other devices.
    Devices,
    /// The members of teams.
    Teams,
}

impl Sharing {
    fn document(self) -> Document {
        match self {
            Self::Devices => Document::Sync,
            Self::Teams => Document::Teams,
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Devices => SYNCING,
            Self::Teams => SHARING,
        }
    }
}

/// The state of sharing, as it was last written; `None` if it never was. It is sealed beside the default conversation's
/// messages, in a document that is in no export and that forgetting leaves.
///
/// # Errors
/// [`Error::Damaged`], [`Error::WrongKey`] or [`Error::NewerFormat`] for a file that does not open.
pub async fn read_state(
    root: &FileConversationStore,
    sharing: Sharing,
) -> Result<Option<Zeroizing<Vec<u8>>>> {
    root.read_with(move |reader| document::read(&reader.folder.of_root(), sharing.document())).await
}

/// Replaces the state of sharing, durably. After a power cut it is the old or the new one, complete.
///
/// # Errors
/// [`Error::OtherScope`] unless `root` is the default conversation; those of appending.
pub async fn write_state(
    root: &FileConversationStore,
    sharing: Sharing,
    text: &[u8],
) -> Result<()> {
    if **root.scope() != Scope::Default {
        return Err(Error::OtherScope);
    }
    let text = Zeroizing::new(text.to_vec());
    root.write(move |writer| writer.write_state(sharing.document(), &text)).await
}

/// Held by the one process of a store that shares with devices, or with teams. Dropping it lets another one do so.
pub struct SyncLock {
    _lock: Box<dyn Lock>,
}

/// Takes the lock of sharing for the store that has this conversation. `None` while another process or another handle
/// holds it.
///
/// # Errors
/// What prevents writing to the store's folder.
pub async fn try_lock(root: &FileConversationStore, sharing: Sharing) -> Result<Option<SyncLock>> {
    root.read_with(move |reader| {
        let folder: Arc<dyn Directory> = reader.folder.root.folder(sharing.folder());
        match folder.lock(Duration::ZERO) {
            Ok(lock) => Ok(Some(SyncLock { _lock: lock })),
            Err(Error::LockTimeout { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    })
    .await
}

debug_shows!(SyncLock);
