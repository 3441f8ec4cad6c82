//! Which messages a conversation has, by their origins. What is in packs is known from the index that was saved, as long as
//! the packs are the same files; everything else is read.
//!
//! The index is derived. It may say that a message is here whose pack was changed in the same nanosecond and to the same
//! size, and nothing worse than a skipped import may follow from it.

pub(crate) mod saved;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::directory::FileStamp;
use crate::error::Result;
use crate::store::folder::decoder::RecordDecoder;
use crate::store::folder::pack::chunk::{ChunkRead, PackChunk};
use crate::store::folder::pack::parallel::parallel_map_ordered;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::folder::{ATTEMPTS, Folder, Opened, document, unstable_folder};
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::import_digest::Origin;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;
use saved::SavedOrigins;

/// At least so many origins are saved at a time, since the whole index is written again.
const WORTHWHILE: usize = 4096;
/// Which messages a conversation has.
#[derive(Debug, Default)]
pub(crate) struct OriginIndex {
    saved: SavedOrigins,
    /// For each pack of the saved index whether it is still the same file.
    same: Vec<bool>,
    /// The packs that were read since, with what was in them.
    read: BTreeMap<PackName, ReadPack>,
    /// The messages in these packs and in files of their own.
    there: HashMap<Origin, u64>,
    /// Messages that were stored since, by ascending number. A pack of such messages alone need not be read.
    stored: Vec<(RecordName, Origin)>,
    erased: SeqSet,
    is_loaded: bool,
}

#[derive(Debug)]
struct ReadPack {
    /// `None` if nobody can tell whether it stays the same.
    stamp: Option<FileStamp>,
    origins: Vec<(Origin, u64)>,
}

impl OriginIndex {
    /// Brings the index up to date. Returns the highest number, up to which every message is in it.
    ///
    /// # Errors
    /// If another key, a newer program or a later attempt may open some record, which might be any message. A damaged
    /// record is no message, so that an import repairs it.
    pub(crate) fn catch_up(&mut self, reader: &Reader) -> Result<u64> {
        let folder = &reader.folder;
        if !std::mem::replace(&mut self.is_loaded, true) {
            self.saved = load(folder);
        }
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
        let listing = folder.list()?;
        let mut stamps = HashMap::with_capacity(listing.packs.len());
        for pack in &listing.packs {
            stamps.insert(*pack, folder.packs.file_stamp(&pack.to_string())?);
        }
        let is_same = |(name, stamp): &(PackName, FileStamp)| {
            stamps.get(name).is_some_and(|now| *now == Some(*stamp))
        };
        self.same = self.saved.packs.iter().map(is_same).collect();
        let saved = self.saved.packs.iter().zip(&self.same);
        let known: BTreeSet<_> =
            saved.filter(|(_, same)| **same).map(|((name, _), _)| *name).collect();
        let is_same = |(name, pack): &(&PackName, &ReadPack)| {
            pack.stamp.is_some() && stamps.get(name).is_some_and(|now| *now == pack.stamp)
        };
        let gone: Vec<_> =
            self.read.iter().filter(|pack| !is_same(pack)).map(|(n, _)| *n).collect();
        gone.iter().for_each(|name| drop(self.read.remove(name)));
        if self.stored.last().is_some_and(|(last, _)| last.seq > tail.last_seq) {
            // An older copy of the folder was put back.
            self.stored.clear();
            self.erased = SeqSet::default();
            self.there.clear();
        }
        // Merging takes no message away, and nothing else does without a record of it.
        let is_merged = |name: &PackName| listing.packs.iter().any(|pack| pack.surrounds(name));
        let is_more =
            !self.there.is_empty() && self.erased == tail.erased && gone.iter().all(is_merged);
        let is_new = |name: &&PackName| !known.contains(name) && !self.read.contains_key(name);
        let (mut unread, mut packs) = (Vec::new(), PackOrigins::new());
        for name in listing.packs.iter().filter(is_new) {
            match self.stored_in(name) {
                Some(origins) => drop(packs.insert(*name, origins)),
                None => unread.push(*name),
            }
        }
        let Some(mut read) = read_packs(folder, &unread)? else { return Ok(None) };
        packs.append(&mut read);
        for (name, origins) in &mut packs {
            let stamp = stamps.get(name).copied().flatten();
            if folder.packs.file_stamp(&name.to_string())? != stamp {
                return Ok(None);
            }
            // What the head does not cover yet may still be undone.
            let before = origins.len();
            origins.retain(|(_, seq)| *seq <= tail.last_seq);
            let stamp = stamp.filter(|_| origins.len() == before);
            if is_more {
                self.there.extend(origins.iter().copied());
            }
            self.read.insert(*name, ReadPack { stamp, origins: std::mem::take(origins) });
        }
        if !is_more {
            self.there = self.read.values().flat_map(|pack| pack.origins.iter().copied()).collect();
            self.there.retain(|_, seq| !tail.erased.contains(*seq));
        }
        let mut decoder = RecordDecoder::new(folder);
        for name in listing.names.iter().filter(|name| !name.is_forget()) {
            if name.seq > tail.last_seq || tail.erased.contains(name.seq) {
                continue;
            }
            match decoder.read(*name)? {
                Opened::Gone => return Ok(None),
                Opened::Message(stored) => self.there.extend(origin(&stored)),
                Opened::Skipped(kind) => {
                    if let Some(refusal) = kind.in_file(name.to_string()).refusal() {
                        return Err(refusal);
                    }
                }
                Opened::Forget(_) => {}
            }
        }
        self.erased.clone_from(&tail.erased);
        Ok(Some(tail.last_seq))
    }

    /// The number of the message with this origin.
    pub(crate) fn number(&self, origin: Origin) -> Option<u64> {
        if let Some(number) = self.there.get(&origin) {
            return Some(*number);
        }
        let is_there = |(pack, seq): &(usize, u64)| {
            self.same.get(*pack) == Some(&true) && !self.erased.contains(*seq)
        };
        self.saved.find(origin).find(is_there).map(|(_, seq)| seq)
    }

    /// Adds messages that were stored since.
    pub(crate) fn add(&mut self, stored: impl IntoIterator<Item = (Origin, RecordName)>) {
        for (origin, name) in stored {
            if self.stored.last().is_some_and(|(last, _)| last.seq >= name.seq) {
                // Another conversation in the place of this one.
                self.stored.clear();
            }
            self.there.insert(origin, name.seq);
            self.stored.push((name, origin));
        }
    }

    /// Adds messages as if they had been stored, without numbers.
    pub(crate) fn pretend(&mut self, origins: impl IntoIterator<Item = Origin>) {
        self.there.extend(origins.into_iter().map(|origin| (origin, 0)));
    }

    /// What is in a pack, if nothing else is in it than what was stored since.
    fn stored_in(&self, pack: &PackName) -> Option<Vec<(Origin, u64)>> {
        let first = self.stored.partition_point(|(name, _)| name.seq < pack.lowest);
        let stored = self.stored.get(first..)?;
        let stored = stored.get(..usize::try_from(pack.count).ok()?)?;
        let names = || stored.iter().map(|(name, _)| *name);
        let is_it = names().min() == Some(pack.first)
            && names().max() == Some(pack.last)
            && stored.last().is_some_and(|(name, _)| name.seq == pack.highest);
        is_it.then(|| stored.iter().map(|(name, origin)| (*origin, name.seq)).collect())
    }

    /// The index as it is worth saving: once more than one origin in so many is not saved.
    pub(crate) fn worth_saving(&self, share: usize) -> Option<SavedOrigins> {
        let unsaved: usize = self.read.values().map(|pack| pack.origins.len()).sum();
        if unsaved < WORTHWHILE.max(self.saved.len() / share) {
            return None;
        }
        let same = self.saved.packs.iter().enumerate();
        let same = same.filter(|(at, _)| self.same.get(*at) == Some(&true));
        let (numbers, mut packs): (Vec<_>, Vec<_>) = same.map(|(at, pack)| (at, *pack)).unzip();
        let renumbered: HashMap<usize, usize> =
            numbers.into_iter().enumerate().map(|(new, old)| (old, new)).collect();
        let kept = self
            .saved
            .all()
            .filter_map(|(origin, pack, seq)| Some((origin, *renumbered.get(&pack)?, seq)));
        let mut all: Vec<_> = kept.filter(|(_, _, seq)| !self.erased.contains(*seq)).collect();
        for (name, pack) in &self.read {
            let Some(stamp) = pack.stamp else { continue };
            let there = pack.origins.iter().filter(|(_, seq)| !self.erased.contains(*seq));
            all.extend(there.map(|(origin, seq)| (*origin, packs.len(), *seq)));
            packs.push((*name, stamp));
        }
        SavedOrigins::of(packs, all)
    }

    /// Notes that this was saved.
    pub(crate) fn was_saved(&mut self, saved: SavedOrigins) {
        self.same = vec![true; saved.packs.len()];
        self.read.retain(|name, _| !saved.packs.iter().any(|(known, _)| known == name));
        self.saved = saved;
    }
}

/// The saved index; an empty one if there is none that can be read.
fn load(folder: &Folder) -> SavedOrigins {
    let opened = match document::open(folder, Document::Origins) {
        Ok(Some(Ok(text))) => SavedOrigins::parse(text),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, "could not read the index of origins");
            None
        }
    };
    opened.unwrap_or_default()
}

fn origin(stored: &StoredMessage) -> Option<(Origin, u64)> {
    Some((Origin::of_stored(&stored.scope, stored.seq, &stored.message)?, stored.seq))
}

type PackOrigins = BTreeMap<PackName, Vec<(Origin, u64)>>;

/// The origins of all messages in some packs; `None` if one has vanished.
fn read_packs(folder: &Folder, packs: &[PackName]) -> Result<Option<PackOrigins>> {
    let mut origins: PackOrigins = BTreeMap::new();
    let mut chunks = Vec::new();
    for name in packs {
        match Pack::open(folder, *name)? {
            OpenedPack::Pack(pack) => chunks.extend(PackChunk::cut(*name, 0..pack.size())),
            OpenedPack::Gone => return Ok(None),
            OpenedPack::Skipped(kind) => match kind.in_file(name.place()).refusal() {
                Some(refusal) => return Err(refusal),
                None => continue,
            },
        }
        origins.insert(*name, Vec::new());
    }
    let read = |chunk: &PackChunk| {
        let (mut decoder, mut found) = (RecordDecoder::new(folder), Vec::new());
        let read = chunk.read(folder, |line| {
            let Some(name) = line.name else { return Ok(true) };
            match decoder.open(name, line.text(), line.file())? {
                Opened::Message(stored) => found.extend(origin(&stored)),
                Opened::Skipped(kind) => {
                    if let Some(refusal) = kind.in_file(chunk.pack.place_of(name)).refusal() {
                        return Err(refusal);
                    }
                }
                Opened::Forget(_) | Opened::Gone => {}
            }
            Ok(true)
        })?;
        Ok((read, found))
    };
    let mut has_vanished = false;
    let threads = PackChunk::threads_for(&chunks, || folder.threads());
    parallel_map_ordered(&chunks, threads, read, |chunk, (read, mut found)| {
        has_vanished |= read == ChunkRead::Gone;
        origins.entry(chunk.pack).or_default().append(&mut found);
        Ok(())
    })?;
    Ok((!has_vanished).then_some(origins))
}
