//! Merges packs, one line at a time.

use crate::crypto::Envelope;
use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::pack::check::{Mismatch, PackAudit};
use crate::store::pack::pack_lines::PackLines;
use crate::store::pack::{Line, OpenedPack, Pack, publish};
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;

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

/// Finds a record's line in a pack; `None` if there is none.
pub(crate) fn find(pack: &Pack, name: RecordName) -> Result<Option<Line>> {
    let mut lines = PackLines::since(pack, name.time)?;
    while let Some(line) = lines.next()? {
        match line.name {
            Some(found) if found == name => return Ok(Some(line)),
            Some(found) if found > name => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
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
