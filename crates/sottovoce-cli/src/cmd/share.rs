//! The commands that `--help` lists under "Share".

mod address;
pub(crate) mod credentials;
pub(crate) mod device;
mod newcomer;
mod report;
mod selection;
pub(crate) mod stores;
pub(crate) mod sync;
#[cfg(feature = "team")]
pub(crate) mod team;
mod text;
mod watching;

use sottovoce::Error;
use sottovoce::config::OpenConversations;
use sottovoce_sync::{OpenRemote, SyncError, Syncer};

use crate::exit::Failure;
use crate::session::Session;

/// What syncs the store. Never makes a key: before the first use the store does not sync.
fn syncer(session: &Session, remote: OpenRemote) -> Result<Syncer, Failure> {
    let config = session.config()?;
    let keys = match session.keys(&config) {
        Err(Failure::Library(Error::NoKey | Error::PlaceholderKey)) => {
            return Err(SyncError::NotSetUp.into());
        }
        keys => keys?,
    };
    let conversations = OpenConversations::new(config, keys, session.clock())?;
    Ok(stores::syncer(conversations, remote))
}

/// The sync of a store with this remote. Makes the key on first use.
fn new_syncer(session: &Session, remote: OpenRemote) -> Result<Syncer, Failure> {
    let config = session.config()?;
    let keys = session.stores_or_make(&config)?.keys();
    let conversations = OpenConversations::new(config, keys, session.clock())?;
    Ok(stores::syncer(conversations, remote))
}

/// For commands that ask no remote.
fn no_remote() -> OpenRemote {
    Box::new(|address| sottovoce_remote::open(address, &sottovoce_remote::Credentials::default()))
}
