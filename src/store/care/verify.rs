//! Verifies a whole conversation, record by record.

use crate::error::Result;
use crate::store::care::verify_scan::VerifyScan;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::folder::{
    Folder, HeadState, artifact_files, document, quarantine, segments, settings, snapshot_files,
};
use crate::store::record::finding::{Finding, FindingKind, Progress, Report};
use crate::store::record::name::pack_name::PackName;
use crate::store::write::import_tombstones;

pub(crate) fn verify(folder: &Folder, progress: &dyn Fn(Progress)) -> Result<Report> {
    // Read the head before listing, so that records appended meanwhile do not contradict it.
    let (_, head) = folder.head()?;
    let (settings, _) = settings::read(folder, head, None)?;
    let told = head.seq().max(settings.seq);
    let mut listing = folder.list()?;
    listing.names.sort_unstable();
    let mut total = listing.names.len();
    for pack in &listing.packs {
        total = total.saturating_add(promised(folder, *pack)?);
    }
    let mut scan = VerifyScan::default();
    scan.findings.append(&mut listing.foreign);
    scan.findings.append(&mut listing.leftovers);
    scan.findings.append(&mut document::verify(folder)?);
    scan.findings.append(&mut beside(folder)?);
    scan.findings.append(&mut quarantine::verify(folder)?);
    scan.findings.append(&mut segments::verify(folder)?);
    let mut done = 0;
    let mut count = |more: usize| {
        // Report progress for each record of the chunk.
        for _ in 0..more {
            progress(Progress { done, total: total.max(done) });
            done += 1;
        }
    };
    for &name in &listing.names {
        count(1);
        scan.count(folder, name)?;
    }
    scan.count_packs(folder, &listing.packs, &mut count)?;
    progress(Progress { done, total: done });
    if folder.lacks_vault()? {
        scan.findings.push(FindingKind::VaultMissing.in_file("vault"));
    }
    scan.findings.append(&mut folder.unbound_keys()?);
    // Records that were packed or merged during the check are elsewhere now.
    for _ in 0..LOOKS {
        if scan.is_doubtful(told) {
            scan.look_again(folder, told)?;
        }
    }
    if scan.is_doubtful(told)
        && folder.settled(|| scan.look_again(folder, told))?.is_none()
        && let HeadState::Known(head) = head
    {
        // Writers keep writing: beyond the head that was read, records may be incomplete.
        scan.opened.retain(|name| name.seq <= head.seq);
    }
    scan.find_dangling(folder)?;
    Ok(scan.report(head, told))
}

/// Findings about settings, snapshots and artifacts. If there are any, checks again under the lock: a snapshot that
/// is being saved or deleted is no loss.
fn beside(folder: &Folder) -> Result<Vec<Finding>> {
    let look = || {
        let (_, head) = folder.head()?;
        let (profile, unsettled) = settings::read(folder, head, None)?;
        let mut findings: Vec<Finding> = unsettled.into_iter().collect();
        findings.append(&mut snapshot_files::verify(folder, &profile)?);
        findings.append(&mut artifact_files::verify(folder, &profile)?);
        findings.extend(import_tombstones::verify(folder, &profile)?);
        Ok(findings)
    };
    let findings = look()?;
    if findings.is_empty() {
        return Ok(findings);
    }
    Ok(folder.settled(look)?.unwrap_or(findings))
}

/// How often to check while others write, before the check takes the lock.
const LOOKS: usize = 3;

/// How many records a pack may have: the count in its name, if the pack is long enough for it.
fn promised(folder: &Folder, name: PackName) -> Result<usize> {
    let OpenedPack::Pack(pack) = Pack::open(folder, name)? else {
        return Ok(0);
    };
    let shortest_line = 200;
    Ok(usize::try_from(name.count.min(pack.size() / shortest_line + 1)).unwrap_or(usize::MAX))
}
