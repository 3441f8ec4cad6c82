//! The disk space of a message.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::arena::Arena;
use crate::contender::Outcome;
use crate::figure::{Cell, Figure, Who};
use crate::rounds::Rounds;
use crate::stats::Summary;

/// Allocated blocks of every file and folder.
pub(super) fn disk(arena: &mut Arena, _: &mut Rounds) -> Outcome<Vec<Cell>> {
    let messages = arena.messages();
    let mut cells = Vec::new();
    for kind in arena.kinds() {
        let each = allocated(&arena.seat(kind)?.folder)? as f64 / messages as f64;
        let (figure, who, summary) = (Figure::Disk, Who::Store(kind), Summary::of(each));
        cells.push(Cell { figure, messages, who, summary, settled: true });
    }
    Ok(cells)
}

fn allocated(path: &Path) -> Outcome<u64> {
    let metadata = fs::symlink_metadata(path)?;
    let mut bytes = metadata.blocks() * 512;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            bytes += allocated(&entry?.path())?;
        }
    }
    Ok(bytes)
}
