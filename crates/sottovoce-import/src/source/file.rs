//! An open file of a source.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use jiff::Timestamp;
use sottovoce::Result;
use sottovoce::import::RefusalReason;
use zeroize::Zeroizing;

/// The bytes of a file, wiped when they are dropped.
pub(crate) type Bytes = Zeroizing<Vec<u8>>;

/// A value, or the reason to refuse one file or record. The outer error concerns the whole source.
pub(crate) type Refusable<T> = Result<std::result::Result<T, RefusalReason>>;

/// A plain file. It stays readable after its name was removed.
#[derive(Debug)]
pub(crate) struct SourceFile {
    file: File,
    /// Its size when it was opened.
    pub(crate) size: u64,
    /// The time of its last change.
    pub(crate) modified: Option<Timestamp>,
}

impl SourceFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let about = file.metadata()?;
        let modified = about.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
        Ok(Self { file, size: about.len(), modified })
    }

    /// All bytes from the current position; `None` for more than `limit`.
    pub(crate) fn contents(&self, limit: u64) -> io::Result<Option<Bytes>> {
        if self.size > limit {
            return Ok(None);
        }
        // A growing buffer would leave copies behind.
        let room = usize::try_from(self.size).unwrap_or(0) + 1;
        let mut bytes = Bytes::new(Vec::with_capacity(room));
        // The file may have grown since it was opened.
        let read = (&self.file).take(limit + 1).read_to_end(&mut bytes)?;
        Ok((read as u64 <= limit).then_some(bytes))
    }

    /// The file, from its beginning on.
    #[cfg(feature = "sqlite")]
    pub(crate) fn rewound(&self) -> io::Result<&File> {
        (&self.file).rewind()?;
        Ok(&self.file)
    }
}

impl Read for SourceFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.read(into)
    }
}

impl Seek for SourceFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
