//! What is known of a conversation's newest end, kept in memory between reads.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::Result;
use crate::store::Reading;
use crate::store::erased::Erased;
use crate::store::finding::{Finding, FindingKind};
use crate::store::folder::{ATTEMPTS, Desk, Folder, HeadState, Opened, restless};
use crate::store::head::{Head, NAMED};
use crate::store::name::{NameTime, RecordName};
use crate::store::newest::{Newest, Next};
use crate::store::opener::Opener;
use crate::store::pack::{PackName, Reported};
use crate::store::record::StoredMessage;

/// How many of the newest messages stay in memory as more are appended.
const KEPT: usize = 256;
/// How many bytes of words stay in memory as more are appended.
const KEPT_BYTES: usize = 1 << 20;
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

/// The newest end of a conversation as of one state of its head.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    /// The head file's bytes; it is rewritten, with another nonce, at every change.
    pub(crate) head_bytes: Option<Vec<u8>>,
    pub(crate) head: HeadState,
    /// The highest number given so far.
    pub(crate) last_seq: u64,
    /// The newest live record's time.
    pub(crate) newest: NameTime,
    pub(crate) erased: Erased,
    /// The forget records in force.
    pub(crate) forgets: Vec<RecordName>,
    /// Files that were forgotten and are there again.
    pub(crate) returned: Vec<RecordName>,
    /// Packs that may hold forgotten records: their count is not that of the numbers that are not forgotten.
    pub(crate) overgrown: Vec<PackName>,
    /// Packs that go beyond the head: their writer was interrupted before it could say that they are durable.
    pub(crate) ahead: Vec<PackName>,
    /// How many messages lie in files of their own.
    pub(crate) loose: usize,
    /// Whether the folder itself was looked at, and not only what its head names.
    pub(crate) is_survey: bool,
    messages: VecDeque<Arc<StoredMessage>>,
    /// Whether `messages` are all there are.
    whole: bool,
    skipped: Vec<Finding>,
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
            Look::Moved | Look::Broken => Err(restless(folder)),
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
        Err(restless(folder))
    }

    fn look(folder: &Folder, n: usize, known: Option<&Self>, view: View) -> Result<Look> {
        // The head comes first: whatever it acknowledges is then sure to be listed.
        let (head_bytes, head) = folder.head()?;
        let acknowledged = head.seq();
        let listing = folder.list()?;
        let mut opener = Opener::new(folder, known);
        let mut skipped = listing.strange;

        let (forgets, mut names): (Vec<_>, Vec<_>) =
            listing.names.into_iter().partition(|name| name.is_forget());
        let mut erased = Erased::default();
        let mut forgets_in_force = Vec::new();
        for name in forgets {
            match opener.open(name)? {
                Opened::Forget(ranges) => {
                    erased.extend(ranges.ranges());
                    forgets_in_force.push(name);
                }
                Opened::Gone => return Ok(Look::Moved),
                Opened::Skipped(kind) => skipped.push(kind.in_file(name.to_string())),
                Opened::Message(_) => {}
            }
        }

        let mut returned: Vec<_> = names.extract_if(.., |name| erased.contains(name.seq)).collect();
        returned.extend(forgets_in_force.extract_if(.., |name| erased.contains(name.seq)));
        let mut last_shown = u64::MAX;
        if matches!(head, HeadState::Known(_)) && view != View::Alone {
            let mut accounted = erased.clone();
            accounted.extend(std::iter::once(1..=acknowledged));
            accounted.extend(names.iter().chain(&forgets_in_force).map(|name| name.seq..=name.seq));
            accounted.extend(listing.packs.iter().map(PackName::seqs));
            last_shown = accounted.unbroken();
            let beyond = opener.extract_beyond(&mut names, last_shown)?
                || opener.any_packed_beyond(&listing.packs, last_shown)?;
            if beyond && view == View::Passing {
                return Ok(Look::Broken);
            }
        }
        let forgotten = erased.ranges().map(|range| *range.end()).max().unwrap_or(0);
        let all = names.iter().chain(&forgets_in_force).copied();
        let Some(present) = opener.highest(all, &listing.packs, forgotten, last_shown)? else {
            return Ok(Look::Moved);
        };
        if acknowledged > present {
            // A listing is no snapshot: it may show neither of two forget records of which one replaces the other.
            if view != View::Alone && folder.head_bytes()? != head_bytes {
                return Ok(Look::Moved);
            }
            skipped.push(FindingKind::CutTail.at(present + 1, acknowledged));
        }
        if head == HeadState::Damaged {
            skipped.push(FindingKind::HeadDamaged.in_file("head"));
        }
        let last_seq = acknowledged.max(present);

        let mut tail = Self {
            head_bytes,
            head,
            last_seq,
            newest: forgets_in_force.iter().map(|name| name.time).max().unwrap_or(NameTime::MIN),
            erased,
            forgets: forgets_in_force,
            returned,
            overgrown: Vec::new(),
            ahead: Vec::new(),
            loose: names.len(),
            is_survey: true,
            messages: VecDeque::new(),
            whole: false,
            skipped,
        };
        let mut unpacked = tail.erased.clone();
        unpacked.extend(tail.forgets.iter().map(|name| name.seq..=name.seq));
        let is_overgrown = |pack: &&PackName| {
            tail.erased.meets(&pack.seqs()) && pack.count != numbers_beside(&unpacked, pack)
        };
        tail.overgrown = listing.packs.iter().filter(is_overgrown).copied().collect();
        tail.ahead.extend(listing.packs.iter().filter(|pack| pack.highest > acknowledged));
        // One is needed even for n = 0: the newest record's time; and by a writer, those that the head will name. What was
        // in memory stays there, as far as it takes
        // no reading of packs.
        let in_memory = known.map_or(0, |tail| tail.messages.len().min(KEPT));
        let wanted = if view == View::Alone { n.max(NAMED) } else { n.max(1) };
        let mut newest = Newest::new(names, &listing.packs);
        let (mut newest_known, mut reported) = (None, Reported::default());
        while tail.messages.len() < wanted
            || (tail.messages.len() < in_memory && newest.is_loose_next())
        {
            let (name, opened, place) = match newest.next(folder)? {
                Next::Moved => return Ok(Look::Moved),
                Next::End => {
                    tail.whole = true;
                    break;
                }
                // Of several copies, one that opens is enough.
                Next::Loose(name) | Next::Packed(_, name, _) if newest_known == Some(name) => {
                    continue;
                }
                Next::Loose(name) => (name, opener.open(name)?, name.to_string()),
                Next::Packed(_, name, _)
                    if name.seq > last_shown || tail.erased.contains(name.seq) =>
                {
                    continue;
                }
                Next::Packed(pack, name, line) => {
                    let opened = opener.open_line(name, &line)?;
                    if matches!(opened, Opened::Skipped(_)) && !reported.admits(pack) {
                        continue;
                    }
                    (name, opened, pack.place_of(name))
                }
            };
            match opened {
                Opened::Message(message) => {
                    tail.newest = tail.newest.max(name.time);
                    tail.messages.push_front(message);
                    newest_known = Some(name);
                }
                Opened::Gone => return Ok(Look::Moved),
                Opened::Skipped(kind) => tail.skipped.push(kind.in_file(place)),
                Opened::Forget(_) => {}
            }
        }
        tail.skipped.append(&mut newest.findings);
        if tail.head == HeadState::Absent && !tail.is_fresh() {
            tail.skipped.push(FindingKind::HeadMissing.in_file("head"));
        }
        Ok(Look::Tail(Box::new(tail)))
    }

    /// The newest end as far as the head names it, if that is enough and nothing has changed in the folder since the head was
    /// written. Reads a few small files, however long the conversation is.
    pub(crate) fn glance(folder: &Folder, n: usize) -> Result<Option<Self>> {
        let (head_bytes, HeadState::Known(head)) = folder.head()? else {
            return Ok(None);
        };
        let names: Vec<_> = head.newest().take(n.max(1)).collect();
        let whole = names.len() as u64 == head.seq;
        if (names.len() < n && !whole) || !folder.is_as_told(&head)? {
            return Ok(None);
        }
        let Some(messages) = open_all(folder, &names)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            head_bytes,
            head: HeadState::Known(head),
            last_seq: head.seq,
            newest: names.first().map_or(NameTime::MIN, |name| name.time),
            erased: Erased::default(),
            forgets: Vec::new(),
            returned: Vec::new(),
            overgrown: Vec::new(),
            ahead: Vec::new(),
            loose: messages.len(),
            is_survey: false,
            messages: messages.into(),
            whole,
            skipped: Vec::new(),
        }))
    }

    /// Takes in what others have appended since, if the head names all of it and nothing else has happened. `false`, and nothing is
    /// changed, where the folder itself must be looked at.
    pub(crate) fn follow(&mut self, folder: &Folder) -> Result<bool> {
        let (head_bytes, HeadState::Known(head)) = folder.head()? else {
            return Ok(false);
        };
        let (new, old): (Vec<_>, Vec<_>) = head.newest().partition(|name| name.seq > self.last_seq);
        let goes_on = match new.last() {
            Some(first) => first.seq == self.last_seq + 1 && first.time >= self.newest,
            None => head.seq == self.last_seq,
        };
        if !goes_on
            || !self.is_sound()
            || !self.names().zip(&old).all(|(known, old)| known == *old)
            || !folder.is_as_told(&head)?
        {
            return Ok(false);
        }
        let Some(messages) = open_all(folder, &new)? else {
            return Ok(false);
        };
        self.add(&messages);
        self.loose += messages.len();
        self.head = HeadState::Known(head);
        self.head_bytes = head_bytes;
        Ok(true)
    }

    /// Whether nothing has changed on disk since this was read. What could not be read then may be readable now.
    pub(crate) fn is_current(&self, folder: &Folder) -> Result<bool> {
        Ok(self.head_bytes.is_some()
            && matches!(self.head, HeadState::Known(_))
            && !self.skipped.iter().any(|f| matches!(f.kind, FindingKind::Unreadable(_)))
            && self.head_bytes == folder.head_bytes()?)
    }

    /// Whether a writer may go by this: it is of the whole folder, and nobody has changed names in it without telling.
    pub(crate) fn is_intact(&self, folder: &Folder) -> Result<bool> {
        Ok(self.is_survey
            && match self.head {
                HeadState::Known(head) => head.mark.is_none() || folder.is_as_told(&head)?,
                HeadState::Absent | HeadState::Damaged => true,
            })
    }

    /// Whether nothing was found that readers should hear of.
    pub(crate) fn is_sound(&self) -> bool {
        self.skipped.is_empty()
    }

    /// The newest `n`, if that many are in memory or there are no more.
    pub(crate) fn newest(&self, n: usize) -> Option<Reading> {
        let enough = self.whole || n <= self.messages.len();
        enough.then(|| Reading {
            messages: self
                .messages
                .range(self.messages.len().saturating_sub(n)..)
                .cloned()
                .collect(),
            last_seq: self.last_seq,
            skipped: self.skipped.clone(),
        })
    }

    /// The messages in memory, oldest first.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Arc<StoredMessage>> {
        self.messages.iter()
    }

    /// Notes messages that have been published, in any order.
    pub(crate) fn add(&mut self, messages: &[Arc<StoredMessage>]) {
        let reaches_back = self.messages.front().map(|oldest| oldest.name).filter(|_| !self.whole);
        let mut in_order = true;
        for message in messages {
            self.last_seq = self.last_seq.max(message.seq);
            self.newest = self.newest.max(message.name.time);
            if reaches_back.is_none_or(|oldest| oldest < message.name) {
                in_order &= self.messages.back().is_none_or(|last| last.name < message.name);
                self.messages.push_back(Arc::clone(message));
            }
        }
        if !in_order {
            self.messages.make_contiguous().sort_unstable_by_key(|message| message.name);
        }
        let mut bytes: usize = self.messages.iter().map(|m| m.message.content.len()).sum();
        while self.messages.len() > KEPT || (bytes > KEPT_BYTES && self.messages.len() > 1) {
            let Some(oldest) = self.messages.pop_front() else {
                break;
            };
            bytes -= oldest.message.content.len();
            self.whole = false;
        }
        self.messages.shrink_to(KEPT * 2);
    }

    /// Whether this store has never written to the folder; another system may have.
    pub(crate) fn is_fresh(&self) -> bool {
        use FindingKind::{Ancestor, Damaged, Foreign, NotPlain};
        let not_ours = |finding: &Finding| {
            matches!(finding.kind, Ancestor | Damaged(_) | Foreign | NotPlain(_))
        };
        self.head == HeadState::Absent
            && self.last_seq == 0
            && self.messages.is_empty()
            && self.skipped.iter().all(not_ours)
    }

    /// Notes the head that has been written.
    pub(crate) fn set_head(&mut self, head: Head, line: Vec<u8>) {
        self.head = HeadState::Known(head);
        self.head_bytes = Some(line);
        let of_head = [FindingKind::HeadMissing, FindingKind::HeadDamaged];
        self.skipped.retain(|finding| !of_head.contains(&finding.kind));
    }

    /// The names of the messages in memory, the newest first.
    pub(crate) fn names(&self) -> impl Iterator<Item = RecordName> + '_ {
        self.messages.iter().rev().map(|message| message.name)
    }

    /// The head that tells of this, in a folder with that mark.
    pub(crate) fn head_after(&self, marks: (Option<u64>, Option<u64>)) -> Option<Head> {
        match self.head {
            HeadState::Known(head) => Some(head.after(self.last_seq, marks, self.names())),
            HeadState::Absent | HeadState::Damaged => None,
        }
    }
}

/// How many numbers between a pack's lowest and highest are not among these.
fn numbers_beside(others: &Erased, pack: &PackName) -> u64 {
    let mut all = Erased::default();
    all.extend(std::iter::once(pack.seqs()));
    all.without(others).count()
}

/// Opens messages in files of their own, given the newest first; `None` where one of them is not there or does not open.
fn open_all(folder: &Folder, names: &[RecordName]) -> Result<Option<Vec<Arc<StoredMessage>>>> {
    let (mut messages, mut desk) = (Vec::with_capacity(names.len()), Desk::new(folder));
    for &name in names.iter().rev() {
        let Opened::Message(message) = desk.read(name)? else {
            return Ok(None);
        };
        messages.push(message);
    }
    Ok(Some(messages))
}
