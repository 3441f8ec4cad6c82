//! Stores what other devices have.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::error::Result;
use crate::store::record::import_digest::Origin;
use crate::store::record::name::RecordName;
use crate::store::record::validation::ValidMessage;
use crate::store::{ConversationStore, FileConversationStore};
use crate::transfer::exchange::{Exchange, SharedMessage, SharedSnapshot};
use crate::transfer::import::known::{Known, NEARLY_ALL};

/// The most messages that are stored at a time: those of one pack.
const BATCH: usize = 32_768;
/// The most bytes of records that are stored at a time; the last one may exceed it.
const BATCH_BYTES: usize = 32 << 20;

/// While more arrives, the index of what is here is saved each time that it has doubled.
const DOUBLED: usize = 1;

/// What other devices have for a conversation. `Debug` shows no words.
#[derive(Clone, Default, PartialEq)]
pub struct Incoming {
    /// Messages that were forgotten elsewhere.
    pub forgotten: BTreeSet<Origin>,
    /// Messages, in any order.
    pub messages: Vec<SharedMessage>,
    /// Settings by the names of [`Exchange::settings`]; `None` for those that were taken back.
    pub settings: BTreeMap<String, Option<Value>>,
    /// Snapshots by id; `None` for those that were deleted.
    pub snapshots: BTreeMap<String, Option<SharedSnapshot>>,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// The number of messages that were stored.
    pub taken: usize,
    /// The number of messages that were here.
    pub already_there: usize,
    /// The number of messages that were forgotten here, or that limits removed. They stay away.
    pub forgotten: usize,
    /// The number of messages that were here and are forgotten now.
    pub removed: usize,
    /// The number of messages that no store takes, because their record would be too long.
    pub refused: usize,
    /// Settings that cannot be applied: a newer program's, or those that are outside their limits.
    pub left_out: BTreeSet<String>,
    /// Snapshots of which messages are neither here nor forgotten. They were not saved: receive them again once these have
    /// arrived.
    pub incomplete: BTreeSet<String>,
}

impl Exchange {
    /// Applies what other devices have, in this order: forgettings, a clear, messages, other settings, snapshots. Receiving
    /// the same again changes nothing, and completes what was interrupted.
    ///
    /// Forgettings are noted whether or not the messages are here, so that they stay away later. Messages are stored as they
    /// were said, without masking, under the next numbers and at their place in time; one from the future is placed where
    /// this device's clock allows, and keeps its time. What the limits here hide of them is deleted later, as always.
    ///
    /// Read [`settings`](Self::settings) again afterwards to know what a later change here starts from: a clear in the future
    /// counts as one of now, and some settings may be left out.
    ///
    /// # Errors
    /// [`Error::WrongKey`](crate::Error::WrongKey) and similar errors if some message here can only be read under another key
    /// or by another program, since it may be the same. Those of appending. What was applied before the error stays.
    pub async fn receive(&self, incoming: Incoming) -> Result<Received> {
        let Incoming { forgotten, messages, mut settings, snapshots } = incoming;
        let mut received = Received::default();
        let mut known = self.known.lock().await;
        let known = &mut *known;
        self.forget(forgotten, known, &mut received).await?;
        if let Some(cleared) = settings.remove("cleared") {
            self.receive_clear(cleared, &mut received).await?;
        }
        if !messages.is_empty() {
            known.catch_up(&self.store).await?;
            let (originals, copies) = in_order(messages);
            self.take(originals, known, &mut received).await?;
            self.take(copies, known, &mut received).await?;
        }
        self.receive_settings(settings, &mut received).await?;
        self.receive_snapshots(snapshots, known, &mut received).await?;
        known.save(&self.store, DOUBLED).await;
        Ok(received)
    }

    /// Saves which messages are here, so that the next exchange of this conversation need not read them. If that fails, it
    /// only takes longer.
    pub async fn save_index(&self) {
        let mut known = self.known.lock().await;
        if known.seen > 0 && known.catch_up(&self.store).await.is_ok() {
            known.save(&self.store, NEARLY_ALL).await;
        }
    }

    /// Forgets what is here of what was forgotten elsewhere, and notes all of it.
    async fn forget(
        &self,
        forgotten: BTreeSet<Origin>,
        known: &mut Known,
        received: &mut Received,
    ) -> Result<()> {
        if forgotten.is_empty() {
            return Ok(());
        }
        // What is noted is told to others too, so the messages go first.
        self.forget_those_here(&forgotten, known, received).await?;
        let forgotten = Arc::new(forgotten);
        let noted = Arc::clone(&forgotten);
        self.store.write(move |writer| writer.note_forgotten(&noted)).await?;
        // Another process may have received some of them before they were noted.
        self.forget_those_here(&forgotten, known, received).await
    }

    async fn forget_those_here(
        &self,
        forgotten: &BTreeSet<Origin>,
        known: &mut Known,
        received: &mut Received,
    ) -> Result<()> {
        known.catch_up(&self.store).await?;
        let numbers = known.numbers(forgotten);
        if numbers.is_empty() {
            return Ok(());
        }
        let report = self.store.forget(&numbers).await?;
        received.removed += report.removed.len();
        for finding in &report.left {
            tracing::warn!(kind = finding.kind.code(), file = finding.file, "not removed");
        }
        Ok(())
    }

    /// Stores the messages that are neither here nor forgotten.
    async fn take(
        &self,
        mut rest: VecDeque<SharedMessage>,
        known: &mut Known,
        received: &mut Received,
    ) -> Result<()> {
        sift(&mut rest, known, received);
        loop {
            let batch = next_batch(&mut rest, known, received);
            if batch.is_empty() {
                return Ok(());
            }
            match receive_after(&self.store, (known.seen, known.noted), batch).await? {
                Some(names) => {
                    received.taken += names.len();
                    let last = names.last().map_or(known.seen, |name| name.seq);
                    let taken = rest.drain(..names.len().min(rest.len()));
                    known.note(taken.map(|shared| shared.origin).zip(names), last);
                }
                // Another process has stored something or forgotten something, perhaps one of these.
                None => {
                    known.catch_up(&self.store).await?;
                    sift(&mut rest, known, received);
                }
            }
        }
    }
}

/// Each message once, in the order of their times: the originals, and the restored copies, which name their originals.
fn in_order(
    mut messages: Vec<SharedMessage>,
) -> (VecDeque<SharedMessage>, VecDeque<SharedMessage>) {
    messages.sort_by_key(|shared| shared.at);
    let mut seen = HashSet::with_capacity(messages.len());
    messages.retain(|shared| seen.insert(shared.origin));
    let (originals, copies): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|shared| shared.copy_of.is_none());
    (originals.into(), copies.into())
}

/// Drops the messages that are here or were forgotten.
fn sift(rest: &mut VecDeque<SharedMessage>, known: &Known, received: &mut Received) {
    rest.retain(|shared| {
        let is_there = known.has(shared.origin);
        let is_forgotten = !is_there && known.has_forgotten(shared.origin);
        received.already_there += usize::from(is_there);
        received.forgotten += usize::from(is_forgotten);
        !is_there && !is_forgotten
    });
}

/// The next messages to be stored together. Drops those that no record can hold.
fn next_batch(
    rest: &mut VecDeque<SharedMessage>,
    known: &Known,
    received: &mut Received,
) -> Vec<ValidMessage> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        let Some(shared) = rest.get(batch.len()) else { break };
        let original = shared.copy_of.and_then(|origin| known.number(origin));
        match ValidMessage::received(shared.marked(original), shared.at) {
            Ok(valid) => {
                bytes += valid.size;
                batch.push(valid);
            }
            Err(error) => {
                tracing::warn!(%error, origin = %shared.origin, "another device's message was refused");
                received.refused += 1;
                rest.remove(batch.len());
            }
        }
    }
    batch
}

/// Stores the first messages, as many as one pack holds, and returns their names. `None` if the conversation has changed.
async fn receive_after(
    store: &FileConversationStore,
    seen: (u64, u64),
    batch: Vec<ValidMessage>,
) -> Result<Option<Vec<RecordName>>> {
    let stored = store.write(move |writer| writer.receive(batch, seen)).await?;
    Ok(stored.map(|stored| stored.iter().map(|stored| stored.name).collect()))
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("forgotten", &self.forgotten.len())
            .field("messages", &self.messages.len())
            .field("settings", &self.settings.len())
            .field("snapshots", &self.snapshots.len())
            .finish()
    }
}
