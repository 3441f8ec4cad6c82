//! A file that people name themselves.

use std::io;
use std::path::Path;

use crate::blob::{Blobs, Source, fs::FsBlobs};
use crate::error::{Error, Result};

/// Its folder, and its name there. Links on the way to it are followed, since people link their files.
pub(super) fn place(path: &Path) -> Result<(FsBlobs, String)> {
    let failed = |error| Error::io("open the file", path, error);
    let absent = || failed(io::ErrorKind::NotFound.into());
    let whole = path.canonicalize().map_err(failed)?;
    let name = whole.file_name().ok_or_else(absent)?.to_str().ok_or_else(|| {
        let reason = "its name is not UTF-8: rename it";
        failed(io::Error::new(io::ErrorKind::InvalidFilename, reason))
    })?;
    let folder = FsBlobs::new(whole.parent().ok_or_else(absent)?, &[])?;
    Ok((folder, name.to_owned()))
}

/// Opens it; what is not plain is refused.
pub(super) fn open(path: &Path) -> Result<Box<dyn Source>> {
    let (folder, name) = place(path)?;
    let absent = || Error::io("open the file", path, io::ErrorKind::NotFound.into());
    folder.open(&name)?.ok_or_else(absent)
}
