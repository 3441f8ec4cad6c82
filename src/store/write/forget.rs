//! Forgets messages: records their numbers as forgotten and removes their files.

use crate::error::{Error, Result};
use crate::store::folder::{Folder, Listing, Opened, document, segments};
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::FindingKind;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::name::{NameTime, RecordKind, RecordName};
use crate::store::record::profile::Profile;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::seq_set::forget_record::ForgetRecord;
use crate::store::rules::current_state::{UnreadablePolicy, ready, survey};
use crate::store::rules::forget::Prepared;
use crate::store::rules::forget_plan::{ForgetPlan, ForgetReport, MessageRefs};
use crate::store::write::committer::Committer;
use crate::store::write::pack_rewrite::{purge, visit_forgotten};
use crate::store::write::{artifacts, import_tombstones, room, snapshots, thread_document};

/// Carries out a plan: removes messages from snapshots and summaries, records their numbers as forgotten, and removes
/// their files.
pub(crate) fn carry_out(
    prepared: Prepared,
    committer: &Committer<'_>,
    tail: &mut Tail,
) -> Result<ForgetReport> {
    let Prepared { plan, snapshots, mut unread, related, restored, refs } = prepared;
    let committer = &committer.with_reserve();
    let withdrawn = snapshots::remove_messages(committer, tail, (snapshots, &unread), &related)?;
    if tail.knows_settings() && restored != tail.profile.restored {
        committer.change_profile(tail, |profile| profile.restored = restored)?;
    }
    committer.drop_summaries(tail, &related)?;
    let mut forgotten = erase_surveyed(committer, tail, &plan.numbers, &refs)?;
    if plan.is_whole {
        forget_rest(committer, tail, &plan)?;
        unread.clear();
    }
    forgotten.left.append(&mut unread);
    // Listed anew: another process may have made one meanwhile. They may be on a disk that is not there now; nobody waits for it.
    let backups = &committer.folder.backups;
    let names = backups.daily_of(&committer.folder.scope).unwrap_or_else(|error| {
        tracing::warn!(%error, "could not look for the backups of what is forgotten");
        Vec::new()
    });
    forgotten.backups = backups.delete(&names);
    forgotten.snapshots = withdrawn;
    forgotten.plan = plan;
    tracing::info!(removed = forgotten.removed.len(), "forgot");
    Ok(forgotten)
}

/// Deletes what a conversation has beside its messages.
fn forget_rest(committer: &Committer<'_>, tail: &mut Tail, plan: &ForgetPlan) -> Result<()> {
    for id in &plan.deleted_snapshots {
        if tail.profile.revision(id).is_some() {
            snapshots::delete(committer, tail, id)?;
        }
    }
    artifacts::delete(committer, tail, plan.artifacts.iter().map(String::as_str))?;
    committer.folder.directory.remove(Document::Threads.file_name())?;
    if plan.description {
        committer.change_profile(tail, Profile::forget_words)?;
    }
    // Text lengths per token reveal which languages were spoken.
    match document::open(committer.folder, Document::Calibration)? {
        Some(_) => committer.replace(Document::Calibration, b"{}"),
        None => Ok(()),
    }
}

/// Records numbers as forgotten and then removes their files.
pub(crate) fn erase(
    committer: &Committer<'_>,
    tail: &mut Tail,
    seqs: &SeqSet,
) -> Result<ForgetReport> {
    let mut refs = MessageRefs::default();
    let new = seqs.without(&tail.erased);
    let unread = UnreadablePolicy::Recorded;
    ready(survey(&committer.state(tail), &new, unread, &mut |stored| refs.note(stored)))?;
    erase_surveyed(committer, tail, seqs, &refs)
}

/// Erases messages that were surveyed already.
fn erase_surveyed(
    committer: &Committer<'_>,
    tail: &mut Tail,
    seqs: &SeqSet,
    refs: &MessageRefs,
) -> Result<ForgetReport> {
    let committer = &committer.with_reserve();
    let now = NameTime::try_from(committer.reader.now())?;
    let mut erased = tail.erased.clone();
    erased.extend(seqs.ranges());
    if erased == tail.erased {
        // Packs that could not be rewritten the last time.
        let mut forgotten = ForgetReport::default();
        let unpurged = std::mem::take(&mut tail.unpurged);
        if seqs.is_empty() && unpurged.is_empty() {
            return Ok(forgotten);
        }
        let mut packs = committer.folder.list()?.packs;
        packs.retain(|pack| seqs.intersects(&pack.seqs()) || unpurged.contains(pack));
        purge_packs(committer.folder, &packs, &erased, &mut forgotten)?;
        if !forgotten.left.is_empty() {
            // The next append that has room tries again.
            tail.unpurged = packs;
        }
        return Ok(forgotten);
    }
    let numbers = erased.count() - tail.erased.count();
    let newly = erased.without(&tail.erased);
    // The new forget record replaces earlier ones, which are removed with the files.
    let erased = erased.with(&tail.forgets);
    let mut wanted = refs.wanted.clone();
    if !tail.unpurged.is_empty() {
        // Nobody could finish these yet.
        wanted.extend(tail.wanted.ranges());
    }
    let record = ForgetRecord { erased: erased.clone(), wanted };
    let plaintext = record.to_plaintext()?;
    // Segments of the search index have the messages' words, and the list of threads has theirs. They can be made again.
    segments::remove(committer.folder, &newly)?;
    thread_document::withdraw(committer, &newly)?;
    let name = committer.write(tail, now.max(tail.newest), RecordKind::Forget, &plaintext)?;
    tail.last_seq = name.seq;
    tail.forgets.push(name);
    committer.acknowledge(tail)?;

    settle(committer, tail, refs)?;
    let Listing { mut names, mut packs, .. } = committer.folder.list()?;
    names.retain(|name| erased.contains(name.seq));
    let mut forgotten =
        ForgetReport { numbers, ..remove_erased(committer.folder, &names, &erased)? };
    // Packs have no forget records, and earlier forgotten records were removed from them.
    packs.retain(|pack| newly.intersects(&pack.seqs()));
    purge_packs(committer.folder, &packs, &erased, &mut forgotten)?;
    *tail = Tail::load_alone(committer.folder, 0, None)?;
    Ok(forgotten)
}

/// Notes the tombstones of forgotten messages and deletes their artifacts. Call it after their forget record is durable,
/// so that no device and no import goes by a forgetting that never came about, and before their files go, which tell a
/// writer after an interruption what is left to do.
fn settle(committer: &Committer<'_>, tail: &mut Tail, refs: &MessageRefs) -> Result<()> {
    let committer = &committer.with_reserve();
    import_tombstones::note(committer, tail, &refs.tombstones)?;
    artifacts::delete(committer, tail, refs.moved.iter().map(String::as_str))
}

/// Finishes forgettings whose writer was interrupted, and removes forgotten files that came back.
pub(crate) fn finish(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let names = std::mem::take(&mut tail.resurrected);
    let mut refs = MessageRefs::wanting(tail.wanted.clone());
    for name in &names {
        if let Opened::Message(stored) = committer.folder.open(*name)? {
            refs.note(&stored);
        }
    }
    settle(committer, tail, &refs)?;
    remove_erased(committer.folder, &names, &tail.erased).map(drop)
}

/// Finishes what was forgotten in packs. Returns the packs that hold forgotten messages.
pub(crate) fn settle_packed(
    committer: &Committer<'_>,
    tail: &mut Tail,
    packs: &[PackName],
) -> Result<Vec<PackName>> {
    let mut refs = MessageRefs::wanting(tail.wanted.clone());
    let mut holding = Vec::new();
    for &name in packs {
        let note = |stored: &StoredMessage| refs.note(stored);
        if visit_forgotten(committer.folder, name, &tail.erased, note)? {
            holding.push(name);
        }
    }
    settle(committer, tail, &refs)?;
    Ok(holding)
}

/// Removes files of forgotten records. Each file is opened first to confirm that it matches its name. A forget record
/// is removed only if all of its numbers are in `erased`.
pub(crate) fn remove_erased(
    folder: &Folder,
    names: &[RecordName],
    erased: &SeqSet,
) -> Result<ForgetReport> {
    let mut forgotten = ForgetReport::default();
    for &name in names {
        match folder.open(name)? {
            Opened::Message(message) => {
                folder.directory.remove(&name.to_string())?;
                forgotten.removed.push(message.seq);
            }
            Opened::Forget(record) if record.erased.without(erased).is_empty() => {
                folder.directory.remove(&name.to_string())?;
            }
            Opened::Forget(_) => {}
            Opened::Skipped(kind) => forgotten.left.push(kind.in_file(name.to_string())),
            Opened::Gone => {}
        }
    }
    if !names.is_empty() {
        folder.directory.sync()?;
    }
    forgotten.removed.sort_unstable();
    Ok(forgotten)
}

/// Removes lines of forgotten records from packs. A pack for which the disk has no room stays, and its name tells the next
/// writer of the forgotten records in it.
fn purge_packs(
    folder: &Folder,
    packs: &[PackName],
    erased: &SeqSet,
    forgotten: &mut ForgetReport,
) -> Result<()> {
    for &pack in packs {
        match room::with_room(folder, || remove_packed(folder, &[pack], erased, forgotten)) {
            Err(Error::NoSpace { .. }) => {
                forgotten.left.push(FindingKind::Resurrected.in_file(pack.place()));
            }
            purged => purged?,
        }
    }
    Ok(())
}

/// Removes lines of forgotten records from packs.
pub(crate) fn remove_packed(
    folder: &Folder,
    packs: &[PackName],
    erased: &SeqSet,
    forgotten: &mut ForgetReport,
) -> Result<()> {
    let mut purged = purge(folder, packs, erased)?;
    forgotten.removed.append(&mut purged.removed);
    forgotten.removed.sort_unstable();
    // An interruption may have left one message in two places.
    forgotten.removed.dedup();
    forgotten.left.append(&mut purged.left);
    Ok(())
}
