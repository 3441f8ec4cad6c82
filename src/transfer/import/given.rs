//! A file that people name themselves.

use std::io;
use std::path::Path;

use crate::directory::{Directory, Source, fs::FsDirectory};
use crate::error::{Error, Result};

/// Opens a plain file. Links on the way to it are followed, since people link their files.
pub(super) fn open(path: &Path) -> Result<Box<dyn Source>> {
    let failed = |error| Error::io("open the file", path, error);
    let absent = || failed(io::ErrorKind::NotFound.into());
    let whole = path.canonicalize().map_err(failed)?;
    let name = whole.file_name().ok_or_else(absent)?.to_str().ok_or_else(|| {
        let reason = "its name is not UTF-8: rename it";
        failed(io::Error::new(io::ErrorKind::InvalidFilename, reason))
    })?;
    let folder = FsDirectory::new(whole.parent().ok_or_else(absent)?, &[])?;
    folder.open(name)?.ok_or_else(absent)
}
