//! Rewrites packs: merges them, one line at a time, and removes forgotten records from them.

use std::collections::HashSet;

use crate::crypto::Envelope;
use crate::error::{Error, Result};
use crate::store::folder::pack::check::{Mismatch, PackAudit};
use crate::store::folder::pack::pack_lines::PackLines;
use crate::store::folder::pack::{INCOMPLETE, Line, OpenedPack, Pack, publish};
use crate::store::folder::{Folder, Opened};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::name::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;

/// Merges packs into one and publishes it durably. Returns `None` and changes nothing if a pack does not match its
/// name or if two packs have different bytes for one record: merging must not lose a record.
pub(crate) fn merge(folder: &Folder, names: &[PackName]) -> Result<Option<PackName>> {
    let Some(packs) = open_all(folder, names)? else {
        return Ok(None);
    };
    publish(folder, &mut |sink| {
        let mut merged = None;
        let mut audits: Vec<_> = packs.iter().map(PackAudit::new).collect();
        let mut waiting: Vec<Option<Line>> = Vec::new();
        for audit in &mut audits {
            let Ok(line) = audit.next_valid()? else {
                return Ok(None);
            };
            waiting.push(line);
        }
        while let Some(name) = waiting.iter().flatten().filter_map(|line| line.name).min() {
            let mut given: Option<Vec<u8>> = None;
            for (line, audit) in waiting.iter_mut().zip(&mut audits) {
                let Some(same) = line.take_if(|line| line.name == Some(name)) else {
                    continue;
                };
                match &given {
                    Some(bytes) if *bytes == same.bytes => {}
                    Some(_) => return Ok(None),
                    None if Envelope::parse(same.file()).is_err() => return Ok(None),
                    None => given = Some(same.bytes),
                }
                let Ok(next) = audit.next_valid()? else {
                    return Ok(None);
                };
                *line = next;
            }
            PackName::add(&mut merged, name);
            sink(&given.unwrap_or_default())?;
        }
        Ok(merged.map(|name: PackName| name.to_string()))
    })
}

/// The total size of packs in bytes.
pub(crate) fn size(folder: &Folder, names: &[PackName]) -> Result<u64> {
    let packs = open_all(folder, names)?.unwrap_or_default();
    Ok(packs.iter().fold(0, |size, pack| size.saturating_add(pack.size())))
}

/// Whether each line of `inner` is in `outer` and both packs match their names.
pub(crate) fn holds_all_of(folder: &Folder, outer: PackName, inner: PackName) -> Result<bool> {
    let Some(packs) = open_all(folder, &[outer, inner])? else {
        return Ok(false);
    };
    let [outer, inner] = packs.as_slice() else {
        return Ok(false);
    };
    let (mut outer, mut inner) = (PackAudit::new(outer), PackAudit::new(inner));
    let mut wanted = inner.next_valid()?;
    loop {
        match (&wanted, outer.next_valid()?) {
            (Err(Mismatch), _) | (_, Err(Mismatch)) => return Ok(false),
            // `outer` must be read to its end to check it against its name.
            (Ok(Some(_)), Ok(None)) => return Ok(false),
            (Ok(None), Ok(None)) => return Ok(true),
            (Ok(None), Ok(Some(_))) => {}
            (Ok(Some(line)), Ok(Some(there))) => {
                if line.name == there.name && line.bytes == there.bytes {
                    wanted = inner.next_valid()?;
                } else if line.name <= there.name {
                    return Ok(false);
                }
            }
        }
    }
}

fn open_all(folder: &Folder, names: &[PackName]) -> Result<Option<Vec<Pack>>> {
    let mut packs = Vec::with_capacity(names.len());
    for &name in names {
        let OpenedPack::Pack(pack) = Pack::open(folder, name)? else {
            return Ok(None);
        };
        packs.push(pack);
    }
    Ok(Some(packs))
}

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
