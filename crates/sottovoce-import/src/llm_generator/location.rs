//! Finds the database of mcp-llm-generator.

use std::path::Path;

use sottovoce::{Error, Result};

use crate::source::Folder;

/// Its paths in a folder, the usual one first.
const FILES: [&str; 4] =
    ["context-memory.db", "contexts.db", "data/context-memory.db", "data/contexts.db"];

/// The folder and name of the database, from its own path or that of a folder that holds it.
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
    // Links to the named folder are followed; a database that is itself a link is followed only if it is named.
    let folder = Folder::named(file.parent().ok_or_else(absent)?)?;
    let name = file.file_name().and_then(|name| name.to_str()).ok_or_else(absent)?;
    Ok((folder, name.to_owned()))
}
