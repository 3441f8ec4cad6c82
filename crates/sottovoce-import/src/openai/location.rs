//! Finds and reads the files of an export.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use sottovoce::import::RefusalReason::{self, Corrupt, Unreadable};
use sottovoce::{Error, Result};

use crate::source::{Bytes, EntryKind, Folder, Refusable};

/// The most bytes of a file, which is held in memory.
const LARGEST: u64 = 1 << 30;

/// The bytes of a file, and the time of its last change.
pub(super) type Contents = (Bytes, Timestamp);

/// The folder, and the files in it to read.
pub(super) struct Location {
    folder: Folder,
    pub(super) files: Vec<String>,
}

impl Location {
    /// Finds the files from a file or the folder of an export.
    pub(super) fn of(given: &Path) -> Result<Self> {
        if !given.is_dir() {
            let (folder, file) = Folder::of_file(given)?;
            return Ok(Self { folder, files: vec![file] });
        }
        let folder = Folder::named(given)?;
        let is_one = |(name, kind): (Vec<u8>, EntryKind)| {
            let name = String::from_utf8(name).ok();
            name.filter(|name| kind != EntryKind::Folder && is_export(name))
        };
        let files: Vec<String> = folder.entries()?.into_iter().filter_map(is_one).collect();
        if files.is_empty() {
            let absent = io::ErrorKind::NotFound.into();
            return Err(Error::io("find `conversations.json` in it", given, absent));
        }
        Ok(Self { folder, files })
    }

    /// Reads a file.
    pub(super) fn read(&self, name: &str) -> Refusable<Contents> {
        let file = match self.folder.open(name) {
            Ok(file) => file,
            Err(error) => return RefusalReason::for_read_error(error).map(Err),
        };
        let Some(file) = file else { return Ok(Err(Unreadable(io::ErrorKind::NotFound))) };
        let modified = file.modified.unwrap_or(Timestamp::UNIX_EPOCH);
        let bytes = file.bytes(LARGEST).map_err(|error| Unreadable(error.kind()));
        Ok(bytes.and_then(|bytes| Ok((bytes.ok_or(Corrupt("it is over 1 GiB"))?, modified))))
    }
}

/// Whether a file of an export has that name. Large exports have numbered parts.
fn is_export(name: &str) -> bool {
    let part = name.strip_prefix("conversations").and_then(|rest| rest.strip_suffix(".json"));
    part.is_some_and(|part| {
        let number = part.strip_prefix('-');
        part.is_empty()
            || number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_export_are_numbered() {
        assert!(is_export("conversations.json") && is_export("conversations-007.json"));
        for other in ["conversations-.json", "conversations-x.json", "shared_conversations.json"] {
            assert!(!is_export(other), "{other}");
        }
    }
}
