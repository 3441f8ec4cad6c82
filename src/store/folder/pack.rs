//! Packs: files with many records, which keep the number of files small however long a conversation is.

pub(crate) mod check;
pub(crate) mod chunk;
pub(crate) mod pack_lines;
pub(crate) mod parallel;

use std::collections::HashMap;
use std::path::PathBuf;

use crate::directory::{Fill, READ_LIMIT, Sink, Source, Streamed};
use crate::error::{Error, Result};
use crate::store::folder::{Folder, unreadable};
use crate::store::record::finding::FindingKind;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;

/// The finding for a pack whose contents do not match its name.
pub(crate) const INCOMPLETE: &str = "it does not hold exactly the records that its name says";

/// The largest pack that is read, in bytes. Packs are written far smaller.
const LARGEST: u64 = 1 << 30;

/// How many unreadable lines of one pack a read reports.
const REPORTED: usize = 8;

/// The longest line that is read: a record name and the longest record.
const LONGEST: u64 = if cfg!(fuzzing) { 1024 } else { READ_LIMIT + 128 };

/// The outcome of opening a pack.
#[derive(Debug)]
pub(crate) enum OpenedPack {
    Pack(Pack),
    Skipped(FindingKind),
    /// The pack was listed but has vanished since.
    Gone,
}

/// An open pack. It stays readable after a merge has removed its file.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) name: PackName,
    pub(crate) source: Box<dyn Source>,
    pub(crate) path: PathBuf,
}

impl Pack {
    pub(crate) fn open(folder: &Folder, name: PackName) -> Result<OpenedPack> {
        let text = name.to_string();
        Ok(match folder.packs.open(&text) {
            Ok(Some(source)) if source.size() > LARGEST => {
                OpenedPack::Skipped(FindingKind::NotPlain("a file over 1 GiB"))
            }
            Ok(Some(source)) => {
                let path = folder.packs.path().join(text);
                OpenedPack::Pack(Self { name, source, path })
            }
            Ok(None) => OpenedPack::Gone,
            Err(error) => OpenedPack::Skipped(unreadable(error)?),
        })
    }

    pub(crate) fn size(&self) -> u64 {
        self.source.size()
    }

    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.source
            .read_at(offset, into)
            .map_err(|error| Error::io("read the pack", &self.path, error))
    }

    /// Copies a range of its bytes to a sink, unchanged.
    pub(crate) fn copy(&self, span: std::ops::Range<u64>, sink: &mut Sink<'_>) -> Result<()> {
        let mut chunk = vec![0; 1 << 16];
        let mut at = span.start;
        while at < span.end {
            let wanted = usize::try_from(span.end - at).unwrap_or(usize::MAX).min(chunk.len());
            let read = self.read_at(at, chunk.get_mut(..wanted).unwrap_or_default())?;
            if read == 0 {
                break;
            }
            sink(chunk.get(..read).unwrap_or_default())?;
            at += read as u64;
        }
        Ok(())
    }
}

/// One line of a pack.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// The line's bytes in the file, line end included.
    pub(crate) span: std::ops::Range<u64>,
    /// The record's name; `None` if the line is no record.
    pub(crate) name: Option<RecordName>,
    /// The bytes, line end included. Empty if the line is too long for a record.
    pub(crate) bytes: Vec<u8>,
    pub(crate) tab: usize,
}

impl Line {
    fn new(start: u64, length: u64, bytes: Vec<u8>) -> Self {
        let longest_name = 64;
        let tab = bytes.iter().take(longest_name).position(|byte| *byte == b'\t');
        let name = tab
            .filter(|_| bytes.ends_with(b"\n"))
            .and_then(|tab| str::from_utf8(bytes.get(..tab)?).ok()?.parse().ok())
            .filter(|name: &RecordName| !name.is_forget());
        Self { span: start..start + length, name, bytes, tab: tab.unwrap_or(0) }
    }

    /// The name as text.
    pub(crate) fn text(&self) -> &str {
        self.bytes.get(..self.tab).and_then(|name| str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// The sealed record, as a file of its own would contain it.
    pub(crate) fn file(&self) -> &[u8] {
        self.bytes.get(self.tab + 1..).unwrap_or_default()
    }
}

/// Counts the reported lines of each pack, so that a damaged pack does not fill the memory. A check reports all
/// lines.
#[derive(Debug, Default)]
pub(crate) struct Reported(HashMap<PackName, usize>);

impl Reported {
    /// Whether to report one more line of this pack.
    pub(crate) fn admits(&mut self, pack: PackName) -> bool {
        let times = self.0.entry(pack).or_default();
        *times += 1;
        *times <= REPORTED
    }
}

/// Publishes a pack and makes it durable. If an interrupted run has already left an equal pack, uses that one. If
/// other contents have the name, they stay and the function fails.
pub(crate) fn publish(folder: &Folder, fill: &mut Fill<'_>) -> Result<Option<PackName>> {
    let name = match folder.packs.stream(fill)? {
        Streamed::Abandoned => return Ok(None),
        Streamed::Published(name) => name,
        Streamed::Taken(name) => {
            let path = folder.packs.path().join(&name);
            let taken = Error::damaged(path, "another file has a pack's name");
            let Some(there) = folder.packs.open(&name)? else {
                return Err(taken);
            };
            let (mut at, mut equal, mut chunk) = (0, true, Vec::new());
            fill(&mut |bytes| {
                chunk.resize(bytes.len(), 0);
                let read = there.read_at(at, &mut chunk);
                at += bytes.len() as u64;
                equal &= read.is_ok_and(|read| read == bytes.len()) && chunk == bytes;
                Ok(())
            })?;
            if !equal || at != there.size() {
                return Err(taken);
            }
            folder.packs.flush(&name)?;
            name
        }
    };
    folder.packs.sync()?;
    Ok(name.parse().ok())
}
