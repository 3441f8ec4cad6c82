//! Reads small files with metadata.

use std::io;

use sottovoce::Result;
use sottovoce::import::RefusalReason::{self, Corrupt};

use crate::source::{Bytes, Folder, Refusable};

/// The most bytes of such a file. Its contents go into settings, which are read whenever a conversation is opened.
const LARGEST: usize = 1 << 20;

/// The bytes of a file; `None` if it does not exist.
pub(super) fn small_file(folder: &Folder, name: &str) -> Refusable<Option<Bytes>> {
    let read: Result<_> = folder.read(name);
    Ok(read?.and_then(|bytes| match bytes {
        Some(bytes) if bytes.len() > LARGEST => Err(Corrupt("it is over 1 MiB")),
        bytes => Ok(bytes),
    }))
}

/// Refuses a missing file.
pub(super) fn required(bytes: Option<Bytes>) -> Result<Bytes, RefusalReason> {
    bytes.ok_or(RefusalReason::Unreadable(io::ErrorKind::NotFound))
}
