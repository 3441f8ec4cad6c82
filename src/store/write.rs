//! The writer: changes a conversation under its lock, one writer at a time.

pub(crate) mod add_artifact;
pub(crate) mod answers;
pub(crate) mod artifacts;
pub(crate) mod catalog;
pub(crate) mod cleanup;
pub(crate) mod commit;
pub(crate) mod committer;
pub(crate) mod compact;
pub(crate) mod documents;
pub(crate) mod forget;
pub(crate) mod forgotten_conversation;
pub(crate) mod import_tombstones;
pub(crate) mod locked_state;
pub(crate) mod pack_batch;
pub(crate) mod pack_rewrite;
pub(crate) mod recovery;
pub(crate) mod removal;
pub(crate) mod restore_records;
pub(crate) mod room;
pub(crate) mod settings_documents;
pub(crate) mod snapshots;
pub(crate) mod sweep;
pub(crate) mod thread_document;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::name::NameTime;
use crate::store::record::validation::{Limits, TimestampPolicy, ValidMessage, latest_place};
use crate::store::rules::StorePolicy;
use crate::store::rules::current_state::ready;
use crate::store::rules::forget::Prepared;
use crate::store::rules::forget_plan::{ForgetPlan, ForgetReport, ForgetRequest};
use crate::store::rules::limits_effect::CleanupReport;
use crate::store::write::committer::Committer;
use crate::store::write::compact::pack_recovery::PreviousWriter;
use crate::store::write::compact::{CompactionStep, Compactor};
use crate::store::write::pack_batch::Batch;
use recovery::{newest_end, prepare};

pub(crate) struct Writer {
    reader: Arc<Reader>,
    pub(crate) limits: Limits,
    /// Set when data could not be made durable: files that are visible may not be on disk.
    poisoned: bool,
    swept: bool,
    compactor: Compactor,
}

impl Writer {
    pub(crate) fn new(reader: Arc<Reader>, limits: Limits, compactor: Compactor) -> Self {
        Self { reader, limits, poisoned: false, swept: false, compactor }
    }

    /// What it accepts, and how much is kept of conversations that have no limits of their own.
    pub(crate) fn policy(&self) -> StorePolicy {
        StorePolicy::default()
            .max_message_bytes(self.limits.max_message_bytes)
            .retention(self.reader.folder.retention)
    }

    /// Keeps messages in order; refuses all if one may not be stored.
    pub(crate) fn append(
        &mut self,
        messages: Vec<ChatMessage>,
        dating: TimestampPolicy,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let drafts = ValidMessage::all(messages, &self.limits)?;
        if drafts.is_empty() {
            Ok(Vec::new())
        } else if self.compactor.is_for_packs(drafts.len()) {
            self.append_packs(drafts, dating)
        } else {
            self.append_files(drafts, dating)
        }
    }

    fn append_files(
        &mut self,
        drafts: Vec<ValidMessage>,
        dating: TimestampPolicy,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let (stored, lost) = self.locked(|committer, tail, compactor| {
            cleanup::expire(committer, tail)?;
            let stored = publish_all(committer, tail, drafts, dating)?;
            compactor.pack(committer, tail);
            Ok((stored, trim(committer, tail)))
        })?;
        self.poisoned |= lost;
        Ok(stored)
    }

    /// Takes the lock anew for each pack, so that others can write in between.
    fn append_packs(
        &mut self,
        drafts: Vec<ValidMessage>,
        dating: TimestampPolicy,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        Batch::each(drafts, self.compactor.largest(), |batch| {
            let (stored, lost) = self.locked(|committer, tail, compactor| {
                cleanup::expire(committer, tail)?;
                let stored = batch.publish(committer, tail, dating)?;
                compactor.merge_packs(committer);
                Ok((stored, trim(committer, tail)))
            })?;
            self.poisoned |= lost;
            Ok(stored)
        })
    }

    /// Stores the first messages from elsewhere, as many as one pack holds, each ordered by its own time. Returns
    /// `None` and stores nothing if something was stored after the number `seen`, or if the list of forgotten messages
    /// has another revision than `noted`. With `expires`, messages that have expired are removed first.
    pub(crate) fn receive(
        &mut self,
        mut drafts: Vec<ValidMessage>,
        (seen, noted): (u64, u64),
        expires: bool,
    ) -> Result<Option<Vec<Arc<StoredMessage>>>> {
        let (now, newest) = (self.reader.now(), self.reader.newest()?.newest);
        // A clock that begins in 1970 after a power cut tells nothing of others' clocks.
        let asked = newest.timestamp().filter(|newest| latest_place(now) < *newest).unwrap_or(now);
        let latest = NameTime::try_from(latest_place(asked))?;
        let placed = drafts.iter().map(|draft| draft.time).filter(|time| *time <= latest);
        let last = placed.fold(newest.max(NameTime::try_from(now)?), NameTime::max);
        let is_far = |draft: &&mut ValidMessage| draft.time > latest;
        drafts.iter_mut().filter(is_far).for_each(|draft| draft.time = last);
        let arriving = drafts.len() as u64;
        let has_copies = drafts.iter().any(|draft| draft.message.restored_from().is_some());
        let Some(batch) = Batch::next(&mut drafts.into_iter(), self.compactor.largest())? else {
            return Ok(Some(Vec::new()));
        };
        self.locked(|committer, tail, compactor| {
            if (tail.last_seq, tail.profile.imports) != (seen, noted) {
                return Ok(None);
            }
            if expires {
                cleanup::expire(committer, tail)?;
            }
            if has_copies {
                committer.note_restored(tail, arriving)?;
            }
            let kept = batch.publish(committer, tail, TimestampPolicy::Own)?;
            compactor.merge_packs(committer);
            Ok(Some(kept))
        })
    }

    /// What forgetting would delete now. Changes nothing.
    pub(crate) fn plan_forget(&mut self, asked: &ForgetRequest) -> Result<ForgetPlan> {
        // Planning must not create a conversation that was never written to.
        if self.is_fresh()? {
            return Ok(ForgetPlan::default());
        }
        self.locked(|committer, tail, _| {
            Ok(ready(Prepared::of(&committer.state(tail), asked))?.plan)
        })
    }

    /// Forgets messages and what was derived from them. With an announced plan, deletes nothing else.
    pub(crate) fn forget(
        &mut self,
        asked: &ForgetRequest,
        announced: Option<&ForgetPlan>,
    ) -> Result<ForgetReport> {
        let reader = Arc::clone(&self.reader);
        let has_begun = Cell::new(false);
        let mut forget = || {
            self.locked(|committer, tail, _| {
                let prepared = ready(Prepared::of(&committer.state(tail), asked))?;
                prepared.check(announced)?;
                has_begun.set(true);
                let forgotten = forget::carry_out(prepared, committer, tail)?;
                room::keep_reserve(committer.folder);
                Ok(forgotten)
            })
        };
        match forget() {
            // Some file systems need room even to mark the lock in place. What has begun makes room by itself.
            Err(Error::NoSpace { .. }) if !has_begun.get() => {
                room::make(&reader.folder)?;
                forget()
            }
            outcome => outcome,
        }
    }

    /// Removes messages that retention hides.
    pub(crate) fn cleanup(&mut self) -> Result<CleanupReport> {
        // A clean-up must not create a conversation that was never written to.
        if self.is_fresh()? {
            return Ok(CleanupReport::default());
        }
        self.locked(|committer, tail, _| cleanup::cleanup(committer, tail))
    }

    /// Packs some of the oldest loose records.
    pub(crate) fn pack(&mut self) -> Result<CompactionStep> {
        if self.is_fresh()? {
            return Ok(CompactionStep::default());
        }
        self.locked(|committer, tail, compactor| compactor.pack_now(committer, tail))
    }

    /// Whether this store has never written to the folder.
    fn is_fresh(&self) -> Result<bool> {
        Ok(Tail::load(&self.reader.folder, 0, None)?.is_fresh())
    }

    /// Has the next operation repeat what a first writer does: recovery and removing leftovers. Returns the folder and
    /// how long to wait for its lock.
    pub(crate) fn start_anew(&mut self) -> (Arc<Reader>, Duration) {
        self.swept = false;
        (Arc::clone(&self.reader), self.limits.lock_timeout)
    }

    /// Runs `work` as the folder's only writer, with the current tail.
    pub(crate) fn locked<T>(
        &mut self,
        work: impl FnOnce(&Committer<'_>, &mut Tail, &mut Compactor) -> Result<T>,
    ) -> Result<T> {
        self.check_sound()?;
        let outcome = self.under_lock(work);
        self.poison_on_error(outcome)
    }

    fn check_sound(&self) -> Result<()> {
        match self.poisoned {
            true => Err(Error::Poisoned { path: self.reader.folder.directory.path().into() }),
            false => Ok(()),
        }
    }

    /// After data could not be made durable, stops writing for good.
    pub(crate) fn poison_on_error<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.poisoned |= outcome.as_ref().is_err_and(is_not_durable);
        outcome
    }

    fn under_lock<T>(
        &mut self,
        work: impl FnOnce(&Committer<'_>, &mut Tail, &mut Compactor) -> Result<T>,
    ) -> Result<T> {
        let reader = Arc::clone(&self.reader);
        let folder = &reader.folder;
        // Create the vault first, so that records without a vault always mean that it was lost.
        folder.create_vault(self.limits.lock_timeout)?;
        let lock = folder.directory.lock(self.limits.lock_timeout)?;
        let key = match folder.writing_key() {
            Ok(key) => key,
            Err(error) => {
                // Nothing was started, so nothing needs recovery.
                lock.release_as_found();
                return Err(error);
            }
        };
        if lock.was_dirty() {
            tracing::warn!("the writer before was interrupted; looking at the folder itself");
        }
        let before = match (lock.was_dirty(), self.swept) {
            (true, _) => PreviousWriter::Interrupted,
            (false, false) => PreviousWriter::Unknown,
            (false, true) => PreviousWriter::Finished,
        };
        let known = if before == PreviousWriter::Finished { None } else { reader.known() };
        if before != PreviousWriter::Finished {
            // Sync the parent folders before acknowledging anything beside or below what others have left.
            folder.packs.sync_ancestors()?;
            folder.directory.remove_temp_files()?;
            folder.snapshots.remove_temp_files()?;
            folder.recall.remove_temp_files()?;
            folder.artifacts.remove_temp_files()?;
            reader.install(None);
        }
        let mut tail = newest_end(&reader)?;
        if let Some(known) = known {
            tail.recall(&known);
        }
        let committer = Committer { reader: &reader, folder, key, may_use_reserve: false };
        let compactor = &mut self.compactor;
        let is_new = tail.is_fresh();
        let outcome = prepare(&committer, &mut tail, compactor, before).and_then(|()| {
            self.swept = true;
            if before != PreviousWriter::Finished {
                room::keep_reserve(folder);
            }
            catalog::enter(&committer, &mut tail, &self.limits, is_new);
            let last = tail.last_seq;
            let done = work(&committer, &mut tail, compactor)?;
            thread_document::keep(&committer, &tail, last);
            Ok(done)
        });
        // What was acknowledged stays so. A folder without a change stamp is only scanned more often.
        let is_marked = outcome.is_ok()
            && committer
                .refresh_stamps(&mut tail)
                .inspect_err(|error| tracing::warn!(%error, "left the folder unmarked"))
                .is_ok();
        // After a failure the cached tail may be outdated, so the next operation scans the folder.
        reader.install(is_marked.then_some(tail));
        if outcome.is_ok() {
            lock.release_clean();
        }
        outcome
    }
}

/// Stores messages in packs if they are many, otherwise in files of their own.
fn publish_many(
    committer: &Committer<'_>,
    tail: &mut Tail,
    compactor: &mut Compactor,
    drafts: Vec<ValidMessage>,
    dating: TimestampPolicy,
) -> Result<Vec<Arc<StoredMessage>>> {
    if compactor.is_for_packs(drafts.len()) {
        let publish = |batch: Batch| batch.publish(committer, tail, dating);
        let stored = Batch::each(drafts, compactor.largest(), publish)?;
        compactor.merge_packs(committer);
        return Ok(stored);
    }
    let stored = publish_all(committer, tail, drafts, dating)?;
    compactor.pack(committer, tail);
    Ok(stored)
}

/// Publishes messages one by one and acknowledges them together.
fn publish_all(
    committer: &Committer<'_>,
    tail: &mut Tail,
    drafts: Vec<ValidMessage>,
    dating: TimestampPolicy,
) -> Result<Vec<Arc<StoredMessage>>> {
    let total = drafts.len();
    let mut stored = Vec::with_capacity(total);
    for draft in drafts {
        match publish(committer, tail, draft, dating) {
            Ok(message) => stored.push(message),
            Err(error) => {
                if !stored.is_empty() {
                    committer.acknowledge(tail)?;
                }
                return Err(Error::partial(stored.len(), total, error));
            }
        }
    }
    committer.acknowledge(tail)?;
    Ok(stored)
}

/// Removes messages beyond the limit. A failure does not undo what was acknowledged. Returns whether data could not
/// be made durable, so that writing must stop.
fn trim(committer: &Committer<'_>, tail: &mut Tail) -> bool {
    let Err(error) = cleanup::trim(committer, tail) else { return false };
    tracing::warn!(%error, "could not remove what is over the limit");
    is_not_durable(&error)
}

fn publish(
    committer: &Committer<'_>,
    tail: &mut Tail,
    draft: ValidMessage,
    dating: TimestampPolicy,
) -> Result<Arc<StoredMessage>> {
    let plaintext = draft.encode()?;
    let time = dating.date(draft.time, tail.newest);
    let name = committer.write(tail, time, draft.message.role.into(), &plaintext)?;
    let stored = Arc::new(StoredMessage::new(&committer.folder.scope, name, draft.message));
    tracing::debug!(seq = stored.seq, bytes = plaintext.len(), "sealed");
    tail.add(std::slice::from_ref(&stored));
    tail.loose += 1;
    Ok(stored)
}

fn is_not_durable(error: &Error) -> bool {
    match error {
        Error::NotDurable { .. } => true,
        Error::Partial { source, .. } => is_not_durable(source),
        _ => false,
    }
}
