//! A flat store of small objects with names, which any object store, WebDAV server or folder can be.
//!
//! ```no_run
//! # async fn example() -> Result<(), sottovoce_remote::RemoteError> {
//! use sottovoce_remote::{Credentials, open};
//!
//! let remote = open("s3://bucket/prefix", &Credentials::from_environment())?;
//! remote.put("space/o/device/object", vec![1, 2, 3].into()).await?;
//! assert_eq!(remote.list("space/o/device").await?, ["object"]);
//! # Ok(())
//! # }
//! ```

mod address;
mod credentials;
mod error;
mod folder;
mod name;
#[cfg(feature = "http")]
mod object_store;
mod open;
mod remote;
mod retry;
#[cfg(feature = "testing")]
pub mod testing;

pub use credentials::Credentials;
pub use error::{Action, ErrorKind, RemoteError};
pub use open::{ADDRESSES, open};
pub use remote::{MAX_NAMES, MAX_OBJECT, Remote, Result};
pub use retry::{Retrying, part_of};
