//! Collects what a check finds, and turns it into a report.

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

use crate::error::Result;
use crate::store::care::record_index::RecordIndex;
use crate::store::folder::decoder::RecordDecoder;
use crate::store::folder::pack::check::PackCheck;
use crate::store::folder::pack::chunk::{ChunkRead, PackChunk};
use crate::store::folder::pack::pack_lines::PackLines;
use crate::store::folder::pack::parallel::parallel_map_ordered;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::folder::{Folder, HeadState, Listing, Opened, settings};
use crate::store::record::artifact::artifact_references;
use crate::store::record::finding::{Finding, FindingKind, Report};
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;

/// Everything that a check has found so far.
#[derive(Default)]
pub(crate) struct VerifyScan {
    /// Records that open.
    pub(crate) opened: RecordIndex,
    erased: SeqSet,
    pub(crate) findings: Vec<Finding>,
    /// Records that open in files of their own.
    loose: Vec<RecordName>,
    /// Packs that were read.
    packs: HashSet<PackName>,
    /// Artifacts that messages refer to, with the messages' numbers.
    referred: BTreeSet<(u64, String)>,
}

/// What was found in a chunk of a pack, or in all of it.
#[derive(Default)]
struct Part {
    tally: PackCheck,
    wrong: BTreeSet<&'static str>,
    opened: Vec<RecordName>,
    findings: Vec<Finding>,
    referred: BTreeSet<(u64, String)>,
    lines: usize,
}

impl Part {
    fn read(folder: &Folder, chunk: &PackChunk) -> Result<(ChunkRead, Self)> {
        let (mut part, mut decoder) = (Self::default(), RecordDecoder::new(folder));
        let read = chunk.read(folder, |line| {
            part.lines += 1;
            part.wrong.extend(part.tally.add(line));
            if let Some(name) = line.name {
                match decoder.open(name, line.text(), line.file())? {
                    Opened::Skipped(kind) => {
                        part.findings.push(kind.in_file(chunk.pack.place_of(name)));
                    }
                    opened => {
                        part.referred.extend(references(&opened));
                        part.opened.push(name);
                    }
                }
            }
            Ok(true)
        })?;
        Ok((read, part))
    }

    fn join(&mut self, mut next: Self) {
        self.wrong.extend(self.tally.join(next.tally));
        self.wrong.append(&mut next.wrong);
        self.opened.append(&mut next.opened);
        self.findings.append(&mut next.findings);
        self.referred.append(&mut next.referred);
    }
}

/// The artifacts that a message refers to, with its number.
fn references(opened: &Opened) -> BTreeSet<(u64, String)> {
    let Opened::Message(stored) = opened else { return BTreeSet::new() };
    let ids = artifact_references(&stored.message.content);
    ids.map(|id| (stored.seq, id.to_owned())).collect()
}

impl VerifyScan {
    /// Adds a loose file.
    pub(crate) fn count(&mut self, folder: &Folder, name: RecordName) -> Result<()> {
        let found = |kind: FindingKind| kind.in_file(name.to_string());
        let opened = folder.open(name)?;
        self.referred.extend(references(&opened));
        match opened {
            Opened::Message(_) => self.add_loose(name),
            Opened::Forget(record) => {
                self.erased.extend(record.erased.ranges());
                self.add_loose(name);
            }
            Opened::Skipped(kind) => self.findings.push(found(kind)),
            Opened::Gone => {}
        }
        if folder.directory.link_count(&name.to_string())? > 1 {
            self.findings.push(found(FindingKind::HardLinked));
        }
        Ok(())
    }

    fn add_loose(&mut self, name: RecordName) {
        self.opened.add(vec![name]);
        self.loose.push(name);
    }

    /// The path of a record that opened, in the conversation's folder.
    fn place_of(&self, name: RecordName) -> String {
        let pack = || self.packs.iter().filter(|pack| pack.covers(name)).min();
        match self.loose.binary_search(&name) {
            Ok(_) => name.to_string(),
            Err(_) => pack().map_or_else(|| name.to_string(), |pack| pack.place_of(name)),
        }
    }

    /// Adds packs. Calls `progress` with the number of lines read.
    pub(crate) fn count_packs(
        &mut self,
        folder: &Folder,
        names: &[PackName],
        progress: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let mut chunks = Vec::new();
        for &name in names {
            match Pack::open(folder, name)? {
                OpenedPack::Pack(pack) => chunks.extend(PackChunk::cut(name, 0..pack.size())),
                OpenedPack::Skipped(kind) => self.findings.push(kind.in_file(name.place())),
                OpenedPack::Gone => {}
            }
        }
        let (mut whole, mut is_gone) = (Part::default(), false);
        let read = |chunk: &PackChunk| Part::read(folder, chunk);
        parallel_map_ordered(
            &chunks,
            PackChunk::threads_for(&chunks, || folder.threads()),
            read,
            |chunk, (read, part)| {
                progress(part.lines);
                is_gone |= read == ChunkRead::Gone;
                whole.join(part);
                if chunk.is_last {
                    let whole = std::mem::take(&mut whole);
                    // If a pack vanished half-way, its records are elsewhere now and the check looks for them there.
                    if !std::mem::take(&mut is_gone) {
                        return self.take_in(folder, chunk.pack, whole);
                    }
                }
                Ok(())
            },
        )
    }

    fn take_in(&mut self, folder: &Folder, name: PackName, whole: Part) -> Result<()> {
        let Part { tally, mut wrong, opened, mut findings, mut referred, .. } = whole;
        wrong.extend(tally.end(name));
        self.packs.insert(name);
        self.findings.append(&mut findings);
        self.referred.append(&mut referred);
        let is_doubled = self.opened.add(opened);
        if folder.packs.link_count(&name.to_string())? > 1 {
            self.findings.push(FindingKind::HardLinked.in_file(name.place()));
        }
        let damaged = |reason| FindingKind::Damaged(reason).in_file(name.place());
        self.findings.extend(wrong.into_iter().map(damaged));
        self.findings.extend(is_doubled.then(|| FindingKind::RedundantCopy.in_file(name.place())));
        Ok(())
    }

    /// The numbers up to this one that are neither stored nor forgotten.
    fn lost(&self, told: u64) -> SeqSet {
        let mut accounted = self.accounted();
        accounted.extend(std::iter::once(told.saturating_add(1)..=told.saturating_add(1)));
        self.gone(accounted.holes())
    }

    /// Those of these numbers that are not [closed](Self::closed).
    fn gone(&self, numbers: impl Iterator<Item = RangeInclusive<u64>>) -> SeqSet {
        numbers.collect::<SeqSet>().without(&self.closed())
    }

    /// The numbers that are stored or forgotten.
    fn accounted(&self) -> SeqSet {
        let mut accounted = self.erased.clone();
        accounted.extend(self.opened.runs());
        accounted
    }

    /// The numbers that another key, another program or a later attempt may read, judging by file names. They are not
    /// lost.
    fn closed(&self) -> SeqSet {
        let closed = self.findings.iter().filter(|finding| finding.kind.may_open_later());
        let numbers = closed.filter_map(|finding| finding.seqs);
        numbers.filter(|(first, last)| first == last).map(|(first, last)| first..=last).collect()
    }

    /// Whether something seems lost or resurrected.
    pub(crate) fn is_doubtful(&self, told: u64) -> bool {
        self.lost(told).count() > 0 || self.holds_erased()
    }

    fn holds_erased(&self) -> bool {
        !self.erased.is_empty() && self.opened.names().any(|name| self.erased.contains(name.seq))
    }

    /// Checks doubtful numbers again: a listing is no snapshot, and others may have appended, forgotten or packed
    /// during the scan. The result is certain while nobody writes.
    pub(crate) fn look_again(&mut self, folder: &Folder, told: u64) -> Result<()> {
        let lost = self.lost(told);
        let highest = self.opened.highest();
        let Listing { names, packs, .. } = folder.list()?;
        let found: HashSet<String> =
            self.findings.iter().filter_map(|finding| finding.file.clone()).collect();
        for &name in &names {
            let counted = self.opened.contains(name) || found.contains(&name.to_string());
            let wanted = name.is_forget() || name.seq > highest || lost.contains(name.seq);
            if wanted && !counted {
                self.count(folder, name)?;
            }
        }
        let uncounted = |pack: &&PackName| !self.packs.contains(pack);
        let uncounted: Vec<PackName> = packs.iter().filter(uncounted).copied().collect();
        let mut findings = std::mem::take(&mut self.findings);
        self.count_packs(folder, &uncounted, &mut |_| {})?;
        // Records that these packs have twice were counted at their earlier place.
        self.findings.retain(|finding| finding.kind != FindingKind::RedundantCopy);
        findings.append(&mut self.findings);
        self.findings = findings;
        let mut there: HashSet<RecordName> = names.into_iter().collect();
        if self.holds_erased() {
            for pack in packs.into_iter().filter(|pack| self.erased.intersects(&pack.seqs())) {
                let OpenedPack::Pack(pack) = Pack::open(folder, pack)? else {
                    continue;
                };
                let mut lines = PackLines::new(&pack);
                while let Some(line) = lines.next()? {
                    there.extend(line.name.filter(|name| self.erased.contains(name.seq)));
                }
            }
        }
        let erased = &self.erased;
        self.opened.retain(|name| !erased.contains(name.seq) || there.contains(name));
        Ok(())
    }

    /// The number of the newest forget record, if the head names it and neither it nor a later one opens.
    fn lost_forget(&self, head: HeadState) -> Option<u64> {
        let HeadState::Known(head) = head else { return None };
        let told = Some(head.forget()).filter(|seq| *seq > 0 && !self.closed().contains(*seq))?;
        let is_there = self.opened.names().any(|name| name.is_forget() && name.seq >= told);
        (!is_there).then_some(told)
    }

    /// Reports references to artifacts that the settings do not list.
    pub(crate) fn find_dangling(&mut self, folder: &Folder) -> Result<()> {
        let referred = std::mem::take(&mut self.referred);
        if referred.is_empty() {
            return Ok(());
        }
        // Read the settings last: an artifact is listed before a message refers to it.
        let (_, head) = folder.head()?;
        let (profile, _) = settings::read(folder, head, None)?;
        let is_live = |seq: u64| !self.erased.contains(seq);
        let dangling = referred
            .into_iter()
            .filter(|(seq, id)| is_live(*seq) && profile.artifact(id).is_none())
            .map(|(seq, id)| FindingKind::Dangling { id }.at(seq, seq));
        if !profile.is_unknown {
            self.findings.extend(dangling);
        }
        Ok(())
    }

    /// The report, compared with a head and the highest recorded number.
    pub(crate) fn report(mut self, head: HeadState, told: u64) -> Report {
        self.loose.sort_unstable();
        let duplicates = self.opened.by_number().flat_map(|names| names.iter().skip(1).copied());
        let duplicates =
            duplicates.map(|name| FindingKind::DuplicateNumber.in_file(self.place_of(name)));
        let erased = &self.erased;
        let returned = self.opened.names().filter(|name| erased.contains(name.seq));
        let returned = returned.map(|name| FindingKind::Resurrected.in_file(self.place_of(name)));
        let foreign: Vec<_> = duplicates.chain(returned).collect();
        self.findings.extend(foreign);

        let accounted = self.accounted();
        let present = accounted.ranges().last().map_or(0, |range| *range.end());
        let missing = self.gone(accounted.holes());
        let cut = match told > present {
            true => self.gone(std::iter::once(present + 1..=told)),
            false => SeqSet::default(),
        };
        let forget: SeqSet = self.lost_forget(head).map(|seq| seq..=seq).into_iter().collect();
        for (kind, gone) in [
            (FindingKind::Missing, missing.without(&forget)),
            (head.loss(), cut.without(&forget)),
            (FindingKind::ForgetMissing, forget),
        ] {
            let at = |range: RangeInclusive<u64>| kind.clone().at(*range.start(), *range.end());
            self.findings.extend(gone.ranges().map(at));
        }
        match head {
            HeadState::Damaged => self.findings.push(FindingKind::HeadDamaged.in_file("head")),
            HeadState::Absent if present > 0 => {
                self.findings.push(FindingKind::HeadMissing.in_file("head"));
            }
            HeadState::Known(_) | HeadState::Absent => {}
        }

        // If several records have one number, one of them counts.
        let standing = self.opened.by_number().filter_map(|names| {
            let mut messages = names.iter().rev().filter(|name| !name.is_forget());
            messages.next().filter(|name| !erased.contains(name.seq)).copied()
        });
        let (mut messages, mut ends) = (0, None);
        for name in standing {
            messages += 1;
            let (first, last) = ends.unwrap_or((name, name));
            ends = Some((name.min(first), name.max(last)));
        }
        let times =
            ends.and_then(|(first, last)| first.time.timestamp().zip(last.time.timestamp()));
        Report {
            messages,
            last_seq: present.max(told),
            forgotten: self.erased.count(),
            times,
            findings: self.findings,
        }
    }
}
