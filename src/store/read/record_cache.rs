//! Opening records while a folder is looked at.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use crate::error::Result;
use crate::store::folder::{Folder, Opened};
use crate::store::pack::lines::Backwards;
use crate::store::pack::{Line, OpenedPack, Pack};
use crate::store::read::tail::Tail;
use crate::store::record::finding::FindingKind;
use crate::store::record::name::RecordName;
use crate::store::record::pack_name::PackName;

/// How far a head may lag behind what was published: more than any pack or batch holds.
const NEAR: u64 = 1 << 16;

/// Opens each record at most once in a reading, and not at all what an earlier one has opened.
pub(crate) struct RecordCache<'a> {
    folder: &'a Folder,
    known: HashMap<RecordName, Opened>,
}

impl<'a> RecordCache<'a> {
    pub(crate) fn new(folder: &'a Folder, known: Option<&Tail>) -> Self {
        let messages = known.into_iter().flat_map(Tail::messages);
        Self {
            folder,
            known: messages
                .map(|message| (message.name, Opened::Message(Arc::clone(message))))
                .collect(),
        }
    }

    /// Takes out the names beyond a number that open, or are gone; those that do not open stay, to be reported.
    /// Whether there were any.
    pub(crate) fn take_readable_beyond(
        &mut self,
        names: &mut Vec<RecordName>,
        last: u64,
    ) -> Result<bool> {
        let mut unopened = Vec::new();
        let mut any = false;
        for name in names.extract_if(.., |name| name.seq > last) {
            match self.open(name)? {
                Opened::Skipped(_) => unopened.push(name),
                _ => any = true,
            }
        }
        names.append(&mut unopened);
        Ok(any)
    }

    /// Whether a pack holds a record beyond a number.
    pub(crate) fn any_packed_beyond(&mut self, packs: &[PackName], last: u64) -> Result<bool> {
        for &pack in packs.iter().filter(|pack| pack.highest > last) {
            match self.highest_packed(pack, last, u64::MAX, 0)? {
                Some(highest) if highest == last => {}
                // Whatever it held is somewhere else now.
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The highest number up to `last` of a record that opens, and at least `floor`: what does not open is not there,
    /// whatever number its name or its pack's name claims. Only what the system cannot read just now, and is near the
    /// `acknowledged` number, may be there: that its number was given again could not be mended, and a number that is
    /// left out does no harm. `None` where a file has gone.
    pub(crate) fn highest(
        &mut self,
        names: impl Iterator<Item = RecordName>,
        packs: &[PackName],
        floor: u64,
        last: u64,
        acknowledged: u64,
    ) -> Result<Option<u64>> {
        let near = acknowledged.saturating_add(NEAR);
        let mut highest_first: BinaryHeap<_> =
            names.map(|name| (name.seq, Evidence::Loose(name))).collect();
        highest_first
            .extend(packs.iter().map(|pack| (pack.highest.min(last), Evidence::Pack(*pack))));
        while let Some((seq, evidence)) = highest_first.pop()
            && seq > floor
        {
            match evidence {
                Evidence::Verified => return Ok(Some(seq)),
                Evidence::Pack(pack) => match self.highest_packed(pack, floor, last, near)? {
                    Some(seq) => highest_first.push((seq, Evidence::Verified)),
                    None => return Ok(None),
                },
                Evidence::Loose(name) => match self.open(name)? {
                    Opened::Gone => return Ok(None),
                    Opened::Skipped(FindingKind::Unreadable(_)) if seq <= near => {
                        return Ok(Some(seq));
                    }
                    Opened::Skipped(_) => {}
                    Opened::Message(_) | Opened::Forget(_) => return Ok(Some(seq)),
                },
            }
        }
        Ok(Some(floor))
    }

    /// [`highest`](Self::highest) of one pack alone.
    fn highest_packed(
        &mut self,
        pack: PackName,
        floor: u64,
        last: u64,
        near: u64,
    ) -> Result<Option<u64>> {
        // No line above what the name says is looked for: a pack holds many, and its newest is mostly its highest.
        let claimed = pack.highest.min(last);
        let pack = match Pack::open(self.folder, pack)? {
            OpenedPack::Pack(pack) => pack,
            OpenedPack::Skipped(FindingKind::Unreadable(_)) if claimed <= near => {
                return Ok(Some(claimed));
            }
            OpenedPack::Skipped(_) => return Ok(Some(floor)),
            OpenedPack::Gone => return Ok(None),
        };
        let mut highest = floor;
        let mut lines = Backwards::new(pack);
        while highest < claimed
            && let Some(line) = lines.next()?
        {
            let Some(name) = line.name.filter(|name| name.seq > highest && name.seq <= last) else {
                continue;
            };
            if matches!(self.open_line(name, &line)?, Opened::Message(_)) {
                highest = name.seq;
            }
        }
        Ok(Some(highest))
    }

    /// Opens a line of a pack, unless the record it names has been opened already.
    pub(crate) fn open_line(&mut self, name: RecordName, line: &Line) -> Result<Opened> {
        match self.known.get(&name) {
            Some(known @ Opened::Message(_)) => Ok(known.clone()),
            _ => self.folder.open_bytes(name, line.file()),
        }
    }

    pub(crate) fn open(&mut self, name: RecordName) -> Result<Opened> {
        if let Some(opened) = self.known.get(&name) {
            return Ok(opened.clone());
        }
        let opened = self.folder.open(name)?;
        self.known.insert(name, opened.clone());
        Ok(opened)
    }
}

/// What says that a number was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    Pack(PackName),
    Loose(RecordName),
    /// A record of a pack that opened.
    Verified,
}
