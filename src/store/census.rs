//! What a check has come upon, and what that amounts to.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::error::Result;
use crate::store::erased::Erased;
use crate::store::finding::{Finding, FindingKind};
use crate::store::folder::{Folder, HeadState, Listing, Opened};
use crate::store::name::RecordName;
use crate::store::pack::audit::Audit;
use crate::store::pack::lines::Lines;
use crate::store::pack::{OpenedPack, Pack, PackName};
use crate::store::verify::Report;

/// Everything that a check has come upon.
#[derive(Default)]
pub(crate) struct Census {
    /// Records that open, by number.
    pub(crate) opened: BTreeMap<u64, BTreeSet<RecordName>>,
    erased: Erased,
    pub(crate) findings: Vec<Finding>,
    /// Files whose seals do not fit.
    pub(crate) unopenable: Vec<RecordName>,
    /// Packs that were read.
    packs: HashSet<PackName>,
}

impl Census {
    /// Takes in one file of its own.
    pub(crate) fn count(&mut self, folder: &Folder, name: RecordName) -> Result<()> {
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

    /// Takes in a pack, calling `progress` with each line.
    pub(crate) fn count_pack(
        &mut self,
        folder: &Folder,
        name: PackName,
        progress: &mut dyn FnMut(),
    ) -> Result<()> {
        let pack = match Pack::open(folder, name)? {
            OpenedPack::Pack(pack) => pack,
            OpenedPack::Skipped(kind) => {
                self.findings.push(kind.in_file(name.place()));
                return Ok(());
            }
            OpenedPack::Gone => return Ok(()),
        };
        self.packs.insert(name);
        let mut wrong = BTreeSet::new();
        let mut doubled = false;
        let mut audit = Audit::new(&pack);
        while let Some(audited) = audit.next()? {
            wrong.extend(audited.wrong);
            let Some(line) = audited.line else {
                continue;
            };
            progress();
            let Some(record) = line.name else {
                continue;
            };
            match folder.open_bytes(record, line.file())? {
                Opened::Skipped(kind) => self.findings.push(kind.in_file(name.place_of(record))),
                _ => doubled |= !self.opened.entry(record.seq).or_default().insert(record),
            }
        }
        if folder.packs.links(&name.to_string())? > 1 {
            self.findings.push(FindingKind::SecondName.in_file(name.place()));
        }
        self.findings.extend(
            wrong.into_iter().map(|reason| FindingKind::Damaged(reason).in_file(name.place())),
        );
        self.findings.extend(doubled.then(|| FindingKind::Doubled.in_file(name.place())));
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
    pub(crate) fn is_doubtful(&self, head: HeadState) -> bool {
        self.lost(head).count() > 0 || self.opened.keys().any(|&seq| self.erased.contains(seq))
    }

    /// Looks again at what is doubtful: a listing is no snapshot, and others may have appended, forgotten and packed
    /// during the count. Certain while nobody writes.
    pub(crate) fn look_again(&mut self, folder: &Folder, head: HeadState) -> Result<()> {
        let lost = self.lost(head);
        let highest = self.opened.keys().last().copied().unwrap_or(0);
        let Listing { names, packs, .. } = folder.list()?;
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
        for &pack in &packs {
            if !self.packs.contains(&pack) {
                let findings = std::mem::take(&mut self.findings);
                self.count_pack(folder, pack, &mut || {})?;
                // What it holds twice was counted where it lay before.
                self.findings.retain(|finding| finding.kind != FindingKind::Doubled);
                self.findings.splice(0..0, findings);
            }
        }
        let mut there: HashSet<RecordName> = names.into_iter().collect();
        if self.opened.keys().any(|seq| self.erased.contains(*seq)) {
            for pack in packs.into_iter().filter(|pack| self.erased.meets(&pack.seqs())) {
                let OpenedPack::Pack(pack) = Pack::open(folder, pack)? else {
                    continue;
                };
                let mut lines = Lines::new(&pack);
                while let Some(line) = lines.next()? {
                    there.extend(line.name.filter(|name| self.erased.contains(name.seq)));
                }
            }
        }
        let erased = &self.erased;
        self.opened.retain(|seq, names| {
            names.retain(|name| !erased.contains(*seq) || there.contains(name));
            !names.is_empty()
        });
        Ok(())
    }

    pub(crate) fn report(mut self, head: HeadState) -> Report {
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
