//! Writing: under the folder's lock, one writer at a time.

use std::collections::BTreeSet;
use std::mem::take;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::bulk::Batch;
use crate::store::document::{self, Document};
use crate::store::draft::{Dating, Draft, Limits};
use crate::store::folder::{HeadState, Listing};
use crate::store::forget::{self, Forgotten, remove_erased, remove_packed};
use crate::store::imports;
use crate::store::name::{NameTime, RecordKind};
use crate::store::origin::Origin;
use crate::store::packer::mend::{Before, make_durable};
use crate::store::packer::{Packer, Step};
use crate::store::pen::Pen;
use crate::store::reader::Reader;
use crate::store::record::{LONGEST_RECORD, StoredMessage};
use crate::store::remedy::{Mending, Remedy};
use crate::store::repair::{self, RepairOptions, adopt};
use crate::store::tail::Tail;

pub(crate) struct Writer {
    reader: Arc<Reader>,
    limits: Limits,
    /// Set when bytes could not be made durable: what the system still shows may not be on the disk.
    poisoned: bool,
    swept: bool,
    packer: Packer,
}

impl Writer {
    pub(crate) fn new(reader: Arc<Reader>, limits: Limits, packer: Packer) -> Self {
        Self { reader, limits, poisoned: false, swept: false, packer }
    }

    /// Keeps messages in order; refuses all if one may not be stored.
    pub(crate) fn append(
        &mut self,
        messages: Vec<ChatMessage>,
        dating: Dating,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let drafts = messages.into_iter().map(|message| Draft::new(message, &self.limits));
        let drafts: Vec<Draft> = drafts.collect::<Result<_>>()?;
        if drafts.is_empty() {
            Ok(Vec::new())
        } else if self.packer.is_bulk(drafts.len()) {
            self.append_packed(drafts, dating)
        } else {
            self.append_loose(drafts, dating)
        }
    }

    fn append_loose(
        &mut self,
        drafts: Vec<Draft>,
        dating: Dating,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        self.locked(|pen, tail, packer| {
            let total = drafts.len();
            let mut stored = Vec::with_capacity(total);
            for draft in drafts {
                match publish(pen, tail, draft, dating) {
                    Ok(message) => stored.push(message),
                    Err(error) if stored.is_empty() => return Err(error),
                    Err(error) => {
                        pen.acknowledge(tail)?;
                        return Err(partial(stored.len(), total, error));
                    }
                }
            }
            pen.acknowledge(tail)?;
            packer.pack(pen, tail);
            Ok(stored)
        })
    }

    /// Keeps messages in packs, each under the lock anew, so that others get their turn in between.
    fn append_packed(
        &mut self,
        drafts: Vec<Draft>,
        dating: Dating,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let total = drafts.len();
        let mut stored = Vec::with_capacity(total);
        let mut rest = drafts.into_iter();
        loop {
            let kept = Batch::next(&mut rest, self.packer.largest()).and_then(|batch| {
                let Some(batch) = batch else { return Ok(None) };
                let publish = |pen: &Pen<'_>, tail: &mut Tail, packer: &mut Packer| {
                    let kept = batch.publish(pen, tail, dating)?;
                    packer.tidy(pen);
                    Ok(kept)
                };
                self.locked(publish).map(Some)
            });
            match kept {
                Ok(Some(mut kept)) => stored.append(&mut kept),
                Ok(None) => return Ok(stored),
                Err(error) if stored.is_empty() => return Err(error),
                Err(error) => return Err(partial(stored.len(), total, error)),
            }
        }
    }

    /// Keeps the first messages of an import, as many as one pack holds, each at its own place in time. `None`, and
    /// nothing is kept, where something was stored after the number `seen`.
    pub(crate) fn import(
        &mut self,
        messages: Vec<ChatMessage>,
        seen: u64,
    ) -> Result<Option<Vec<Arc<StoredMessage>>>> {
        let drafts = messages.into_iter().map(|message| Draft::new(message, &self.limits));
        let drafts: Vec<Draft> = drafts.collect::<Result<_>>()?;
        let Some(batch) = Batch::next(&mut drafts.into_iter(), self.packer.largest())? else {
            return Ok(Some(Vec::new()));
        };
        self.locked(|pen, tail, packer| {
            if tail.last_seq != seen {
                return Ok(None);
            }
            imports::begin(pen)?;
            let kept = batch.publish(pen, tail, Dating::Own)?;
            packer.tidy(pen);
            Ok(Some(kept))
        })
    }

    /// Which of these messages may not be stored and why, by their places in the list.
    pub(crate) fn refused(&self, messages: Vec<ChatMessage>) -> Vec<(usize, Error)> {
        let drafts = messages.into_iter().map(|message| Draft::new(message, &self.limits));
        drafts.enumerate().filter_map(|(at, draft)| Some((at, draft.err()?))).collect()
    }

    /// Records numbers as forgotten, then removes their files.
    pub(crate) fn forget(&mut self, seqs: &[RangeInclusive<u64>]) -> Result<Forgotten> {
        let now = NameTime::try_from(self.limits.clock.now().timestamp())?;
        let reader = Arc::clone(&self.reader);
        self.locked(|pen, tail, _| {
            let mut erased = tail.erased.clone();
            let last = tail.last_seq;
            erased.extend(seqs.iter().map(|range| *range.start()..=(*range.end()).min(last)));
            if erased == tail.erased {
                // What could not be taken out of packs the last time.
                let (mut forgotten, packs) = (Forgotten::default(), take(&mut tail.overgrown));
                remove_packed(pen.folder, &packs, &erased, &mut forgotten)?;
                return Ok(forgotten);
            }
            let numbers = erased.count() - tail.erased.count();
            let newly = erased.without(&tail.erased);
            // The new record speaks for the earlier ones, which go with what they erased.
            erased.extend(tail.forgets.iter().map(|name| name.seq..=name.seq));
            let plaintext = serde_json::to_vec(&erased).map_err(|_| Error::InvalidMessage {
                reason: "the forgotten numbers cannot be written as JSON",
            })?;
            if plaintext.len() > LONGEST_RECORD {
                return Err(Error::InvalidMessage {
                    reason: "so many separate numbers fit no record that could be read again",
                });
            }
            let mut imported = BTreeSet::new();
            forget::survey(&reader, tail, &newly, |stored| {
                imported.extend(Origin::of(&stored.message));
            })?;
            imports::note(pen, &imported)?;
            let name = pen.write(tail, now.max(tail.newest), RecordKind::Forget, &plaintext)?;
            tail.last_seq = name.seq;
            pen.acknowledge(tail)?;

            let Listing { mut names, mut packs, .. } = pen.folder.list()?;
            names.retain(|name| erased.contains(name.seq));
            let mut forgotten =
                Forgotten { numbers, ..remove_erased(pen.folder, &names, &erased)? };
            // Packs hold no forget records, and what was forgotten before is no longer in them.
            packs.retain(|pack| newly.meets(&pack.seqs()));
            remove_packed(pen.folder, &packs, &erased, &mut forgotten)?;
            *tail = Tail::load_alone(pen.folder, 0, None)?;
            tracing::info!(removed = forgotten.removed.len(), "forgot");
            Ok(forgotten)
        })
    }

    /// Packs some of the oldest records beyond those that stay loose.
    pub(crate) fn pack(&mut self) -> Result<Step> {
        if Tail::load(&self.reader.folder, 0, None)?.is_fresh() {
            return Ok(Step::default());
        }
        self.locked(|pen, tail, packer| packer.pack_now(pen, tail))
    }

    /// Keeps a document in place of the one before.
    pub(crate) fn write_document(&mut self, document: Document, plaintext: &[u8]) -> Result<()> {
        let (size, limit) = (plaintext.len(), self.limits.max_message_bytes);
        if size > limit {
            return Err(Error::TooLarge { size, limit });
        }
        document::check_replaceable(&self.reader.folder, document)?;
        self.locked(|pen, _, _| pen.replace(document, plaintext))
    }

    /// Does what was planned about findings; what came of the plan.
    pub(crate) fn repair(
        &mut self,
        mut plan: Vec<Mending>,
        options: RepairOptions,
    ) -> Result<Vec<Mending>> {
        if plan.iter().any(|mending| mending.remedy == Remedy::AdoptVault) {
            let adopted = adopt::adopt(&self.reader.folder, self.limits.lock_timeout);
            self.heed(adopted)?;
        }
        // As whoever writes first: that one sweeps and tidies up.
        self.swept = false;
        self.locked(|pen, tail, _| repair::mend(pen, tail, &mut plan, options))?;
        Ok(plan)
    }

    /// Runs `work` as the folder's only writer, with the tail as it is now.
    pub(crate) fn locked<T>(
        &mut self,
        work: impl FnOnce(&Pen<'_>, &mut Tail, &mut Packer) -> Result<T>,
    ) -> Result<T> {
        if self.poisoned {
            return Err(Error::Poisoned { path: self.reader.folder.blobs.path().into() });
        }
        let outcome = self.under_lock(work);
        self.heed(outcome)
    }

    /// Writes no more after what may not be durable.
    fn heed<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.poisoned |= outcome.as_ref().is_err_and(is_not_durable);
        outcome
    }

    fn under_lock<T>(
        &mut self,
        work: impl FnOnce(&Pen<'_>, &mut Tail, &mut Packer) -> Result<T>,
    ) -> Result<T> {
        let reader = Arc::clone(&self.reader);
        let folder = &reader.folder;
        // The vault comes before anything else, so that whatever stands without one has lost it.
        folder.make_vault(self.limits.lock_timeout)?;
        let lock = folder.blobs.lock(self.limits.lock_timeout)?;
        let key = match folder.writing_key() {
            Ok(key) => key,
            Err(error) => {
                // Nothing was begun.
                lock.pass_on();
                return Err(error);
            }
        };
        if lock.abandoned() {
            tracing::warn!("the writer before was interrupted; looking at the folder itself");
        }
        let before = match (lock.abandoned(), self.swept) {
            (true, _) => Before::Interrupted,
            (false, false) => Before::Unknown,
            (false, true) => Before::Known,
        };
        if before != Before::Known {
            // Up to the root and beyond, before anything is acknowledged beside or below what others have left.
            folder.packs.anchor()?;
            folder.blobs.sweep()?;
            reader.install(None);
        }
        let mut tail = newest_end(&reader)?;
        let pen = Pen { folder, key };
        let packer = &mut self.packer;
        let outcome = prepare(&pen, &mut tail, packer, before).and_then(|()| {
            self.swept = true;
            work(&pen, &mut tail, packer)
        });
        // What is acknowledged stays so: a folder without its mark is only looked at more often.
        let is_marked = outcome.is_ok()
            && pen
                .keep_mark(&mut tail)
                .inspect_err(|error| tracing::warn!(%error, "left the folder unmarked"))
                .is_ok();
        // After a failure memory may be behind the disk: the next one looks at the folder itself.
        reader.install(is_marked.then_some(tail));
        if outcome.is_ok() {
            lock.finish();
        }
        outcome
    }
}

/// The folder's newest end as it is now, for the lock's holder: what is remembered, if that is still true.
fn newest_end(reader: &Reader) -> Result<Tail> {
    let folder = &reader.folder;
    let mut tail = match reader.known() {
        Some(mut tail) if tail.is_current(folder)? => {
            if tail.is_intact(folder)? {
                // Where there is no mark, nobody can tell.
                tail.is_disturbed =
                    !matches!(tail.head, HeadState::Known(head) if head.mark.is_some());
                return Ok(tail);
            }
            // What is the matter with packs keeps nobody from appending.
            match Tail::load_alone(folder, 0, Some(&tail)) {
                Err(Error::FolderReplaced { .. }) if tail.is_survey => tail,
                loaded => loaded?,
            }
        }
        known => Tail::load_alone(folder, 0, known.as_ref())?,
    };
    tail.is_disturbed = match tail.head {
        HeadState::Known(head) => !folder.is_as_told(&head)?,
        HeadState::Absent | HeadState::Damaged => true,
    };
    Ok(tail)
}

/// Makes the head of a folder's first record, removes what was forgotten and has come back, and ends what an
/// interrupted writer began.
fn prepare(pen: &Pen<'_>, tail: &mut Tail, packer: &mut Packer, before: Before) -> Result<()> {
    if tail.is_fresh() {
        pen.make_head(tail)?;
    }
    if before != Before::Known {
        // From now on they count, and the numbers after them are given.
        for pack in take(&mut tail.ahead) {
            match make_durable(pen.folder, pack) {
                // What is the matter with one pack keeps nobody from appending.
                Err(error @ (Error::Io { .. } | Error::NotPlain { .. })) => {
                    tracing::warn!(%error, "could not make a pack durable");
                }
                outcome => outcome?,
            }
        }
        if matches!(tail.head, HeadState::Known(head) if head.seq < tail.last_seq) {
            pen.folder.blobs.sync()?;
            pen.acknowledge_packed(tail)?;
        }
    }
    if !tail.returned.is_empty() {
        remove_erased(pen.folder, &take(&mut tail.returned), &tail.erased)?;
    }
    packer.mend(pen, tail, before);
    Ok(())
}

fn publish(
    pen: &Pen<'_>,
    tail: &mut Tail,
    draft: Draft,
    dating: Dating,
) -> Result<Arc<StoredMessage>> {
    let plaintext = draft.encode()?;
    let time = dating.date(draft.time, tail.newest);
    let name = pen.write(tail, time, draft.message.role.into(), &plaintext)?;
    let stored = Arc::new(StoredMessage::new(&pen.folder.scope, name, draft.message));
    tracing::debug!(seq = stored.seq, bytes = plaintext.len(), "sealed");
    tail.add(std::slice::from_ref(&stored));
    tail.loose += 1;
    Ok(stored)
}

fn partial(stored: usize, total: usize, error: Error) -> Error {
    Error::Partial { stored, total, source: Box::new(error) }
}

fn is_not_durable(error: &Error) -> bool {
    match error {
        Error::NotDurable { .. } => true,
        Error::Partial { source, .. } => is_not_durable(source),
        _ => false,
    }
}
