//! Moves foreign and unreadable files to the quarantine folder.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::store::folder::pack::pack_lines::PackLines;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::folder::{Folder, Opened, artifact_files, document, segments, snapshot_files};
use crate::store::record::document::Document;
use crate::store::record::finding::{Finding, shown};
use crate::store::record::layout::{ARTIFACTS, PACKS, QUARANTINE, RECALL, SNAPSHOTS};
use crate::store::record::name::pack_name::PackName;

/// Moves the files of these findings, if they are still unreadable or foreign.
pub(crate) fn set_aside<'a>(
    folder: &Folder,
    findings: impl Iterator<Item = &'a Finding>,
) -> Result<()> {
    let wanted: BTreeSet<&str> = findings.filter_map(|finding| finding.file.as_deref()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    for name in matching(&folder.directory, "", &wanted)? {
        if is_useless(folder, &name)? {
            let moved = folder.directory.move_into(&name, QUARANTINE);
            passing(moved.map(drop), "setting a file aside")?;
        }
    }
    for (directory, folder_name, is_useless, what) in [
        (&folder.snapshots, SNAPSHOTS, snapshot_files::is_useless as IsUseless, "a snapshot"),
        (&folder.artifacts, ARTIFACTS, artifact_files::is_useless, "an artifact"),
        (&folder.recall, RECALL, segments::is_useless, "a segment of the search index"),
        (&folder.packs, PACKS, is_useless_pack, "a pack"),
    ] {
        let prefix = format!("{folder_name}/");
        if !wanted.iter().any(|file| file.starts_with(&prefix)) {
            continue;
        }
        for name in matching(directory, &prefix, &wanted)? {
            if is_useless(folder, &name)? {
                let moved = directory.move_into(&name, QUARANTINE);
                passing(moved.map(drop), &format!("setting {what} aside"))?;
            }
        }
    }
    Ok(())
}

/// Whether no key and no program can read the file of that name.
type IsUseless = fn(&Folder, &[u8]) -> Result<bool>;

/// The raw file names for names as findings show them. The escaping never produces the name of one of the store's own
/// files.
fn matching(
    directory: &Arc<dyn Directory>,
    prefix: &str,
    wanted: &BTreeSet<&str>,
) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    directory.list(&mut |name, _| {
        if wanted.contains(&*(prefix.to_owned() + &shown(name))) {
            names.push(name.to_owned());
        }
    })?;
    Ok(names)
}

fn is_useless(folder: &Folder, name: &[u8]) -> Result<bool> {
    if Document::is_name(name) {
        let shown = shown(name);
        let findings = document::verify(folder)?;
        return Ok(findings.iter().any(|finding| {
            finding.file.as_ref() == Some(&shown) && !finding.kind.may_open_later()
        }));
    }
    if name == PACKS.as_bytes() {
        // The folder of packs may be usable again.
        let found = folder.list()?.foreign;
        return Ok(found.iter().any(|finding| finding.file.as_deref() == Some(PACKS)));
    }
    let Some(record) = str::from_utf8(name).ok().and_then(|name| name.parse().ok()) else {
        return Ok(true);
    };
    Ok(matches!(folder.open(record)?, Opened::Skipped(kind) if !kind.may_open_later()))
}

/// Whether no key and no program can read anything in a pack.
fn is_useless_pack(folder: &Folder, name: &[u8]) -> Result<bool> {
    let pack: Option<PackName> = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    let Some(pack) = pack else {
        return Ok(true);
    };
    let pack = match Pack::open(folder, pack)? {
        OpenedPack::Pack(pack) => pack,
        OpenedPack::Skipped(kind) => return Ok(!kind.may_open_later()),
        OpenedPack::Gone => return Ok(false),
    };
    let mut lines = PackLines::new(&pack);
    while let Some(line) = lines.next()? {
        let Some(record) = line.name else {
            continue;
        };
        match folder.open_bytes(record, line.file())? {
            Opened::Skipped(kind) if !kind.may_open_later() => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Ignores failures of a single file: it stays unchanged, and the following check reports it.
pub(crate) fn passing(outcome: Result<()>, what: &str) -> Result<()> {
    match outcome {
        Err(error @ (Error::NotPlain { .. } | Error::Io { .. } | Error::Damaged { .. })) => {
            tracing::warn!(%error, "{what} failed");
            Ok(())
        }
        outcome => outcome,
    }
}
