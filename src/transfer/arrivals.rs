//! The one way in which messages from elsewhere get into a store, whether they are imported, merged from an export or
//! received from another device: a message that the store has or had is not stored again.

use std::collections::VecDeque;

use crate::error::Result;
use crate::message::{ChatMessage, RESTORED_FROM};
use crate::store::file_store::known::Known;
use crate::store::record::import_digest::Origin;
use crate::store::record::name::RecordName;
use crate::store::record::validation::{Limits, ValidMessage};
use crate::store::write::Writer;
use crate::store::{FileConversationStore, Progress};
use crate::transfer::import::RefusalReason;

/// The most messages that are stored at a time: those of one pack.
const BATCH: usize = 32_768;
/// The most bytes of records that are stored at a time; the last one may exceed it.
const BATCH_BYTES: usize = 32 << 20;

/// A message from elsewhere.
pub(crate) trait Arrival: Send + 'static {
    fn origin(&self) -> Origin;

    /// The message of which it is a restored copy.
    fn copy_of(&self) -> Option<Origin>;

    /// The message as the store keeps it. `original` is the number here of the message that it is a copy of.
    fn checked(&self, original: Option<u64>, limits: &Limits) -> Result<ValidMessage>;
}

/// What became of arrivals.
pub(crate) struct Arrived<A> {
    pub(crate) taken: usize,
    pub(crate) already_there: usize,
    /// Forgotten here, or removed by limits.
    pub(crate) forgotten: usize,
    pub(crate) refused: Vec<(A, RefusalReason)>,
}

/// Whether messages that are too old for the limits here are removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    First,
    /// What arrives may be what keeps the conversation from being expired.
    Later,
}

/// Says what [`take`] would do, and changes nothing.
pub(crate) async fn preview<A: Arrival>(
    store: &FileConversationStore,
    known: &Known,
    arrivals: Vec<A>,
) -> Result<Arrived<A>> {
    let mut arrived = Arrived { taken: 0, already_there: 0, forgotten: 0, refused: Vec::new() };
    let mut rest = arrivals.into();
    arrived.sift(&mut rest, known);
    let look = move |writer: &mut Writer| {
        let mut refused = Vec::new();
        let all = rest.len();
        for arrival in rest {
            if let Err(error) = arrival.checked(None, &writer.limits) {
                refused.push((arrival, RefusalReason::for_store_error(&error).ok_or(error)?));
            }
        }
        Ok((all, refused))
    };
    let (all, refused) = store.write(look).await?;
    arrived.taken = all - refused.len();
    arrived.refused = refused;
    Ok(arrived)
}

/// Stores the messages that the store neither has nor had, each at its place in time. `known` must have caught up once.
pub(crate) async fn take<A: Arrival>(
    store: &FileConversationStore,
    known: &mut Known,
    arrivals: Vec<A>,
    expiry: Expiry,
    progress: impl Fn(Progress) + Send,
) -> Result<Arrived<A>> {
    let total = arrivals.len();
    let mut arrived = Arrived { taken: 0, already_there: 0, forgotten: 0, refused: Vec::new() };
    // Copies name their originals by the numbers that these have here.
    let (originals, copies): (VecDeque<A>, VecDeque<A>) =
        arrivals.into_iter().partition(|arrival| arrival.copy_of().is_none());
    let mut to_come = copies.len();
    for mut rest in [originals, copies] {
        arrived.sift(&mut rest, known);
        loop {
            progress(Progress { done: total - to_come - rest.len(), total });
            if rest.is_empty() {
                break;
            }
            let number = |arrival: &A| arrival.copy_of().and_then(|origin| known.number(origin));
            let numbers: Vec<_> = rest.iter().take(BATCH).map(number).collect();
            let seen = (known.seen, known.noted);
            let step = move |writer: &mut Writer| {
                let mut batch = Batch::next(&mut rest, numbers, &writer.limits)?;
                let drafts = std::mem::take(&mut batch.drafts);
                let stored = writer.receive(drafts, seen, expiry == Expiry::First)?;
                let names = stored.map(|stored| stored.iter().map(|stored| stored.name).collect());
                Ok((rest, batch, names))
            };
            let (left, mut batch, names): (_, _, Option<Vec<RecordName>>) =
                store.write(step).await?;
            rest = left;
            arrived.refused.append(&mut batch.refused);
            let stored = names.as_ref().map_or(0, Vec::len).min(batch.arrivals.len());
            let unstored = batch.arrivals.split_off(stored);
            unstored.into_iter().rev().for_each(|arrival| rest.push_front(arrival));
            match names {
                Some(names) => {
                    arrived.taken += stored;
                    let last = names.last().map_or(known.seen, |name| name.seq);
                    known.note(batch.arrivals.iter().map(Arrival::origin).zip(names), last);
                }
                // Another process has stored something or forgotten something, perhaps one of these.
                None => {
                    known.catch_up(store).await?;
                    arrived.sift(&mut rest, known);
                }
            }
        }
        to_come = 0;
    }
    Ok(arrived)
}

/// A restored copy names its original by number, unless that is not here.
pub(crate) fn name_original(message: &mut ChatMessage, snapshot: &str, original: Option<u64>) {
    message.metadata.remove(RESTORED_FROM);
    if let Some(number) = original {
        message.metadata.insert(RESTORED_FROM.to_owned(), format!("{snapshot}:{number}"));
    }
}

impl<A: Arrival> Arrived<A> {
    /// Drops the messages that the store has or had.
    fn sift(&mut self, rest: &mut VecDeque<A>, known: &Known) {
        rest.retain(|arrival| {
            let is_there = known.has(arrival.origin());
            let is_forgotten = !is_there && known.has_forgotten(arrival.origin());
            self.already_there += usize::from(is_there);
            self.forgotten += usize::from(is_forgotten);
            !is_there && !is_forgotten
        });
    }
}

/// Messages that are stored together.
struct Batch<A> {
    arrivals: Vec<A>,
    drafts: Vec<ValidMessage>,
    refused: Vec<(A, RefusalReason)>,
}

impl<A: Arrival> Batch<A> {
    /// Takes the next messages out of `rest`. `originals` are the numbers here of what they are copies of.
    fn next(rest: &mut VecDeque<A>, originals: Vec<Option<u64>>, limits: &Limits) -> Result<Self> {
        let mut batch = Self { arrivals: Vec::new(), drafts: Vec::new(), refused: Vec::new() };
        let mut bytes = 0;
        for original in originals {
            if bytes >= BATCH_BYTES {
                break;
            }
            let Some(arrival) = rest.pop_front() else { break };
            match arrival.checked(original, limits) {
                Ok(draft) => {
                    bytes += draft.size;
                    batch.drafts.push(draft);
                    batch.arrivals.push(arrival);
                }
                Err(error) => {
                    let reason = RefusalReason::for_store_error(&error).ok_or(error)?;
                    batch.refused.push((arrival, reason));
                }
            }
        }
        Ok(batch)
    }
}
