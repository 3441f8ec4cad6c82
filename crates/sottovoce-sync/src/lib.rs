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

mod background;
mod device;
mod error;
mod id;
mod piece;
mod remote;
mod report;
mod space;
mod stream;
mod syncer;
#[cfg(feature = "testing")]
pub mod testing;
pub mod values;

pub use background::{Background, BackgroundHandle, BackgroundStatus, Repeated};
pub use device::home::Conversations;
pub use device::selection::Selection;
pub use error::{SyncError, SyncResult};
pub use id::Id;
pub use piece::{MAX_PIECES, Piece, PieceReader, read_piece};
pub use remote::credentials::Credentials;
pub use remote::error::{Action, ErrorKind, RemoteError};
pub use remote::open::open;
pub use remote::retry::{Retrying, part_of};
pub use remote::{MAX_NAMES, MAX_OBJECT, Remote, Result};
pub use report::{DeviceStatus, Problem, SyncProgress, SyncReport, SyncStatus};
pub use space::Invitation;
pub use syncer::{DeviceOptions, OpenRemote, Syncer};
