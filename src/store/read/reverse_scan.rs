//! Iterates over records from the newest to the oldest, loose or packed.

use std::collections::BinaryHeap;

use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::folder::pack::pack_lines::ReversePackLines;
use crate::store::folder::pack::{INCOMPLETE, Line, OpenedPack, Pack};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;

/// The most packs that are open at once. A folder may have many packs that all claim the newest record.
const OPEN: usize = 16;

/// The next record, unopened.
pub(crate) enum NextRecord {
    Loose(RecordName),
    Packed(PackName, RecordName, Line),
    /// A pack was listed but has vanished since.
    Vanished,
    End,
}

/// Where a record is. If there are two copies, the loose one comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Location {
    /// The index of its pack. The name beside it may only be an upper bound for what is left in the pack.
    Pack(usize),
    Loose,
}

pub(crate) struct ReverseScan {
    /// A heap with the newest record on top.
    heap: BinaryHeap<(RecordName, Location)>,
    packs: Vec<PackCursor>,
    /// The indexes of the open packs.
    open: Vec<usize>,
    /// What is wrong with the packs, as far as they were read.
    pub(crate) findings: Vec<Finding>,
}

/// A cursor in a pack. It opens the pack when it is needed, so that few are open at a time.
struct PackCursor {
    name: PackName,
    lines: Option<ReversePackLines>,
    /// The next line to return.
    line: Option<Line>,
    /// The end of the lines that were not returned yet.
    end: Option<u64>,
    /// The name of the last line that was returned.
    above: Option<RecordName>,
    count: u64,
    is_reported: bool,
}

impl ReverseScan {
    pub(crate) fn new(loose: Vec<RecordName>, packs: &[PackName]) -> Self {
        let loose = loose.into_iter().map(|name| (name, Location::Loose));
        let ends = packs.iter().enumerate().map(|(at, pack)| (pack.last, Location::Pack(at)));
        Self {
            heap: loose.chain(ends).collect(),
            packs: packs.iter().map(|&name| PackCursor::new(name)).collect(),
            open: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Whether the next record is loose.
    pub(crate) fn is_loose_next(&self) -> bool {
        self.heap.peek().is_some_and(|(_, place)| *place == Location::Loose)
    }

    /// The next record's pack, if none of the pack was read yet, and whether no other record lies among its own.
    pub(crate) fn unread_pack(&mut self) -> Option<(PackName, bool)> {
        let next = self.heap.pop()?;
        let after = self.heap.peek().map(|(name, _)| *name);
        self.heap.push(next);
        let Location::Pack(at) = next.1 else { return None };
        let cursor = self.packs.get(at).filter(|cursor| cursor.end.is_none())?;
        Some((cursor.name, after.is_none_or(|after| after < cursor.name.first)))
    }

    /// Leaves out the next record, with its pack.
    pub(crate) fn skip(&mut self) {
        self.heap.pop();
    }

    pub(crate) fn next(&mut self, folder: &Folder) -> Result<NextRecord> {
        while let Some((name, place)) = self.heap.pop() {
            let Location::Pack(at) = place else {
                return Ok(NextRecord::Loose(name));
            };
            let Some(cursor) = self.packs.get_mut(at) else {
                continue;
            };
            if let Some(line) = cursor.take_line(name) {
                self.heap.push((name, place));
                return Ok(NextRecord::Packed(cursor.name, name, line));
            }
            self.open.retain(|open| *open != at);
            match cursor.advance(folder, &mut self.findings)? {
                Advance::To(next) => {
                    self.heap.push((next, place));
                    self.open.push(at);
                    self.close_one();
                }
                Advance::End => {}
                Advance::Gone => return Ok(NextRecord::Vanished),
            }
        }
        Ok(NextRecord::End)
    }

    /// If too many packs are open, closes the one that has been open longest.
    fn close_one(&mut self) {
        if self.open.len() > OPEN
            && let Some(cursor) = self.packs.get_mut(self.open.remove(0))
        {
            cursor.close();
        }
    }
}

enum Advance {
    To(RecordName),
    End,
    Gone,
}

impl PackCursor {
    fn new(name: PackName) -> Self {
        Self { name, lines: None, line: None, end: None, above: None, count: 0, is_reported: false }
    }

    /// Takes the line at the cursor.
    fn take_line(&mut self, name: RecordName) -> Option<Line> {
        let line = self.line.take()?;
        self.count += 1;
        self.above = Some(name);
        self.end = Some(line.span.start);
        Some(line)
    }

    /// Closes the file and frees the buffers. The pack is opened again when it is needed.
    fn close(&mut self) {
        self.lines = None;
        self.line = None;
    }

    /// Moves to the next valid line. Skips invalid lines and leaves them to a check: returning them would make the
    /// order of messages depend on how far one reads.
    fn advance(&mut self, folder: &Folder, findings: &mut Vec<Finding>) -> Result<Advance> {
        let mut lines = match self.lines.take() {
            Some(lines) => lines,
            None => match Pack::open(folder, self.name)? {
                OpenedPack::Pack(pack) => ReversePackLines::ending_at(pack, self.end),
                OpenedPack::Gone => return Ok(Advance::Gone),
                OpenedPack::Skipped(kind) => {
                    findings.push(kind.in_file(self.name.place()));
                    return Ok(Advance::End);
                }
            },
        };
        while let Some(line) = lines.next()? {
            let reason = match line.name {
                None => "a line of it is not a record's",
                Some(name) if !self.name.covers(name) => INCOMPLETE,
                Some(name) if self.above.is_some_and(|above| above <= name) => {
                    "its records are out of order"
                }
                Some(name) => {
                    if self.above.is_none() && name != self.name.last {
                        self.report_once(INCOMPLETE, findings);
                    }
                    self.end = Some(line.span.end);
                    self.line = Some(line);
                    self.lines = Some(lines);
                    return Ok(Advance::To(name));
                }
            };
            self.report_once(reason, findings);
        }
        if self.count != self.name.count {
            self.report_once(INCOMPLETE, findings);
        }
        Ok(Advance::End)
    }

    /// Reports the pack once. A check reports the rest.
    fn report_once(&mut self, reason: &'static str, findings: &mut Vec<Finding>) {
        if !std::mem::replace(&mut self.is_reported, true) {
            findings.push(FindingKind::Damaged(reason).in_file(self.name.place()));
        }
    }
}
