//! Splits packs into chunks, so that several threads can read one and none holds a whole pack in memory.

use std::ops::Range;

use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::folder::pack::pack_lines::PackLines;
use crate::store::folder::pack::{Line, OpenedPack, Pack};
use crate::store::record::name::pack_name::PackName;

/// Length of a chunk in bytes: about a thousand records, so that handing over chunks costs little.
const CHUNK: u64 = 1 << 20;

/// The lines of a pack that start in a range of its bytes.
#[derive(Debug, Clone)]
pub(crate) struct PackChunk {
    pub(crate) pack: PackName,
    span: Range<u64>,
    /// Whether this is the last chunk of the range that was split.
    pub(crate) is_last: bool,
    /// Whether this is the only chunk of that range.
    pub(crate) is_only: bool,
}

/// The outcome of reading a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkRead {
    Done,
    /// The pack has vanished.
    Gone,
}

impl PackChunk {
    /// Splits a range of a pack into chunks, at least one.
    pub(crate) fn cut(pack: PackName, span: Range<u64>) -> impl Iterator<Item = Self> {
        let Range { start: first, end } = span;
        let chunks = (end - first).div_ceil(CHUNK).max(1);
        (0..chunks).map(move |number| {
            let start = first + number * CHUNK;
            let span = start..(start + CHUNK).min(end);
            Self { pack, is_last: span.end == end, is_only: chunks == 1, span }
        })
    }

    /// How many threads pay off for these chunks.
    pub(crate) fn threads_for(chunks: &[Self], most: impl FnOnce() -> usize) -> usize {
        let bytes: u64 = chunks.iter().map(|chunk| chunk.span.end - chunk.span.start).sum();
        match bytes / (CHUNK / 4) {
            // Asking the system for the number of processors takes longer than reading this few bytes.
            0 | 1 => 1,
            worthwhile => usize::try_from(worthwhile).unwrap_or(usize::MAX).min(most()).max(1),
        }
    }

    /// Passes its lines to `visit`, in order, until `visit` returns `false`.
    pub(crate) fn read(
        &self,
        folder: &Folder,
        mut visit: impl FnMut(&Line) -> Result<bool>,
    ) -> Result<ChunkRead> {
        let OpenedPack::Pack(pack) = Pack::open(folder, self.pack)? else {
            return Ok(ChunkRead::Gone);
        };
        let mut lines = PackLines::from_within(&pack, self.span.clone())?;
        let mut line = Line::default();
        while lines.at() < self.span.end && lines.next_into(&mut line)? && visit(&line)? {}
        Ok(ChunkRead::Done)
    }
}
