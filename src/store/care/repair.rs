//! Repairs a conversation. Deletes nothing but what is durable elsewhere with the same bytes, was forgotten, or was
//! never finished. A repair that is interrupted leaves at most duplicates, and can be run again.

pub(crate) mod keyring;
pub(crate) mod rebuild;
pub(crate) mod set_aside;

use std::collections::BTreeSet;

use crate::crypto::AssociatedData;
use crate::error::Result;
use crate::store::care::repair::set_aside::passing;
use crate::store::care::repair_kind::{RepairAction, RepairKind, pack_of};
use crate::store::folder::{Folder, HeadState};
use crate::store::read::tail::Tail;
use crate::store::record::finding::{FindingKind, Report};
use crate::store::record::layout::{HEAD, QUARANTINE};
use crate::store::record::seq_set::SeqSet;
use crate::store::rules::forget_plan::ForgetReport;
use crate::store::write::committer::Committer;
use crate::store::write::forget::{erase, remove_packed};
use crate::store::write::settings_documents::accept;
use crate::store::write::{Writer, artifacts, snapshots};

/// What a repair may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// Changes nothing and returns what would be done.
    pub dry_run: bool,
    /// Moves unreadable and foreign files to the folder `quarantine` beside them.
    pub quarantine: bool,
}

/// The outcome of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The repairs that were done; in a dry run, those that would be tried.
    pub repairs: Vec<RepairAction>,
    /// The report of a check after the repair.
    pub report: Report,
}

/// Plans repairs for the findings of a report. A pack is rebuilt once, however many findings it has.
pub(crate) fn plan(report: &Report, options: RepairOptions) -> Vec<RepairAction> {
    let mut packs = BTreeSet::new();
    let actions = report.findings.iter().filter_map(|finding| {
        let kind = RepairKind::of(finding, options.quarantine)?;
        let is_first = match kind {
            RepairKind::RebuildPack => pack_of(finding).is_none_or(|pack| packs.insert(pack)),
            _ => true,
        };
        is_first.then(|| RepairAction { finding: finding.clone(), kind })
    });
    actions.collect()
}

/// Carries out a plan. Requires the lock. Taking the lock has already removed leftovers. Each step checks that its
/// finding still holds.
pub(crate) fn apply(
    committer: &Committer<'_>,
    tail: &mut Tail,
    plan: &[RepairAction],
) -> Result<()> {
    let folder = committer.folder;
    let of = |kind| plan.iter().filter(move |action| action.kind == kind);
    let concerned = of(RepairKind::RebuildPack).chain(of(RepairKind::RemoveCopies));
    let packs: BTreeSet<_> = concerned.filter_map(|action| pack_of(&action.finding)).collect();
    for pack in packs {
        passing(rebuild::rebuild(folder, pack), "rebuilding a pack")?;
    }
    if of(RepairKind::ForgetAgain).next().is_some() {
        let mut packs = folder.list()?.packs;
        packs.retain(|pack| tail.erased.intersects(&pack.seqs()));
        remove_packed(folder, &packs, &tail.erased, &mut ForgetReport::default())?;
        snapshots::sweep(committer, tail)?;
        artifacts::sweep(committer, tail)?;
    }
    set_aside::set_aside(folder, of(RepairKind::SetAside).map(|action| &action.finding))?;

    *tail = Tail::load_alone(folder, 0, None)?;
    let accepts = of(RepairKind::Accept).next().is_some();
    if accepts {
        // First, while the head's witness still tells of them.
        let lost: SeqSet = tail.put_back().collect();
        erase(committer, tail, &lost)?;
    }
    renew_head(committer, tail, of(RepairKind::RenewHead).next().is_some())?;
    if accepts {
        snapshots::accept(committer, tail)?;
        accept(committer, tail)?;
    }
    Ok(())
}

/// Updates the head so that readers notice the changes. Makes a missing head if the plan asks for it.
fn renew_head(committer: &Committer<'_>, tail: &mut Tail, asked: bool) -> Result<()> {
    match tail.head {
        HeadState::Known(_) => {
            committer.acknowledge(tail)?;
            committer.folder.directory.flush(HEAD)
        }
        HeadState::Damaged if asked && !may_open_later(committer.folder)? => {
            committer.folder.directory.move_into(HEAD.as_bytes(), QUARANTINE)?;
            committer.make_head(tail)
        }
        HeadState::Absent if asked => committer.make_head(tail),
        HeadState::Absent | HeadState::Damaged => Ok(()),
    }
}

/// Whether a newer program or another key may read the head.
fn may_open_later(folder: &Folder) -> Result<bool> {
    let Some(bytes) = folder.head_bytes()? else {
        return Ok(false);
    };
    let opened = folder.unseal(&AssociatedData::head(&folder.scope.parts()), &bytes)?;
    Ok(matches!(opened, Err(FindingKind::NewerFormat(_) | FindingKind::WrongKey { .. })))
}

/// Carries out repairs. Returns what was done.
pub(crate) fn carry_out(writer: &mut Writer, plan: Vec<RepairAction>) -> Result<Vec<RepairAction>> {
    let (reader, timeout) = writer.start_anew();
    if plan.iter().any(|action| action.kind == RepairKind::AdoptVault) {
        writer.poison_on_error(keyring::adopt(&reader.folder, timeout))?;
    }
    if plan.iter().any(|action| action.kind == RepairKind::BindVault) {
        writer.poison_on_error(reader.folder.remove_unbound_keys(timeout))?;
    }
    writer.locked(|committer, tail, _| apply(committer, tail, &plan))?;
    Ok(plan)
}
