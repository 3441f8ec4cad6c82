//! The files of a conversation's snapshots.

use std::collections::BTreeMap;

use crate::crypto::{AssociatedData, Kind};
use crate::directory::{EntryKind, TEMPORARY};
use crate::error::{Error, Result};
use crate::store::artifact::artifact_files;
use crate::store::commit::committer::Committer;
use crate::store::commit::import_tombstones;
use crate::store::folder::{Folder, unreadable};
use crate::store::read::tail::Tail;
use crate::store::record::encoding::object;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::{QUARANTINE, SNAPSHOTS};
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::{Snapshot, is_id};
use crate::store::settings::profile::Profile;
use crate::store::settings::snapshot_withdrawal::Withdrawal;

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

/// Writes a snapshot and then lists it in the settings. Leaves out messages that were forgotten since it was made.
pub(crate) fn save(
    committer: &Committer<'_>,
    tail: &mut Tail,
    mut snapshot: Snapshot,
) -> Result<()> {
    check_id(&snapshot.id)?;
    tail.check_settings(committer.folder)?;
    snapshot.drop_forgotten(&tail.erased, tail.last_seq)?;
    let before = match open(committer.folder, &snapshot.id, 0)? {
        Ok(there) => there.rev,
        Err(_) => 0,
    };
    let listed = tail.profile.snapshots.get(&snapshot.id).copied().unwrap_or(0);
    snapshot.rev = before.max(listed).saturating_add(1);
    put(committer, &snapshot)?;
    committer.change_profile(tail, |profile| {
        profile.snapshots.insert(snapshot.id.clone(), snapshot.rev);
    })
}

/// Deletes a snapshot. Removes it from the settings first, so that nothing brings it back.
pub(crate) fn delete(committer: &Committer<'_>, tail: &mut Tail, id: &str) -> Result<()> {
    check_id(id)?;
    let committer = &committer.with_reserve();
    let is_imported = open(committer.folder, id, 0)?.is_ok_and(|snapshot| snapshot.is_imported());
    committer.change_profile(tail, |profile| profile.unlist(id, is_imported))?;
    committer.folder.snapshots.remove(id)?;
    committer.folder.snapshots.sync()
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

/// Removes messages, and summaries of them, from snapshots. Deletes snapshots that become empty. No earlier revision
/// with these messages, and none that cannot be opened, is read again, even if a backup brings it back. Returns how
/// many snapshots had any of them.
pub(crate) fn remove_messages(
    committer: &Committer<'_>,
    tail: &mut Tail,
    (snapshots, findings): (Vec<Snapshot>, &[Finding]),
    seqs: &SeqSet,
) -> Result<usize> {
    let is_unread = |id: &str| {
        let place = place(id);
        findings.iter().any(|finding| finding.file.as_deref() == Some(&*place))
    };
    let withdrawal = Withdrawal::of(snapshots, is_unread, seqs, &tail.profile);
    withdrawal.changed.iter().try_for_each(|snapshot| put(committer, snapshot))?;
    if withdrawal.changes(&tail.profile) {
        committer.change_profile(tail, |profile| withdrawal.apply(profile))?;
    }
    if !withdrawal.emptied.is_empty() {
        withdrawal.emptied.iter().try_for_each(|(id, _)| committer.folder.snapshots.remove(id))?;
        committer.folder.snapshots.sync()?;
    }
    Ok(withdrawal.count)
}

/// Removes unlisted files on request: those of an interrupted deletion or save, and those that a backup has brought
/// back. Removes only what is certainly this conversation's.
pub(crate) fn sweep(committer: &Committer<'_>, tail: &Tail) -> Result<()> {
    if !tail.knows_settings() {
        return Ok(());
    }
    let mut removed = false;
    for id in names(committer.folder, &tail.profile)?.unlisted {
        if open(committer.folder, &id, 0)?.is_ok() {
            committer.folder.snapshots.remove(&id)?;
            removed = true;
        }
    }
    if removed { committer.folder.snapshots.sync() } else { Ok(()) }
}

/// Continues with the stored settings, snapshots and artifacts, even if newer ones are missing. If the settings are
/// lost, all snapshots that open are listed, and any message may be a restored copy.
pub(crate) fn accept(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let is_known = tail.knows_settings();
    let listed = is_known.then(|| tail.profile.snapshots.clone());
    let mut there = BTreeMap::new();
    for id in ids(committer.folder)? {
        let known = tail.profile.snapshots.get(&id);
        let is_listed = if is_known { known > Some(&0) } else { known != Some(&0) };
        if is_listed && let Ok(snapshot) = open(committer.folder, &id, 0)? {
            there.insert(id, snapshot.rev);
        }
    }
    // A file that does not open may still be restored.
    for (id, rev) in listed.into_iter().flatten() {
        if rev == 0 || committer.folder.snapshots.link_count(&id)? > 0 {
            there.entry(id).or_insert(rev);
        }
    }
    let last = tail.last_seq;
    let artifacts = artifact_files::there(committer.folder, tail)?;
    let imports = import_tombstones::revision(committer.folder)?;
    let change = |profile: &mut Profile| {
        (profile.snapshots, profile.artifacts, profile.imports) = (there, artifacts, imports);
        profile.restored.extend((!is_known).then_some(1..=last).into_iter());
    };
    match is_known {
        true => committer.change_profile(tail, change),
        false => committer.renew_profile(tail, change),
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

pub(crate) fn check_id(id: &str) -> Result<()> {
    let reason = "a snapshot's id must be a UUID in lower case";
    is_id(id).then_some(()).ok_or(Error::InvalidMessage { reason })
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
struct Names {
    unlisted: Vec<String>,
    foreign: Vec<Finding>,
}

fn names(folder: &Folder, profile: &Profile) -> Result<Names> {
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

/// Writes a snapshot with its revision. The settings must list it.
pub(crate) fn put(committer: &Committer<'_>, snapshot: &Snapshot) -> Result<()> {
    let plaintext = snapshot.to_plaintext()?;
    let line = committer
        .key
        .seal(&associated(&committer.folder.scope.parts(), &snapshot.id), &plaintext)?;
    committer.with_room(|| committer.folder.snapshots.replace(&snapshot.id, &line))?;
    committer.folder.snapshots.sync()
}

fn open(folder: &Folder, id: &str, rev: u64) -> Result<Result<Snapshot, Finding>> {
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
