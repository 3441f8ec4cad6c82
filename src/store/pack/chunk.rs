//! Packs in pieces, so that several threads can read one, and nobody has to hold one in memory.

use std::ops::Range;

use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::pack::lines::Lines;
use crate::store::pack::{Line, OpenedPack, Pack};
use crate::store::record::pack_name::PackName;

/// Bytes of a piece: some thousand records, so that taking turns costs nothing.
const PIECE: u64 = 1 << 20;

/// The lines of a pack that begin in a part of it.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) pack: PackName,
    span: Range<u64>,
    /// Whether it is the last one of what was cut.
    pub(crate) is_last: bool,
}

/// What came of reading a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Done,
    /// The pack has gone, or is no longer what it was.
    Gone,
}

impl Piece {
    /// Cuts a part of a pack into pieces, at least one.
    pub(crate) fn cut(pack: PackName, span: Range<u64>) -> impl Iterator<Item = Self> {
        let Range { start: first, end } = span;
        (0..(end - first).div_ceil(PIECE).max(1)).map(move |number| {
            let start = first + number * PIECE;
            let span = start..(start + PIECE).min(end);
            Self { pack, is_last: span.end == end, span }
        })
    }

    /// How many threads are worth their while for so many pieces.
    pub(crate) fn threads_for(pieces: &[Self], most: usize) -> usize {
        let bytes: u64 = pieces.iter().map(|piece| piece.span.end - piece.span.start).sum();
        usize::try_from(bytes / (PIECE / 4)).unwrap_or(most).clamp(1, most)
    }

    /// Hands over its lines, one after the other, until `visit` has had enough.
    pub(crate) fn read(
        &self,
        folder: &Folder,
        mut visit: impl FnMut(&Line) -> Result<bool>,
    ) -> Result<Read> {
        let OpenedPack::Pack(pack) = Pack::open(folder, self.pack)? else {
            return Ok(Read::Gone);
        };
        let mut lines = Lines::from_within(&pack, self.span.clone())?;
        let mut line = Line::default();
        while lines.at() < self.span.end && lines.next_into(&mut line)? && visit(&line)? {}
        Ok(Read::Done)
    }
}
