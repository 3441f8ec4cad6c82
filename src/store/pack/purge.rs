//! Taking forgotten records out of packs.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::store::folder::{Folder, Opened};
use crate::store::pack::lines::Lines;
use crate::store::pack::{INCOMPLETE, OpenedPack, Pack, publish};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;

/// What came of weeding packs.
#[derive(Debug, Default)]
pub(crate) struct PurgeOutcome {
    /// Numbers of the messages whose lines are gone, some perhaps more than once.
    pub(crate) removed: Vec<u64>,
    /// Lines and packs that had to stay.
    pub(crate) left: Vec<Finding>,
}

/// Puts packs without the forgotten records in place of those with them; the new one is durable before the old one
/// goes. Everything else in them stays as it is, to the byte, in the order it has.
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

fn purge_one(
    folder: &Folder,
    pack: &Pack,
    erased: &SeqSet,
    purged: &mut PurgeOutcome,
) -> Result<()> {
    let (mut doomed, mut removed) = (HashSet::new(), Vec::new());
    let (mut rest, mut foreign) = (None, false);
    let mut lines = Lines::new(pack);
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
            // Bytes that are no record's have no name to go by, so they keep the old pack.
            let kind = FindingKind::Damaged("beside forgotten records it holds what is no record");
            purged.left.push(kind.in_file(pack.name.place()));
            return Ok(());
        }
        // A pack whose name was wrong all along, and would now be right.
        Some(new) if new == pack.name => {
            let kind = FindingKind::Damaged(INCOMPLETE);
            purged.left.push(kind.in_file(pack.name.place()));
            return Ok(());
        }
        Some(new) => {
            let published = publish(folder, &mut |sink| {
                let mut lines = Lines::new(pack);
                while let Some(line) = lines.next()? {
                    if !doomed.contains(&line.span.start) {
                        pack.copy(line.span, sink)?;
                    }
                }
                Ok(Some(new.to_string()))
            });
            match published {
                // Something else has the name; other packs can be weeded all the same.
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
