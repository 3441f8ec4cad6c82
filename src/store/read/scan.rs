//! Scans the folder for the tail: lists its names and opens the newest records.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::error::Result;
use crate::store::folder::pack::Reported;
use crate::store::folder::{ATTEMPTS, Folder, HeadState, Opened, settings, unstable_folder};
use crate::store::read::newest_names::NewestNames;
use crate::store::read::record_cache::RecordCache;
use crate::store::read::reverse_scan::{NextRecord, ReverseScan};
use crate::store::read::tail::{KEPT, Tail};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::head::NAMED;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::name::{NameTime, RecordName};
use crate::store::record::seq_set::SeqSet;

/// Whether others may be writing during a scan. A listing is no snapshot: while a batch is published, it may show a
/// later record without an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterPresence {
    /// Others may be writing. A gap needs another look.
    Possible,
    /// Others keep writing. Beyond the head, only records without a gap count, and a gap before it may be theirs.
    Constant,
    /// Nobody else is writing, because this process holds the lock. Everything counts.
    Excluded,
}

/// The outcome of a scan.
enum ScanOutcome {
    Tail(Box<Tail>),
    /// A file vanished after it was listed.
    Changed,
    /// A number before a record is neither there nor forgotten.
    Gap,
}

/// The forget records and the numbers that they cover.
#[derive(Default)]
struct ForgetRecords {
    erased: SeqSet,
    wanted: SeqSet,
    opened: Vec<(RecordName, SeqSet)>,
    skipped: Vec<Finding>,
}

impl ForgetRecords {
    /// Opens forget records; `None` if one has vanished.
    fn open(
        cache: &mut RecordCache<'_>,
        names: impl Iterator<Item = RecordName>,
    ) -> Result<Option<Self>> {
        let mut forgets = Self::default();
        for name in names {
            match cache.open(name)? {
                Opened::Forget(record) => {
                    forgets.erased.extend(record.erased.ranges());
                    forgets.wanted.extend(record.wanted.ranges());
                    forgets.opened.push((name, record.erased));
                }
                Opened::Gone => return Ok(None),
                Opened::Skipped(kind) => forgets.skipped.push(kind.in_file(name.to_string())),
                Opened::Message(_) => {}
            }
        }
        Ok(Some(forgets))
    }

    /// Separates forget records that are in force from those that another one replaces. A replaced record's own
    /// number is forgotten, and other records cover all of its numbers.
    fn settle(
        opened: Vec<(RecordName, SeqSet)>,
        erased: &SeqSet,
    ) -> (Vec<RecordName>, Vec<RecordName>) {
        let (replaced, live): (Vec<_>, Vec<_>) =
            opened.into_iter().partition(|(name, _)| erased.contains(name.seq));
        let covered: SeqSet = live.iter().flat_map(|(_, ranges)| ranges.ranges()).collect();
        let (resurrected, needed): (Vec<_>, Vec<_>) =
            replaced.into_iter().partition(|(_, ranges)| ranges.without(&covered).is_empty());
        let name = |(name, _): (RecordName, SeqSet)| name;
        let in_force = live.into_iter().chain(needed).map(name).collect();
        (in_force, resurrected.into_iter().map(name).collect())
    }
}

impl Tail {
    /// Scans the folder for at least `n` of the newest messages. Reuses records that `known` has opened.
    pub(crate) fn load(folder: &Folder, n: usize, known: Option<&Self>) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            match Self::scan(folder, n, known, WriterPresence::Possible)? {
                ScanOutcome::Tail(tail) => return Ok(*tail),
                ScanOutcome::Changed => {}
                ScanOutcome::Gap => break,
            }
        }
        Self::load_settled(folder, n, known)
    }

    /// [`load`](Self::load) for the lock holder.
    pub(crate) fn load_alone(folder: &Folder, n: usize, known: Option<&Self>) -> Result<Self> {
        match Self::scan(folder, n, known, WriterPresence::Excluded)? {
            ScanOutcome::Tail(tail) => Ok(*tail),
            ScanOutcome::Changed | ScanOutcome::Gap => Err(unstable_folder(folder)),
        }
    }

    /// Distinguishes a batch that is being published from records that a crash or tampering has left beyond an old
    /// head: under the lock nothing is being published.
    fn load_settled(folder: &Folder, n: usize, known: Option<&Self>) -> Result<Self> {
        let look = || {
            let tail = Self::load_alone(folder, n, known)?;
            // Who may not take the lock may have looked while a batch was being published.
            let is_missing = |found: &Finding| found.kind == FindingKind::Missing;
            match tail.skipped.iter().any(is_missing) {
                true => Self::load_alone(folder, n, known),
                false => Ok(tail),
            }
        };
        if let Some(tail) = folder.settled(look)? {
            return Ok(tail);
        }
        for _ in 0..ATTEMPTS {
            if let ScanOutcome::Tail(tail) = Self::scan(folder, n, known, WriterPresence::Constant)?
            {
                return Ok(*tail);
            }
        }
        Err(unstable_folder(folder))
    }

    /// Keeps the highest number that an earlier scan has seen.
    pub(crate) fn recall(&mut self, known: &Self) {
        let recorded = remembered(Some(known), self.head);
        if recorded > self.last_seq {
            self.skipped.push(FindingKind::TailTruncated.at(self.last_seq + 1, recorded));
            self.last_seq = recorded;
        }
    }

    fn scan(
        folder: &Folder,
        n: usize,
        known: Option<&Self>,
        writers: WriterPresence,
    ) -> Result<ScanOutcome> {
        // Read the head first, so that the listing has everything that the head records.
        let (head_bytes, head) = folder.head()?;
        let acknowledged = head.seq();
        let listing = folder.list()?;
        let mut cache = RecordCache::new(folder, known);

        let (forgets, mut names): (Vec<_>, Vec<_>) =
            listing.names.into_iter().partition(|name| name.is_forget());
        let Some(ForgetRecords { erased, wanted, opened, skipped: mut unopened }) =
            ForgetRecords::open(&mut cache, forgets.into_iter())?
        else {
            return Ok(ScanOutcome::Changed);
        };
        let (mut skipped, closed_forgets) = (listing.foreign, unopened.len());
        skipped.append(&mut unopened);
        let (profile, unsettled) = settings::read(folder, head, known.map(|tail| &tail.profile))?;
        if unsettled.is_some()
            && writers != WriterPresence::Excluded
            && folder.head_bytes()? != head_bytes
        {
            return Ok(ScanOutcome::Changed);
        }
        skipped.extend(unsettled);
        let retention = profile.retention.unwrap_or(folder.retention);
        let mut resurrected: Vec<_> =
            names.extract_if(.., |name| erased.contains(name.seq)).collect();
        let highest_forget = opened.iter().map(|(name, _)| name.seq).max().unwrap_or(0);
        let (in_force, mut replaced) = ForgetRecords::settle(opened, &erased);
        resurrected.append(&mut replaced);

        let mut accounted = erased.clone();
        accounted.extend(names.iter().chain(&in_force).map(|name| name.seq..=name.seq));
        accounted.extend(listing.packs.iter().map(PackName::seqs));
        accounted.extend(skipped.iter().filter_map(Finding::numbers));
        let mut last_shown = u64::MAX;
        if matches!(head, HeadState::Known(_)) && writers != WriterPresence::Excluded {
            let mut known = accounted.clone();
            known.extend(std::iter::once(1..=acknowledged));
            last_shown = known.unbroken();
            let beyond = cache.take_readable_beyond(&mut names, last_shown)?
                || cache.any_packed_beyond(&listing.packs, last_shown)?;
            if beyond && writers == WriterPresence::Possible {
                return Ok(ScanOutcome::Gap);
            }
        }
        let forgotten = erased.ranges().map(|range| *range.end()).max().unwrap_or(0);
        let all = names.iter().chain(&in_force).copied();
        let Some(present) =
            cache.highest(all, &listing.packs, forgotten, last_shown, acknowledged)?
        else {
            return Ok(ScanOutcome::Changed);
        };
        // The head may have been put back. The settings and earlier heads of the same run record how far the
        // conversation had come.
        let recorded = acknowledged.max(profile.seq).max(remembered(known, head));
        let forget_gone = lost_forget(head, highest_forget, &skipped);
        if recorded > present || forget_gone.is_some() {
            // A listing is no snapshot: if one forget record replaces another, it may show neither.
            if writers != WriterPresence::Excluded && folder.head_bytes()? != head_bytes {
                return Ok(ScanOutcome::Changed);
            }
            if recorded > present {
                skipped.push(head.loss().at(present + 1, recorded));
            }
            skipped.extend(forget_gone.map(|seq| FindingKind::ForgetMissing.at(seq, seq)));
        }
        let mut has_gap = false;
        // A forget record that does not open may account for any number.
        if closed_forgets == 0 {
            accounted.extend(forget_gone.map(|seq| seq..=seq).into_iter());
            let lost = SeqSet::up_to(present).without(&accounted);
            match writers {
                WriterPresence::Possible if !lost.is_empty() => return Ok(ScanOutcome::Gap),
                WriterPresence::Possible => {}
                WriterPresence::Constant => has_gap = !lost.is_empty(),
                WriterPresence::Excluded => skipped.extend(
                    lost.ranges()
                        .map(|range| FindingKind::Missing.at(*range.start(), *range.end())),
                ),
            }
        }
        if head == HeadState::Damaged {
            skipped.push(FindingKind::HeadDamaged.in_file("head"));
        }

        let mut tail = Self {
            head_bytes,
            head,
            last_seq: recorded.max(present),
            newest: in_force.iter().map(|name| name.time).max().unwrap_or(NameTime::MIN),
            resurrected,
            unpurged: unpurged(&listing.packs, &erased, &in_force),
            ahead: listing.packs.iter().filter(|p| p.highest > acknowledged).copied().collect(),
            loose: names.len(),
            is_survey: !has_gap,
            is_disturbed: false,
            profile,
            retention,
            messages: VecDeque::new(),
            bytes: 0,
            whole: false,
            window: None,
            skipped,
            erased,
            wanted,
            forgets: in_force,
        };
        // Even for n = 0 the newest record's time is needed. A writer also needs the records that the head will name.
        let wanted = if writers == WriterPresence::Excluded { n.max(NAMED) } else { n.max(1) };
        // Keep cached messages, unless that requires reading packs.
        let in_memory = known.map_or(0, |tail| tail.messages.len().min(KEPT));
        let by_name = ReverseScan::new(names.clone(), &listing.packs);
        let mut newest = ReverseScan::new(names, &listing.packs);
        if !tail.fill(folder, &mut cache, &mut newest, wanted, in_memory, last_shown)? {
            return Ok(ScanOutcome::Changed);
        }
        tail.skipped.append(&mut newest.findings);
        tail.bytes = tail.messages.iter().map(|stored| stored.message.content.len()).sum();
        if !tail.count_by_name(folder, &mut cache, by_name, last_shown)? {
            return Ok(ScanOutcome::Changed);
        }
        if tail.head == HeadState::Absent && !tail.is_fresh() {
            tail.skipped.push(FindingKind::HeadMissing.in_file("head"));
        }
        Ok(ScanOutcome::Tail(Box::new(tail)))
    }

    /// Adds the newest messages; `false` if a file has vanished.
    fn fill(
        &mut self,
        folder: &Folder,
        cache: &mut RecordCache<'_>,
        newest: &mut ReverseScan,
        wanted: usize,
        in_memory: usize,
        last_shown: u64,
    ) -> Result<bool> {
        let (mut newest_known, mut reported) = (None, Reported::default());
        while self.messages.len() < wanted
            || (self.messages.len() < in_memory && newest.is_loose_next())
        {
            let (name, opened, place) = match newest.next(folder)? {
                NextRecord::Vanished => return Ok(false),
                NextRecord::End => {
                    self.whole = true;
                    break;
                }
                // One readable copy is enough.
                NextRecord::Loose(name) | NextRecord::Packed(_, name, _)
                    if newest_known == Some(name) =>
                {
                    continue;
                }
                NextRecord::Loose(name) | NextRecord::Packed(_, name, _)
                    if name.seq <= self.profile.expired =>
                {
                    continue;
                }
                NextRecord::Loose(name) => (name, cache.open(name)?, name.to_string()),
                NextRecord::Packed(_, name, _)
                    if name.seq > last_shown || self.erased.contains(name.seq) =>
                {
                    continue;
                }
                NextRecord::Packed(pack, name, line) => {
                    let opened = cache.open_line(name, &line)?;
                    if matches!(opened, Opened::Skipped(_)) && !reported.admits(pack) {
                        continue;
                    }
                    (name, opened, pack.place_of(name))
                }
            };
            match opened {
                Opened::Message(message) => {
                    self.newest = self.newest.max(name.time);
                    self.messages.push_front(message);
                    newest_known = Some(name);
                }
                Opened::Gone => return Ok(false),
                Opened::Skipped(kind) => self.skipped.push(kind.in_file(place)),
                Opened::Forget(_) => {}
            }
        }
        Ok(true)
    }
}

impl Tail {
    /// Finds by names where the visible messages begin, unless the tail tells already. `false` if a file has vanished.
    fn count_by_name(
        &mut self,
        folder: &Folder,
        cache: &mut RecordCache<'_>,
        scan: ReverseScan,
        last_shown: u64,
    ) -> Result<bool> {
        if self.horizon(|| Timestamp::MIN).is_some() {
            return Ok(true);
        }
        let without_message = self.without_message();
        let counted = self.counted(&without_message, last_shown);
        let Some(names) = NewestNames::find(folder, cache, scan, counted)? else {
            return Ok(false);
        };
        self.window = names.window(folder, counted.most)?;
        Ok(self.window.is_some())
    }
}

/// The highest number that an earlier scan has seen, if its head is of the same run.
fn remembered(known: Option<&Tail>, now: HeadState) -> u64 {
    match (known, now) {
        // A file that could not be read then may not have been a record.
        (Some(known), HeadState::Known(now)) if known.unreadable().next().is_none() => {
            match known.head {
                HeadState::Known(then) if then.is_of_one_run_with(&now) => known.last_seq,
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// The number of the newest forget record, if the head names it and it is missing.
fn lost_forget(head: HeadState, highest: u64, skipped: &[Finding]) -> Option<u64> {
    let HeadState::Known(head) = head else { return None };
    let recorded = head.forget();
    // A record that does not open has a finding of its own.
    let is_reported = || skipped.iter().any(|found| found.seqs == Some((recorded, recorded)));
    (recorded > highest && !is_reported()).then_some(recorded)
}

/// Packs that may have forgotten records: their count differs from that of the numbers that should be in them.
fn unpurged(packs: &[PackName], erased: &SeqSet, forgets: &[RecordName]) -> Vec<PackName> {
    let unpacked = erased.with(forgets);
    let is_overgrown = |pack: &&PackName| {
        erased.intersects(&pack.seqs()) && pack.count != pack.numbers_beside(&unpacked)
    };
    packs.iter().filter(is_overgrown).copied().collect()
}
