//! Checking a whole conversation, file by file.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::error::Result;
use crate::store::erased::Erased;
use crate::store::finding::{Finding, FindingKind};
use crate::store::folder::{Folder, HeadState, Opened};
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
const ATTEMPTS: usize = 5;

pub(crate) fn verify(folder: &Folder, progress: &dyn Fn(Progress)) -> Result<Report> {
    let mut attempt = 1;
    loop {
        let (report, disturbed) = check(folder, progress)?;
        if !disturbed || attempt == ATTEMPTS {
            return Ok(report);
        }
        attempt += 1;
    }
}

/// A report, and whether what it calls lost may only have been in motion.
fn check(folder: &Folder, progress: &dyn Fn(Progress)) -> Result<(Report, bool)> {
    // The head before the listing, so that records appended meanwhile are no contradiction.
    let (head_bytes, head) = folder.head()?;
    let mut listing = folder.list()?;
    listing.names.sort_unstable();
    let whole_up_to = listing.whole_up_to(head);
    let total = listing.names.len();
    let mut census = Census { findings: listing.strange, ..Census::default() };
    census.findings.append(&mut listing.leftovers);
    for (done, &name) in listing.names.iter().enumerate() {
        progress(Progress { done, total });
        census.count(folder, name, &listing.names)?;
    }
    progress(Progress { done: total, total });
    if total > 0 && folder.vault()?.is_none() {
        census.findings.push(FindingKind::VaultMissing.in_file("vault"));
    }
    let busy = folder.head_bytes()? != head_bytes;
    if busy {
        // Beyond that, a batch may be in the middle of being published.
        census.opened.retain(|&seq, _| seq <= whole_up_to);
    }
    let vanished = census.vanished;
    let report = census.report(head);
    let is_loss =
        |finding: &Finding| matches!(finding.kind, FindingKind::Missing | FindingKind::CutTail);
    let disturbed = vanished || (busy && report.findings.iter().any(is_loss));
    Ok((report, disturbed))
}

/// Everything that a check has come upon.
#[derive(Default)]
struct Census {
    /// Records that open, by number.
    opened: BTreeMap<u64, Vec<RecordName>>,
    erased: Erased,
    findings: Vec<Finding>,
    /// Whether a file went between being listed and being opened.
    vanished: bool,
}

impl Census {
    /// Takes in one file.
    fn count(&mut self, folder: &Folder, name: RecordName, names: &[RecordName]) -> Result<()> {
        let found = |kind: FindingKind| kind.in_file(name.to_string());
        match folder.open(name)? {
            Opened::Message(_) => self.opened.entry(name.seq).or_default().push(name),
            Opened::Forget(ranges) => {
                self.erased.extend(ranges.ranges());
                self.opened.entry(name.seq).or_default().push(name);
            }
            Opened::Skipped(FindingKind::Unopenable) => {
                let kind = place_of(folder, name, names)?
                    .map(|place| FindingKind::Misplaced { belongs: place.to_string() });
                self.findings.push(found(kind.unwrap_or(FindingKind::Unopenable)));
            }
            Opened::Skipped(kind) => self.findings.push(found(kind)),
            Opened::Gone => self.vanished = true,
        }
        if folder.blobs.links(&name.to_string())? > 1 {
            self.findings.push(found(FindingKind::SecondName));
        }
        Ok(())
    }

    fn report(mut self, head: HeadState) -> Report {
        let in_files = |kind: FindingKind, name: &RecordName| kind.in_file(name.to_string());
        let duplicates = self.opened.values().flat_map(|names| names.iter().skip(1));
        self.findings.extend(duplicates.map(|name| in_files(FindingKind::Duplicate, name)));
        let (returned, standing): (Vec<RecordName>, Vec<RecordName>) =
            self.opened.values().flatten().partition(|name| self.erased.contains(name.seq));
        self.findings.extend(returned.iter().map(|name| in_files(FindingKind::Returned, name)));

        let mut accounted = self.erased.clone();
        accounted.extend(self.opened.keys().map(|&seq| seq..=seq));
        let present = accounted.ranges().last().map_or(0, |range| *range.end());
        self.findings.extend(
            accounted.holes().map(|hole| FindingKind::Missing.at(*hole.start(), *hole.end())),
        );
        match head {
            HeadState::Known(head) if head.seq > present => {
                self.findings.push(FindingKind::CutTail.at(present + 1, head.seq));
            }
            HeadState::Damaged => self.findings.push(FindingKind::HeadDamaged.in_file("head")),
            HeadState::Absent if present > 0 => {
                self.findings.push(FindingKind::HeadMissing.in_file("head"));
            }
            HeadState::Known(_) | HeadState::Absent => {}
        }

        let messages: BTreeMap<u64, RecordName> = standing
            .into_iter()
            .filter(|name| !name.is_forget())
            .map(|name| (name.seq, name))
            .collect();
        let time = |name: Option<&RecordName>| name.and_then(|name| name.time.timestamp());
        Report {
            messages: messages.len(),
            last_seq: present.max(head.seq()),
            forgotten: self.erased.ranges().map(|range| range.end() - range.start() + 1).sum(),
            times: time(messages.values().min()).zip(time(messages.values().max())),
            findings: self.findings,
        }
    }
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
