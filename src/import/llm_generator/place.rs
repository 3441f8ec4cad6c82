//! Where mcp-llm-generator keeps its database.

use std::path::Path;

use crate::blob::fs::FsBlobs;
use crate::error::{Error, Result};
use crate::import::given;

/// Where in a folder it may be, the usual place first.
const FILES: [&str; 4] =
    ["context-memory.db", "contexts.db", "data/context-memory.db", "data/contexts.db"];

/// The folder of the database, and its name there: of the database itself, or of a folder that holds it.
pub(super) fn of(path: &Path) -> Result<(FsBlobs, String)> {
    if !path.is_dir() {
        return given::place(path);
    }
    let there = FILES.iter().map(|file| path.join(file)).find(|file| file.is_file());
    let absent = || {
        let error = std::io::ErrorKind::NotFound.into();
        Error::io("find `context-memory.db` or `data/contexts.db` in it", path, error)
    };
    let file = there.ok_or_else(absent)?;
    // People link their folders elsewhere; a database that is a link itself is not followed unless it is named.
    let folder = file.parent().ok_or_else(absent)?;
    let folder =
        folder.canonicalize().map_err(|error| Error::io("open the folder", path, error))?;
    let name = file.file_name().and_then(|name| name.to_str()).ok_or_else(absent)?;
    Ok((FsBlobs::new(&folder, &[])?, name.to_owned()))
}
