//! Moves loose records into packs, and packs into larger ones. A failure here never fails an append: the work is done
//! later.

pub(crate) mod pack_recovery;

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::store::folder::pack::publish;
use crate::store::folder::{Folder, HeadState, Opened};
use crate::store::read::tail::Tail;
use crate::store::record::layout::HEAD;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::write::committer::Committer;
use crate::store::write::pack_rewrite::{merge, size};

/// The most messages that are written at once as files of their own, whose fsyncs follow each other. A turn with its tools has
/// fewer; a pack takes three fsyncs.
const MOST_FILES: usize = 8;
/// The most records that move at once, because other writers wait for the lock.
const BATCH: usize = 4096;
/// The most records in a pack that is published at once.
const LARGEST: usize = 32_768;
/// The most bytes that move at once; the last record may exceed it.
const BATCH_BYTES: usize = 8 << 20;
/// How many packs of one size class are merged into one of the next.
const FANOUT: usize = 8;
/// The number of size classes. The largest packs stay as they are, because rewriting them would take too long.
const SIZES: u32 = 4;
/// The most bytes that are merged at once.
const MERGED_BYTES: u64 = 64 << 20;

/// The outcome of packing some records.
#[derive(Debug, Default)]
pub(crate) struct CompactionStep {
    pub(crate) moved: usize,
    /// How many records are left to move.
    pub(crate) left: usize,
    pub(crate) packs_before: Vec<PackName>,
    pub(crate) packs_after: Vec<PackName>,
}

/// A writer's compactor. It remembers which files it cannot pack.
#[derive(Debug)]
pub(crate) struct Compactor {
    /// How many of the newest records stay loose.
    keep: usize,
    /// After a failure: try again only with more loose files than this.
    patience: usize,
    /// Set when data could not be made durable: files that are visible may not be on disk.
    is_off: bool,
    /// Records that cannot be packed: they do not open, or have a second name (a hard link).
    unpackable: HashSet<RecordName>,
    /// Packs whose contents do not match their names.
    mismatched: HashSet<PackName>,
    /// Packs that cannot be merged.
    unmergeable: HashSet<PackName>,
    /// Packs that were searched for forgotten records, with the count of forgotten numbers at that time.
    purged: HashSet<(PackName, u64)>,
}

impl Compactor {
    pub(crate) fn keeping(files: usize) -> Self {
        Self {
            keep: files,
            patience: 0,
            is_off: false,
            unpackable: HashSet::new(),
            mismatched: HashSet::new(),
            unmergeable: HashSet::new(),
            purged: HashSet::new(),
        }
    }

    /// Packs the oldest records if too many are loose. All of them are recorded in the head already.
    pub(crate) fn pack(&mut self, committer: &Committer<'_>, tail: &mut Tail) {
        let enough = (self.keep * 2).max(self.patience);
        if self.is_off || tail.loose <= enough || !matches!(tail.head, HeadState::Known(_)) {
            return;
        }
        self.patience = 0;
        if let Err(error) = self.try_to_pack(committer.folder, tail, self.keep * 2) {
            self.patience = tail.loose + self.keep;
            self.give_up("packing", &error);
        }
    }

    /// Whether to write so many messages directly into packs: if they are more than stay loose, or if that takes fewer
    /// fsyncs by far.
    pub(crate) fn is_for_packs(&self, messages: usize) -> bool {
        messages > MOST_FILES.min(self.keep * 2) && !self.is_off
    }

    /// The most records in a pack that is published at once. Limited to the largest size class and to what other
    /// writers can wait for.
    pub(crate) fn largest(&self) -> usize {
        self.keep.saturating_mul(FANOUT.pow(SIZES - 1)).min(LARGEST)
    }

    /// Merges packs after another one was published.
    pub(crate) fn merge_packs(&mut self, committer: &Committer<'_>) {
        let merged = committer
            .folder
            .list()
            .and_then(|mut listing| self.merge(committer.folder, &mut listing.packs));
        if let Err(error) = merged {
            self.give_up("merging packs", &error);
        }
    }

    fn give_up(&mut self, what: &str, error: &Error) {
        self.is_off |= matches!(error, Error::NotDurable { .. });
        tracing::warn!(%error, "{what} failed; it is tried again later");
    }

    /// Packs some of the oldest records beyond those that stay loose, and merges packs.
    pub(crate) fn pack_now(
        &mut self,
        committer: &Committer<'_>,
        tail: &mut Tail,
    ) -> Result<CompactionStep> {
        let path = committer.folder.directory.path();
        match tail.head {
            _ if self.is_off => Err(Error::Poisoned { path: path.into() }),
            HeadState::Known(_) => self.try_to_pack(committer.folder, tail, self.keep),
            HeadState::Absent | HeadState::Damaged => {
                let reason = "a repair must rebuild it before anything is packed";
                Err(Error::damaged(path.join(HEAD), reason))
            }
        }
    }

    /// Packs some of the oldest loose records if there are more than `enough`, and merges packs.
    fn try_to_pack(
        &mut self,
        folder: &Folder,
        tail: &mut Tail,
        enough: usize,
    ) -> Result<CompactionStep> {
        let listing = folder.list()?;
        let mut names = listing.names;
        names.retain(|name| {
            !name.is_forget() && !tail.erased.contains(name.seq) && !self.unpackable.contains(name)
        });
        tail.loose = names.len();
        let mut step = CompactionStep { packs_before: listing.packs, ..CompactionStep::default() };
        step.packs_after.clone_from(&step.packs_before);
        if names.len() > enough {
            // A backup may have brought back loose records that are packed already.
            self.remove_duplicates(folder, tail, &mut names, &step.packs_before)?;
            names.sort_unstable();
            names.truncate(names.len().saturating_sub(self.keep));
            step.left = names.len();
            names.truncate(BATCH);
            // Packs must never have records that the head does not cover, even after a power failure.
            folder.directory.flush(HEAD)?;
            let (pack, moved) = self.publish(folder, &names)?;
            for name in &moved {
                folder.directory.remove(&name.to_string())?;
            }
            // On a file system without a journal, a name that reappears after a power failure may point to reused
            // blocks.
            folder.directory.sync()?;
            tail.loose = tail.loose.saturating_sub(moved.len());
            tracing::debug!(records = moved.len(), "packed");
            step.moved = moved.len();
            names.retain(|name| self.unpackable.contains(name));
            step.left = step.left.saturating_sub(moved.len() + names.len());
            step.packs_after.extend(pack.filter(|pack| !step.packs_before.contains(pack)));
        }
        self.merge(folder, &mut step.packs_after)?;
        Ok(step)
    }

    /// Publishes a pack of those records that open, and returns them.
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
                    self.unpackable.insert(name);
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

    /// Merges packs while there are enough of one size class.
    fn merge(&mut self, folder: &Folder, packs: &mut Vec<PackName>) -> Result<()> {
        loop {
            packs.sort_unstable();
            let Some(chosen) = self.choose(packs) else {
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
            folder.packs.sync()?;
            packs.push(merged);
            tracing::debug!(records = merged.count, "merged packs");
        }
    }

    /// The oldest packs of one size class, if there are enough of them.
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
}

/// A record's bytes, if it may be packed: it opens and has no second name.
fn packable(folder: &Folder, name: RecordName) -> Result<Option<Vec<u8>>> {
    let text = name.to_string();
    let bytes = match folder.directory.read(&text) {
        Err(Error::NotPlain { .. } | Error::Io { .. }) => None,
        read => read?,
    };
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let opens = matches!(folder.open_bytes(name, &bytes)?, Opened::Message(_));
    Ok((opens && folder.directory.link_count(&text)? <= 1).then_some(bytes))
}
