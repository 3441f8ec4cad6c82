//! Sync of conversations between the devices of one owner, through any [`Remote`](sottovoce_remote::Remote).

mod background;
mod device;
mod error;
mod id;
mod piece;
mod report;
mod shared_state;
mod space;
mod stream;
mod syncer;
#[cfg(feature = "testing")]
pub mod testing;
pub mod values;

pub use background::{Background, BackgroundHandle, BackgroundStatus, Repeated};
pub use device::home::Conversations;
pub use device::selection::Selection;
pub use error::{Failure, SyncError, SyncResult};
pub use id::Id;
pub use piece::{Piece, receive_pieces, send_pieces};
pub use report::{DeviceStatus, Problem, SyncProgress, SyncReport, SyncStatus};
pub use shared_state::{read_state, write_state};
pub use space::Invitation;
pub use syncer::{DeviceOptions, OpenRemote, Syncer};
