//! Caches opened records during a scan of the folder.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use crate::error::Result;
use crate::store::folder::pack::pack_lines::ReversePackLines;
use crate::store::folder::pack::{Line, OpenedPack, Pack};
use crate::store::folder::{Folder, Opened};
use crate::store::read::tail::Tail;
use crate::store::record::finding::FindingKind;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;

/// How far a head may lag behind published records. More than any pack or batch has.
const NEAR: u64 = 1 << 16;

/// Opens each record at most once per scan, and reuses those that an earlier scan opened.
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

    /// Removes from `names` those beyond `last` that open or have vanished. The others stay, to be reported. Returns
    /// whether it removed any.
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

    /// Whether a pack has a readable record beyond `last`.
    pub(crate) fn any_packed_beyond(&mut self, packs: &[PackName], last: u64) -> Result<bool> {
        for &pack in packs.iter().filter(|pack| pack.highest > last) {
            match self.highest_packed(pack, last, u64::MAX, 0)? {
                Some(highest) if highest == last => {}
                // Its records have moved elsewhere.
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The highest number of a readable record, at most `last` and at least `floor`. A record that does not open does
    /// not count, whatever its name says. One exception: a file that the system cannot read at the moment counts if
    /// its number is near `acknowledged`, because assigning its number again could not be repaired, whereas a skipped
    /// number does no harm. `None` if a file has vanished.
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

    /// [`highest`](Self::highest) for one pack.
    fn highest_packed(
        &mut self,
        pack: PackName,
        floor: u64,
        last: u64,
        near: u64,
    ) -> Result<Option<u64>> {
        // Stop at the number in the pack's name: its newest record usually has its highest number.
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
        let mut lines = ReversePackLines::new(pack);
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

    /// Opens a line of a pack, unless its record is cached.
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

/// Evidence that a number was assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    Pack(PackName),
    Loose(RecordName),
    /// A record in a pack that opened.
    Verified,
}
