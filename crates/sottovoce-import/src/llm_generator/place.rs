//! Where mcp-llm-generator keeps its database.

use std::path::Path;

use sottovoce::{Error, Result};

use crate::source::Folder;

/// Where in a folder it may be, the usual place first.
const FILES: [&str; 4] =
    ["context-memory.db", "contexts.db", "data/context-memory.db", "data/contexts.db"];

/// The folder of the database, and its name there: of the database itself, or of a folder that holds it.
pub(super) fn of(path: &Path) -> Result<(Folder, String)> {
    if !path.is_dir() {
        return Folder::of_file(path);
    }
    let there = FILES.iter().map(|file| path.join(file)).find(|file| file.is_file());
    let absent = || {
        let error = std::io::ErrorKind::NotFound.into();
        Error::io("find `context-memory.db` or `data/contexts.db` in it", path, error)
    };
    let file = there.ok_or_else(absent)?;
    // People link their folders elsewhere; a database that is a link itself is not followed unless it is named.
    let folder = Folder::named(file.parent().ok_or_else(absent)?)?;
    let name = file.file_name().and_then(|name| name.to_str()).ok_or_else(absent)?;
    Ok((folder, name.to_owned()))
}
