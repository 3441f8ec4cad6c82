//! Checking a whole conversation, file by file.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::error::Result;
use crate::store::erased::Erased;
use crate::store::finding::{Finding, FindingKind};
use crate::store::folder::{Folder, HeadState, Opened};
use crate::store::forget::returned;
use crate::store::name::RecordName;

/// How far a check has come, in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files checked.
    pub done: usize,
    /// Files to check.
    pub total: usize,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Messages that open.
    pub messages: usize,
    /// The highest number given so far.
    pub last_seq: u64,
    /// How many numbers are recorded as forgotten.
    pub forgotten: u64,
    /// The first and last message's place in time.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Everything that is not as it should be.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing was lost, changed or unreadable.
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(|finding| finding.kind.is_problem())
    }
}

/// How often a check starts again because others were writing meanwhile.
const ATTEMPTS: usize = 3;

pub(crate) fn verify(folder: &Folder, progress: &dyn Fn(Progress)) -> Result<Report> {
    let mut bound = None;
    let mut attempt = 1;
    loop {
        let (report, moved) = check(folder, progress, &mut bound)?;
        if !moved || attempt == ATTEMPTS {
            return Ok(report);
        }
        attempt += 1;
    }
}

/// A report, and whether it may show changes of others half done: a file vanished, or a later record of a batch was
/// listed without an earlier one. All up to the `bound` noted then was there before the next listing.
fn check(
    folder: &Folder,
    progress: &dyn Fn(Progress),
    bound: &mut Option<u64>,
) -> Result<(Report, bool)> {
    let mut moved = false;
    // The head before the listing, so that records appended meanwhile are no contradiction.
    let (_, head) = folder.head()?;
    let acknowledged = match head {
        HeadState::Known(head) => head.seq,
        HeadState::Absent | HeadState::Damaged => 0,
    };
    let is_later = |name: RecordName| bound.is_some_and(|b| name.seq > b.max(acknowledged));
    let mut listing = folder.list()?;
    listing.names.sort_unstable();
    let total = listing.names.len();
    let mut report = Report::default();
    let mut findings = listing.strange;
    findings.append(&mut listing.leftovers);
    let mut opened: BTreeMap<u64, Vec<RecordName>> = BTreeMap::new();
    let mut erased = Erased::default();
    let mut unopenable = Vec::new();
    for (done, &name) in listing.names.iter().enumerate() {
        progress(Progress { done, total });
        match folder.open(name)? {
            Opened::Message(_) | Opened::Forget(_) if is_later(name) => continue,
            Opened::Message(_) => opened.entry(name.seq).or_default().push(name),
            Opened::Forget(ranges) => {
                erased.extend(ranges.ranges());
                opened.entry(name.seq).or_default().push(name);
            }
            Opened::Skipped(FindingKind::Unopenable) => unopenable.push(name),
            Opened::Skipped(kind) => findings.push(kind.in_file(name.to_string())),
            Opened::Gone => moved = true,
        }
        if folder.blobs.links(&name.to_string())? > 1 {
            findings.push(FindingKind::SecondName.in_file(name.to_string()));
        }
    }
    progress(Progress { done: total, total });

    for name in unopenable {
        let belongs = place_of(folder, name, &listing.names)?;
        let kind = belongs.map_or(FindingKind::Unopenable, |belongs| FindingKind::Misplaced {
            belongs: belongs.to_string(),
        });
        findings.push(kind.in_file(name.to_string()));
    }
    for names in opened.values() {
        for duplicate in names.iter().skip(1) {
            findings.push(FindingKind::Duplicate.in_file(duplicate.to_string()));
        }
    }
    let is_live = |name: &&RecordName| !name.is_forget() && !erased.contains(name.seq);
    findings.extend(
        opened
            .values()
            .flatten()
            .filter(|name| erased.contains(name.seq))
            .map(|name| returned(*name)),
    );
    let live: Vec<_> = opened.values().filter_map(|names| names.first()).filter(is_live).collect();
    report.messages = live.len();
    report.times = live
        .iter()
        .min()
        .zip(live.iter().max())
        .and_then(|(first, last)| first.time.timestamp().zip(last.time.timestamp()));

    let mut accounted = erased.clone();
    accounted.extend(opened.keys().map(|&seq| seq..=seq));
    let present = accounted.ranges().last().map_or(0, |range| *range.end());
    report.last_seq = present;
    match head {
        HeadState::Known(head) => {
            report.last_seq = present.max(head.seq);
            if head.seq > present {
                findings.push(FindingKind::CutTail.at(present + 1, head.seq));
            }
        }
        HeadState::Damaged => findings.push(FindingKind::HeadDamaged.in_file("head")),
        HeadState::Absent if present > 0 => {
            findings.push(FindingKind::HeadMissing.in_file("head"));
        }
        HeadState::Absent => {}
    }
    if total > 0 && folder.vault()?.is_none() {
        findings.push(FindingKind::VaultMissing.in_file("vault"));
    }
    if bound.is_none() && accounted.holes().any(|hole| *hole.end() > acknowledged) {
        *bound = Some(present);
        moved = true;
    }
    findings
        .extend(accounted.holes().map(|hole| FindingKind::Missing.at(*hole.start(), *hole.end())));
    report.forgotten = erased.ranges().map(|range| range.end() - range.start() + 1).sum();
    report.findings = findings;
    Ok((report, moved))
}

/// The name of this folder under which a file was sealed, if it is one that can be guessed: any that exists, or its
/// own under another role.
fn place_of(folder: &Folder, name: RecordName, names: &[RecordName]) -> Result<Option<RecordName>> {
    let Ok(Some(bytes)) = folder.blobs.read(&name.to_string()) else {
        return Ok(None);
    };
    let roles = name.under_other_kinds();
    for &candidate in roles.iter().chain(names) {
        if candidate != name && folder.belongs_to(candidate, &bytes)? {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}
