//! Which messages a conversation has, by their origins.

use std::collections::HashMap;

use crate::error::Result;
use crate::store::folder::decoder::RecordDecoder;
use crate::store::folder::pack::chunk::{ChunkRead, PackChunk};
use crate::store::folder::pack::parallel::parallel_map_ordered;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::folder::{ATTEMPTS, Folder, HeadState, Opened, unstable_folder};
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::import_digest::Origin;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;

/// Which messages a conversation has. What was read once is not read again while only the head's own writers change names.
#[derive(Debug, Default)]
pub(crate) struct OriginIndex {
    there: HashMap<Origin, u64>,
    /// Every message up to this number was read.
    until: u64,
    erased: SeqSet,
    /// The head that went with what was read.
    head: Option<HeadState>,
}

impl OriginIndex {
    /// Brings the index up to date. Returns the highest number, up to which every message is in it.
    ///
    /// # Errors
    /// If another key, a newer program or a later attempt may open some record, which might be any message. A damaged
    /// record is no message, so that an import repairs it.
    pub(crate) fn catch_up(&mut self, reader: &Reader) -> Result<u64> {
        let folder = &reader.folder;
        for _ in 0..ATTEMPTS {
            if let Some(last) = self.look(folder, &reader.newest()?)? {
                return Ok(last);
            }
        }
        let alone = || self.look(folder, &Tail::load_alone(folder, 0, None)?);
        folder.settled(alone)?.flatten().ok_or_else(|| unstable_folder(folder))
    }

    /// One attempt; `None` if a file vanished after it was listed.
    fn look(&mut self, folder: &Folder, tail: &Tail) -> Result<Option<u64>> {
        let is_of_one_run = match (self.head, tail.head) {
            (Some(HeadState::Known(then)), HeadState::Known(now)) => then.is_of_one_run_with(&now),
            _ => false,
        };
        if !is_of_one_run || tail.last_seq < self.until {
            // Another copy of the folder may have been put in the place of this one.
            *self = Self::default();
        }
        if self.erased != tail.erased {
            self.there.retain(|_, seq| !tail.erased.contains(*seq));
        }
        let is_new =
            |seq: u64| seq > self.until && seq <= tail.last_seq && !tail.erased.contains(seq);
        let listing = folder.list()?;
        let new = listing.packs.into_iter().filter(|pack| pack.highest > self.until);
        let Some(mut found) = read_packs(folder, &new.collect::<Vec<_>>())? else {
            return Ok(None);
        };
        let mut decoder = RecordDecoder::new(folder);
        for name in listing.names.into_iter().filter(|name| !name.is_forget() && is_new(name.seq)) {
            let opened = decoder.read(name)?;
            if matches!(opened, Opened::Gone) {
                return Ok(None);
            }
            found.extend(origin(opened, || name.to_string())?);
        }
        found.retain(|(_, seq)| is_new(*seq));
        self.there.extend(found);
        self.until = tail.last_seq;
        self.erased.clone_from(&tail.erased);
        self.head = Some(tail.head);
        Ok(Some(tail.last_seq))
    }

    /// The number of the message with this origin.
    pub(crate) fn number(&self, origin: Origin) -> Option<u64> {
        self.there.get(&origin).copied()
    }

    /// Adds messages that were stored since, by ascending number.
    pub(crate) fn add(&mut self, stored: impl IntoIterator<Item = (Origin, RecordName)>) {
        for (origin, name) in stored {
            self.there.insert(origin, name.seq);
            self.until = self.until.max(name.seq);
        }
    }

    /// Adds messages as if they had been stored, without numbers.
    pub(crate) fn pretend(&mut self, origins: impl IntoIterator<Item = Origin>) {
        self.there.extend(origins.into_iter().map(|origin| (origin, 0)));
    }
}

/// The origin and the number of a message that opened.
///
/// # Errors
/// If another key, a newer program or a later attempt may open it.
fn origin(opened: Opened, place: impl FnOnce() -> String) -> Result<Option<(Origin, u64)>> {
    match opened {
        Opened::Message(stored) => {
            let StoredMessage { scope, seq, message, .. } = &*stored;
            Ok(Origin::of_stored(scope, *seq, message).map(|origin| (origin, *seq)))
        }
        Opened::Skipped(kind) => kind.in_file(place()).refusal().map_or(Ok(None), Err),
        Opened::Forget(_) | Opened::Gone => Ok(None),
    }
}

/// The origins of all messages in some packs; `None` if one has vanished.
fn read_packs(folder: &Folder, packs: &[PackName]) -> Result<Option<Vec<(Origin, u64)>>> {
    let mut chunks = Vec::new();
    for name in packs {
        match Pack::open(folder, *name)? {
            OpenedPack::Pack(pack) => chunks.extend(PackChunk::cut(*name, 0..pack.size())),
            OpenedPack::Gone => return Ok(None),
            OpenedPack::Skipped(kind) => {
                kind.in_file(name.place()).refusal().map_or(Ok(()), Err)?;
            }
        }
    }
    let read = |chunk: &PackChunk| {
        let (mut decoder, mut found) = (RecordDecoder::new(folder), Vec::new());
        let read = chunk.read(folder, |line| {
            let Some(name) = line.name else { return Ok(true) };
            let opened = decoder.open(name, line.text(), line.file())?;
            found.extend(origin(opened, || chunk.pack.place_of(name))?);
            Ok(true)
        })?;
        Ok((read, found))
    };
    let (mut has_vanished, mut origins) = (false, Vec::new());
    let threads = PackChunk::threads_for(&chunks, || folder.threads());
    parallel_map_ordered(&chunks, threads, read, |_, (read, mut found)| {
        has_vanished |= read == ChunkRead::Gone;
        origins.append(&mut found);
        Ok(())
    })?;
    Ok((!has_vanished).then_some(origins))
}
