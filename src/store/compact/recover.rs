//! Ending what an interrupted writer began, and keeping out of packs what was forgotten.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::error::Result;
use crate::store::commit::committer::Committer;
use crate::store::compact::{Compactor, FANOUT, packable};
use crate::store::delete::forget::remove_packed;
use crate::store::delete::plan::ForgetReport;
use crate::store::folder::Folder;
use crate::store::pack::check::Audit;
use crate::store::pack::merge::{find, holds_all_of};
use crate::store::pack::{OpenedPack, Pack};
use crate::store::read::tail::Tail;
use crate::store::record::name::RecordName;
use crate::store::record::pack_name::PackName;

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

impl Compactor {
    /// Takes forgotten records out of packs they have come back in. Where an interrupted writer may have left something
    /// half done, ends it: what is in a pack and elsewhere, to the byte, stays in one place only.
    pub(crate) fn mend(&mut self, committer: &Committer<'_>, tail: &mut Tail, before: Before) {
        // What could not be made durable once may seem durable now.
        if self.is_off {
            return;
        }
        if let Err(error) = self.try_to_mend(committer.folder, tail, before) {
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
        }
        if before == Before::Interrupted || tail.is_disturbed {
            // Perhaps in the middle of forgetting, or a backup has put some back: their names alone do not tell.
            let packs = folder.list()?.packs.into_iter();
            tail.overgrown = packs.filter(|pack| tail.erased.meets(&pack.seqs())).collect();
        }
        let forgotten = tail.erased.count();
        tail.overgrown.retain(|pack| !self.purged.contains(&(*pack, forgotten)));
        while let Some(&pack) = tail.overgrown.last() {
            let mut purged = ForgetReport::default();
            remove_packed(folder, &[pack], &tail.erased, &mut purged)?;
            // Another pack has taken the place of one that held something; should that one come back, it is looked at
            // again.
            if purged.removed.is_empty() {
                self.purged.insert((pack, forgotten));
            }
            tail.overgrown.pop();
        }
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
                    folder.packs.sync()?;
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
    pub(super) fn drop_doubled(
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
            folder.blobs.sync()?;
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
