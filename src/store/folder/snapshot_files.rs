//! The files of a conversation's snapshots.

use crate::crypto::Kind;
use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::folder::sealed_files::SealedFiles;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::SNAPSHOTS;
use crate::store::record::profile::Profile;
use crate::store::record::snapshot::{Snapshot, is_id};

pub(crate) const FILES: SealedFiles = SealedFiles {
    kind: Kind::Snapshot,
    folder: SNAPSHOTS,
    directory: |folder| &folder.snapshots,
    is_id,
    ending: "",
    beside: None,
    no_value: "its seal does not fit, or what is in it is no snapshot",
};

/// Reads a snapshot by its id; `None` if there is none.
pub(crate) fn read(folder: &Folder, profile: &Profile, id: &str) -> Result<Option<Snapshot>> {
    let Some(rev) = profile.revision(id) else { return Ok(None) };
    match open(folder, id, rev)? {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(finding) => Err(FILES.refusal(folder, &finding)),
    }
}

/// All snapshots, newest first, and findings about those that cannot be read.
pub(crate) fn list(folder: &Folder, profile: &Profile) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
    let (mut snapshots, findings) = open_each(folder, profile.listed())?;
    snapshots.sort_by(|a, b| (b.saved_at, &b.id).cmp(&(a.saved_at, &a.id)));
    Ok((snapshots, findings))
}

/// All snapshots that open, listed or not, and findings about the others.
///
/// # Errors
/// If one can only be read under another key, by a newer program or at another time.
pub(crate) fn all(folder: &Folder, profile: &Profile) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
    let (mut snapshots, mut findings) = list(folder, profile)?;
    let (unlisted, _) = unlisted(folder, profile)?;
    let (mut more, mut wrong) = open_each(folder, unlisted.iter().map(|id| (id.as_str(), 0)))?;
    snapshots.append(&mut more);
    findings.append(&mut wrong);
    match findings.iter().find_map(Finding::refusal) {
        Some(refusal) => Err(refusal),
        None => Ok((snapshots, findings)),
    }
}

/// Whether no key and no program can read this file.
pub(crate) fn is_useless(folder: &Folder, name: &[u8]) -> Result<bool> {
    let id = match FILES.id_of(name) {
        Ok(id) => id,
        Err(belongs) => return Ok(!belongs),
    };
    Ok(match open(folder, id, 0)? {
        Ok(_) => false,
        Err(finding) => !finding.kind.may_open_later() && finding.kind != FindingKind::Absent,
    })
}

/// Findings about a conversation's snapshots.
pub(crate) fn verify(folder: &Folder, profile: &Profile) -> Result<Vec<Finding>> {
    let (_, mut findings) = list(folder, profile)?;
    let (unlisted, mut foreign) = unlisted(folder, profile)?;
    for id in unlisted {
        findings.push(match open(folder, &id, 0)? {
            Ok(_) => FindingKind::Resurrected.in_file(FILES.place(&id)),
            Err(finding) => finding,
        });
    }
    findings.append(&mut foreign);
    Ok(findings)
}

/// The ids of files that the settings do not list, and findings about files that are no snapshots.
pub(crate) fn unlisted(folder: &Folder, profile: &Profile) -> Result<(Vec<String>, Vec<Finding>)> {
    let (mut ids, foreign) = FILES.list(folder)?;
    ids.retain(|id| profile.revision(id).is_none());
    Ok((ids, foreign))
}

pub(crate) fn open(folder: &Folder, id: &str, rev: u64) -> Result<Result<Snapshot, Finding>> {
    FILES.open(folder, id, |snapshot: &Snapshot| {
        if snapshot.id == id {
            (snapshot.rev < rev).then_some(FindingKind::Outdated)
        } else {
            Some(FindingKind::BadRecord)
        }
    })
}

/// Reads the snapshots with these ids and minimum revisions. Returns those that open, and findings about the others.
fn open_each<'a>(
    folder: &Folder,
    ids: impl Iterator<Item = (&'a str, u64)>,
) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
    let (mut snapshots, mut findings) = (Vec::new(), Vec::new());
    for (id, rev) in ids {
        match open(folder, id, rev)? {
            Ok(snapshot) => snapshots.push(snapshot),
            Err(finding) => findings.push(finding),
        }
    }
    Ok((snapshots, findings))
}
