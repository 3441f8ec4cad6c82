//! Checking a whole conversation, file by file.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;

use crate::error::Result;
use crate::store::document;
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

pub(crate) fn verify(folder: &Folder, progress: &dyn Fn(Progress)) -> Result<Report> {
    // The head before the listing, so that records appended meanwhile are no contradiction.
    let (_, head) = folder.head()?;
    let mut listing = folder.list()?;
    listing.names.sort_unstable();
    let total = listing.names.len();
    let mut census = Census { findings: listing.strange, ..Census::default() };
    census.findings.append(&mut listing.leftovers);
    census.findings.append(&mut document::verify(folder)?);
    for (done, &name) in listing.names.iter().enumerate() {
        progress(Progress { done, total });
        census.count(folder, name)?;
    }
    progress(Progress { done: total, total });
    if total > 0 && folder.vault()?.is_none() {
        census.findings.push(FindingKind::VaultMissing.in_file("vault"));
    }
    if census.is_doubtful(head)
        && folder.settled(|| census.settle(folder, head))?.is_none()
        && let HeadState::Known(head) = head
    {
        // Writers do not stop: what is beyond the head as it was may only be half published.
        census.opened.retain(|&seq, _| seq <= head.seq);
    }
    census.place(folder, &listing.names)?;
    Ok(census.report(head))
}

/// Everything that a check has come upon.
#[derive(Default)]
struct Census {
    /// Records that open, by number.
    opened: BTreeMap<u64, BTreeSet<RecordName>>,
    erased: Erased,
    findings: Vec<Finding>,
    /// Files whose seals do not fit.
    unopenable: Vec<RecordName>,
}

impl Census {
    /// Takes in one file.
    fn count(&mut self, folder: &Folder, name: RecordName) -> Result<()> {
        let found = |kind: FindingKind| kind.in_file(name.to_string());
        match folder.open(name)? {
            Opened::Message(_) => {
                self.opened.entry(name.seq).or_default().insert(name);
            }
            Opened::Forget(ranges) => {
                self.erased.extend(ranges.ranges());
                self.opened.entry(name.seq).or_default().insert(name);
            }
            Opened::Skipped(FindingKind::Unopenable) => self.unopenable.push(name),
            Opened::Skipped(kind) => self.findings.push(found(kind)),
            Opened::Gone => {}
        }
        if folder.blobs.links(&name.to_string())? > 1 {
            self.findings.push(found(FindingKind::SecondName));
        }
        Ok(())
    }

    /// Names the files whose seals do not fit, and where they belong if that can be guessed.
    fn place(&mut self, folder: &Folder, names: &[RecordName]) -> Result<()> {
        let mut guesses = GUESSES;
        for name in self.unopenable.clone() {
            let place = place_of(folder, name, names, &mut guesses)?;
            let kind = place.map_or(FindingKind::Unopenable, |place| FindingKind::Misplaced {
                belongs: place.to_string(),
            });
            self.findings.push(kind.in_file(name.to_string()));
        }
        Ok(())
    }

    /// The numbers that should be there or forgotten, and are neither.
    fn lost(&self, head: HeadState) -> Erased {
        let mut accounted = self.accounted();
        accounted
            .extend(std::iter::once(head.seq().saturating_add(1)..=head.seq().saturating_add(1)));
        let mut lost = Erased::default();
        lost.extend(accounted.holes());
        lost
    }

    /// The numbers that are there or forgotten.
    fn accounted(&self) -> Erased {
        let mut accounted = self.erased.clone();
        accounted.extend(self.opened.keys().map(|&seq| seq..=seq));
        accounted
    }

    /// Whether something seems to be lost, or to have come back.
    fn is_doubtful(&self, head: HeadState) -> bool {
        self.lost(head).count() > 0 || self.opened.keys().any(|&seq| self.erased.contains(seq))
    }

    /// Looks again at what is doubtful while nobody writes: a listing is no snapshot, and others may have appended
    /// and forgotten during the count.
    fn settle(&mut self, folder: &Folder, head: HeadState) -> Result<()> {
        let lost = self.lost(head);
        let highest = self.opened.keys().last().copied().unwrap_or(0);
        let names = folder.list()?.names;
        let unopenable = self.unopenable.iter().map(RecordName::to_string);
        let found = self.findings.iter().filter_map(|finding| finding.file.clone());
        let found: HashSet<String> = found.chain(unopenable).collect();
        for &name in &names {
            let counted = self.opened.get(&name.seq).is_some_and(|names| names.contains(&name))
                || found.contains(&name.to_string());
            let wanted = name.is_forget() || name.seq > highest || lost.contains(name.seq);
            if wanted && !counted {
                self.count(folder, name)?;
            }
        }
        let there: HashSet<_> = names.iter().collect();
        let erased = &self.erased;
        self.opened.retain(|seq, names| {
            names.retain(|name| !erased.contains(*seq) || there.contains(name));
            !names.is_empty()
        });
        Ok(())
    }

    fn report(mut self, head: HeadState) -> Report {
        let in_files = |kind: FindingKind, name: &RecordName| kind.in_file(name.to_string());
        let duplicates = self.opened.values().flat_map(|names| names.iter().skip(1));
        self.findings.extend(duplicates.map(|name| in_files(FindingKind::Duplicate, name)));
        let (returned, standing): (Vec<RecordName>, Vec<RecordName>) =
            self.opened.values().flatten().partition(|name| self.erased.contains(name.seq));
        self.findings.extend(returned.iter().map(|name| in_files(FindingKind::Returned, name)));

        let accounted = self.accounted();
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
            forgotten: self.erased.count(),
            times: time(messages.values().min()).zip(time(messages.values().max())),
            findings: self.findings,
        }
    }
}

/// How many names a whole check tries for files whose seals do not fit; each costs some microseconds.
const GUESSES: usize = 200_000;

/// The name of this folder under which a file was sealed, if it is one that can be guessed: its own under another
/// role, or any that exists.
fn place_of(
    folder: &Folder,
    name: RecordName,
    names: &[RecordName],
    guesses: &mut usize,
) -> Result<Option<RecordName>> {
    let Ok(Some(bytes)) = folder.blobs.read(&name.to_string()) else {
        return Ok(None);
    };
    let roles = name.under_other_kinds();
    for &candidate in roles.iter().chain(names) {
        if *guesses == 0 {
            break;
        }
        *guesses -= 1;
        if candidate != name && folder.belongs_to(candidate, &bytes)? {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}
