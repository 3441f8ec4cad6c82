//! Removes forgotten records from packs.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::store::folder::{Folder, Opened};
use crate::store::pack::pack_lines::PackLines;
use crate::store::pack::{INCOMPLETE, OpenedPack, Pack, publish};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::name::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;

/// The outcome of removing records from packs.
#[derive(Debug, Default)]
pub(crate) struct PurgeOutcome {
    /// Numbers of the messages whose lines were removed. A number may occur twice.
    pub(crate) removed: Vec<u64>,
    /// Lines and packs that could not be removed.
    pub(crate) left: Vec<Finding>,
}

/// Rewrites packs without the forgotten records. The new pack is durable before the old one is removed. All other
/// lines keep their bytes and order.
pub(crate) fn purge(folder: &Folder, packs: &[PackName], erased: &SeqSet) -> Result<PurgeOutcome> {
    let mut purged = PurgeOutcome::default();
    for &name in packs {
        match Pack::open(folder, name)? {
            OpenedPack::Pack(pack) => purge_one(folder, &pack, erased, &mut purged)?,
            OpenedPack::Skipped(kind) => purged.left.push(kind.in_file(name.place())),
            OpenedPack::Gone => {}
        }
    }
    Ok(purged)
}

/// Passes each forgotten message in a pack to a callback. Returns whether the pack may have any.
pub(crate) fn visit_forgotten(
    folder: &Folder,
    pack: PackName,
    erased: &SeqSet,
    mut visit: impl FnMut(&StoredMessage),
) -> Result<bool> {
    let OpenedPack::Pack(pack) = Pack::open(folder, pack)? else { return Ok(true) };
    let mut has_any = false;
    let mut lines = PackLines::new(&pack);
    while let Some(line) = lines.next()? {
        let Some(name) = line.name.filter(|name| erased.contains(name.seq)) else { continue };
        has_any = true;
        if let Opened::Message(stored) = folder.open_bytes(name, line.file())? {
            visit(&stored);
        }
    }
    Ok(has_any)
}

fn purge_one(
    folder: &Folder,
    pack: &Pack,
    erased: &SeqSet,
    purged: &mut PurgeOutcome,
) -> Result<()> {
    let (mut doomed, mut removed) = (HashSet::new(), Vec::new());
    let (mut rest, mut foreign) = (None, false);
    let mut lines = PackLines::new(pack);
    while let Some(line) = lines.next()? {
        let Some(name) = line.name else {
            foreign = true;
            continue;
        };
        if erased.contains(name.seq) {
            match folder.open_bytes(name, line.file())? {
                Opened::Skipped(kind) => purged.left.push(kind.in_file(pack.name.place_of(name))),
                _ => {
                    doomed.insert(line.span.start);
                    removed.push(name.seq);
                    continue;
                }
            }
        }
        PackName::add(&mut rest, name);
    }
    if doomed.is_empty() {
        return Ok(());
    }
    let old = pack.name.to_string();
    match rest {
        None if !foreign => {}
        None => {
            // A line without a record name cannot be checked, so the old pack has to stay.
            let kind = FindingKind::Damaged("beside forgotten records it holds what is no record");
            purged.left.push(kind.in_file(pack.name.place()));
            return Ok(());
        }
        // The pack's old name was wrong and is right without these records.
        Some(new) if new == pack.name => {
            let kind = FindingKind::Damaged(INCOMPLETE);
            purged.left.push(kind.in_file(pack.name.place()));
            return Ok(());
        }
        Some(new) => {
            let published = publish(folder, &mut |sink| {
                let mut lines = PackLines::new(pack);
                while let Some(line) = lines.next()? {
                    if !doomed.contains(&line.span.start) {
                        pack.copy(line.span, sink)?;
                    }
                }
                Ok(Some(new.to_string()))
            });
            match published {
                // Another file has the new name. The other packs can still be rewritten.
                Err(Error::Damaged { reason, .. }) => {
                    purged.left.push(FindingKind::Damaged(reason).in_file(new.place()));
                    return Ok(());
                }
                published => published?,
            };
        }
    }
    folder.packs.remove(&old)?;
    folder.packs.sync()?;
    purged.removed.append(&mut removed);
    Ok(())
}
