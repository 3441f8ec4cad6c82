//! The files of a conversation's snapshots.

use crate::crypto::{AssociatedData, Kind};
use crate::directory::{EntryKind, TEMPORARY};
use crate::error::{Error, Result};
use crate::store::folder::{Folder, unreadable};
use crate::store::record::encoding::object;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::{QUARANTINE, SNAPSHOTS};
use crate::store::record::profile::Profile;
use crate::store::record::snapshot::{Snapshot, is_id};

/// Reads a snapshot by its id; `None` if there is none.
pub(crate) fn read(folder: &Folder, profile: &Profile, id: &str) -> Result<Option<Snapshot>> {
    let Some(rev) = profile.revision(id) else { return Ok(None) };
    match open(folder, id, rev)? {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(finding) => Err(refusal(folder, &finding)),
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
    let unlisted = names(folder, profile)?.unlisted;
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
    let Some(id) = str::from_utf8(name).ok().filter(|id| is_id(id)) else {
        return Ok(name != QUARANTINE.as_bytes());
    };
    Ok(match open(folder, id, 0)? {
        Ok(_) => false,
        Err(finding) => !finding.kind.may_open_later() && finding.kind != FindingKind::Absent,
    })
}

/// Findings about a conversation's snapshots.
pub(crate) fn verify(folder: &Folder, profile: &Profile) -> Result<Vec<Finding>> {
    let (_, mut findings) = list(folder, profile)?;
    let names = names(folder, profile)?;
    for id in names.unlisted {
        findings.push(match open(folder, &id, 0)? {
            Ok(_) => FindingKind::Resurrected.in_file(place(&id)),
            Err(finding) => finding,
        });
    }
    findings.extend(names.foreign);
    Ok(findings)
}

/// The ids that have files.
pub(crate) fn ids(folder: &Folder) -> Result<Vec<String>> {
    Ok(names(folder, &Profile::default())?.unlisted)
}

#[derive(Default)]
pub(crate) struct Names {
    pub(crate) unlisted: Vec<String>,
    foreign: Vec<Finding>,
}

pub(crate) fn names(folder: &Folder, profile: &Profile) -> Result<Names> {
    let mut names = Names::default();
    folder.snapshots.list(&mut |name, kind| match (str::from_utf8(name), kind) {
        (Ok(id), EntryKind::File) if is_id(id) => {
            if profile.revision(id).is_none() {
                names.unlisted.push(id.to_owned());
            }
        }
        (Ok(QUARANTINE), EntryKind::Folder) => {}
        _ if name.starts_with(TEMPORARY.as_bytes()) => {
            names.foreign.push(FindingKind::Leftover.in_file(place_bytes(name)));
        }
        _ => names.foreign.push(FindingKind::Foreign.in_file(place_bytes(name))),
    })?;
    names.unlisted.sort_unstable();
    Ok(names)
}

/// The path of a snapshot in the conversation's folder.
pub(crate) fn place(id: &str) -> String {
    format!("{SNAPSHOTS}/{id}")
}

fn place_bytes(name: &[u8]) -> Vec<u8> {
    [SNAPSHOTS.as_bytes(), b"/", name].concat()
}

pub(crate) fn associated<'a>(scope: &'a [&'a str], id: &'a str) -> AssociatedData<'a> {
    AssociatedData::of(Kind::Snapshot, scope, id)
}

pub(crate) fn open(folder: &Folder, id: &str, rev: u64) -> Result<Result<Snapshot, Finding>> {
    let found = |kind: FindingKind| Ok(Err(kind.in_file(place(id))));
    let bytes = match folder.snapshots.read(id) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return found(FindingKind::Absent),
        Err(error) => return found(unreadable(error)?),
    };
    match folder.unseal(&associated(&folder.scope.parts(), id), &bytes)? {
        Err(kind) => found(kind),
        Ok(plaintext) => match object::<Snapshot>(&plaintext) {
            Some(snapshot) if snapshot.id != id => found(FindingKind::BadRecord),
            Some(snapshot) if snapshot.rev < rev => found(FindingKind::Outdated),
            Some(snapshot) => Ok(Ok(snapshot)),
            None => found(FindingKind::BadRecord),
        },
    }
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

fn refusal(folder: &Folder, finding: &Finding) -> Error {
    finding.refusal().unwrap_or_else(|| Error::Damaged {
        place: folder
            .directory
            .path()
            .join(finding.file.as_deref().unwrap_or(SNAPSHOTS))
            .display()
            .to_string(),
        reason: match finding.kind {
            FindingKind::Absent => "it is gone",
            FindingKind::Outdated => "an older state of it was put back",
            FindingKind::Damaged(reason) => reason,
            _ => "its seal does not fit, or what is in it is no snapshot",
        },
    })
}
