//! Saves, changes and deletes snapshots.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::store::folder::snapshot_files::{FILES, open, unlisted};
use crate::store::read::tail::Tail;
use crate::store::record::finding::Finding;
use crate::store::record::profile::Profile;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::{Snapshot, Withdrawal, check_id};
use crate::store::write::committer::Committer;
use crate::store::write::{artifacts, import_tombstones};

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
        let place = FILES.place(id);
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
    for id in unlisted(committer.folder, &tail.profile)?.0 {
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
    for id in FILES.list(committer.folder)?.0 {
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
    let artifacts = artifacts::there(committer.folder, tail)?;
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

/// Writes a snapshot with its revision. The settings must list it.
pub(crate) fn put(committer: &Committer<'_>, snapshot: &Snapshot) -> Result<()> {
    let plaintext = snapshot.to_plaintext()?;
    let Committer { folder, key, .. } = *committer;
    committer.with_room(|| FILES.write(folder, key, &snapshot.id, &plaintext))
}
