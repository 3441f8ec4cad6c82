//! Packs in chunks, so that several threads can read one, and nobody has to hold one in memory.

use std::ops::Range;

use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::pack::lines::Lines;
use crate::store::pack::{Line, OpenedPack, Pack};
use crate::store::record::pack_name::PackName;

/// Bytes of a chunk: some thousand records, so that taking turns costs nothing.
const CHUNK: u64 = 1 << 20;

/// The lines of a pack that begin in a part of it.
#[derive(Debug, Clone)]
pub(crate) struct PackChunk {
    pub(crate) pack: PackName,
    span: Range<u64>,
    /// Whether it is the last one of what was cut.
    pub(crate) is_last: bool,
}

/// What came of reading a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkRead {
    Done,
    /// The pack has gone, or is no longer what it was.
    Gone,
}

impl PackChunk {
    /// Cuts a part of a pack into chunks, at least one.
    pub(crate) fn cut(pack: PackName, span: Range<u64>) -> impl Iterator<Item = Self> {
        let Range { start: first, end } = span;
        (0..(end - first).div_ceil(CHUNK).max(1)).map(move |number| {
            let start = first + number * CHUNK;
            let span = start..(start + CHUNK).min(end);
            Self { pack, is_last: span.end == end, span }
        })
    }

    /// How many threads are worth their while for so many chunks.
    pub(crate) fn threads_for(chunks: &[Self], most: usize) -> usize {
        let bytes: u64 = chunks.iter().map(|chunk| chunk.span.end - chunk.span.start).sum();
        usize::try_from(bytes / (CHUNK / 4)).unwrap_or(most).clamp(1, most)
    }

    /// Hands over its lines, one after the other, until `visit` has had enough.
    pub(crate) fn read(
        &self,
        folder: &Folder,
        mut visit: impl FnMut(&Line) -> Result<bool>,
    ) -> Result<ChunkRead> {
        let OpenedPack::Pack(pack) = Pack::open(folder, self.pack)? else {
            return Ok(ChunkRead::Gone);
        };
        let mut lines = Lines::from_within(&pack, self.span.clone())?;
        let mut line = Line::default();
        while lines.at() < self.span.end && lines.next_into(&mut line)? && visit(&line)? {}
        Ok(ChunkRead::Done)
    }
}
