//! The newest end as the folder shows it: its names are listed, and its newest records opened.

use std::collections::VecDeque;

use crate::error::Result;
use crate::store::folder::{ATTEMPTS, Folder, HeadState, Opened, unstable_folder};
use crate::store::pack::Reported;
use crate::store::read::record_cache::RecordCache;
use crate::store::read::reverse_scan::{Next, ReverseScan};
use crate::store::read::tail::{KEPT, Tail};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::head::NAMED;
use crate::store::record::name::{NameTime, RecordName};
use crate::store::record::pack_name::PackName;
use crate::store::record::seq_set::SeqSet;
use crate::store::settings::profile;

/// What a listing may show. It is no snapshot: while a batch is being published, it may show a later record of it
/// without an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    /// Others may be writing; a gap beyond the head is to be looked into.
    Passing,
    /// Others are writing and do not stop; beyond the head only an unbroken run counts.
    Unbroken,
    /// Nobody else is writing; everything counts.
    Alone,
}

/// What came of looking at a folder.
enum Look {
    Tail(Box<Tail>),
    /// Files vanished between being listed and being read.
    Moved,
    /// Beyond the head there is a record after a gap.
    Broken,
}

/// What has been forgotten, as the forget records tell it.
#[derive(Default)]
struct Forgets {
    erased: SeqSet,
    opened: Vec<(RecordName, SeqSet)>,
    skipped: Vec<Finding>,
}

impl Forgets {
    /// `None` where one of them has gone.
    fn open(
        opener: &mut RecordCache<'_>,
        names: impl Iterator<Item = RecordName>,
    ) -> Result<Option<Self>> {
        let mut forgets = Self::default();
        for name in names {
            match opener.open(name)? {
                Opened::Forget(ranges) => {
                    forgets.erased.extend(ranges.ranges());
                    forgets.opened.push((name, ranges));
                }
                Opened::Gone => return Ok(None),
                Opened::Skipped(kind) => forgets.skipped.push(kind.in_file(name.to_string())),
                Opened::Message(_) => {}
            }
        }
        Ok(Some(forgets))
    }

    /// Those in force, and those whose place another one has taken: one that erases its number, and all that it tells
    /// of.
    fn settle(
        opened: Vec<(RecordName, SeqSet)>,
        erased: &SeqSet,
    ) -> (Vec<RecordName>, Vec<RecordName>) {
        let (replaced, standing): (Vec<_>, Vec<_>) =
            opened.into_iter().partition(|(name, _)| erased.contains(name.seq));
        let told: SeqSet = standing.iter().flat_map(|(_, ranges)| ranges.ranges()).collect();
        let (returned, needed): (Vec<_>, Vec<_>) =
            replaced.into_iter().partition(|(_, ranges)| ranges.without(&told).is_empty());
        let name = |(name, _): (RecordName, SeqSet)| name;
        let in_force = standing.into_iter().chain(needed).map(name).collect();
        (in_force, returned.into_iter().map(name).collect())
    }
}

impl Tail {
    /// Reads the folder's newest end, at least `n` messages of it, taking over what `known` has opened already.
    pub(crate) fn load(folder: &Folder, n: usize, known: Option<&Self>) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            match Self::look(folder, n, known, View::Passing)? {
                Look::Tail(tail) => return Ok(*tail),
                Look::Moved => {}
                Look::Broken => break,
            }
        }
        Self::load_settled(folder, n, known)
    }

    /// [`load`](Self::load) for the holder of the lock, beside whom nothing is being published.
    pub(crate) fn load_alone(folder: &Folder, n: usize, known: Option<&Self>) -> Result<Self> {
        match Self::look(folder, n, known, View::Alone)? {
            Look::Tail(tail) => Ok(*tail),
            Look::Moved | Look::Broken => Err(unstable_folder(folder)),
        }
    }

    /// Tells a batch that is being published from records that a crash or a thief has left beyond an old head: under
    /// the lock there is no such batch.
    fn load_settled(folder: &Folder, n: usize, known: Option<&Self>) -> Result<Self> {
        if let Some(tail) = folder.settled(|| Self::load_alone(folder, n, known))? {
            return Ok(tail);
        }
        for _ in 0..ATTEMPTS {
            if let Look::Tail(tail) = Self::look(folder, n, known, View::Unbroken)? {
                return Ok(*tail);
            }
        }
        Err(unstable_folder(folder))
    }

    /// Takes in how far an earlier look has shown that the conversation went.
    pub(crate) fn recall(&mut self, known: &Self) {
        let told = remembered(Some(known), self.head);
        if told > self.last_seq {
            self.skipped.push(FindingKind::TailTruncated.at(self.last_seq + 1, told));
            self.last_seq = told;
        }
    }

    fn look(folder: &Folder, n: usize, known: Option<&Self>, view: View) -> Result<Look> {
        // The head comes first: whatever it acknowledges is then sure to be listed.
        let (head_bytes, head) = folder.head()?;
        let acknowledged = head.seq();
        let listing = folder.list()?;
        let mut opener = RecordCache::new(folder, known);

        let (forgets, mut names): (Vec<_>, Vec<_>) =
            listing.names.into_iter().partition(|name| name.is_forget());
        let Some(Forgets { erased, opened, skipped: mut unopened }) =
            Forgets::open(&mut opener, forgets.into_iter())?
        else {
            return Ok(Look::Moved);
        };
        let mut skipped = listing.strange;
        skipped.append(&mut unopened);
        let (profile, unsettled) = profile::read(folder, head, known.map(|tail| &tail.profile))?;
        if unsettled.is_some() && view != View::Alone && folder.head_bytes()? != head_bytes {
            return Ok(Look::Moved);
        }
        skipped.extend(unsettled);
        let retention = profile.retention.unwrap_or(folder.retention);
        let mut returned: Vec<_> = names.extract_if(.., |name| erased.contains(name.seq)).collect();
        let highest_forget = opened.iter().map(|(name, _)| name.seq).max().unwrap_or(0);
        let (in_force, mut replaced) = Forgets::settle(opened, &erased);
        returned.append(&mut replaced);

        let mut last_shown = u64::MAX;
        if matches!(head, HeadState::Known(_)) && view != View::Alone {
            let mut accounted = erased.clone();
            accounted.extend(std::iter::once(1..=acknowledged));
            accounted.extend(names.iter().chain(&in_force).map(|name| name.seq..=name.seq));
            accounted.extend(listing.packs.iter().map(PackName::seqs));
            last_shown = accounted.unbroken();
            let beyond = opener.extract_beyond(&mut names, last_shown)?
                || opener.any_packed_beyond(&listing.packs, last_shown)?;
            if beyond && view == View::Passing {
                return Ok(Look::Broken);
            }
        }
        let forgotten = erased.ranges().map(|range| *range.end()).max().unwrap_or(0);
        let all = names.iter().chain(&in_force).copied();
        let Some(present) =
            opener.highest(all, &listing.packs, forgotten, last_shown, acknowledged)?
        else {
            return Ok(Look::Moved);
        };
        // The head may have been put back. The settings say how far it went when they were written, and so does whoever
        // has read a head of the same run.
        let told = acknowledged.max(profile.seq).max(remembered(known, head));
        let forget_gone = lost_forget(head, highest_forget, &skipped);
        if told > present || forget_gone.is_some() {
            // A listing is no snapshot: it may show neither of two forget records of which one replaces the other.
            if view != View::Alone && folder.head_bytes()? != head_bytes {
                return Ok(Look::Moved);
            }
            if told > present {
                skipped.push(FindingKind::TailTruncated.at(present + 1, told));
            }
            skipped.extend(forget_gone.map(|seq| FindingKind::ForgetMissing.at(seq, seq)));
        }
        if head == HeadState::Damaged {
            skipped.push(FindingKind::HeadDamaged.in_file("head"));
        }

        let mut tail = Self {
            head_bytes,
            head,
            last_seq: told.max(present),
            newest: in_force.iter().map(|name| name.time).max().unwrap_or(NameTime::MIN),
            returned,
            overgrown: overgrown(&listing.packs, &erased, &in_force),
            ahead: listing.packs.iter().filter(|p| p.highest > acknowledged).copied().collect(),
            loose: names.len(),
            is_survey: true,
            is_disturbed: false,
            profile,
            retention,
            messages: VecDeque::new(),
            whole: false,
            skipped,
            erased,
            forgets: in_force,
        };
        // One is needed even for n = 0: the newest record's time; and by a writer, those that the head will name.
        let wanted = if view == View::Alone { n.max(NAMED) } else { n.max(1) };
        let wanted = wanted.max(retention.needed());
        // What was in memory stays there, as far as it takes no reading of packs.
        let in_memory = known.map_or(0, |tail| tail.messages.len().min(KEPT));
        let mut newest = ReverseScan::new(names, &listing.packs);
        if !tail.fill(folder, &mut opener, &mut newest, wanted, in_memory, last_shown)? {
            return Ok(Look::Moved);
        }
        tail.skipped.append(&mut newest.findings);
        if tail.head == HeadState::Absent && !tail.is_fresh() {
            tail.skipped.push(FindingKind::HeadMissing.in_file("head"));
        }
        Ok(Look::Tail(Box::new(tail)))
    }

    /// Takes in the newest messages; `false` where a file has gone.
    fn fill(
        &mut self,
        folder: &Folder,
        opener: &mut RecordCache<'_>,
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
                Next::Moved => return Ok(false),
                Next::End => {
                    self.whole = true;
                    break;
                }
                // Of several copies, one that opens is enough.
                Next::Loose(name) | Next::PackReport(_, name, _) if newest_known == Some(name) => {
                    continue;
                }
                Next::Loose(name) => (name, opener.open(name)?, name.to_string()),
                Next::PackReport(_, name, _)
                    if name.seq > last_shown || self.erased.contains(name.seq) =>
                {
                    continue;
                }
                Next::PackReport(pack, name, line) => {
                    let opened = opener.open_line(name, &line)?;
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

/// The highest number that an earlier look at this conversation has shown, if what it knows of heads still counts.
fn remembered(known: Option<&Tail>, now: HeadState) -> u64 {
    match (known, now) {
        // What could not be read then may have been nothing.
        (Some(known), HeadState::Known(now)) if known.unreadable().next().is_none() => {
            match known.head {
                HeadState::Known(then) if then.is_of_one_run_with(&now) => known.last_seq,
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// The number of the newest record of what was forgotten, if the head tells of it and it is not there.
fn lost_forget(head: HeadState, highest: u64, skipped: &[Finding]) -> Option<u64> {
    let HeadState::Known(head) = head else { return None };
    let told = head.forget();
    // What does not open is reported for itself.
    let is_told_of = || skipped.iter().any(|found| found.seqs == Some((told, told)));
    (told > highest && !is_told_of()).then_some(told)
}

/// The packs that may hold forgotten records: their count is not that of the numbers that should be in them.
fn overgrown(packs: &[PackName], erased: &SeqSet, forgets: &[RecordName]) -> Vec<PackName> {
    let unpacked = erased.with(forgets);
    let is_overgrown = |pack: &&PackName| {
        erased.meets(&pack.seqs()) && pack.count != numbers_beside(&unpacked, pack)
    };
    packs.iter().filter(is_overgrown).copied().collect()
}

/// How many numbers between a pack's lowest and highest are not among these.
fn numbers_beside(others: &SeqSet, pack: &PackName) -> u64 {
    std::iter::once(pack.seqs()).collect::<SeqSet>().without(others).count()
}
