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

/// How often the folder is listed again for what others wrote meanwhile.
const ATTEMPTS: usize = 5;

pub(crate) fn verify(folder: &Folder, progress: &dyn Fn(Progress)) -> Result<Report> {
    // The head before the listing, so that records appended meanwhile are no contradiction.
    let (mut head_bytes, head) = folder.head()?;
    let acknowledged = match head {
        HeadState::Known(head) => head.seq,
        HeadState::Absent | HeadState::Damaged => 0,
    };
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
            Opened::Message(_) => opened.entry(name.seq).or_default().push(name),
            Opened::Forget(ranges) => {
                erased.extend(ranges.ranges());
                opened.entry(name.seq).or_default().push(name);
            }
            Opened::Skipped(FindingKind::Unopenable) => unopenable.push(name),
            Opened::Skipped(kind) => findings.push(kind.in_file(name.to_string())),
            Opened::Gone => {}
        }
        if folder.blobs.links(&name.to_string())? > 1 {
            findings.push(FindingKind::SecondName.in_file(name.to_string()));
        }
    }
    progress(Progress { done: total, total });

    // Others may be writing, and a listing is no snapshot: before a number counts as lost, it is looked for again.
    let highest = account(&opened, &erased).ranges().last().map_or(0, |range| *range.end());
    let last = highest.max(acknowledged);
    for _ in 0..ATTEMPTS {
        let mut lost = Erased::default();
        let mut accounted = account(&opened, &erased);
        accounted.extend(std::iter::once(last.saturating_add(1)..=u64::MAX));
        lost.extend(accounted.holes());
        if lost == Erased::default() {
            break;
        }
        for name in folder.list()?.names {
            if !name.is_forget() && !lost.contains(name.seq) {
                continue;
            }
            match folder.open(name)? {
                Opened::Message(_) => opened.entry(name.seq).or_default().push(name),
                Opened::Forget(ranges) => {
                    erased.extend(
                        ranges.ranges().map(|range| *range.start()..=last.min(*range.end())),
                    );
                    if lost.contains(name.seq) {
                        opened.entry(name.seq).or_default().push(name);
                    }
                }
                Opened::Skipped(_) | Opened::Gone => {}
            }
        }
        let now = folder.head_bytes()?;
        if now == head_bytes {
            break;
        }
        head_bytes = now;
    }

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

    let accounted = account(&opened, &erased);
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
    findings
        .extend(accounted.holes().map(|hole| FindingKind::Missing.at(*hole.start(), *hole.end())));
    report.forgotten = erased.ranges().map(|range| range.end() - range.start() + 1).sum();
    report.findings = findings;
    Ok(report)
}

/// The numbers that are there or recorded as forgotten.
fn account(opened: &BTreeMap<u64, Vec<RecordName>>, erased: &Erased) -> Erased {
    let mut accounted = erased.clone();
    accounted.extend(opened.keys().map(|&seq| seq..=seq));
    accounted
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
