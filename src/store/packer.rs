//! When records move into packs, and packs into larger ones. Nothing here fails an append: what cannot be tidied up
//! now is tidied up later.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::store::folder::{Folder, HeadState, Opened};
use crate::store::forget::{Forgotten, remove_packed};
use crate::store::head;
use crate::store::name::RecordName;
use crate::store::pack::audit::Audit;
use crate::store::pack::merge::{find, holds_all_of, merge, size};
use crate::store::pack::{OpenedPack, Pack, PackName, publish};
use crate::store::pen::Pen;
use crate::store::tail::Tail;

/// The most records that move at once: others wait for the lock meanwhile.
const BATCH: usize = 4096;
/// The most records that are published at once.
const LARGEST: usize = 32_768;
/// The most bytes that move at once, one record more or less.
const BATCH_BYTES: usize = 8 << 20;
/// How many packs of one size become one of the next.
const FANOUT: usize = 8;
/// How many sizes there are; the largest packs stay as they are, since rewriting them would take too long.
const SIZES: u32 = 4;
/// The most bytes that are merged at once.
const MERGED_BYTES: u64 = 64 << 20;

/// What is known of the writer before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// It finished what it began.
    Known,
    /// Nothing: this one has only begun.
    Unknown,
    /// It was killed half-way.
    Interrupted,
}

/// What a writer remembers of its packing.
#[derive(Debug)]
pub(crate) struct Packer {
    /// How many of the newest records stay in files of their own.
    keep: usize,
    /// Nothing is tried while there are no more loose files than this.
    patience: usize,
    /// Bytes could not be made durable: what the system shows may not be on the disk.
    is_off: bool,
    /// Records that are not to be packed: they do not open, or have a second name.
    stubborn: HashSet<RecordName>,
    /// Packs that do not hold what their names say.
    lying: HashSet<PackName>,
    /// Packs that cannot be merged.
    unmergeable: HashSet<PackName>,
    /// Packs that were looked through for what is forgotten, and how many numbers that was then.
    weeded: HashSet<(PackName, u64)>,
}

impl Packer {
    pub(crate) fn keeping(files: usize) -> Self {
        Self {
            keep: files,
            patience: 0,
            is_off: false,
            stubborn: HashSet::new(),
            lying: HashSet::new(),
            unmergeable: HashSet::new(),
            weeded: HashSet::new(),
        }
    }

    /// Packs the oldest of too many loose records. Everything is acknowledged already.
    pub(crate) fn pack(&mut self, pen: &Pen<'_>, tail: &mut Tail) {
        let enough = (self.keep * 2).max(self.patience);
        if self.is_off || tail.loose <= enough || !matches!(tail.head, HeadState::Known(_)) {
            return;
        }
        self.patience = 0;
        if let Err(error) = self.try_to_pack(pen.folder, tail) {
            self.patience = tail.loose + self.keep;
            self.give_up("packing", &error);
        }
    }

    /// Whether so many messages at once go straight into a pack: as many as would be packed right afterwards.
    pub(crate) fn is_bulk(&self, messages: usize) -> bool {
        messages > self.keep * 2 && !self.is_off
    }

    /// The most records of a pack that is published at once: as many as merging stops at, unless others would wait too
    /// long for the lock.
    pub(crate) fn largest(&self) -> usize {
        self.keep.saturating_mul(FANOUT.pow(SIZES - 1)).min(LARGEST)
    }

    /// Merges packs after one more was published.
    pub(crate) fn tidy(&mut self, pen: &Pen<'_>) {
        let merged = pen.folder.list().and_then(|listing| self.merge(pen.folder, listing.packs));
        if let Err(error) = merged {
            self.give_up("merging packs", &error);
        }
    }

    fn give_up(&mut self, what: &str, error: &Error) {
        self.is_off |= matches!(error, Error::NotDurable { .. });
        tracing::warn!(%error, "{what} failed; it is tried again later");
    }

    fn try_to_pack(&mut self, folder: &Folder, tail: &mut Tail) -> Result<()> {
        let listing = folder.list()?;
        let mut names = listing.names;
        names.retain(|name| {
            !name.is_forget() && !tail.erased.contains(name.seq) && !self.stubborn.contains(name)
        });
        tail.loose = names.len();
        if names.len() <= self.keep * 2 {
            return Ok(());
        }
        // A backup may have brought some back.
        self.drop_doubled(folder, tail, &mut names, &listing.packs)?;
        names.sort_unstable();
        names.truncate(names.len().saturating_sub(self.keep).min(BATCH));
        // Packs never hold more than the head acknowledges, even after a power cut.
        folder.blobs.flush(head::NAME)?;
        let (pack, moved) = self.publish(folder, &names)?;
        for name in &moved {
            folder.blobs.remove(&name.to_string())?;
        }
        tail.loose = tail.loose.saturating_sub(moved.len());
        tracing::debug!(records = moved.len(), "packed");
        let mut packs = listing.packs;
        packs.extend(pack.filter(|pack| !packs.contains(pack)));
        self.merge(folder, packs)
    }

    /// Publishes a pack of those records that open; which these are.
    fn publish(
        &mut self,
        folder: &Folder,
        names: &[RecordName],
    ) -> Result<(Option<PackName>, Vec<RecordName>)> {
        let mut moved = Vec::new();
        let pack = publish(folder, &mut |sink| {
            let (mut pack, mut total) = (None, 0);
            moved.clear();
            for &name in names {
                if total > BATCH_BYTES {
                    break;
                }
                let Some(bytes) = packable(folder, name)? else {
                    self.stubborn.insert(name);
                    continue;
                };
                sink(name.to_string().as_bytes())?;
                sink(b"\t")?;
                sink(&bytes)?;
                total += bytes.len();
                moved.push(name);
                PackName::add(&mut pack, name);
            }
            Ok(pack.map(|pack: PackName| pack.to_string()))
        })?;
        Ok((pack, moved))
    }

    /// Merges packs as long as there are enough of one size.
    fn merge(&mut self, folder: &Folder, mut packs: Vec<PackName>) -> Result<()> {
        loop {
            packs.sort_unstable();
            let Some(chosen) = self.choose(&packs) else {
                return Ok(());
            };
            if size(folder, &chosen)? > MERGED_BYTES {
                self.unmergeable.extend(chosen);
                continue;
            }
            let Some(merged) = merge(folder, &chosen)? else {
                self.unmergeable.extend(chosen);
                continue;
            };
            packs.retain(|pack| !chosen.contains(pack));
            for pack in chosen.iter().filter(|pack| **pack != merged) {
                folder.packs.remove(&pack.to_string())?;
            }
            packs.push(merged);
            tracing::debug!(records = merged.count, "merged packs");
        }
    }

    /// The oldest packs of one size, if they are enough.
    fn choose(&self, packs: &[PackName]) -> Option<Vec<PackName>> {
        let keep = self.keep as u64;
        let size = |pack: &PackName| (pack.count / keep).max(1).ilog(FANOUT as u64);
        (0..SIZES - 1).find_map(|wanted| {
            let alike = packs.iter().filter(|pack| size(pack) == wanted);
            let chosen: Vec<_> = alike
                .filter(|pack| !self.unmergeable.contains(pack))
                .take(FANOUT)
                .copied()
                .collect();
            (chosen.len() == FANOUT).then_some(chosen)
        })
    }

    /// Takes forgotten records out of packs they have come back in. Where an interrupted writer may have left something
    /// half done, ends it: what is in a pack and elsewhere, to the byte, stays in one place only.
    pub(crate) fn mend(&mut self, pen: &Pen<'_>, tail: &mut Tail, before: Before) {
        if let Err(error) = self.try_to_mend(pen.folder, tail, before) {
            self.give_up("tidying up packs", &error);
        }
    }

    fn try_to_mend(&mut self, folder: &Folder, tail: &mut Tail, before: Before) -> Result<()> {
        if before != Before::Known {
            folder.packs.sweep()?;
            let mut listing = folder.list()?;
            if listing.packs.is_empty() {
                return Ok(());
            }
            self.drop_nested(folder, &listing.packs)?;
            self.drop_doubled(folder, tail, &mut listing.names, &listing.packs)?;
            if before == Before::Interrupted {
                // Perhaps in the middle of forgetting.
                let concerned = |pack: &PackName| tail.erased.meets(&pack.seqs());
                tail.overgrown = listing.packs.into_iter().filter(concerned).collect();
            }
        }
        let forgotten = tail.erased.count();
        tail.overgrown.retain(|pack| !self.weeded.contains(&(*pack, forgotten)));
        remove_packed(folder, &tail.overgrown, &tail.erased, &mut Forgotten::default())?;
        self.weeded.extend(tail.overgrown.drain(..).map(|pack| (pack, forgotten)));
        Ok(())
    }

    /// Removes packs that lie in another one, line by line. Of very many that may, some are left for the next time.
    fn drop_nested(&self, folder: &Folder, packs: &[PackName]) -> Result<()> {
        let mut packs = packs.to_vec();
        packs.sort_unstable_by_key(|pack| (pack.first, Reverse(pack.last), Reverse(pack.count)));
        let (mut around, mut comparisons): (Vec<PackName>, _) = (Vec::new(), 0);
        for inner in packs {
            around.retain(|outer| outer.last >= inner.first);
            for &outer in around.iter().filter(|outer| outer.surrounds(&inner)) {
                comparisons += 1;
                if holds_all_of(folder, outer, inner)? {
                    make_durable(folder, outer)?;
                    folder.packs.remove(&inner.to_string())?;
                    break;
                }
            }
            if comparisons > FANOUT * 8 {
                break;
            }
            around.push(inner);
            if around.len() > FANOUT * 8 {
                around.remove(0);
            }
        }
        Ok(())
    }

    /// Removes loose records that lie in a pack to the byte. Others of which a pack has a line stay as they are.
    fn drop_doubled(
        &mut self,
        folder: &Folder,
        tail: &mut Tail,
        names: &mut Vec<RecordName>,
        packs: &[PackName],
    ) -> Result<()> {
        for &pack in packs {
            if self.lying.contains(&pack) || !names.iter().any(|name| pack.covers(*name)) {
                continue;
            }
            let OpenedPack::Pack(opened) = Pack::open(folder, pack)? else {
                continue;
            };
            let mut doubled = HashSet::new();
            for &name in names.iter().filter(|name| pack.covers(**name)) {
                if find(&opened, name)?.is_some() {
                    doubled.insert(name);
                }
            }
            if doubled.is_empty() {
                continue;
            }
            // A tail may pass over the lines of a pack that lies.
            if !Audit::new(&opened).finish_sound()? {
                self.lying.insert(pack);
                continue;
            }
            make_durable(folder, pack)?;
            for &name in &doubled {
                let there = find(&opened, name)?;
                let bytes = packable(folder, name)?;
                if bytes.zip(there).is_some_and(|(bytes, there)| bytes == there.file()) {
                    folder.blobs.remove(&name.to_string())?;
                } else {
                    self.stubborn.insert(name);
                }
            }
            names.retain(|name| !doubled.contains(name));
            tail.loose = tail.loose.saturating_sub(doubled.len());
        }
        Ok(())
    }
}

/// Makes a pack durable that someone else may have put there.
pub(crate) fn make_durable(folder: &Folder, pack: PackName) -> Result<()> {
    folder.packs.flush(&pack.to_string())?;
    folder.packs.sync()
}

/// A record's bytes, if it may be packed: it opens, and removing its name removes all of it.
fn packable(folder: &Folder, name: RecordName) -> Result<Option<Vec<u8>>> {
    let text = name.to_string();
    let bytes = match folder.blobs.read(&text) {
        Err(Error::NotPlain { .. } | Error::Io { .. }) => None,
        read => read?,
    };
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let opens = matches!(folder.open_bytes(name, &bytes)?, Opened::Message(_));
    Ok((opens && folder.blobs.links(&text)? <= 1).then_some(bytes))
}
