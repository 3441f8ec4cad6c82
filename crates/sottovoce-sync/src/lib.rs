//! Sync of conversations between the devices of one owner, through any object store.
//!
//! ```no_run
//! # async fn example() -> Result<(), sottovoce_sync::RemoteError> {
//! use sottovoce_sync::{Credentials, open};
//!
//! let remote = open("s3://bucket/prefix", &Credentials::from_environment())?;
//! remote.put("space/o/device/object", vec![1, 2, 3].into()).await?;
//! assert_eq!(remote.list("space/o/device").await?, ["object"]);
//! # Ok(())
//! # }
//! ```

mod address;
mod background;
mod credentials;
mod device;
mod error;
mod folder;
mod id;
mod name;
#[cfg(feature = "http")]
mod object_store;
mod open;
mod remote;
mod report;
mod retry;
mod space;
mod stream;
mod sync_error;
mod syncer;
#[cfg(feature = "testing")]
pub mod testing;

pub use background::{Background, BackgroundHandle, BackgroundStatus};
pub use credentials::Credentials;
pub use device::home::Conversations;
pub use device::selection::Selection;
pub use error::{Action, ErrorKind, RemoteError};
pub use id::Id;
pub use open::open;
pub use remote::{MAX_NAMES, MAX_OBJECT, Remote, Result};
pub use report::{DeviceStatus, Problem, SyncProgress, SyncReport, SyncStatus};
pub use retry::Retrying;
pub use space::Invitation;
pub use sync_error::{SyncError, SyncResult};
pub use syncer::{DeviceOptions, OpenRemote, Syncer};
