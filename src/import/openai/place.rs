//! Which files an export is in, and their bytes.

use std::io::{self, Read};
use std::path::Path;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::blob::{Blobs, EntryKind, SourceReader, fs::FsBlobs};
use crate::error::{Error, Result};
use crate::import::RefusalReason::{self, Corrupt, Unreadable};
use crate::import::given;

/// The most bytes of a file, all of which are held in memory.
const LARGEST: u64 = 1 << 30;
const TOO_LARGE: RefusalReason = Corrupt("it is over 1 GiB");

/// A file's bytes, and when it was last changed.
pub(super) type Contents = (Zeroizing<Vec<u8>>, Timestamp);

/// The folder and the files in it that are read.
pub(super) struct Place {
    folder: FsBlobs,
    pub(super) files: Vec<String>,
}

impl Place {
    /// Of one file, or of the folder of an export.
    pub(super) fn of(given: &Path) -> Result<Self> {
        // People link their folders elsewhere; what is in them is not followed.
        let path = given.canonicalize();
        let path = path.map_err(|error| Error::io("open the file", given, error))?;
        if !path.is_dir() {
            let (folder, file) = given::place(given)?;
            return Ok(Self { folder, files: vec![file] });
        }
        let (folder, mut files) = (FsBlobs::new(&path, &[])?, Vec::new());
        folder.list(&mut |name, kind| {
            if let Ok(name) = str::from_utf8(name)
                && kind != EntryKind::Folder
                && is_export(name)
            {
                files.push(name.to_owned());
            }
        })?;
        if files.is_empty() {
            let absent = io::ErrorKind::NotFound.into();
            return Err(Error::io("find `conversations.json` in it", given, absent));
        }
        files.sort_unstable();
        Ok(Self { folder, files })
    }

    /// What a file holds.
    pub(super) fn read(&self, file: &str) -> Result<Result<Contents, RefusalReason>> {
        let source = match self.folder.open(file) {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(Err(Unreadable(io::ErrorKind::NotFound))),
            Err(error) => return RefusalReason::unread(error).map(Err),
        };
        let (size, modified) = (source.size(), source.modified());
        if size > LARGEST {
            return Ok(Err(TOO_LARGE));
        }
        // Written into a buffer that moves, copies would stay behind.
        let room = usize::try_from(size).unwrap_or(0) + 1;
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        match SourceReader::new(source).take(LARGEST + 1).read_to_end(&mut bytes) {
            // It may have grown since it was looked at.
            Ok(read) if read as u64 > LARGEST => return Ok(Err(TOO_LARGE)),
            Ok(_) => {}
            Err(error) => return Ok(Err(Unreadable(error.kind()))),
        }
        Ok(Ok((bytes, modified.unwrap_or(Timestamp::UNIX_EPOCH))))
    }
}

/// Whether an export keeps conversations under that name. Large ones come in numbered parts.
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
