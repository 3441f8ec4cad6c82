//! Moves misplaced records back to their names.

use crate::error::Result;
use crate::store::care::repair::rebuild::is_sound;
use crate::store::care::repair_kind::RepairKind;
use crate::store::folder::pack::pack_lines::find;
use crate::store::folder::pack::{OpenedPack, Pack, publish};
use crate::store::folder::{Folder, Opened};
use crate::store::read::tail::Tail;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::write::compact::pack_recovery::make_durable;

/// Publishes a misplaced record under its own name, durably. If another file that does not open has the name, the
/// record goes into a pack, so that two swapped records both come back. Returns what was done. `None` if the record
/// has to stay: it was forgotten, or another record that opens has its name.
pub(crate) fn put_back(
    folder: &Folder,
    tail: &Tail,
    finding: &Finding,
) -> Result<Option<RepairKind>> {
    let Some((lies, belongs)) = names(finding) else {
        return Ok(None);
    };
    let Ok(Some(bytes)) = folder.directory.read(&lies.to_string()) else {
        return Ok(None);
    };
    if tail.erased.contains(belongs.seq) || !folder.belongs_to(belongs, &bytes)? {
        return Ok(None);
    }
    match copy_of(folder, belongs)? {
        Some(copy) if copy == bytes => return Ok(Some(RepairKind::RemoveCopies)),
        Some(_) => return Ok(None),
        None if folder.directory.create(&belongs.to_string(), &bytes)? => {
            folder.directory.sync()?
        }
        // Packs have no forget records.
        None if belongs.is_forget() => return Ok(None),
        None => {
            publish(folder, &mut |sink| {
                let mut pack = None;
                sink(belongs.to_string().as_bytes())?;
                sink(b"\t")?;
                sink(&bytes)?;
                PackName::add(&mut pack, belongs);
                Ok(pack.map(|pack| pack.to_string()))
            })?;
        }
    }
    Ok(Some(RepairKind::PutBack))
}

/// A record's current name and its own name.
fn names(finding: &Finding) -> Option<(RecordName, RecordName)> {
    let FindingKind::Misplaced { belongs } = &finding.kind else {
        return None;
    };
    finding.file.as_deref()?.parse().ok().zip(belongs.parse().ok())
}

/// The bytes of the record that is stored under its own name and opens. Makes it durable.
fn copy_of(folder: &Folder, name: RecordName) -> Result<Option<Vec<u8>>> {
    if matches!(folder.open(name)?, Opened::Message(_) | Opened::Forget(_)) {
        folder.directory.flush(&name.to_string())?;
        folder.directory.sync()?;
        return folder.directory.read(&name.to_string());
    }
    for pack in folder.list()?.packs.into_iter().filter(|pack| pack.covers(name)) {
        let OpenedPack::Pack(opened) = Pack::open(folder, pack)? else {
            continue;
        };
        if let Some(line) = find(&opened, name)?
            && matches!(folder.open_bytes(name, line.file())?, Opened::Message(_))
            && is_sound(folder, pack)?
        {
            make_durable(folder, pack)?;
            return Ok(Some(line.file().to_vec()));
        }
    }
    Ok(None)
}
