//! Recovery: finishes what an interrupted writer began, and removes forgotten records from packs.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::folder::pack::check::PackAudit;
use crate::store::folder::pack::pack_lines::find;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::read::tail::Tail;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::rules::forget_plan::ForgetReport;
use crate::store::write::committer::Committer;
use crate::store::write::compact::{Compactor, FANOUT, packable};
use crate::store::write::forget::{remove_packed, settle_packed};
use crate::store::write::pack_rewrite::holds_all_of;

/// What is known about the previous writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviousWriter {
    /// It finished its work.
    Finished,
    /// Unknown: this writer has just started.
    Unknown,
    /// It was killed.
    Interrupted,
}

impl Compactor {
    /// Removes forgotten records that came back in packs. After an interrupted writer, also removes duplicates: a
    /// record that is stored twice with the same bytes stays in one place.
    pub(crate) fn recover(
        &mut self,
        committer: &Committer<'_>,
        tail: &mut Tail,
        previous: PreviousWriter,
    ) {
        // Data that could not be made durable once may only seem durable now.
        if self.is_off {
            return;
        }
        if let Err(error) = self.try_to_recover(committer, tail, previous) {
            self.give_up("tidying up packs", &error);
        }
    }

    fn try_to_recover(
        &mut self,
        committer: &Committer<'_>,
        tail: &mut Tail,
        previous: PreviousWriter,
    ) -> Result<()> {
        let folder = committer.folder;
        if previous != PreviousWriter::Finished {
            folder.packs.remove_temp_files()?;
            let mut listing = folder.list()?;
            if listing.packs.is_empty() {
                return Ok(());
            }
            self.remove_contained(folder, &listing.packs)?;
            self.remove_duplicates(folder, tail, &mut listing.names, &listing.packs)?;
        }
        if previous == PreviousWriter::Interrupted || tail.is_disturbed {
            // The previous writer may have been forgetting, or a backup may have put packs back. Pack names do not
            // show that.
            let packs = folder.list()?.packs.into_iter();
            tail.unpurged = packs.filter(|pack| tail.erased.intersects(&pack.seqs())).collect();
        }
        let forgotten = tail.erased.count();
        tail.unpurged.retain(|pack| !self.purged.contains(&(*pack, forgotten)));
        let searched = tail.unpurged.clone();
        let holding = settle_packed(committer, tail, &searched)?;
        let others = searched.into_iter().filter(|pack| !holding.contains(pack));
        self.purged.extend(others.map(|pack| (pack, forgotten)));
        tail.unpurged = holding;
        while let Some(&pack) = tail.unpurged.last() {
            let mut purged = ForgetReport::default();
            remove_packed(folder, &[pack], &tail.erased, &mut purged)?;
            // A pack with forgotten records was replaced. If a backup brings it back, it is searched again.
            if purged.removed.is_empty() {
                self.purged.insert((pack, forgotten));
            }
            tail.unpurged.pop();
        }
        Ok(())
    }

    /// Removes packs whose lines are all in another pack. Limits the comparisons, and leaves the rest for the next
    /// time.
    fn remove_contained(&self, folder: &Folder, packs: &[PackName]) -> Result<()> {
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

    /// Removes loose records that a pack has with the same bytes. Others stay.
    pub(super) fn remove_duplicates(
        &mut self,
        folder: &Folder,
        tail: &mut Tail,
        names: &mut Vec<RecordName>,
        packs: &[PackName],
    ) -> Result<()> {
        for &pack in packs {
            if self.mismatched.contains(&pack) || !names.iter().any(|name| pack.covers(*name)) {
                continue;
            }
            let OpenedPack::Pack(opened) = Pack::open(folder, pack)? else {
                continue;
            };
            let mut duplicates = HashSet::new();
            for &name in names.iter().filter(|name| pack.covers(**name)) {
                if find(&opened, name)?.is_some() {
                    duplicates.insert(name);
                }
            }
            if duplicates.is_empty() {
                continue;
            }
            // A read may skip lines of a pack that does not match its name.
            if !PackAudit::new(&opened).finish_valid()? {
                self.mismatched.insert(pack);
                continue;
            }
            make_durable(folder, pack)?;
            for &name in &duplicates {
                let there = find(&opened, name)?;
                let bytes = packable(folder, name)?;
                if bytes.zip(there).is_some_and(|(bytes, there)| bytes == there.file()) {
                    folder.directory.remove(&name.to_string())?;
                } else {
                    self.unpackable.insert(name);
                }
            }
            folder.directory.sync()?;
            names.retain(|name| !duplicates.contains(name));
            tail.loose = tail.loose.saturating_sub(duplicates.len());
        }
        Ok(())
    }
}

/// Makes a pack durable that another program may have put there.
pub(crate) fn make_durable(folder: &Folder, pack: PackName) -> Result<()> {
    folder.packs.flush(&pack.to_string())?;
    folder.packs.sync()
}
